"""Invoices: what clients owe, from the draft to the last payment.

A draft can change freely. The status `sent` issues it: it gets its number, its dates and a snapshot of the client;
afterwards only `notes`, `due_date`, `purchase_order`, `contact_id` and `external_id` can change. Correct an issued
invoice with a credit note (`POST /invoices/{invoice_id}/credit-notes`); without payments and credits, it can become
void.

Lines bill time, expenses and milestones by id, and a retainer by `project_id` and `fee_month`. `unbilled_work` bills
everything that matches, except time that a fixed fee or retainer covers and time without a rate, which `meta.left_out`
counts. Work on an invoice is locked until its line or the draft is deleted, or the invoice is void or credited in full;
then it can be billed again.

A retainer has a monthly fee for each month from the start of its project to its due date or completion. Once a month
has begun, `unbilled_work` bills its whole fee. To bill it in advance, in part (`quantity`: 0.5) or at another
`unit_price`, add a line of your own; each month is billed once. `GET /projects/{project_id}/unbilled-work` shows what
is not billed yet.

`record_payment` records a payment; a retry with the same reference records nothing new. `status: "paid"` records a
payment of the balance, today. A payment cannot exceed the balance: record a surplus on another invoice, or on a new one
for an advance payment. What was paid and then credited is the `refund_due`; `record_refund` records that you paid it
back.
"""

from decimal import Decimal
from typing import Annotated, Literal

from msgspec import Meta
from sqlalchemy import BindParameter, ColumnElement, Table, bindparam, select

from retainer import schema
from retainer.billing import balance, documents, files, line_work, payments
from retainer.billing.files import load_warnings, save_issuer
from retainer.billing.invoices.types import (
    CONTENTS,
    ClientSnapshot,
    Invoice,
    InvoiceLine,
    InvoiceMeta,
    InvoiceTotals,
    LeftOut,
)
from retainer.billing.quotes.quotes import fill_invoice
from retainer.errors import Refusal
from retainer.kernel.body import New, Patch
from retainer.kernel.paging import Page, Summed
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource, WithMeta
from retainer.rollups import changes
from retainer.rollups.list_sums import summed_listing
from retainer.rollups.sources import INVOICE_LINES
from retainer.schema.billing import invoices, quotes
from retainer.schema.crm import clients
from retainer.schema.filters import ONE_OF_NUMBERS, Where, at_least, at_most, since, until
from retainer.shared import relations
from retainer.shared.numbering import next_document_number
from retainer.store.details import load_details
from retainer.store.tx import Tx
from retainer.values.exact import day_after
from retainer.values.kinds import Code50, Code191, Currency, Day, Id, Searched, SignedMoney

StatusOption = Annotated[
    Literal["draft", "sent", "partially_paid", "paid", "void", "written_off", "overdue", "open"],
    Meta(title="InvoiceStatusFilter"),
]

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
LOCKED_FIELDS = (
    *("client_id", "project_id", "issue_date", "subject", "terms", "tax_exemption_reason", "currency", "lines"),
)
"""The fields that only a draft can change."""
CREDIT = "Correct an issued invoice with a credit note: POST /invoices/{invoice_id}/credit-notes."


Bound = BindParameter[str] | None


def has_payment(table: Table, _: object, first: Bound, last: Bound) -> ColumnElement[bool]:
    """Return whether an invoice has a payment in a range of days; None is no limit."""
    paid = schema.billing.payments.c
    limits = [paid.paid_date >= first] if first is not None else []
    limits += [paid.paid_date <= last] if last is not None else []
    return table.c.id.in_(select(paid.invoice_id).where(*limits))


PAID_DATES = ("paid_date_from", "paid_date_to")
"""One payment must be in the whole range, so each of the two filters depends on both."""


