"""Invoices: what clients owe, from the draft to the last payment.

A draft can be changed freely. With the status `sent` it is issued: it gets its number, its days and a snapshot of its
client, and only notes, due_date, purchase_order, contact_id and external_id can change from then on. What is wrong is
credited (`POST /invoices/{invoice}/credit-notes`); while nothing is paid or credited it can be void. Lines bill time,
expenses and milestones by their ids, `unbilled_work` everything that matches, but for hours that a fixed fee or
retainer covers; whatever is on an invoice is locked there until its line or draft is deleted, the invoice is void, or
credited as a whole. `record_payment` records a payment; the same one sent again, by its reference, adds nothing.
`status: "paid"` pays all that is due, today.
"""

from decimal import Decimal
from typing import Annotated, Literal

from retainer import schema
from retainer.billing import balance, documents, issuing, lines, payments, quote_conversion, unbilled
from retainer.billing.crediting import CreditNote
from retainer.billing.documents import MOST_LINES, Lines
from retainer.billing.issuing import ClientSnapshot
from retainer.billing.lines import InvoiceLine
from retainer.billing.payments import Payment
from retainer.billing.quotes import QuoteLine
from retainer.billing.unbilled import UnbilledWork
from retainer.errors import Refusal
from retainer.kernel import etag
from retainer.kernel.body import New, Patch
from retainer.kernel.paging import Page, Paged, listing
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.rollups.changes import changing_balance
from retainer.schema.billing import credit_notes, invoice_lines, invoices, quote_lines
from retainer.schema.filters import at_least, at_most, since, until
from retainer.shared import relations
from retainer.store.records import Derived
from retainer.store.tx import Tx
from retainer.values.common import ExternalId
from retainer.values.kinds import Currency, Day, Id, Instant, Money, SignedMoney, Text50, Text100, Text191, Text255
from retainer.values.reading import writable_fields
from retainer.values.records import READ_ONLY, SERVER_DEFAULT, WRITE_ONLY, AllowedOn, DetailOnly, Record, RequiredUnless

Status = Annotated[
    Literal["draft", "sent", "partially_paid", "paid", "void", "written_off"],
    "`sent` issues a draft; payments and credits lead to `partially_paid` and `paid`; `void` counts no more.",
]
StatusWord = Literal["draft", "sent", "partially_paid", "paid", "void", "written_off", "overdue", "open"]

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
CREDIT = "What is wrong with an issued invoice is credited: POST /invoices/{invoice}/credit-notes."


