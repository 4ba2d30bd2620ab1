"""Credit notes: credits on issued invoices; they are final.

A credit note credits a gross amount, lines, or all that is left. It lowers the balance first (`applied_amount`); the
rest is `refundable_amount`. Credits never exceed the invoice, in total and at each tax rate. The work of a line can be
billed again when its whole quantity is credited, and all work of the invoice, or its quote, when the whole invoice is.
The last credit leaves exactly 0 at every rate and for every project.
"""

from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated

from retainer.billing import balance, facts, files, papers, rules, shares, work
from retainer.billing.credit_notes.types import CreditNote, CreditNoteLine, Reason
from retainer.billing.facts import load_known_parties
from retainer.billing.invoices.invoices import load_invoice
from retainer.billing.invoices.types import Invoice, InvoiceLine
from retainer.billing.reading import Parties
from retainer.documents.facts import Language
from retainer.documents.wording import WORDS
from retainer.errors import LEAVE_OUT, SEND, Refusal, part
from retainer.kernel.body import New
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.rollups import changes
from retainer.rollups.sources import CREDIT_NOTE_SHARES
from retainer.schema.billing import ISSUED_INVOICES, credit_note_shares, credit_notes, invoice_lines, invoices, quotes
from retainer.schema.filters import ONE_OF_NUMBERS, since, until
from retainer.shared.numbering import next_document_number
from retainer.store import constraints
from retainer.store.tx import Tx
from retainer.values import money
from retainer.values.decoding import json_text
from retainer.values.exact import amount_of, decimal_text, minor_units
from retainer.values.kinds import Code50, Day, Id
from retainer.values.money import Share
from retainer.values.reading import with_defaults


class CreditNoteFilter(Filter):
    sorts = ("-created_at", "issue_date", "number", "total")
    client_id: OneOf[Id] | None = None
    invoice_id: OneOf[Id] | None = None
    reason: OneOf[Reason] | None = None
    issue_date_from: Annotated[Day | None, since("issue_date")] = None
    issue_date_to: Annotated[Day | None, until("issue_date")] = None
    number: Annotated[OneOf[Code50] | None, ONE_OF_NUMBERS] = None


def build_credit_note(tx: Tx, note: CreditNote, invoice: Invoice, language: Language) -> CreditNote:
    """Return a credit note with the fields of its invoice, its totals and its number.

    Raises all errors of the body, and `locked` for an invoice that is a draft or void.
    """
    if invoice.status not in ISSUED_INVOICES:
        is_draft = invoice.status == "draft"
        state = "is a draft: change its lines instead" if is_draft else "is void: nothing is left of it"
        message = f"Only what was issued can be credited; this invoice {state}."
        raise Refusal("locked", message, errors={"invoice": [message]})
    note.invoice_id, note.client_id, note.currency = invoice.id, invoice.client_id, invoice.currency
    issued = invoice.issue_date or tx.today
    note.issue_date = note.issue_date or max(tx.today, issued)
    if note.issue_date < issued:
        tx.error("issue_date", f"Must not be before the invoice's, which is {issued}.")
    compute_credit(tx, note, invoice, language)
    note.applied_amount, note.refundable_amount = Decimal(0), note.total  # until recompute_balance applies it
    tx.raise_errors()
    note.number = next_document_number(tx, credit_notes, note.issue_date)
    return note


def compute_credit(tx: Tx, note: CreditNote, invoice: Invoice, language: Language) -> None:
    """Set the lines and totals of a credit note, from its amount or its lines; without both, credit all that is left.

    Raises `validation_failed` if nothing is left.
    """
    remaining = shares.remaining_shares(invoice)
    whole = sum(share.gross for share in remaining.values())
    if whole == 0:
        tx.error("amount", "Nothing is left to credit: the invoice's total is 0, or it is credited in full.")
        tx.raise_errors()
    if note.amount is not None and note.lines:
        tx.error("amount", f"{SEND} either an amount or lines.")
    elif note.amount is None and not note.lines and not invoice.amount_credited:
        whole_lines = (line for line in invoice.lines if line.quantity)
        note.lines = [with_defaults(CreditNoteLine, invoice_line_id=line.id) for line in whole_lines]
    if note.lines:
        credited = credit_by_lines(tx, note, invoice, remaining)
    else:
        sent = None if note.amount is None else rules.units_of(tx, "amount", note.amount, invoice.currency)
        gross = whole if sent is None else sent
        text = WORDS[language]["credit"].format(number=invoice.number)
        credited = credit_by_amount(note, gross, list(remaining.values()), text)
    rules.set_totals(note, credited)
    if not tx.errors:
        validate_bounds(tx, note, remaining, amount_of(whole, invoice.currency))


