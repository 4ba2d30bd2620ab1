"""Documents: the amounts of quotes, invoices and credit notes, from their lines, payments and credits.

They are computed by the functions that wrote them, in whole minor units; the tax of a credit note only has bounds.
"""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from sqlalchemy import bindparam, func, select

from retainer.billing.balance import settle, status_of
from retainer.billing.credit_notes.types import CreditNote
from retainer.billing.invoices.history import is_tolerable
from retainer.billing.invoices.types import Invoice, InvoiceLine
from retainer.billing.payment_types import Payment, discounts_of
from retainer.billing.quotes.types import Quote, QuoteLine
from retainer.billing.rules import is_counted
from retainer.doctor.findings import Finding
from retainer.documents.facts import TaxShare
from retainer.schema.billing import credit_note_shares, discount_shares, invoices, payments, quotes
from retainer.store.streams import stream_records
from retainer.store.tx import Tx
from retainer.values import money
from retainer.values.exact import amount_of, minor_units

Document = Quote | Invoice | CreditNote
NETS = select(
    payments.c.net_amount,
    select(func.sum(discount_shares.c.amount)).where(discount_shares.c.payment_id == payments.c.id).scalar_subquery(),
).where(payments.c.id == bindparam("id"))
Shares = dict[Decimal, money.Share]
PRICED = ("item", "fee")
"""The kinds of lines whose amount follows from quantity and price; that of the others is the sum of their work."""
SHARES = select(func.sum(credit_note_shares.c.amount)).where(credit_note_shares.c.credit_note_id == bindparam("note"))

OTHER = payments.alias("other")
HALVES = (
    select(*payments.c["id", "offset_invoice_id"])
    .select_from(
        payments.outerjoin(
            OTHER,
            (OTHER.c.invoice_id == payments.c.offset_invoice_id)
            & (OTHER.c.offset_invoice_id == payments.c.invoice_id)
            & (OTHER.c.amount == -payments.c.amount)
            & (OTHER.c.paid_date == payments.c.paid_date),
        )
    )
    .where(payments.c.offset_invoice_id.is_not(None), OTHER.c.id.is_(None))
)
"""The rows of offsets without the row on the other invoice."""


def find(tx: Tx) -> Iterator[Finding]:
    for quote in stream_records(tx, quotes, Quote):
        yield from _of_lines("quote", quote)
    for invoice in stream_records(tx, invoices, Invoice):
        yield from _of_lines("invoice", invoice)
        yield from _of_balance(invoice)
        yield from _of_notes(tx, invoice)
        yield from _of_discounts(tx, invoice)
    for payment_id, other in tx.all(HALVES):
        yield Finding(f"Invoice {other} has no other half of this offset.", f"payment {payment_id}")


def _of_lines(kind: str, document: Quote | Invoice) -> Iterator[Finding]:
    currency = document.currency
    lines: Sequence[QuoteLine | InvoiceLine] = document.lines
    for line in lines:
        priced = not isinstance(line, InvoiceLine) or line.kind in PRICED
        exact = money.line_amount(line.quantity, line.unit_price, line.discount_percent, currency)
        if priced and exact != minor_units(line.amount, currency):
            price = f"{line.quantity:f} x {line.unit_price:f} less {line.discount_percent:f} %"
            yield Finding(f"Line {line.id} is {price}, but its amount is {line.amount}.", f"{kind} {document.id}")
    shares = money.shares((minor_units(line.amount, currency), line.tax_rate) for line in filter(is_counted, lines))
    if isinstance(document, Invoice) and document.is_imported:
        shares = [_as_it_came(share, document) for share in shares]
    yield from _of_totals(kind, document, shares)


def _as_it_came(exact: money.Share, invoice: Invoice) -> money.Share:
    """Return the share of an imported invoice at a rate: with the tax of the other program, if that can be right."""
    stored = next((share for share in _stored_shares(invoice) if share[:2] == exact[:2]), exact)
    lines = sum(line.tax_rate == exact.tax_rate for line in invoice.lines)
    return stored if is_tolerable(stored, lines) else exact


def _of_totals(kind: str, document: Document, shares: Iterable[money.Share]) -> Iterator[Finding]:
    shares = list(shares)
    taxable, tax = sum(share.taxable for share in shares), sum(share.tax for share in shares)
    expected = {"subtotal": taxable, "tax_total": tax, "total": taxable + tax}
    yield from _differences(kind, document, expected, "by its lines")
    if shares != _stored_shares(document):
        yield Finding("tax_breakdown does not follow from its lines.", f"{kind} {document.id}")


def _differences(kind: str, document: Document, expected: dict[str, int], why: str) -> Iterator[Finding]:
    for name, units in expected.items():
        stored = getattr(document, name)
        if minor_units(stored, document.currency) != units:
            right = amount_of(units, document.currency)
            yield Finding(f"{name} is {stored}, but {right} {why}.", f"{kind} {document.id}")


def _stored_shares(document: Document | Payment) -> list[money.Share]:
    def units(amount: Decimal) -> int:
        return minor_units(amount, document.currency)

    found: list[TaxShare] = document.tax_breakdown or []
    return [money.Share(part.tax_rate, units(part.taxable_amount), units(part.tax_amount)) for part in found]


