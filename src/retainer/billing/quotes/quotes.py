"""Quotes: offers to clients.

A sent quote reads `expired` after its `valid_until`. An accepted quote becomes a project (`POST /projects` with
`quote_id`), an invoice (`POST /invoices` with `quote_id`), or both, each once; from then on it is locked. When the
invoice is void or credited in full, or its draft is deleted, the quote can become another one.
"""

from decimal import Decimal
from typing import Annotated, Literal, Protocol

from sqlalchemy import bindparam, select, update

from retainer.billing import documents, files
from retainer.billing.files import load_warnings
from retainer.billing.invoices.types import Invoice, InvoiceLine
from retainer.billing.quotes.types import Quote, QuoteLine, QuoteMeta, Status, effective_status, is_converted
from retainer.errors import Refusal
from retainer.kernel.body import New, Patch
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource, WithMeta
from retainer.rollups.changes import changing
from retainer.rollups.sources import CREDIT_NOTE_SHARES, INVOICE_LINES
from retainer.schema.billing import credit_note_shares, credit_notes, holds_quote, invoices, quote_lines, quotes
from retainer.schema.crm import clients
from retainer.schema.filters import ONE_OF_NUMBERS, Where, since, truth, until
from retainer.shared import relations
from retainer.shared.numbering import next_document_number
from retainer.store import constraints
from retainer.store.details import load_details
from retainer.store.tables import NOW
from retainer.store.tx import Tx
from retainer.values.exact import day_after
from retainer.values.kinds import Code50, Code191, Day, Id, Searched
from retainer.values.reading import with_defaults, writable_fields

TRANSITIONS = {
    "draft": ("sent", "accepted", "declined", "cancelled"),
    "sent": ("accepted", "declined", "cancelled"),
    **dict.fromkeys(("accepted", "declined", "expired", "cancelled"), ("draft",)),
}
LOCKED_FIELDS = ("client_id", "currency", "issue_date", "tax_exemption_reason", "lines")
"""The fields that only a draft can change."""
LOCKED_IN_USE = [name for name in writable_fields(Quote) if name != "external_id"]
"""The fields that are fixed once the quote has become a project or an invoice."""
STAMPED = ("sent", "accepted", "declined")
NEED_LINES = ("sent", "accepted")
VALID_DAYS = 30


class QuoteFilter(Filter):
    sorts = ("-created_at", "issue_date", "valid_until", "number", "total")
    q: Annotated[Searched | None, documents.SEARCH_WITH_CLIENT] = None
    client_id: OneOf[Id] | None = None
    project_id: OneOf[Id] | None = None
    status: Annotated[
        OneOf[Status] | None,
        Where(lambda table, values: effective_status(table).in_(values)),
        "Records whose `status` is one of these; `expired` follows from the day.",
    ] = None
    issue_date_from: Annotated[Day | None, since("issue_date")] = None
    issue_date_to: Annotated[Day | None, until("issue_date")] = None
    valid_until_from: Annotated[Day | None, since("valid_until")] = None
    valid_until_to: Annotated[Day | None, until("valid_until")] = None
    converted: Annotated[bool | None, truth(is_converted, "quotes that became a project or an invoice")] = None
    number: Annotated[OneOf[Code50] | None, ONE_OF_NUMBERS] = None
    external_id: OneOf[Code191] | None = None


INVOICE = select(invoices.c.id).where(
    invoices.c.quote_id == bindparam("quote"), holds_quote(invoices), invoices.c.project_id.is_(None)
)
"""The live invoice that a quote became, while it has no project."""
NOTES = select(credit_notes.c.id).where(credit_notes.c.invoice_id == bindparam("invoice"))
SET_PROJECT_OF_SHARES = (
    update(credit_note_shares)
    .where(credit_note_shares.c.credit_note_id.in_(NOTES), credit_note_shares.c.project_id.is_(None))
    .values(project_id=bindparam("project"), updated_at=NOW)
)


class ProjectFromQuote(Protocol):
    quote_id: int | None
    client_id: int | None
    name: str
    budget_amount: Decimal | None


