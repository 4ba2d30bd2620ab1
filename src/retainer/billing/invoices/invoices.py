"""Invoices: what clients owe, from the draft to the last payment.

A draft can be changed freely. With the status `sent` it is issued: it gets its number, its days and a snapshot of its
client, and only notes, due_date, purchase_order, contact_id and external_id can change from then on. What is wrong is
credited (`POST /invoices/{invoice_id}/credit-notes`); while nothing is paid or credited it can be void. Lines bill
time, expenses and milestones by their ids, `unbilled_work` everything that matches, but for hours that a fixed fee or
retainer covers, and hours without a rate: `meta.left_out` says how many. Whatever is on an invoice is locked there
until its line or draft is deleted, the invoice is void, or credited as a whole. `record_payment` records a payment; the
same one sent again, by its reference, adds nothing. `status: "paid"` pays all that is due, today.
"""

from decimal import Decimal
from typing import Annotated, Literal

from msgspec import Meta
from sqlalchemy import ColumnElement, Table, bindparam, select

from retainer import schema
from retainer.billing import balance, documents, payments
from retainer.billing.allocations import work_of
from retainer.billing.credit_notes.types import CreditNote
from retainer.billing.document_types import MAX_LINES
from retainer.billing.invoices import billable, issuing, pricing, unbilled
from retainer.billing.invoices.types import Invoice, InvoiceLine, InvoiceMeta, LeftOut
from retainer.billing.payment_types import Payment
from retainer.billing.quotes import conversion
from retainer.errors import Refusal
from retainer.kernel import etag
from retainer.kernel.body import New, Patch
from retainer.kernel.paging import Page, Paged, listing
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource, WithMeta
from retainer.rollups.changes import changing_balance
from retainer.schema.billing import credit_notes, invoice_lines, invoices
from retainer.schema.filters import Where, at_least, at_most, since, until
from retainer.shared import relations
from retainer.store.tx import Tx
from retainer.values.exact import FIRST_DAY, LAST_DAY
from retainer.values.kinds import Currency, Day, Id, SignedMoney, Text50, Text191

StatusOption = Annotated[
    Literal["draft", "sent", "partially_paid", "paid", "void", "written_off", "overdue", "open"],
    Meta(title="InvoiceStatusFilter"),
]

TRANSITIONS = {
    "draft": ("sent",),
    "sent": ("paid", "void", "written_off"),
    "partially_paid": ("paid", "written_off"),
    "written_off": ("paid",),
    "paid": (),
    "void": (),
}
"""The statuses that can be asked for; payments and credit notes lead to partially_paid and paid by themselves."""
FIXED = ("client_id", "project_id", "issue_date", "subject", "terms", "currency", "lines")
"""What only a draft can change."""
CREDIT = "What is wrong with an issued invoice is credited: POST /invoices/{invoice_id}/credit-notes."


def has_payment(table: Table, _: object) -> ColumnElement[bool]:
    """Whether an invoice has a payment on a day from `paid_date_from` to `paid_date_to`; the filter has always both."""
    paid = schema.billing.payments.c
    in_range = paid.paid_date.between(bindparam("paid_date_from"), bindparam("paid_date_to"))
    return table.c.id.in_(select(paid.invoice_id).where(in_range))


class InvoiceFilter(Filter):
    """Which invoices."""

    sorts = ("-created_at", "issue_date", "due_date", "number", "total", "balance_due", "updated_at")
    q: Annotated[Text191 | None, documents.SEARCH_WITH_CLIENT] = None
    client_id: OneOf[Id] | None = None
    project_id: OneOf[Id] | None = None
    status: Annotated[OneOf[StatusOption] | None, balance.STATUS_FILTER] = None
    paid_date_from: Annotated[
        Day | None, Where(has_payment, description="Invoices with a payment whose `paid_date` is this day or later.")
    ] = None
    paid_date_to: Annotated[
        Day | None,
        Where(
            has_payment,
            description="Invoices with a payment whose `paid_date` is this day or earlier; with both, one in between.",
        ),
    ] = None
    issue_date_from: Annotated[Day | None, since("issue_date")] = None
    issue_date_to: Annotated[Day | None, until("issue_date")] = None
    due_date_from: Annotated[Day | None, since("due_date")] = None
    due_date_to: Annotated[Day | None, until("due_date")] = None
    number: OneOf[Text50] | None = None
    currency: OneOf[Currency] | None = None
    total_min: Annotated[SignedMoney | None, at_least("total")] = None
    total_max: Annotated[SignedMoney | None, at_most("total")] = None
    quote_id: OneOf[Id] | None = None
    external_id: OneOf[Text191] | None = None

    def __post_init__(self) -> None:
        """Fill in the other end of a range of `paid_date`: one payment lies within both."""
        if self.paid_date_from is not None or self.paid_date_to is not None:
            self.paid_date_from = self.paid_date_from or FIRST_DAY
            self.paid_date_to = self.paid_date_to or LAST_DAY