class Invoice(Record):
    """What a client owes."""

    client_id: Annotated[
        Id,
        RequiredUnless("quote_id"),
        "Required, unless `quote_id` gives it. Fixed once issued, and while work is attached.",
    ]
    project_id: Annotated[Id | None, "A project of the client; lines without one count for it."] = None
    contact_id: documents.IssuedTo = None
    quote_id: Annotated[
        Id | None, AllowedOn("Create"), "Accepted quote whose lines are copied, each once. Only on creation."
    ] = None
    number: Annotated[Text50 | None, "Next of the gapless series when issued, like INV-2026-0001; null before."] = (
        READ_ONLY
    )
    status: Status = "draft"
    is_overdue: Annotated[
        bool, Derived(balance.overdue, bool), "True while something is due, and `due_date` has passed."
    ] = READ_ONLY
    days_overdue: Annotated[int, balance.DAYS_OVERDUE, "Days since `due_date`; 0 when not overdue."] = READ_ONLY
    issue_date: Annotated[Day | None, "Today when issued without one, and fixed from then on."] = None
    due_date: Annotated[Day | None, "`issue_date` plus the client's terms when issued without one; can move."] = None
    purchase_order: Annotated[Text100 | None, "The client's order number; can still change once issued."] = None
    subject: Annotated[Text255 | None, "What it is for, in one line; `q` searches it."] = None
    notes: documents.Notes = None
    terms: documents.Terms = None
    currency: documents.DocumentCurrency = SERVER_DEFAULT
    subtotal: documents.Subtotal = READ_ONLY
    tax_total: documents.TaxTotal = READ_ONLY
    total: documents.Total = READ_ONLY
    tax_breakdown: documents.TaxBreakdown = READ_ONLY
    amount_paid: Annotated[Money, "Sum of its payments."] = READ_ONLY
    amount_credited: Annotated[Money, "Sum of the totals of its credit notes."] = READ_ONLY
    balance_due: Annotated[SignedMoney, "What is still to be paid; kept when written off, 0 when void."] = READ_ONLY
    refund_due: Annotated[
        Money, Derived(balance.refund_due, money=True), "What was paid and then credited: to be paid back."
    ] = READ_ONLY
    client_snapshot: Annotated[ClientSnapshot | None, "The client as it was when issued; null in a draft."] = READ_ONLY
    sent_at: Annotated[Instant | None, "When it was issued; null in a draft."] = READ_ONLY
    paid_at: Annotated[Instant | None, "When nothing was left to pay; null until then."] = READ_ONLY
    voided_at: Annotated[Instant | None, "When it became `void`, else null."] = READ_ONLY
    written_off_at: Annotated[Instant | None, "When it became `written_off`; null again when a payment comes."] = (
        READ_ONLY
    )
    external_id: ExternalId = None
    lines: Annotated[list[InvoiceLine], Lines, DetailOnly(), documents.SET_OF_LINES] = WRITE_ONLY
    payments: Annotated[list[Payment], DetailOnly(read_only=True), "Oldest first; made with `record_payment`."] = (
        WRITE_ONLY
    )
    credit_notes: Annotated[list[CreditNote], DetailOnly(read_only=True), "Oldest first, as in /credit-notes."] = (
        WRITE_ONLY
    )
    unbilled_work: Annotated[UnbilledWork, "Adds lines to a draft for all unbilled work that matches."] = WRITE_ONLY
    record_payment: Annotated[Payment | None, AllowedOn("Update"), "Records a payment on an issued invoice."] = (
        WRITE_ONLY
    )


class InvoiceFilter(Filter):
    """Which invoices."""

    sorts = ("-created_at", "issue_date", "due_date", "number", "total", "balance_due", "updated_at")
    q: Annotated[Text191 | None, documents.SEARCH_WITH_CLIENT] = None
    client_id: OneOf[Id] | None = None
    project_id: OneOf[Id] | None = None
    status: Annotated[OneOf[StatusWord] | None, balance.STATUS_FILTER] = None
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


def load_invoice(tx: Tx, invoice_id: int) -> Invoice:
    """Return an invoice with its lines, payments and credit notes. Raises `not_found`."""
    invoice = tx.get(invoices, invoice_id, Invoice)
    invoice.lines = documents.load_children(tx, invoice_lines, InvoiceLine, "invoice_id", invoice_id)
    invoice.payments = documents.load_children(tx, schema.billing.payments, Payment, "invoice_id", invoice_id)
    invoice.credit_notes = documents.load_children(tx, credit_notes, CreditNote, "invoice_id", invoice_id)
    return invoice


def lines_of_quote(tx: Tx, quote_id: int) -> list[InvoiceLine]:
    """Return what a quote offers as lines of an invoice."""
    offered = documents.load_children(tx, quote_lines, QuoteLine, "quote_id", quote_id)
    return [lines.new_line(**{name: getattr(line, name) for name in writable_fields(QuoteLine)}) for line in offered]


def prepare(tx: Tx, invoice: Invoice, before: Invoice | None = None) -> Invoice:
    """Fill in what follows from the client, the work and the lines, and take the step that the status asks for."""
    former = before.status if before else "draft"
    target, invoice.status = invoice.status, former
    if before is None:
        quote_conversion.fill_invoice(tx, invoice, lines_of_quote)
        invoice.amount_paid = invoice.amount_credited = Decimal(0)
        invoice.payments = []
    invoice.lines = documents.merge_lines(tx, invoice.lines, before.lines if before else [], fixed=former != "draft")
    if former != "draft":
        documents.check_locked(tx, invoice, before, former, FIXED)
        invoice.lines = before.lines if before else []
    elif before and invoice.client_id != before.client_id and any(line.kind != "item" for line in before.lines):
        why = "work is attached: delete the lines with work first"
        tx.error("client_id", f"Is fixed as {before.client_id} while {why}.")
        invoice.client_id = before.client_id  # so that its project and its lines are not blamed
    tax_rate = documents.prepare_for_client(tx, invoice, before)
    if former == "draft":
        prepare_draft(tx, invoice, before, tax_rate)
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
    pays = target == "paid" != former and target in TRANSITIONS[former]
    invoice.record_payment = payments.prepare_payment(tx, invoice.record_payment or None, invoice, whole=pays)
    return invoice


