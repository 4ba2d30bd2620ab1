"""History: invoices that another program has issued, written and removed as they were.

Their number, days, amounts and taxes are kept as that program had them, so a tax may differ from the one that Retainer
would compute, by at most one minor unit for each line at its rate. Their paper is the PDF that came with them.
"""

from decimal import Decimal
from typing import Literal, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, Table, bindparam, func, select

from retainer.billing.balance import settle, status_of
from retainer.billing.facts import load_known_parties
from retainer.billing.invoices.types import ClientSnapshot, Invoice, InvoiceLine
from retainer.billing.payment_types import Payment
from retainer.billing.writing import save_lines
from retainer.documents.facts import TaxShare
from retainer.errors import Refusal
from retainer.rollups import changes
from retainer.rollups.sources import INVOICE_LINES
from retainer.schema.billing import credit_notes, invoice_lines, invoices, issued_documents, payments
from retainer.schema.files import files
from retainer.schema.links import client_links
from retainer.schema.mail import messages
from retainer.store.engines.sql import INTEGER
from retainer.store.tx import Tx
from retainer.values.exact import amount_of, day_after, day_start, minor_units
from retainer.values.money import Share, tax_on
from retainer.values.reading import with_defaults

State = Literal["open", "paid", "void"]
"""What the other program says of an invoice; its balance follows from its payments."""
ID = bindparam("id", type_=INTEGER)
IS_LATER = payments.c.created_at != select(invoices.c.created_at).where(invoices.c.id == ID).scalar_subquery()
"""Payments that did not come with the invoice, in its transaction."""


class Dependent(NamedTuple):
    """What keeps an imported invoice from being removed: where it is, and what people read."""

    table: Table
    condition: ColumnElement[bool]
    sentence: str


VOID = "Make the invoice void, if it should no longer count."
DEPENDENT = (
    Dependent(credit_notes, credit_notes.c.invoice_id == ID, f"it has a credit note, which is final. {VOID}"),
    Dependent(
        payments,
        (payments.c.invoice_id == ID) & IS_LATER,
        "it has a payment that was recorded here. Remove the payment, and undo again.",
    ),
    Dependent(
        messages, (messages.c.record == "invoice") & (messages.c.record_id == ID), f"it was sent by mail. {VOID}"
    ),
    Dependent(files, files.c.invoice_id == ID, "it has a file. Delete the file, and undo again."),
    Dependent(
        client_links, client_links.c.invoice_id == ID, "its client has a link to it. Revoke the link, and undo again."
    ),
)
COUNTS = [(select(func.count()).select_from(each.table).where(each.condition), each.sentence) for each in DEPENDENT]
SNAPSHOT = ClientSnapshot.__struct_fields__
PAYMENTS = select(payments.c.id).where(payments.c.invoice_id == ID)
PAPERS = {
    name: select(issued_documents.c.id).where(issued_documents.c[name] == ID)
    for name in ("invoice_id", "credit_note_id")
}
"""The stored PDF by the column that names its record."""


class PastLine(msgspec.Struct, array_like=True, frozen=True):
    description: str
    quantity: Decimal
    unit_price: Decimal
    discount_percent: Decimal
    tax_rate: Decimal
    amount: Decimal


class PastPayment(msgspec.Struct, array_like=True, frozen=True):
    amount: Decimal
    day: str


class PastInvoice(msgspec.Struct, array_like=True, frozen=True):
    """An invoice as another program has issued it; its lines and its taxes add up to its total."""

    number: str
    issue_date: str
    due_date: str | None
    """None: after the payment terms of the client."""
    state: State
    currency: str
    lines: list[PastLine]
    taxes: list[TaxShare]
    payments: list[PastPayment] = []
    subject: str | None = None
    purchase_order: str | None = None
    notes: str | None = None

    @property
    def total(self) -> Decimal:
        return sum((share.taxable_amount + share.tax_amount for share in self.taxes), Decimal(0))

    @property
    def paid(self) -> Decimal:
        return sum((payment.amount for payment in self.payments), Decimal(0))


def is_tolerable(share: Share, lines: int) -> bool:
    """Return whether the tax at a rate can be that of this number of lines, each of which may have been rounded."""
    return abs(share.tax - tax_on(share.taxable, share.tax_rate)) <= (lines if share.tax_rate else 0)