class InvoiceFilter(Filter):
    sorts = ("-created_at", "issue_date", "due_date", "number", "total", "balance_due", "updated_at")
    q: Annotated[Searched | None, documents.SEARCH_WITH_CLIENT] = None
    client_id: OneOf[Id] | None = None
    project_id: OneOf[Id] | None = None
    status: Annotated[OneOf[StatusOption] | None, balance.STATUS_FILTER] = None
    paid_date_from: Annotated[
        Day | None, Where(has_payment, beside=PAID_DATES), "Invoices with a payment or refund on this day or later."
    ] = None
    paid_date_to: Annotated[
        Day | None, Where(has_payment, beside=PAID_DATES), "Invoices with a payment or refund on this day or earlier."
    ] = None
    issue_date_from: Annotated[Day | None, since("issue_date")] = None
    issue_date_to: Annotated[Day | None, until("issue_date")] = None
    due_date_from: Annotated[Day | None, since("due_date")] = None
    due_date_to: Annotated[Day | None, until("due_date")] = None
    number: Annotated[OneOf[Code50] | None, ONE_OF_NUMBERS] = None
    currency: OneOf[Currency] | None = None
    total_min: Annotated[SignedMoney | None, at_least("total")] = None
    total_max: Annotated[SignedMoney | None, at_most("total")] = None
    quote_id: OneOf[Id] | None = None
    has_refund_due: Annotated[bool | None, balance.REFUND_FILTER] = None
    external_id: OneOf[Code191] | None = None


def load_invoice(tx: Tx, invoice_id: int) -> Invoice:
    """Return an invoice with its lines, payments and credit notes. Raises `not_found`."""
    invoice = tx.get(invoices, invoice_id, Invoice)
    invoice.payments, invoice.credit_notes = [], []  # a draft has none
    load_details(tx, invoices, [invoice], None if invoice.sent_at else ("lines",))
    return invoice


def build_invoice(tx: Tx, invoice: Invoice, before: Invoice | None = None) -> tuple[Invoice, list[LeftOut]]:
    """Return the invoice that a body describes, after the step to its status; and what unbilled work was left out."""
    target = invoice.status
    invoice.status = former = before.status if before else "draft"
    is_draft = former == "draft"
    left_out: list[LeftOut] = []
    if before is None:
        if invoice.quote_id is not None:
            fill_invoice(tx, invoice)
        invoice.amount_paid = invoice.amount_credited = Decimal(0)
        invoice.payments = []
    current = before.lines if before else []
    invoice.lines = documents.merge_lines(tx, InvoiceLine, invoice.lines, current, is_locked=not is_draft)
    if before and not is_draft:
        relations.validate_locked(tx, invoice, before, former, LOCKED_FIELDS)
    elif before and invoice.client_id != before.client_id and (reason := client_lock(invoice)):
        tx.error("client_id", f"Is fixed as {before.client_id} {reason}")
        invoice.client_id = before.client_id  # so that no rule blames its project or its lines
    tax_rate = documents.apply_client(tx, invoice, before)
    if invoice.unbilled_work and is_draft:
        added, left_out = line_work.build_unbilled_lines(tx, invoice.unbilled_work, invoice)
        invoice.lines += added
    elif invoice.unbilled_work:
        tx.error("unbilled_work", f"Nothing can be added any more: this one is {former}.", "locked")
    if is_draft:
        line_work.build_lines(tx, invoice, current, tax_rate)
    relations.validate_transition(tx, former, target, TRANSITIONS, "" if is_draft else CREDIT)
    step = target if target in TRANSITIONS[former] else None
    build_step(tx, invoice, step)
    if invoice.record_payment or step == "paid":
        payment = invoice.record_payment or None
        invoice.record_payment = payments.build_payment(tx, payment, invoice, pays_all=step == "paid")
    if invoice.record_refund:
        invoice.record_refund = payments.build_refund(tx, invoice.record_refund, invoice)
    return invoice, left_out


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
    relations.validate_date_order(tx, invoice, "issue_date", "due_date")


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


def client_lock(invoice: Invoice) -> str:
    """Return why a draft cannot change its client; empty if it can."""
    if any(line.id is not None and line_work.work_of(line) for line in invoice.lines):
        return "while work is attached: delete the lines with work first."
    if invoice.quote_id is not None:
        return f"with quote {invoice.quote_id}, which became this invoice: create another one for the other client."
    return ""


