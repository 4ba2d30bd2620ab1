"""Quotes: what work would cost, before it is agreed.

A quote that was sent and whose `valid_until` has passed reads `expired`. An accepted one becomes a project
(`POST /projects` with `quote_id`), an invoice (`POST /invoices` with `quote_id`), or both, each once; from then on it
is frozen.
"""

from decimal import Decimal
from typing import Annotated, Literal

from sqlalchemy import bindparam, select

from retainer.billing import documents, quote_conversion
from retainer.billing.documents import Lines
from retainer.errors import Refusal
from retainer.kernel import etag
from retainer.kernel.body import New, Patch
from retainer.kernel.paging import Page, Paged, listing
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.schema.billing import quote_lines, quotes
from retainer.schema.filters import Where, since, truth, until
from retainer.schema.identity import accounts
from retainer.shared import relations
from retainer.shared.numbering import next_number
from retainer.store.records import Derived
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values.common import ExternalId
from retainer.values.exact import day_after
from retainer.values.kinds import Day, Id, Instant, Text50, Text191, Text255, Text1000, Text2000, UnitPrice
from retainer.values.reading import writable_fields
from retainer.values.records import READ_ONLY, SERVER_DEFAULT, WRITE_ONLY, DetailOnly, Record

Status = Annotated[
    Literal["draft", "sent", "accepted", "declined", "expired", "cancelled"],
    "Lines change only in a `draft`. `sent` reads `expired` after `valid_until`. `accepted` can be billed.",
]

TRANSITIONS = {
    "draft": ("sent", "accepted", "declined", "cancelled"),
    "sent": ("accepted", "declined", "cancelled"),
    "accepted": ("draft",),
    "declined": ("draft",),
    "expired": ("draft",),
    "cancelled": ("draft",),
}
FIXED = ("client_id", "currency", "issue_date", "lines")
"""What only a draft can change."""
STAMPED = ("sent", "accepted", "declined")
NEED_LINES = ("sent", "accepted")
VALID_DAYS = 30


class QuoteLine(Record):
    """One thing that a quote offers."""

    description: Annotated[Text2000, "What is offered."]
    unit_price: Annotated[UnitPrice, "For one, before discount and tax, in the currency of the quote."]
    quote_id: Annotated[Id, "The quote that it belongs to."] = READ_ONLY
    quantity: documents.LineQuantity = Decimal(1)
    unit: documents.LineUnit = None
    discount_percent: documents.LineDiscount = Decimal(0)
    tax_rate: documents.LineTaxRate = SERVER_DEFAULT
    project_id: documents.LineProject = None
    amount: documents.LineAmount = READ_ONLY
    currency: documents.LineCurrency = READ_ONLY
    position: documents.LinePosition = SERVER_DEFAULT


class Quote(Record):
    """What work would cost."""

    client_id: Annotated[Id, "A prospect or an active client; archived ones take no quotes."]
    contact_id: documents.IssuedTo = None
    project_id: Annotated[
        Id | None, "A project of the client that it is about; `converted_project_id` is what it became."
    ] = None
    number: Annotated[Text50, "The next of the account's series, like Q-2026-0001; given on creation."] = READ_ONLY
    title: Annotated[
        Text255 | None, "What it is about; becomes the name of the project or the subject of the invoice."
    ] = None
    status: Annotated[Status, Derived(quote_conversion.effective_status)] = "draft"
    issue_date: Annotated[Day, "Today when left out; only a draft can change it."] = SERVER_DEFAULT
    valid_until: Annotated[Day, "Last day to accept it; 30 days after `issue_date` when left out."] = SERVER_DEFAULT
    currency: documents.DocumentCurrency = SERVER_DEFAULT
    notes: documents.Notes = None
    terms: documents.Terms = None
    decline_reason: Annotated[Text1000 | None, "Why the client said no, in your own words."] = None
    accepted_by: Annotated[Text191 | None, "Who agreed at the client, in your own words."] = None
    subtotal: documents.Subtotal = READ_ONLY
    tax_total: documents.TaxTotal = READ_ONLY
    total: documents.Total = READ_ONLY
    tax_breakdown: documents.TaxBreakdown = READ_ONLY
    sent_at: Annotated[Instant | None, "When it became `sent`; null again for a draft."] = READ_ONLY
    accepted_at: Annotated[Instant | None, "When it became `accepted`; null again for a draft."] = READ_ONLY
    declined_at: Annotated[Instant | None, "When it became `declined`; null again for a draft."] = READ_ONLY
    invoice_id: Annotated[
        Id | None, quote_conversion.made_from("quote_id"), "The invoice that it became; null until then."
    ] = READ_ONLY
    converted_project_id: Annotated[Id | None, "The project that it became; null until then."] = READ_ONLY
    external_id: ExternalId = None
    lines: Annotated[list[QuoteLine], Lines, DetailOnly(), documents.SET_OF_LINES] = WRITE_ONLY


