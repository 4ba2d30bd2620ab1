"""Crediting: what credit notes take back of an invoice, never more of any tax rate than it has.

What is credited is known for each tax rate and for each project: with the last credit, every one of them comes to
nothing, to the cent.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from sqlalchemy import bindparam, select

from retainer import schema
from retainer.billing import documents
from retainer.billing.documents import MOST_LINES
from retainer.billing.lines import InvoiceLine
from retainer.store import constraints
from retainer.store.tx import Tx
from retainer.values import money
from retainer.values.exact import amount_of, decimal_text, minor_units
from retainer.values.kinds import Currency, Day, Id, Money, Percent, Quantity, SignedMoney, Text50, Text2000, UnitPrice
from retainer.values.money import Share
from retainer.values.records import READ_ONLY, SERVER_DEFAULT, WRITE_ONLY, Record


class CreditNoteLine(msgspec.Struct):
    """One thing that is credited: part of an invoice's line, or anything else that its tax rates have room for."""

    description: Annotated[
        Text2000, "That of the invoice's line when left out; required without `invoice_line_id`."
    ] = SERVER_DEFAULT
    unit_price: Annotated[UnitPrice, "That of the invoice's line; required without `invoice_line_id`."] = SERVER_DEFAULT
    invoice_line_id: Annotated[Id | None, "Line of the invoice that it credits; null for one of its own."] = None
    quantity: Annotated[Quantity, "How much of the line is credited; all that is left of it when left out."] = (
        SERVER_DEFAULT
    )
    discount_percent: Annotated[Percent, "That of the invoice's line; 0 for one of the note's own."] = READ_ONLY
    tax_rate: Annotated[Percent, "That of the invoice's line, else one of the invoice's; needed if several."] = (
        SERVER_DEFAULT
    )
    amount: Annotated[SignedMoney, "What the line takes back, before tax."] = READ_ONLY


Reason = Annotated[
    Literal["correction", "duplicate", "goodwill", "cancellation", "other"],
    "Why it was made; nothing else follows from it.",
]


class CreditNote(Record):
    """What an agency takes back of an invoice: it lowers what is due, and what was already paid can be refunded."""

    invoice_id: Annotated[Id, "The issued invoice of which it takes something back."] = READ_ONLY
    client_id: Annotated[Id, "That of the invoice."] = READ_ONLY
    number: Annotated[Text50, "The next of the account's gapless series, like CN-2026-0001."] = READ_ONLY
    currency: Annotated[Currency, "That of the invoice."] = READ_ONLY
    issue_date: Annotated[Day, "Day on which reports count it, not before the invoice's; today when left out."] = (
        SERVER_DEFAULT
    )
    reason: Reason = "correction"
    description: Annotated[Text2000 | None, "Why or for what, in your own words; `q` searches it."] = None
    lines: Annotated[
        list[CreditNoteLine],
        Meta(min_length=1, max_length=MOST_LINES),
        "What is credited; without lines and `amount` all that is left of the invoice.",
    ] = SERVER_DEFAULT
    subtotal: Annotated[SignedMoney, "What the lines take back, before tax."] = READ_ONLY
    tax_total: documents.TaxTotal = READ_ONLY
    total: Annotated[Money, "What is taken back, with tax; all notes together never exceed the invoice."] = READ_ONLY
    tax_breakdown: documents.TaxBreakdown = READ_ONLY
    applied_amount: Annotated[Money, "What of `total` was still to be paid, and is no more."] = READ_ONLY
    refundable_amount: Annotated[Money, "What of `total` was already paid, and can be refunded."] = READ_ONLY
    amount: Annotated[
        Money, "What to take back, with tax, spread over the invoice's tax rates; instead of `lines`."
    ] = WRITE_ONLY


OWNER = select(schema.billing.invoice_lines.c.invoice_id).where(schema.billing.invoice_lines.c.id == bindparam("id"))


def left(invoice: Any) -> dict[Decimal, Share]:
    """What of an invoice is not yet credited at each tax rate."""
    found: dict[Decimal, Share] = {}
    for document, sign in [(invoice, 1), *((note, -1) for note in invoice.credit_notes)]:
        for its in document.tax_breakdown:
            _, taxable, tax = found.get(its.tax_rate, Share(its.tax_rate, 0, 0))
            taxable += sign * minor_units(its.taxable_amount, document.currency)
            tax += sign * minor_units(its.tax_amount, document.currency)
            found[its.tax_rate] = Share(its.tax_rate, taxable, tax)
    return found


def compute_totals(tx: Tx, note: CreditNote, invoice: Any) -> None:
    """What a credit note takes back: an amount, what its lines say, or, when it says neither, all that is left."""
    room = left(invoice)
    whole = sum(share.gross for share in room.values())
    if whole == 0:
        tx.error("amount", "Nothing is left to credit: the invoice comes to 0, or was credited as a whole.")
        tx.raise_errors()
    if note.amount is not None and note.lines:
        tx.error("amount", "Send either an amount or lines.")
    elif note.amount is None and not note.lines and not invoice.credit_notes:
        note.lines = [part_of(line) for line in invoice.lines if line.quantity]
    if note.lines:
        documents.set_totals(note, by_lines(tx, note, invoice, room))
    else:
        gross = whole if note.amount is None else in_units(tx, note.amount, invoice.currency)
        documents.set_totals(note, by_amount(tx, note, gross, list(room.values()), invoice))
    if not tx.errors:
        check_bounds(tx, note, room, amount_of(whole, invoice.currency))