def load_quote(tx: Tx, quote_id: int) -> Quote:
    """Return a quote with its lines. Raises `not_found`."""
    quote = tx.get(quotes, quote_id, Quote)
    load_details(tx, quotes, [quote])
    return quote


def build_quote(tx: Tx, quote: Quote, before: Quote | None = None) -> Quote:
    former = before.status if before else "draft"
    has_become = before is not None and is_in_use(before)
    is_locked = has_become or "draft" not in {former, quote.status}
    current = before.lines if before else []
    quote.lines = documents.merge_lines(tx, QuoteLine, quote.lines, current, is_locked=is_locked)
    if before and has_become:
        relations.validate_locked(tx, quote, before, "converted", LOCKED_IN_USE)
    elif before and is_locked:
        relations.validate_locked(tx, quote, before, former, LOCKED_FIELDS)
    tax_rate = documents.apply_client(tx, quote, before)
    quote.issue_date = quote.issue_date or tx.today
    quote.valid_until = quote.valid_until or day_after(quote.issue_date, VALID_DAYS)
    relations.validate_date_order(tx, quote, "issue_date", "valid_until")
    projects = documents.load_projects(tx, [line.project_id for line in quote.lines])
    for line in documents.each_line(tx, quote.lines):
        documents.complete_line(tx, line, quote, tax_rate, projects)
    documents.keep_equal_lines(quote.lines, current)
    documents.compute_totals(quote)
    validate_status(tx, quote, former)
    if quote.number is None:
        quote.number = next_document_number(tx, quotes, quote.issue_date)
    if quote.status == "draft":
        quote.sent_at = quote.accepted_at = quote.declined_at = None
    elif quote.status in STAMPED and quote.status != former:
        setattr(quote, f"{quote.status}_at", tx.now)
    quote.status = "sent" if quote.status == "expired" else quote.status
    return quote


def validate_status(tx: Tx, quote: Quote, former: str) -> None:
    relations.validate_transition(tx, former, quote.status, TRANSITIONS)
    if quote.status in NEED_LINES and former == "draft" and not quote.lines and tx.readable("lines"):
        tx.error("status", f"A quote without lines cannot be {quote.status}. Add a line first.")
    if quote.status == "sent" != former and quote.valid_until < tx.today and tx.readable("valid_until", "issue_date"):
        message = f"Cannot be sent: it was valid until {quote.valid_until}. Move valid_until to {tx.today} or later."
        tx.error("status", message, "invalid_transition")


def with_warnings(tx: Tx, quote_id: int, former: str) -> WithMeta[Quote, QuoteMeta]:
    quote = load_quote(tx, quote_id)
    return WithMeta(quote, QuoteMeta(load_warnings(tx, quote, former)))


def is_in_use(quote: Quote) -> bool:
    return bool(quote.converted_project_id or quote.invoice_id)


def load_accepted_quote(
    tx: Tx, record: ProjectFromQuote | Invoice, becomes: Literal["project", "invoice"]
) -> Quote | None:
    """Return the quote that a record is created from, and fill in the record's client.

    Notes an error and returns None unless the quote is accepted and has not been converted to such a record.
    """
    quote = tx.find(quotes, record.quote_id, Quote)
    if quote is None:
        tx.error("quote_id", constraints.MISSING.format("quote"))
        return None
    made = quote.converted_project_id if becomes == "project" else quote.invoice_id
    if made is not None:
        tx.error("quote_id", f"Quote {quote.number} has already become {becomes} {made}.")
    elif quote.status != "accepted":
        target = "a project" if becomes == "project" else "an invoice"
        message = f"Quote {quote.number} is {quote.status}: only an accepted quote becomes {target}."
        tx.error("quote_id", message)
    if record.client_id is None:
        record.client_id = quote.client_id
    elif record.client_id != quote.client_id:
        tx.error("quote_id", f"Belongs to client {quote.client_id}, not to client {record.client_id}.")
    return None if "quote_id" in tx.errors else quote


def fill_project(tx: Tx, project: ProjectFromQuote) -> None:
    """Fill in the name, client and budget that a project does not set itself.

    The budget is the quote's subtotal, since time is compared with it before tax.
    """
    if project.quote_id is None:
        return
    quote = load_accepted_quote(tx, project, "project")
    if quote is None:
        project.name = project.name or ""
        return
    project.name = project.name or quote.title or quote.number
    currency = tx.field(clients.c.currency, project.client_id)
    if project.budget_amount is None and quote.currency == currency and quote.subtotal > 0:
        project.budget_amount = quote.subtotal