def load_invoice(tx: Tx, invoice_id: int) -> Invoice:
    """Return an invoice with its lines, payments and credit notes. Raises `not_found`."""
    invoice = tx.get(invoices, invoice_id, Invoice)
    invoice.lines = documents.load_children(tx, invoice_lines, InvoiceLine, "invoice_id", invoice_id)
    invoice.payments = documents.load_children(tx, schema.billing.payments, Payment, "invoice_id", invoice_id)
    invoice.credit_notes = documents.load_children(tx, credit_notes, CreditNote, "invoice_id", invoice_id)
    return invoice


def prepare(tx: Tx, invoice: Invoice, before: Invoice | None = None) -> tuple[Invoice, InvoiceMeta]:
    """Fill in what follows from the client, the work and the lines, and take the step that the status asks for.

    Returns the invoice, and what of the work that it asks for is left out.
    """
    left_out: list[LeftOut] = []
    former = before.status if before else "draft"
    target, invoice.status = invoice.status, former
    if before is None:
        conversion.fill_invoice(tx, invoice)
        invoice.amount_paid = invoice.amount_credited = Decimal(0)
        invoice.payments = []
    invoice.lines = documents.merge_lines(tx, invoice.lines, before.lines if before else [], fixed=former != "draft")
    if before and former != "draft":
        documents.check_locked(tx, invoice, before, former, FIXED)
        invoice.lines = before.lines
    elif before and invoice.client_id != before.client_id:
        check_client(tx, invoice, before)
    tax_rate = documents.prepare_for_client(tx, invoice, before)
    if former == "draft":
        left_out = prepare_draft(tx, invoice, before, tax_rate)
    elif invoice.unbilled_work:
        tx.error("unbilled_work", f"Nothing can be added any more: this one is {former}.", "locked")
    relations.check_transition(tx, former, target, TRANSITIONS, "" if former == "draft" else CREDIT)
    if target != former and target in TRANSITIONS[former]:
        issuing.STEPS[target](tx, invoice)
    if invoice.sent_at and invoice.due_date is None:
        tx.error("due_date", "Must not be null once an invoice was issued.")
    elif (
        invoice.issue_date and invoice.due_date and invoice.due_date < invoice.issue_date and tx.readable("issue_date")
    ):
        tx.error("due_date", f"Must not be before issue_date, which is {invoice.issue_date}.")
    in_full = target == "paid" != former and target in TRANSITIONS[former]
    invoice.record_payment = payments.prepare_payment(tx, invoice.record_payment or None, invoice, in_full=in_full)
    return invoice, InvoiceMeta(left_out)


def check_client(tx: Tx, invoice: Invoice, before: Invoice) -> None:
    """Note an error when a draft stays with its client: a line with work stays, or a quote of the client became it."""
    is_attached = any(line.kind != "item" and any(work_of(line)) for line in documents.kept_lines(invoice.lines))
    if is_attached:
        reason = "while work is attached: delete the lines with work first."
    elif invoice.quote_id is not None:
        reason = f"with quote {invoice.quote_id}, which became this invoice: create another one for the other client."
    else:
        return
    tx.error("client_id", f"Is fixed as {before.client_id} {reason}")
    invoice.client_id = before.client_id  # so that its project and its lines are not blamed