def check_bounds(tx: Tx, note: CreditNote, room: dict[Decimal, Share], whole: Decimal) -> None:
    """Note a fault when a credit note comes to nothing, or to more than the whole that is left.

    One that comes to all that is left must leave nothing at any rate.
    """
    if note.total <= 0:
        tx.error("lines" if note.lines else "amount", f"Must come to more than 0; comes to {note.total}.")
    elif note.total > whole:
        tx.error("lines", f"Come to {note.total} {note.currency}, where {whole} is left to credit.")
    elif note.total == whole and len(note.tax_breakdown) < sum(share.taxable != 0 for share in room.values()):
        tx.error("lines", f"Come to all {whole} that is left, but not at each tax rate. Leave lines out to credit all.")


def part_of(line: InvoiceLine) -> CreditNoteLine:
    """An invoice's line, to be credited as far as it is not yet."""
    return CreditNoteLine(line.description, line.unit_price, line.id, None, None, None, None)  # type: ignore[arg-type]


def in_units(tx: Tx, amount: Decimal, currency: str) -> int:
    """An amount that was sent, in minor units; a fault when its currency has fewer digits."""
    try:
        return minor_units(amount, currency)
    except ValueError as error:
        tx.error("amount", str(error))
        return 1


def by_amount(tx: Tx, note: CreditNote, gross: int, room: list[Share], invoice: Any) -> list[Share]:
    """What a gross amount takes back at each rate, in proportion to what is left there."""
    whole = sum(share.gross for share in room)
    if gross > whole:
        tx.error(
            "amount", f"Must be at most what is left to credit: {amount_of(whole, note.currency)} {note.currency}."
        )
        return []
    found, note.lines = [], []
    parts = money.allocate(gross, [share.gross for share in room]) if whole else []
    for part, share in zip(parts, room, strict=False):
        net = money.net_of_part(part, share)
        if part:
            found.append(Share(share.tax_rate, net, part - net))
            sign, price = Decimal(-1 if net < 0 else 1), amount_of(abs(net), note.currency)
            said, amount = note.description or f"Credit on invoice {invoice.number}", amount_of(net, note.currency)
            note.lines.append(CreditNoteLine(said, price, None, sign, Decimal(0), share.tax_rate, amount))
    return found


def by_lines(tx: Tx, credit_note: CreditNote, invoice: Any, room: dict[Decimal, Share]) -> list[Share]:
    """What lines take back at each rate; a fault where that is more than is left."""
    taxable: dict[Decimal, int] = {}
    its_lines = {line.id: line for line in invoice.lines}
    former = [line for note in invoice.credit_notes for line in note.lines]
    for line in documents.each_line(tx, credit_note.lines):
        if line.invoice_line_id is None:
            price_free_line(tx, line, credit_note.currency, list(room))
        elif line.invoice_line_id in its_lines:
            price_part(tx, line, its_lines[line.invoice_line_id], credit_note.currency, former)
        else:
            row = tx.one(OWNER, id=line.invoice_line_id)
            its = (
                f"Is a line of invoice {row[0]}, not of this one."
                if row
                else constraints.MISSING.format("invoice line")
            )
            tx.error("invoice_line_id", its)
            continue
        former.append(line)
        if line.tax_rate in room:
            taxable[line.tax_rate] = taxable.get(line.tax_rate, 0) + minor_units(line.amount, credit_note.currency)
    found = []
    for rate, net in sorted(taxable.items()):
        share = room[rate]
        if net != money.clamp(net, 0, share.taxable):
            rest = (
                f"{amount_of(share.taxable, credit_note.currency)} {credit_note.currency} before tax is left to credit"
            )
            tx.error("lines", f"Come to {amount_of(net, credit_note.currency)} at {rate:f} % tax, where {rest}.")
        found.append(Share(rate, net, money.tax_of_part(net, share)))
    return found


def price_free_line(tx: Tx, line: CreditNoteLine, currency: str, rates: Sequence[Decimal]) -> None:
    """What a line of its own comes to, at one of the invoice's tax rates: the only one, unless it says which."""
    known = ", ".join(f"{rate:f}" for rate in rates)
    if line.tax_rate is None and len(rates) == 1:
        line.tax_rate = rates[0]
    elif line.tax_rate not in rates:
        tx.error("tax_rate", f"Must be one of the invoice's: {known}.")
    for member in ("description", "unit_price"):
        if getattr(line, member) is None and tx.readable("invoice_line_id"):
            tx.error(member, "Is required, unless invoice_line_id says what is credited.")
    line.quantity = Decimal(1) if line.quantity is None else line.quantity
    line.discount_percent = Decimal(0)
    line.unit_price = money.pad_price(line.unit_price or Decimal(0), currency)
    units = money.line_amount(line.quantity, line.unit_price, Decimal(0), currency)
    line.amount = amount_of(units, currency)


def price_part(
    tx: Tx, line: CreditNoteLine, whole: InvoiceLine, currency: str, former: Sequence[CreditNoteLine]
) -> None:
    """What part of an invoice's line is credited: so much of its quantity, or all that is left of it."""
    others = [other for other in former if other.invoice_line_id == whole.id]
    rest = whole.quantity - sum((other.quantity for other in others), Decimal(0))
    units = minor_units(whole.amount, currency)
    rest_units = units - sum(minor_units(other.amount, currency) for other in others)
    for member in ("unit_price", "tax_rate"):
        if getattr(line, member) not in {None, getattr(whole, member)}:
            tx.error(
                member, f"Is that of the invoice's line: {getattr(whole, member):f}. Leave it out, or invoice_line_id."
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