def validate_bounds(tx: Tx, note: CreditNote, remaining: dict[Decimal, Share], whole: Decimal) -> None:
    """Note an error for a credit note of 0 or less, or of more than the whole that is left, on what was sent.

    A credit of the whole must leave 0 at every rate.
    """
    field = "lines" if note.amount is None else "amount"
    if note.total <= 0:
        tx.error(field, f"The total must be more than 0; it is {part(note.total)}.")
    elif note.total > whole:
        tx.error(field, f"The total is {part(note.total)}, but only {part(whole)} {note.currency} is left to credit.")
    elif note.total == whole and len(note.tax_breakdown) < sum(share.taxable != 0 for share in remaining.values()):
        tx.error(
            "lines", f"The total is all {part(whole)} that is left, but not at each tax rate. Omit lines to credit all."
        )


def freed_lines(invoice: Invoice, note: CreditNote) -> list[InvoiceLine]:
    """Return the lines whose work a new credit note frees: those that are now credited in their whole quantity.

    The invoice has the earlier notes; work that one of them has freed may be on another invoice by now.
    """
    former = credited_lines(invoice, invoice.credit_notes)
    is_full = note.total == invoice.total - invoice.amount_credited
    now = invoice.lines if is_full else credited_lines(invoice, [*invoice.credit_notes, note])
    return [line for line in now if line not in former]


def credited_lines(invoice: Invoice, notes: Sequence[CreditNote]) -> list[InvoiceLine]:
    credited = defaultdict[int | None, Decimal](Decimal)
    for line in (line for note in notes for line in note.lines):
        credited[line.invoice_line_id] += line.quantity
    return [line for line in invoice.lines if credited.get(line.id) == line.quantity]


def credit_by_amount(note: CreditNote, gross: int, remaining: list[Share], text: str) -> list[Share]:
    """Return the shares of a gross amount at each rate, in proportion to what is left there, in minor units.

    Sets the lines of the credit note: one with this text for each rate. Its own description is printed above them.
    """
    credited, note.lines = shares.spread(gross, remaining), []
    for rate, net, _ in credited:
        quantity, amount = Decimal(-1 if net < 0 else 1), amount_of(net, note.currency)
        note.lines.append(CreditNoteLine(text, abs(amount), None, quantity, Decimal(0), rate, amount))
    return credited


def credit_by_lines(tx: Tx, note: CreditNote, invoice: Invoice, remaining: dict[Decimal, Share]) -> list[Share]:
    """Return the shares of the lines of a credit note at each rate; note an error for more than is left."""
    taxable: dict[Decimal, int] = {}
    lines_by_id = {line.id: line for line in invoice.lines}
    former = [line for other in invoice.credit_notes for line in other.lines]
    for line in rules.each_line(tx, note.lines):
        if line.invoice_line_id is None:
            price_free_line(tx, line, note.currency, list(remaining))
        elif line.invoice_line_id in lines_by_id:
            price_part(tx, line, lines_by_id[line.invoice_line_id], note.currency, former)
        else:
            owner_id = tx.field(invoice_lines.c.invoice_id, line.invoice_line_id)
            missing = constraints.MISSING.format("invoice line")
            tx.error("invoice_line_id", f"Is a line of invoice {owner_id}, not of this one." if owner_id else missing)
            continue
        former.append(line)
        if line.tax_rate in remaining:
            taxable[line.tax_rate] = taxable.get(line.tax_rate, 0) + minor_units(line.amount, note.currency)
    credited = []
    for rate, net in sorted(taxable.items()):
        share = remaining[rate]
        if net != money.clamp(net, 0, share.taxable):
            rest = f"{part(amount_of(share.taxable, note.currency))} {note.currency} before tax is left to credit"
            tx.error(
                "lines",
                f"The total is {part(amount_of(net, note.currency))} at {part(f'{rate:f}')} % tax, but only {rest}.",
            )
        credited.append(Share(rate, net, money.tax_of_part(net, share)))
    return credited


def price_free_line(tx: Tx, line: CreditNoteLine, currency: str, rates: Sequence[Decimal]) -> None:
    if line.tax_rate is None and len(rates) == 1:
        line.tax_rate = rates[0]
    elif line.tax_rate not in rates:
        tx.error("tax_rate", f"Must be one of the invoice's: {', '.join(part(f'{rate:f}') for rate in rates)}.")
    for field in ("description", "unit_price"):
        if getattr(line, field) is None and tx.readable("invoice_line_id"):
            tx.error(field, f"{part('Is required')}, unless {part('invoice_line_id')} says what is credited.")
    line.quantity = Decimal(1) if line.quantity is None else line.quantity
    line.discount_percent = Decimal(0)
    line.unit_price = money.pad_price(line.unit_price or Decimal(0), currency)
    units = money.line_amount(line.quantity, line.unit_price, Decimal(0), currency)
    line.amount = amount_of(units, currency)


