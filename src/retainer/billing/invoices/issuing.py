"""Issuing: the steps of an invoice from one status to the next, and what each changes elsewhere."""

from decimal import Decimal

from sqlalchemy import bindparam, select

from retainer.billing import issuer, line_work
from retainer.billing.invoices.types import CONTENTS, ClientSnapshot, Invoice
from retainer.rollups import changes
from retainer.rollups.sources import INVOICE_LINES
from retainer.schema.billing import invoices, quotes
from retainer.schema.crm import clients
from retainer.shared.numbering import next_document_number
from retainer.store.tx import Tx
from retainer.values.exact import FIRST_DAY, LAST_DAY, day_after

CLIENT = select(*clients.c[("payment_terms_days", *ClientSnapshot.__struct_fields__)]).where(
    clients.c.id == bindparam("id")
)
TRANSITIONS = {
    "draft": ("sent",),
    "sent": ("paid", "void", "written_off"),
    "partially_paid": ("paid", "written_off"),
    "written_off": ("paid",),
    "paid": (),
    "void": (),
}
"""The statuses that a request can set. Payments and credit notes also lead to partially_paid and paid."""


def build_step(tx: Tx, invoice: Invoice, step: str | None) -> None:
    """Take the step of an invoice to a status; payments lead to `paid`. Notes an error for a wrong due date."""
    if step == "sent":
        issue(tx, invoice)
    elif step == "void":
        invoice.status, invoice.voided_at, invoice.balance_due = "void", tx.now, Decimal(0)
    elif step == "written_off":
        invoice.status, invoice.written_off_at = "written_off", tx.now
        if invoice.record_payment:
            tx.error("record_payment", "Record the payment first, then write off the rest.")
    if invoice.sent_at and invoice.due_date is None:
        tx.error("due_date", "Must not be null once an invoice was issued.")
    elif (invoice.due_date or LAST_DAY) < (invoice.issue_date or FIRST_DAY) and tx.readable("issue_date"):
        tx.error("due_date", f"Must not be before issue_date, which is {invoice.issue_date}.")


def issue(tx: Tx, invoice: Invoice) -> None:
    """Give a draft its number, dates and client snapshot. An invoice with a total of 0 is paid at once.

    Notes an error for an invoice without lines, and for a negative total.
    """
    is_known = tx.readable(*CONTENTS)
    if not invoice.lines and is_known:
        tx.error("status", "An invoice without lines cannot be sent. Add a line first.")
    elif invoice.total < 0 and is_known:
        tx.error("status", "An invoice cannot be negative. Credit the original invoice, or change the lines.")
    terms, *client = tx.one(CLIENT, id=invoice.client_id) or (0, "", *[None] * 7)
    invoice.client_snapshot = ClientSnapshot(*client)
    invoice.issue_date = invoice.issue_date or tx.today
    invoice.due_date = invoice.due_date or day_after(invoice.issue_date, terms)
    invoice.number = next_document_number(tx, invoices, invoice.issue_date)
    invoice.status, invoice.sent_at = "sent", tx.now
    if invoice.total == 0:
        invoice.status, invoice.paid_at = "paid", tx.now


def save_step(tx: Tx, invoice: Invoice, former: str) -> None:
    """Write what follows from a step; the work on a void invoice can be billed again."""
    if invoice.status == former:
        return
    if former == "draft":
        issuer.save_snapshot(tx, invoices, invoice.id, invoice.client_id)
        changes.added(tx, INVOICE_LINES, [invoice.id])
    elif invoice.status == "void":
        line_work.release(tx, invoice.lines)
        if invoice.quote_id is not None:
            tx.touch(quotes, invoice.quote_id, "invoice_id")  # it can become another invoice
