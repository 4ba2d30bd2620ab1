"""Crediting: what credit notes take back of an invoice, never more of any tax rate than it has.

What is credited is known for each tax rate and for each project: with the last credit, every one of them comes to
nothing, to the cent.
"""

from collections.abc import Sequence
from decimal import Decimal

from sqlalchemy import bindparam, select

from retainer.billing import documents
from retainer.billing.credit_notes.types import CreditNote, CreditNoteLine
from retainer.billing.invoices.types import Invoice, InvoiceLine
from retainer.schema.billing import invoice_lines
from retainer.store import constraints
from retainer.store.tx import Tx
from retainer.values import money
from retainer.values.exact import amount_of, decimal_text, minor_units
from retainer.values.money import Share

OWNER = select(invoice_lines.c.invoice_id).where(invoice_lines.c.id == bindparam("id"))


def remaining_shares(invoice: Invoice) -> dict[Decimal, Share]:
    """Return what of an invoice is not yet credited at each tax rate, in minor units."""
    remaining: dict[Decimal, Share] = {}
    signed: list[tuple[Invoice | CreditNote, int]] = [(invoice, 1), *((note, -1) for note in invoice.credit_notes)]
    for document, sign in signed:
        for tax_share in document.tax_breakdown:
            rate = tax_share.tax_rate
            _, taxable, tax = remaining.get(rate, Share(rate, 0, 0))
            taxable += sign * minor_units(tax_share.taxable_amount, document.currency)
            tax += sign * minor_units(tax_share.tax_amount, document.currency)
            remaining[rate] = Share(rate, taxable, tax)
    return remaining


def compute_totals(tx: Tx, note: CreditNote, invoice: Invoice) -> None:
    """Set the totals of a credit note: an amount, what its lines say, or, when it says neither, all that is left.

    Raises `validation_failed` when nothing is left.
    """
    remaining = remaining_shares(invoice)
    whole = sum(share.gross for share in remaining.values())
    if whole == 0:
        tx.error("amount", "Nothing is left to credit: the invoice comes to 0, or was credited as a whole.")
        tx.raise_errors()
    if note.amount is not None and note.lines:
        tx.error("amount", "Send either an amount or lines.")
    elif note.amount is None and not note.lines and not invoice.credit_notes:
        note.lines = [credit_line(line) for line in invoice.lines if line.quantity]
    if note.lines:
        documents.set_totals(note, credit_by_lines(tx, note, invoice, remaining))
    else:
        gross = whole if note.amount is None else to_minor_units(tx, note.amount, invoice.currency)
        documents.set_totals(note, credit_by_amount(tx, note, gross, list(remaining.values()), invoice))
    if not tx.errors:
        check_bounds(tx, note, remaining, amount_of(whole, invoice.currency))


def check_bounds(tx: Tx, note: CreditNote, remaining: dict[Decimal, Share], whole: Decimal) -> None:
    """Note an error when a credit note comes to nothing, or to more than the whole that is left.

    One that comes to all that is left must leave nothing at any rate.
    """
    if note.total <= 0:
        tx.error("lines" if note.lines else "amount", f"Must come to more than 0; comes to {note.total}.")
    elif note.total > whole:
        tx.error("lines", f"Come to {note.total} {note.currency}, where {whole} is left to credit.")
    elif note.total == whole and len(note.tax_breakdown) < sum(share.taxable != 0 for share in remaining.values()):
        tx.error("lines", f"Come to all {whole} that is left, but not at each tax rate. Leave lines out to credit all.")


def freed_lines(invoice: Invoice, note: CreditNote) -> list[InvoiceLine]:
    """Return the lines whose work a new credit note frees: those now credited in their whole quantity, or all of them.

    The invoice has the notes before it. Work that one of those has freed may be on another invoice by now.
    """
    former = credited_lines(invoice, invoice.credit_notes)
    is_full = note.total == invoice.total - sum(other.total for other in invoice.credit_notes)
    now = invoice.lines if is_full else credited_lines(invoice, [*invoice.credit_notes, note])
    return [line for line in now if line not in former]


def credited_lines(invoice: Invoice, notes: Sequence[CreditNote]) -> list[InvoiceLine]:
    """Return the lines of an invoice that credit notes take back in their whole quantity."""
    credited: dict[int | None, Decimal] = {}
    for part in (part for note in notes for part in note.lines):
        credited[part.invoice_line_id] = credited.get(part.invoice_line_id, Decimal(0)) + part.quantity
    return [line for line in invoice.lines if credited.get(line.id) == line.quantity]


def credit_line(line: InvoiceLine) -> CreditNoteLine:
    """Return a line that credits an invoice's line as far as it is not yet credited."""
    return CreditNoteLine(line.description, line.unit_price, line.id, None, None, None, None)  # type: ignore[arg-type]


def to_minor_units(tx: Tx, amount: Decimal, currency: str) -> int:
    """Return an amount that was sent in minor units; note an error when its currency has fewer digits."""
    try:
        return minor_units(amount, currency)
    except ValueError as error:
        tx.error("amount", str(error))
        return 1