class QuoteFilter(Filter):
    """Which quotes."""

    sorts = ("-created_at", "issue_date", "valid_until", "number", "total")
    q: Annotated[Text191 | None, documents.SEARCH_WITH_CLIENT] = None
    client_id: OneOf[Id] | None = None
    project_id: OneOf[Id] | None = None
    status: Annotated[
        OneOf[Status] | None,
        Where(lambda table, values: quote_conversion.effective_status(table).in_(values)),
        "Records whose `status` is one of these, as it is answered.",
    ] = None
    issue_date_from: Annotated[Day | None, since("issue_date")] = None
    issue_date_to: Annotated[Day | None, until("issue_date")] = None
    valid_until_from: Annotated[Day | None, since("valid_until")] = None
    valid_until_to: Annotated[Day | None, until("valid_until")] = None
    converted: Annotated[
        bool | None, truth(quote_conversion.is_converted, "quotes that became a project or an invoice")
    ] = None
    number: OneOf[Text50] | None = None
    external_id: OneOf[Text191] | None = None


PATTERN = select(accounts.c.quote_number_pattern).where(accounts.c.id == ACCOUNT)
TAKEN = select(quotes.c.id).where(quotes.c.number == bindparam("number"))


def load_quote(tx: Tx, quote_id: int) -> Quote:
    """Return a quote with its lines. Raises `not_found`."""
    quote = tx.get(quotes, quote_id, Quote)
    quote.lines = documents.load_children(tx, quote_lines, QuoteLine, "quote_id", quote_id)
    return quote


def prepare(tx: Tx, quote: Quote, before: Quote | None = None) -> Quote:
    """What a quote has from its client and its lines, its number, and the moments of its states."""
    former = before.status if before else "draft"
    is_converted = before is not None and bool(before.converted_project_id or before.invoice_id)
    fixed = is_converted or "draft" not in {former, quote.status}
    quote.lines = documents.merge_lines(tx, quote.lines, before.lines if before else [], fixed=fixed)
    if is_converted:
        documents.check_locked(tx, quote, before, "converted", writable_fields(Quote).keys() - {"external_id"})
    elif fixed:
        documents.check_locked(tx, quote, before, former, FIXED)
    tax_rate = documents.prepare_for_client(tx, quote, before)
    quote.issue_date = quote.issue_date or tx.today
    quote.valid_until = quote.valid_until or day_after(quote.issue_date, VALID_DAYS)
    if quote.valid_until < quote.issue_date and tx.readable("issue_date"):
        tx.error("valid_until", f"Must not be before issue_date, which is {quote.issue_date}.")
    for line in documents.each_line(tx, quote.lines):
        documents.price_line(tx, quote_lines, line, quote, tax_rate)
    quote.lines = documents.identified(quote.lines)
    documents.compute_totals(quote, quote.lines)
    relations.check_transition(tx, former, quote.status, TRANSITIONS)
    if quote.status in NEED_LINES and former == "draft" and not quote.lines and tx.readable("lines"):
        tx.error("status", f"A quote without lines cannot be {quote.status}. Add a line first.")
    if quote.number is None:
        quote.number = next_number(tx, "quotes", tx.value(PATTERN), TAKEN, quote.issue_date)
    if quote.status == "draft":
        quote.sent_at = quote.accepted_at = quote.declined_at = None
    elif quote.status in STAMPED and quote.status != former:
        setattr(quote, f"{quote.status}_at", tx.now)
    quote.status = "sent" if quote.status == "expired" else quote.status
    return quote


api = Resource("/quotes", tag="Quotes", scope="invoices", table=quotes)


@api.get()
def list_quotes(tx: Tx, filters: QuoteFilter, page: Page) -> Paged[Quote]:
    """List quotes, newest first; without their lines."""
    return listing(tx, quotes, Quote, filters, page)


@api.post()
def create_quote(tx: Tx, body: New[Quote]) -> Quote:
    """Create a quote with its lines; number, dates and currency are filled in when they are left out."""
    quote = prepare(tx, body)
    quote_id = tx.insert(quotes, quote)
    documents.save_lines(tx, quote_lines, [], quote.lines, quote_id=quote_id)
    return load_quote(tx, quote_id)


@api.get("/{quote}")
def get_quote(tx: Tx, quote_id: Id) -> Quote:
    """Read a quote with its lines."""
    tx.snapshot()
    return load_quote(tx, quote_id)


@api.put("/{quote}")
@api.patch("/{quote}")
def update_quote(tx: Tx, quote_id: Id, patch: Patch[Quote]) -> Quote:
    """Change a quote or its status; `lines` takes the place of the whole set, while it is a draft."""
    before = load_quote(tx, quote_id)
    after = prepare(tx, patch.apply_to(before), before)
    tx.update(quotes, after)
    documents.save_lines(tx, quote_lines, before.lines, after.lines, quote_id=quote_id)
    return load_quote(tx, quote_id)


@api.delete("/{quote}")
def delete_quote(tx: Tx, quote_id: Id) -> None:
    """Delete a quote with its lines; one that was accepted stays."""
    before = etag.check_unchanged(tx, load_quote(tx, quote_id))
    if before.status == "accepted":
        became = (
            "has become a project or an invoice" if before.converted_project_id or before.invoice_id else "was accepted"
        )
        sentence = f"This quote {became} and stays."
        raise Refusal("locked", sentence, errors={"status": [sentence]})
    tx.delete(quotes, quote_id)