def fill_invoice(tx: Tx, invoice: Invoice) -> None:
    """Fill in client, contact, project, texts and currency that an invoice does not set itself, and add the lines.

    Notes an error for an invoice in another currency.
    """
    quote = load_accepted_quote(tx, invoice, "invoice")
    if quote is None:
        return
    if invoice.currency not in {None, quote.currency}:
        tx.error("currency", f"Is {quote.currency}, that of the quote's lines. Leave it out.")
    invoice.contact_id = invoice.contact_id or quote.contact_id
    invoice.project_id = invoice.project_id or quote.converted_project_id or quote.project_id
    invoice.currency = invoice.currency or quote.currency
    invoice.subject = invoice.subject or quote.title
    documents.fill_texts(tx, invoice, quote)
    load_details(tx, quotes, [quote])
    names = writable_fields(QuoteLine)
    # the copied lines come last, so that the paths of errors match the lines that were sent
    copied = [with_defaults(InvoiceLine, **{name: getattr(line, name) for name in names}) for line in quote.lines]
    invoice.lines = [*(invoice.lines or ()), *copied]


def save_conversion(tx: Tx, quote_id: int | None, project_id: int) -> None:
    """Write which project a quote became.

    The invoice that the quote became before gets the project, too, unless it has one.
    """
    if quote_id is None:
        return
    tx.update_columns(quotes, quote_id, {"converted_project_id": project_id})
    for (invoice_id,) in tx.all(INVOICE, quote=quote_id):
        with changing(tx, INVOICE_LINES, invoice_id):
            tx.update_columns(invoices, invoice_id, {"project_id": project_id})
        with changing(tx, CREDIT_NOTE_SHARES, invoice_id, by="invoice_id"):
            tx.run(SET_PROJECT_OF_SHARES, invoice=invoice_id, project=project_id)


api = Resource("/quotes", tag="Quotes", scope="invoices", table=quotes)
api.lists(Quote, QuoteFilter, "List quotes, newest first; without their lines.")


@api.post()
def create_quote(tx: Tx, body: New[Quote]) -> WithMeta[Quote, QuoteMeta]:
    """Create a quote with its lines; number, dates and currency have defaults."""
    quote = build_quote(tx, body)
    quote_id = tx.insert(quotes, quote)
    documents.save_lines(tx, quote_lines, None, quote.lines, quote_id=quote_id)
    return with_warnings(tx, quote_id, "draft")


@api.get("/{quote_id}", representations=files.PRINTED_AS)
def get_quote(tx: Tx, quote_id: Id) -> Quote:
    """Read a quote with its lines.

    `Accept: application/pdf` returns its PDF. It prints Latin, Greek, Cyrillic, Hebrew, Arabic, Thai, Devanagari,
    Chinese, Japanese and Korean; other characters become squares.
    """
    tx.snapshot()
    return load_quote(tx, quote_id)


@api.put("/{quote_id}")
@api.patch("/{quote_id}")
def update_quote(tx: Tx, quote_id: Id, patch: Patch[Quote]) -> WithMeta[Quote, QuoteMeta]:
    """Change a quote or its status; in a draft, `lines` replaces all lines."""
    before = load_quote(tx, quote_id)
    after = build_quote(tx, patch.apply_to(before), before)
    tx.update(quotes, after)
    documents.save_lines(tx, quote_lines, before.lines, after.lines, quote_id=quote_id)
    return with_warnings(tx, quote_id, before.status)


@api.delete("/{quote_id}")
def delete_quote(tx: Tx, quote_id: Id) -> None:
    """Delete a quote with its lines, unless it was accepted."""
    before = load_quote(tx, quote_id)
    if before.status == "accepted":
        became = "has become a project or an invoice" if is_in_use(before) else "was accepted"
        message = f"This quote {became} and stays."
        raise Refusal("locked", message, errors={"status": [message]})
    tx.delete(quotes, quote_id)