def credit_by_amount(tx: Tx, note: CreditNote, gross: int, remaining: list[Share], invoice: Invoice) -> list[Share]:
    """Return what a gross amount of minor units takes back at each rate, in proportion to what is left there.

    Sets the lines of the credit note: one for each rate.
    """
    whole = sum(share.gross for share in remaining)
    if gross > whole:
        tx.error(
            "amount", f"Must be at most what is left to credit: {amount_of(whole, note.currency)} {note.currency}."
        )
        return []
    credited, note.lines = [], []
    parts = money.allocate(gross, [share.gross for share in remaining]) if whole else []
    for part, share in zip(parts, remaining, strict=False):
        net = money.net_of_part(part, share)
        if part:
            credited.append(Share(share.tax_rate, net, part - net))
            quantity, price = Decimal(-1 if net < 0 else 1), amount_of(abs(net), note.currency)
            text, amount = note.description or f"Credit on invoice {invoice.number}", amount_of(net, note.currency)
            note.lines.append(CreditNoteLine(text, price, None, quantity, Decimal(0), share.tax_rate, amount))
    return credited


def credit_by_lines(tx: Tx, note: CreditNote, invoice: Invoice, remaining: dict[Decimal, Share]) -> list[Share]:
    """Return what the lines of a credit note take back at each rate; note an error where that is more than is left."""
    taxable: dict[Decimal, int] = {}
    lines_by_id = {line.id: line for line in invoice.lines}
    former = [line for other in invoice.credit_notes for line in other.lines]
    for line in documents.each_line(tx, note.lines):
        if line.invoice_line_id is None:
            price_free_line(tx, line, note.currency, list(remaining))
        elif line.invoice_line_id in lines_by_id:
            price_part(tx, line, lines_by_id[line.invoice_line_id], note.currency, former)
        else:
            row = tx.one(OWNER, id=line.invoice_line_id)
            other = (
                f"Is a line of invoice {row[0]}, not of this one."
                if row
                else constraints.MISSING.format("invoice line")
            )
            tx.error("invoice_line_id", other)
            continue
        former.append(line)
        if line.tax_rate in remaining:
            taxable[line.tax_rate] = taxable.get(line.tax_rate, 0) + minor_units(line.amount, note.currency)
    credited = []
    for rate, net in sorted(taxable.items()):
        share = remaining[rate]
        if net != money.clamp(net, 0, share.taxable):
            rest = f"{amount_of(share.taxable, note.currency)} {note.currency} before tax is left to credit"
            tx.error("lines", f"Come to {amount_of(net, note.currency)} at {rate:f} % tax, where {rest}.")
        credited.append(Share(rate, net, money.tax_of_part(net, share)))
    return credited


def price_free_line(tx: Tx, line: CreditNoteLine, currency: str, rates: Sequence[Decimal]) -> None:
    """Price a line of the note's own, at one of the invoice's tax rates: the only one, unless it says which."""
    if line.tax_rate is None and len(rates) == 1:
        line.tax_rate = rates[0]
    elif line.tax_rate not in rates:
        tx.error("tax_rate", f"Must be one of the invoice's: {', '.join(f'{rate:f}' for rate in rates)}.")
    for field in ("description", "unit_price"):
        if getattr(line, field) is None and tx.readable("invoice_line_id"):
            tx.error(field, "Is required, unless invoice_line_id says what is credited.")
    line.quantity = Decimal(1) if line.quantity is None else line.quantity
    line.discount_percent = Decimal(0)
    line.unit_price = money.pad_price(line.unit_price or Decimal(0), currency)
    units = money.line_amount(line.quantity, line.unit_price, Decimal(0), currency)
    line.amount = amount_of(units, currency)


def price_part(
    tx: Tx, line: CreditNoteLine, whole: InvoiceLine, currency: str, former: Sequence[CreditNoteLine]
) -> None:
    """Price a part of an invoice's line, the whole: so much of its quantity, or all that is left of it."""
    others = [other for other in former if other.invoice_line_id == whole.id]
    rest = whole.quantity - sum((other.quantity for other in others), Decimal(0))
    units = minor_units(whole.amount, currency)
    rest_units = units - sum(minor_units(other.amount, currency) for other in others)
    for field in ("unit_price", "tax_rate"):
        if getattr(line, field) not in {None, getattr(whole, field)}:
            tx.error(
                field, f"Is that of the invoice's line: {getattr(whole, field):f}. Leave it out, or invoice_line_id."
            )
    line.description, line.unit_price = line.description or whole.description, whole.unit_price
    line.discount_percent, line.tax_rate = whole.discount_percent, whole.tax_rate
    line.quantity = Decimal(decimal_text(rest)) if line.quantity is None else line.quantity
    if line.quantity == 0 or not min(rest, Decimal(0)) <= line.quantity <= max(rest, Decimal(0)):
        tx.error("quantity", f"Must not be 0 and at most what is left of the line: {decimal_text(rest)}.")
        line.quantity = line.amount = Decimal(0)  # so that it leaves the line to the others that take from it
    elif line.quantity == rest:
        line.amount = amount_of(rest_units, currency)
    else:
        part = money.part_of(units, line.quantity, whole.quantity)
        line.amount = amount_of(money.clamp(part, 0, rest_units), currency)