def price_part(
    tx: Tx, line: CreditNoteLine, whole: InvoiceLine, currency: str, former: Sequence[CreditNoteLine]
) -> None:
    others = [other for other in former if other.invoice_line_id == whole.id]
    rest = whole.quantity - sum((other.quantity for other in others), Decimal(0))
    units = minor_units(whole.amount, currency)
    rest_units = units - sum(minor_units(other.amount, currency) for other in others)
    for field in ("unit_price", "tax_rate"):
        value = getattr(whole, field)
        if getattr(line, field) not in {None, value}:
            tx.error(
                field,
                f"Is that of the invoice's line: {part(f'{value:f}')}. {LEAVE_OUT}, or {part('invoice_line_id')}.",
            )
    line.description = line.description or whole.description
    for field in ("unit_price", "discount_percent", "tax_rate"):
        setattr(line, field, getattr(whole, field))
    line.quantity = Decimal(decimal_text(rest)) if line.quantity is None else line.quantity
    if line.quantity == 0 or not min(rest, Decimal(0)) <= line.quantity <= max(rest, Decimal(0)):
        tx.error("quantity", explain_rest(rest))
        line.quantity = line.amount = Decimal(0)  # so that the rest stays for the other lines
    elif line.quantity == rest:
        line.amount = amount_of(rest_units, currency)
    else:
        share = money.part_of(units, line.quantity, whole.quantity)
        line.amount = amount_of(money.clamp(share, 0, rest_units), currency)


def explain_rest(rest: Decimal) -> str:
    """Return which quantities of a line can be credited."""
    if not rest:
        return f"Nothing is left of the line: it is credited in full. {LEAVE_OUT}."
    bounds = "more than 0 and at most" if rest > 0 else "less than 0 and at least"
    return f"Must be {bounds} {part(decimal_text(rest))}, what is left of the line."


def issue(tx: Tx, note_id: int, invoice: Invoice, parties: Parties) -> CreditNote:
    """Store what a new credit note prints; return it."""
    note = tx.get(credit_notes, note_id, CreditNote)
    tx.update_columns(credit_notes, note_id, {"issuer_snapshot": json_text(parties.paid_in(note.currency))})
    papers.issue(tx, note, facts.of_credit_note(note, parties, facts.load_credited(tx, invoice.id)))
    return note


api = Resource("/credit-notes", tag="Credit notes", scope="invoices", table=credit_notes)
api.lists(CreditNote, CreditNoteFilter, "List credit notes, newest first.")
made = Resource(
    "/invoices/{invoice_id}/credit-notes",
    tag="Credit notes",
    scope="invoices",
    table=credit_notes,
    parent=invoices,
    location="/credit-notes",
)


@made.post()
def create_credit_note(tx: Tx, invoice_id: Id, body: New[CreditNote]) -> CreditNote:
    """Credit an issued invoice: a gross amount, lines, or, without both, all that is left."""
    invoice = load_invoice(tx, invoice_id)
    parties = load_known_parties(tx, invoice.client_id, invoice.contact_id)
    note = build_credit_note(tx, body, invoice, parties.language)
    of_projects = shares.compute_shares(tx, invoice, minor_units(note.subtotal, note.currency), note.lines)
    note_id = tx.insert(credit_notes, note)
    balance.recompute_balance(tx, invoice_id, by_payment=False)
    for project_id, units in of_projects.items():
        share = {"credit_note_id": note_id, "project_id": project_id, "currency": note.currency, "amount": units}
        tx.insert_counted(credit_note_shares, share)
    changes.added(tx, CREDIT_NOTE_SHARES, [note_id])
    work.free(tx, invoice.id, freed_lines(invoice, note))
    if invoice.quote_id is not None and note.total == invoice.total - invoice.amount_credited:
        tx.touch(quotes, invoice.quote_id, "invoice_id")  # it can become another invoice
    return issue(tx, note_id, invoice, parties)


@api.get("/{credit_note_id}", representations=files.ISSUED_AS)
def get_credit_note(tx: Tx, credit_note_id: Id, _: files.DocumentQuery) -> CreditNote:
    """Read a credit note.

    `Accept: application/pdf` returns its PDF, which carries its e-invoice (Factur-X, EN 16931), and `application/xml`
    the e-invoice alone. Both are drawn from what was issued, and stay the same, whatever changes later. The PDF prints
    Latin, Greek, Cyrillic, Hebrew, Arabic, Thai, Devanagari, Chinese, Japanese and Korean; other characters become
    squares.
    """
    return tx.get(credit_notes, credit_note_id, CreditNote)