def prepare_draft(tx: Tx, invoice: Invoice, before: Invoice | None, tax_rate: Decimal) -> list[LeftOut]:
    """Price the lines of a draft, with all unbilled work that was requested, and set its totals; return what is not."""
    current = {line.id: line for line in before.lines} if before else {}
    left_out: list[LeftOut] = []
    if invoice.unbilled_work:
        added, left_out = unbilled.unbilled_lines(tx, invoice.unbilled_work, invoice)
        invoice.lines += added
    if len(invoice.lines) > MAX_LINES:
        tx.error(
            "lines",
            f"Would be {len(invoice.lines)}; at most {MAX_LINES} are possible. Bill less at once, or group more.",
        )
    work = billable.load_work(tx, documents.identified_lines(invoice.lines))
    for line in documents.each_line(tx, invoice.lines):
        pricing.prepare_line(tx, line, invoice, tax_rate, current, work)
    invoice.lines = documents.identified_lines(invoice.lines)
    compute_totals(invoice, invoice.lines)
    return left_out


def compute_totals(invoice: Invoice, current_lines: list[InvoiceLine]) -> None:
    """Set the totals of a draft to those of its lines; all of that is due."""
    documents.compute_totals(invoice, current_lines)
    invoice.balance_due = invoice.total


api = Resource("/invoices", tag="Invoices", scope="invoices", table=invoices)
api.instead["payments"] = (
    "An invoice has its `payments`; PATCH /invoices/{invoice_id} with `record_payment` records one."
)


@api.get()
def list_invoices(tx: Tx, filters: InvoiceFilter, page: Page) -> Paged[Invoice]:
    """List invoices, newest first; without their lines, payments and credit notes."""
    return listing(tx, invoices, Invoice, filters, page)


@api.post()
def create_invoice(tx: Tx, body: New[Invoice]) -> WithMeta[Invoice, InvoiceMeta]:
    """Create an invoice with its lines, from a quote or from unbilled work; with the status sent it is issued."""
    invoice, meta = prepare(tx, body)
    invoice.id = tx.insert(invoices, invoice)
    pricing.save(tx, invoice.id, [], invoice.lines)
    conversion.touch(tx, invoice.quote_id)
    with changing_balance(tx, invoice.id):
        issuing.apply_to_totals(tx, invoice, "draft")
    return WithMeta(load_invoice(tx, invoice.id), meta)


@api.get("/{invoice_id}")
def get_invoice(tx: Tx, invoice_id: Id) -> Invoice:
    """Read an invoice with its lines, payments and credit notes."""
    tx.snapshot()
    return load_invoice(tx, invoice_id)


@api.put("/{invoice_id}")
@api.patch("/{invoice_id}")
def update_invoice(tx: Tx, invoice_id: Id, patch: Patch[Invoice]) -> WithMeta[Invoice, InvoiceMeta]:
    """Change an invoice or its status, or record a payment; `lines` takes the place of the whole set of a draft."""
    before = load_invoice(tx, invoice_id)
    invoice, meta = prepare(tx, patch.apply_to(before), before)
    save(tx, invoice, before)
    return WithMeta(load_invoice(tx, invoice_id), meta)


def save(tx: Tx, invoice: Invoice, before: Invoice) -> None:
    """Write an invoice that was validated, its payment, and what both change elsewhere."""
    with changing_balance(tx, invoice.id):
        tx.update(invoices, invoice)
        if before.status == "draft":
            pricing.save(tx, invoice.id, before.lines, invoice.lines)
        issuing.apply_to_totals(tx, invoice, before.status)
        if invoice.record_payment:
            payments.record(tx, invoice.record_payment)
    if invoice.status == "void" and before.status != "void":
        conversion.touch(tx, invoice.quote_id)


@api.delete("/{invoice_id}")
def delete_invoice(tx: Tx, invoice_id: Id) -> None:
    """Delete a draft; the work on it can be billed again."""
    before = etag.check_unchanged(tx, invoices, load_invoice(tx, invoice_id))
    if before.status != "draft":
        message = f"This invoice is {before.status} and stays. {CREDIT}"
        raise Refusal("locked", message, errors={"status": [message]})
    pricing.save(tx, invoice_id, before.lines, [])
    tx.delete(invoices, invoice_id)
    conversion.touch(tx, before.quote_id)