def _of_balance(invoice: Invoice) -> Iterator[Finding]:
    """Yield what differs from the payments and credit notes of an invoice, and a status that does not follow."""
    currency, record = invoice.currency, f"invoice {invoice.id}"
    total = minor_units(invoice.total, currency)
    discounted = sum(minor_units(each.amount, currency) for each in discounts_of(invoice.payments))
    paid = sum(minor_units(payment.amount, currency) for payment in invoice.payments) - discounted
    notes = [minor_units(note.total, currency) for note in invoice.credit_notes]
    due, credited, applied = settle(total, paid, discounted, notes)
    status = status_of(due, paid, credited)
    if invoice.status in {"draft", "void"}:
        if invoice.payments or invoice.credit_notes:
            yield Finding(f"It is {invoice.status}, but has payments or credit notes.", record)
        due = total if invoice.status == "draft" else 0
        status = invoice.status
    elif invoice.written_off_at is not None:
        status = "written_off"
    expected = {"amount_paid": paid, "amount_credited": credited, "balance_due": due}
    yield from _differences("invoice", invoice, expected, "by its payments and credit notes")
    stamps = {"paid": invoice.paid_at, "void": invoice.voided_at, "written_off": invoice.written_off_at}
    if invoice.status != status:
        yield Finding(f"status is {invoice.status}, but {status} by its payments and credit notes.", record)
    elif status in stamps and stamps[status] is None:
        yield Finding(f"It is {status}, but does not say since when.", record)
    if (invoice.status == "draft") != (invoice.number is None) or (invoice.status == "draft") == bool(invoice.sent_at):
        yield Finding(f"It is {invoice.status}, which does not agree with its number and sent_at.", record)
    for note, part in zip(invoice.credit_notes, applied, strict=True):
        rest = minor_units(note.total, currency) - part
        both = {"applied_amount": part, "refundable_amount": rest}
        yield from _differences("credit note", note, both, "by the balance of its invoice")
    for payment in invoice.payments:
        if (payment.currency, payment.client_id) != (currency, invoice.client_id):
            yield Finding(f"Client or currency are not those of invoice {invoice.id}.", f"payment {payment.id}")


def _of_notes(tx: Tx, invoice: Invoice) -> Iterator[Finding]:
    """Yield what is wrong within the credit notes of an invoice, or beyond what it can be credited."""
    left = {share.tax_rate: share for share in _stored_shares(invoice)}
    for discount in discounts_of(invoice.payments):
        for share in _stored_shares(discount):
            left[share.tax_rate] = _less(left.get(share.tax_rate), share)
    for note in invoice.credit_notes:
        taxable: dict[Decimal, int] = {}
        for line in note.lines:
            taxable[line.tax_rate] = taxable.get(line.tax_rate, 0) + minor_units(line.amount, note.currency)
        shares = _stored_shares(note)
        yield from _of_totals("credit note", note, [share for share in shares if _is_possible(share, taxable, left)])
        shared = tx.value(SHARES, note=note.id)
        if shared != minor_units(note.subtotal, note.currency):
            yield Finding("Its shares by project do not add up to its subtotal.", f"credit note {note.id}")
        for share in shares:
            left[share.tax_rate] = _less(left.get(share.tax_rate), share)
    over = [f"{rate:f} %" for rate, share in left.items() if share.gross * _sign(invoice, rate) < 0]
    if over:
        yield Finding(f"More was credited than invoiced at {', '.join(over)} tax.", f"invoice {invoice.id}")


def _less(former: money.Share | None, taken: money.Share) -> money.Share:
    before = former or money.Share(taken.tax_rate, 0, 0)
    return money.Share(taken.tax_rate, before.taxable - taken.taxable, before.tax - taken.tax)


def _of_discounts(tx: Tx, invoice: Invoice) -> Iterator[Finding]:
    """Yield what is wrong within the early-payment discounts of an invoice, or has no payment."""
    days = {each.id: each.paid_date for each in invoice.payments if each.tax_breakdown is None}
    for discount in discounts_of(invoice.payments):
        record, shares = f"payment {discount.id}", _stored_shares(discount)
        net, gross = sum(share.taxable for share in shares), sum(share.gross for share in shares)
        if gross != minor_units(discount.amount, discount.currency):
            yield Finding("Its tax_breakdown does not add up to its amount.", record)
        if (net, net) != tx.one(NETS, id=discount.id):
            yield Finding("Its net, or its shares by project, are not those of its tax_breakdown.", record)
        if days.get(discount.payment_id or 0) != discount.paid_date:
            yield Finding(f"It belongs to no payment of invoice {invoice.id} on its day.", record)


def _is_possible(share: money.Share, taxable: dict[Decimal, int], left: Shares) -> bool:
    """Return whether a share of a credit note is that of its lines, and within what was left at its rate.

    How its tax is rounded has changed between versions, and what was issued stays.
    """
    rest = left.get(share.tax_rate)
    if rest is None or taxable.get(share.tax_rate) != share.taxable:
        return False
    within = (money.clamp(share.taxable, 0, rest.taxable), money.clamp(share.tax, 0, rest.tax))
    return within == (share.taxable, share.tax)


def _sign(invoice: Invoice, rate: Decimal) -> int:
    gross = sum(share.gross for share in _stored_shares(invoice) if share.tax_rate == rate)
    return -1 if gross < 0 else 1
