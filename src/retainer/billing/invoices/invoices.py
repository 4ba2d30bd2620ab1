"""Invoices: what clients owe, from the draft to the last payment.

A draft can change freely. The status `sent` issues it: it gets its number, its dates and a snapshot of the client;
afterwards only `notes`, `due_date`, `purchase_order`, `contact_id`, `reminders` and `external_id` can change. Correct
an issued invoice with a credit note (`POST /invoices/{invoice_id}/credit-notes`); without payments and credits, it can
become void.

Lines bill time, expenses and milestones by id, and a retainer by `project_id` and `fee_month`. `unbilled_work` bills
everything that matches, except time that a fixed fee or retainer covers and time without a rate, which `meta.left_out`
counts. Work on an invoice is locked until its line or the draft is deleted, or the invoice is void or credited in full;
then it can be billed again.

A retainer has a monthly fee for each month from the start of its project to its due date or completion. Once a month
has begun, `unbilled_work` bills its whole fee. To bill it in advance, in part (`quantity`: 0.5) or at another
`unit_price`, add a line of your own; each month is billed once. `GET /projects/{project_id}/unbilled-work` shows what
is not billed yet.

`record_payment` records a payment; a retry with the same reference records nothing new. `status: "paid"` records a
payment of the balance, today. A payment exceeds the balance only with `allow_surplus: true`. That surplus, and what was
paid and then credited, is the `refund_due`; `record_refund` records that you paid it back.
With `early_payment_discount: true`, a payment within the days of the invoice's discount settles all of it: what it
leaves becomes a `discount`, which lowers revenue and tax on its `paid_date`.
With `method: "offset"` and `offset_invoice_id`, the `refund_due` of another invoice of the client pays this one, and is
refunded there.
"""

from typing import Annotated, Literal

from msgspec import Meta
from sqlalchemy import BindParameter, ColumnElement, Table, select

from retainer import schema
from retainer.billing import balance, facts, files, rules
from retainer.billing.document_types import SEARCH_WITH_CLIENT
from retainer.billing.invoices import lifecycle, writing
from retainer.billing.invoices.draft import read_draft
from retainer.billing.invoices.types import Invoice, InvoiceMeta, InvoiceTotals
from retainer.errors import Refusal
from retainer.kernel.answers import WithMeta
from retainer.kernel.body import New, Patch
from retainer.kernel.paging import Page, SummedPage
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.rollups.list_sums import summed_listing
from retainer.schema.billing import invoices
from retainer.schema.filters import ONE_OF_NUMBERS, Where, at_least, at_most, since, until
from retainer.store.details import load_details
from retainer.store.tx import Tx
from retainer.values.kinds import Code50, Code191, Currency, Day, Id, Searched, SignedMoney

StatusOption = Annotated[
    Literal["draft", "sent", "partially_paid", "paid", "void", "written_off", "overdue", "open"],
    Meta(title="InvoiceStatusFilter"),
]

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
    q: Annotated[Searched | None, SEARCH_WITH_CLIENT] = None
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


def save_invoice(tx: Tx, body: Invoice, before: Invoice | None) -> WithMeta[Invoice, InvoiceMeta]:
    """Write the invoice that a body describes, with its lines, its payment, and what follows from its status."""
    draft = read_draft(tx, body, before)
    step = lifecycle.complete(tx, draft)
    saved = load_invoice(tx, writing.store(tx, draft, step))
    warnings = facts.warnings(tx, saved, draft.parties, draft.former)
    return WithMeta(saved, InvoiceMeta(step.left_out, warnings))


api = Resource("/invoices", tag="Invoices", scope="invoices", table=invoices)


@api.get()
def list_invoices(tx: Tx, filters: InvoiceFilter, page: Page) -> SummedPage[Invoice, InvoiceTotals]:
    """List invoices, newest first; without their lines, payments and credit notes."""
    return summed_listing(tx, invoices, Invoice, InvoiceTotals, filters, page)


@api.post()
def create_invoice(tx: Tx, body: New[Invoice]) -> WithMeta[Invoice, InvoiceMeta]:
    """Create an invoice from lines, a quote or unbilled work; the status `sent` issues it."""
    return save_invoice(tx, body, None)


@api.get("/{invoice_id}", representations=files.ISSUED_AS)
def get_invoice(tx: Tx, invoice_id: Id, _: files.DocumentQuery) -> Invoice:
    """Read an invoice with its lines, payments and credit notes.

    `Accept: application/pdf` returns its PDF, which carries its e-invoice (Factur-X, EN 16931), and `application/xml`
    the e-invoice alone. Both are drawn from what was issued, and never change by themselves. A change of `due_date`,
    `purchase_order`, `notes` or `contact_id` makes a new version, which says so; `version=1` reads the first. The PDF
    of a void invoice says so across the page and asks for no payment, and its XML is a 406; one that is paid, credited
    or written off says that. The PDF prints Latin, Greek, Cyrillic, Hebrew, Arabic, Thai, Devanagari, Chinese, Japanese
    and Korean; other characters become squares.
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
        message = f"This invoice is {before.status} and stays. {rules.CREDIT}"
        raise Refusal("locked", message, errors={"status": [message]})
    writing.remove(tx, before)