def write(tx: Tx, past: PastInvoice, client_id: int, program: str, pdf: bytes | None) -> int:
    """Write an invoice with its lines, payments and PDF; return its id. Raises `validation_failed`."""
    parties = load_known_parties(tx, client_id, None)
    customer, currency = parties.customer, past.currency
    issuer = msgspec.structs.replace(
        parties.paid_in(currency), early_payment_discount_percent=None, early_payment_discount_days=None
    )
    invoice = with_defaults(Invoice, client_id=client_id, currency=currency)
    invoice.reminders = False  # the other program may have sent some, years ago
    for name in ("number", "issue_date", "subject", "purchase_order", "notes"):
        setattr(invoice, name, getattr(past, name))
    invoice.due_date = past.due_date or day_after(past.issue_date, parties.client.payment_terms_days)
    invoice.client_snapshot = ClientSnapshot(**{each: getattr(customer, each) for each in SNAPSHOT})
    invoice.tax_breakdown = past.taxes
    invoice.subtotal = sum((share.taxable_amount for share in past.taxes), Decimal(0))
    invoice.tax_total = sum((share.tax_amount for share in past.taxes), Decimal(0))
    invoice.total = past.total
    _settle(tx, invoice, past)
    invoice.id = tx.insert(
        invoices, invoice, imported_from=program, issuer_snapshot=msgspec.json.encode(issuer).decode()
    )
    save_lines(tx, invoice_lines, None, [_line(each, currency) for each in past.lines], invoice_id=invoice.id)
    for each in past.payments:
        payment = with_defaults(Payment, amount=each.amount, paid_date=each.day, method="other")
        payment.invoice_id, payment.client_id, payment.currency = invoice.id, client_id, currency
        tx.insert(payments, payment)
    if pdf is not None:
        tx.insert_counted(issued_documents, {"invoice_id": invoice.id, "pdf": pdf})
    changes.added(tx, INVOICE_LINES, [invoice.id])
    return invoice.id


def _settle(tx: Tx, invoice: Invoice, past: PastInvoice) -> None:
    """Set what follows from the state and the payments; the moments are the beginning of their days, if these are past.

    When an invoice became void is not known, so that is the day of its issue.
    """
    last = max((payment.day for payment in past.payments), default=past.issue_date)
    issued, paid = midnight_of(tx, past.issue_date), minor_units(past.paid, past.currency)
    due, credited, _ = settle(minor_units(past.total, past.currency), paid, 0, ())
    invoice.status, invoice.sent_at = status_of(due, paid, credited), issued  # type: ignore[assignment]
    if past.state == "void":
        invoice.status, invoice.voided_at, due = "void", issued, 0
    elif invoice.status == "paid":
        invoice.paid_at = midnight_of(tx, last)
    invoice.amount_paid, invoice.amount_credited = past.paid, amount_of(0, past.currency)
    invoice.balance_due = amount_of(due, past.currency)


def midnight_of(tx: Tx, day: str) -> str:
    """Return the moment at which a day began, or now if that is earlier."""
    return min(day_start(day, tx.actor.timezone), tx.now)


def _line(past: PastLine, currency: str) -> InvoiceLine:
    line = with_defaults(InvoiceLine, description=past.description, unit_price=past.unit_price)
    line.kind, line.quantity, line.discount_percent = "item", past.quantity, past.discount_percent
    line.tax_rate, line.amount, line.currency = past.tax_rate, past.amount, currency
    return line


def remove(tx: Tx, invoice_id: int) -> None:
    """Delete an imported invoice with what came with it. Raises `in_use` if anything was added to it since."""
    for statement, sentence in COUNTS:
        if tx.value(statement, id=invoice_id):
            raise Refusal("in_use", f"Stays: {sentence}")
    changes.removed(tx, INVOICE_LINES, [invoice_id])
    for (payment_id,) in tx.all(PAYMENTS, id=invoice_id):
        tx.delete(payments, payment_id)
    delete_paper(tx, "invoice_id", invoice_id)
    tx.delete(invoices, invoice_id)


def delete_paper(tx: Tx, owner: str, record_id: int) -> None:
    """Delete the PDF that came with a record, if one did."""
    for (paper_id,) in tx.all(PAPERS[owner], id=record_id):
        tx.delete(issued_documents, paper_id)