def save_invoice(tx: Tx, invoice: Invoice, before: Invoice | None) -> WithMeta[Invoice, InvoiceMeta]:
    """Write the invoice that a body describes, with its lines, its payment, and what follows from its status."""
    invoice, left_out = build_invoice(tx, invoice, before)
    former = before.status if before else "draft"
    is_voided = invoice.status == "void" != former
    if is_voided:
        changes.removed(tx, INVOICE_LINES, [invoice.id])
    if before is None:
        invoice.id = tx.insert(invoices, invoice)
    else:
        tx.update(invoices, invoice)
    if former == "draft":
        line_work.save_invoice_lines(tx, invoice.id, before.lines if before else None, invoice.lines)
    if former == "draft" != invoice.status:
        save_issuer(tx, invoices, invoice.id, invoice.client_id)
        changes.added(tx, INVOICE_LINES, [invoice.id])
    if is_voided:
        line_work.detach(tx, invoice.lines, is_kept=True)
    if invoice.quote_id is not None and (is_voided or before is None):
        tx.touch(quotes, invoice.quote_id, "invoice_id")  # it has become this one, or can become another one
    for payment in filter(None, (invoice.record_payment, invoice.record_refund)):
        tx.insert(schema.billing.payments, payment)
        balance.recompute_balance(tx, invoice.id, by_payment=payment.amount > 0)
    saved = load_invoice(tx, invoice.id)
    return WithMeta(saved, InvoiceMeta(left_out, load_warnings(tx, saved, former)))


api = Resource("/invoices", tag="Invoices", scope="invoices", table=invoices)


@api.get()
def list_invoices(tx: Tx, filters: InvoiceFilter, page: Page) -> Summed[Invoice, InvoiceTotals]:
    """List invoices, newest first; without their lines, payments and credit notes."""
    return summed_listing(tx, invoices, Invoice, InvoiceTotals, filters, page)


@api.post()
def create_invoice(tx: Tx, body: New[Invoice]) -> WithMeta[Invoice, InvoiceMeta]:
    """Create an invoice from lines, a quote or unbilled work; the status `sent` issues it."""
    return save_invoice(tx, body, None)


@api.get("/{invoice_id}", representations=files.ISSUED_AS)
def get_invoice(tx: Tx, invoice_id: Id) -> Invoice:
    """Read an invoice with its lines, payments and credit notes.

    `Accept: application/pdf` returns its PDF, which carries its e-invoice (Factur-X, EN 16931), and `application/xml`
    the e-invoice alone. Once it is issued, these files stay the same, whatever changes later. The PDF prints Latin,
    Greek, Cyrillic, Hebrew, Arabic, Thai, Devanagari, Chinese, Japanese and Korean; other characters become squares.
    """
    tx.snapshot()
    return load_invoice(tx, invoice_id)


@api.put("/{invoice_id}")
@api.patch("/{invoice_id}")
def update_invoice(tx: Tx, invoice_id: Id, patch: Patch[Invoice]) -> WithMeta[Invoice, InvoiceMeta]:
    """Change an invoice or its status, or record a payment or refund; in a draft, `lines` replaces all lines."""
    before = load_invoice(tx, invoice_id)
    return save_invoice(tx, patch.apply_to(before), before)


@api.delete("/{invoice_id}")
def delete_invoice(tx: Tx, invoice_id: Id) -> None:
    """Delete a draft; its work can be billed again."""
    before = load_invoice(tx, invoice_id)
    if before.status != "draft":
        message = f"This invoice is {before.status} and stays. {CREDIT}"
        raise Refusal("locked", message, errors={"status": [message]})
    line_work.save_invoice_lines(tx, invoice_id, before.lines, [])
    tx.delete(invoices, invoice_id)
    if before.quote_id is not None:
        tx.touch(quotes, before.quote_id, "invoice_id")