def prepare_draft(tx: Tx, invoice: Invoice, before: Invoice | None, tax_rate: Decimal) -> None:
    """Price the lines of a draft, with all unbilled work that was asked for, and add them up."""
    former = {line.id: line for line in before.lines} if before else {}
    if invoice.unbilled_work:
        invoice.lines += unbilled.gather(tx, invoice.unbilled_work, invoice)
    if len(invoice.lines) > MOST_LINES:
        tx.error(
            "lines",
            f"Would be {len(invoice.lines)}; at most {MOST_LINES} are possible. Bill less at once, or group more.",
        )
    seen: set[tuple[str, int]] = set()
    for line in documents.each_line(tx, invoice.lines):
        lines.prepare_line(tx, line, invoice, tax_rate, former, seen)
    invoice.lines = documents.identified(invoice.lines)
    compute_totals(invoice, invoice.lines)


def compute_totals(invoice: Invoice, billed: list[InvoiceLine]) -> None:
    """Set the totals of a draft to those of its lines; all of that is due."""
    documents.compute_totals(invoice, billed)
    invoice.balance_due = invoice.total


api = Resource("/invoices", tag="Invoices", scope="invoices", table=invoices)


@api.get()
def list_invoices(tx: Tx, filters: InvoiceFilter, page: Page) -> Paged[Invoice]:
    """List invoices, newest first; without their lines, payments and credit notes."""
    return listing(tx, invoices, Invoice, filters, page)


@api.post()
def create_invoice(tx: Tx, body: New[Invoice]) -> Invoice:
    """Create an invoice with its lines, from a quote or from unbilled work; with the status sent it is issued."""
    invoice = prepare(tx, body)
    invoice.id = tx.insert(invoices, invoice)
    lines.save(tx, invoice.id, [], invoice.lines)
    quote_conversion.touch(tx, invoice.quote_id)
    with changing_balance(tx, invoice.id):
        issuing.count(tx, invoice, "draft")
    return load_invoice(tx, invoice.id)


@api.get("/{invoice}")
def get_invoice(tx: Tx, invoice_id: Id) -> Invoice:
    """Read an invoice with its lines, payments and credit notes."""
    tx.snapshot()
    return load_invoice(tx, invoice_id)


@api.put("/{invoice}")
@api.patch("/{invoice}")
def update_invoice(tx: Tx, invoice_id: Id, patch: Patch[Invoice]) -> Invoice:
    """Change an invoice or its status, or record a payment; `lines` takes the place of the whole set of a draft."""
    before = load_invoice(tx, invoice_id)
    save(tx, prepare(tx, patch.apply_to(before), before), before)
    return load_invoice(tx, invoice_id)


def save(tx: Tx, invoice: Invoice, before: Invoice) -> None:
    """Write an invoice that was validated, its payment, and what both change elsewhere."""
    with changing_balance(tx, invoice.id):
        tx.update(invoices, invoice)
        if before.status == "draft":
            lines.save(tx, invoice.id, before.lines, invoice.lines)
        issuing.count(tx, invoice, before.status)
        if invoice.record_payment:
            payments.record(tx, invoice.record_payment)
    if invoice.status == "void" and before.status != "void":
        quote_conversion.touch(tx, invoice.quote_id)


@api.delete("/{invoice}")
def delete_invoice(tx: Tx, invoice_id: Id) -> None:
    """Delete a draft; the work on it can be billed again."""
    before = etag.check_unchanged(tx, load_invoice(tx, invoice_id))
    if before.status != "draft":
        sentence = f"This invoice is {before.status} and stays. {CREDIT}"
        raise Refusal("locked", sentence, errors={"status": [sentence]})
    lines.save(tx, invoice_id, before.lines, [])
    tx.delete(invoices, invoice_id)
    quote_conversion.touch(tx, before.quote_id)
