"""Quotes: what work would cost, before it is agreed.

A quote that was sent and whose `valid_until` has passed reads `expired`. An accepted one becomes a project
(`POST /projects` with `quote_id`), an invoice (`POST /invoices` with `quote_id`), or both, each once; from then on it
is frozen.
"""

from decimal import Decimal
from typing import Annotated, Literal

from sqlalchemy import Index, bindparam, select

from retainer.domain import agreed, documents, relations
from retainer.domain.accounts import accounts
from retainer.domain.documents import Lines, TaxShare
from retainer.domain.fields import ExternalId
from retainer.domain.filters import SEARCH_WITH_CLIENT, Where, since, truth, until
from retainer.domain.members import writable
from retainer.domain.numbering import next_number
from retainer.domain.values import Day, Id, Instant, Text50, Text191, Text255, Text1000, Text2000, UnitPrice
from retainer.errors import Refusal
from retainer.exact import day_after
from retainer.kernel import etag
from retainer.kernel.body import Change, New
from retainer.kernel.paging import Page, Paged, listing
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.store.columns import day, embedded, folded, instant, money, ref, text, unique
from retainer.store.records import Derived, Record, Single, auto, ro, wo
from retainer.store.tables import ACCOUNT, tenant_table
from retainer.store.tx import Tx

quotes = tenant_table(
    "quotes",
    *ref("client_id", "clients"),
    *ref("contact_id", "external_contacts", optional=True, on_delete="detach"),
    *ref("project_id", "projects", optional=True),
    *ref("converted_project_id", "projects", optional=True),
    text("number"),
    text("title", optional=True),
    text("status"),
    day("issue_date"),
    day("valid_until"),
    text("currency"),
    text("notes", optional=True),
    text("terms", optional=True),
    text("decline_reason", optional=True),
    text("accepted_by", optional=True),
    money("subtotal"),
    money("tax_total"),
    money("total"),
    embedded("tax_breakdown", list[TaxShare]),
    instant("sent_at", optional=True),
    instant("accepted_at", optional=True),
    instant("declined_at", optional=True),
    text("external_id", optional=True),
    folded("number", "title", into="search"),
    unique("number"),
    unique("external_id"),
    unique("converted_project_id"),
    Index(None, "account_id", "created_at", "id"),
    Index(None, "account_id", "updated_at", "id"),
    Index(None, "account_id", "client_id", "created_at", "id"),
    Index(None, "account_id", "project_id"),
    Index(None, "account_id", "contact_id"),
    Index("quotes_by_moments", "account_id", "sent_at", "accepted_at", "declined_at", "client_id"),
)

quote_lines = documents.line_table("quote_lines", "quote", Index(None, "account_id", "quote_id", "position"))

Status = Annotated[
    Literal["draft", "sent", "accepted", "declined", "expired", "cancelled"],
    "Lines change only in a `draft`. `sent` reads `expired` after `valid_until`. `accepted` can be billed.",
]

MOVES = {
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
    quote_id: Annotated[Id, "The quote that it belongs to."] = ro
    quantity: documents.LineQuantity = Decimal(1)
    unit: documents.LineUnit = None
    discount_percent: documents.LineDiscount = Decimal(0)
    tax_rate: documents.LineTaxRate = auto
    project_id: documents.LineProject = None
    amount: documents.LineAmount = ro
    currency: documents.LineCurrency = ro
    position: documents.LinePosition = auto


class Quote(Record):
    """What work would cost."""

    client_id: Annotated[Id, "A prospect or an active client; archived ones take no quotes."]
    contact_id: documents.IssuedTo = None
    project_id: Annotated[
        Id | None, "A project of the client that it is about; `converted_project_id` is what it became."
    ] = None
    number: Annotated[Text50, "The next of the account's series, like Q-2026-0001; given on creation."] = ro
    title: Annotated[
        Text255 | None, "What it is about; becomes the name of the project or the subject of the invoice."
    ] = None
    status: Annotated[Status, Derived(agreed.standing)] = "draft"
    issue_date: Annotated[Day, "Today when left out; only a draft can change it."] = auto
    valid_until: Annotated[Day, "Last day to accept it; 30 days after `issue_date` when left out."] = auto
    currency: documents.DocumentCurrency = auto
    notes: documents.Notes = None
    terms: documents.Terms = None
    decline_reason: Annotated[Text1000 | None, "Why the client said no, in your own words."] = None
    accepted_by: Annotated[Text191 | None, "Who agreed at the client, in your own words."] = None
    subtotal: documents.Subtotal = ro
    tax_total: documents.TaxTotal = ro
    total: documents.Total = ro
    tax_breakdown: documents.TaxBreakdown = ro
    sent_at: Annotated[Instant | None, "When it became `sent`; null again for a draft."] = ro
    accepted_at: Annotated[Instant | None, "When it became `accepted`; null again for a draft."] = ro
    declined_at: Annotated[Instant | None, "When it became `declined`; null again for a draft."] = ro
    invoice_id: Annotated[Id | None, agreed.made_from("quote_id"), "The invoice that it became; null until then."] = ro
    converted_project_id: Annotated[Id | None, "The project that it became; null until then."] = ro
    external_id: ExternalId = None
    lines: Annotated[list[QuoteLine], Lines, Single(), documents.SET_OF_LINES] = wo


class QuoteFilter(Filter):
    """Which quotes."""

    sorts = ("-created_at", "issue_date", "valid_until", "number", "total")
    q: Annotated[Text191 | None, SEARCH_WITH_CLIENT] = None
    client_id: OneOf[Id] | None = None
    project_id: OneOf[Id] | None = None
    status: Annotated[
        OneOf[Status] | None,
        Where(lambda table, values: agreed.standing(table).in_(values)),
        "Records whose `status` is one of these, as it is answered.",
    ] = None
    issue_date_from: Annotated[Day | None, since("issue_date")] = None
    issue_date_to: Annotated[Day | None, until("issue_date")] = None
    valid_until_from: Annotated[Day | None, since("valid_until")] = None
    valid_until_to: Annotated[Day | None, until("valid_until")] = None
    converted: Annotated[bool | None, truth(agreed.is_converted, "quotes that became a project or an invoice")] = None
    number: OneOf[Text50] | None = None
    external_id: OneOf[Text191] | None = None


PATTERN = select(accounts.c.quote_number_pattern).where(accounts.c.id == ACCOUNT)
TAKEN = select(quotes.c.id).where(quotes.c.number == bindparam("number"))


def whole(tx: Tx, quote: int) -> Quote:
    """A quote with its lines. Raises `not_found`."""
    it = tx.get(quotes, quote, Quote)
    it.lines = documents.parts_of(tx, quote_lines, QuoteLine, "quote_id", quote)
    return it


def settle(tx: Tx, it: Quote, before: Quote | None = None) -> Quote:
    """What a quote has from its client and its lines, its number, and the moments of its states."""
    former = before.status if before else "draft"
    is_converted = before is not None and bool(before.converted_project_id or before.invoice_id)
    fixed = is_converted or "draft" not in {former, it.status}
    it.lines = documents.merge_lines(tx, it.lines, before.lines if before else [], fixed=fixed)
    if is_converted:
        documents.locked(tx, it, before, "converted", writable(Quote).keys() - {"external_id"})
    elif fixed:
        documents.locked(tx, it, before, former, FIXED)
    tax_rate = documents.for_client(tx, it, before)
    it.issue_date = it.issue_date or tx.today
    it.valid_until = it.valid_until or day_after(it.issue_date, VALID_DAYS)
    if it.valid_until < it.issue_date and tx.knows("issue_date"):
        tx.fault("valid_until", f"Must not be before issue_date, which is {it.issue_date}.")
    for line in documents.each_line(tx, it.lines):
        documents.settle_line(tx, quote_lines, line, it, tax_rate)
    it.lines = documents.identified(it.lines)
    documents.total_up(it, it.lines)
    relations.move(tx, former, it.status, MOVES)
    if it.status in NEED_LINES and former == "draft" and not it.lines and tx.knows("lines"):
        tx.fault("status", f"A quote without lines cannot be {it.status}. Add a line first.")
    if it.number is None:
        it.number = next_number(tx, "quotes", tx.value(PATTERN), TAKEN, it.issue_date)
    if it.status == "draft":
        it.sent_at = it.accepted_at = it.declined_at = None
    elif it.status in STAMPED and it.status != former:
        setattr(it, f"{it.status}_at", tx.now)
    it.status = "sent" if it.status == "expired" else it.status
    return it


api = Resource("/quotes", tag="Quotes", scope="invoices", table=quotes)


@api.get()
def list_quotes(tx: Tx, only: QuoteFilter, page: Page) -> Paged[Quote]:
    """List quotes, newest first; without their lines."""
    return listing(tx, quotes, Quote, only, page)


@api.post()
def create_quote(tx: Tx, body: New[Quote]) -> Quote:
    """Create a quote with its lines; number, dates and currency are filled in when they are left out."""
    it = settle(tx, body)
    quote = tx.insert(quotes, it)
    documents.save_lines(tx, quote_lines, [], it.lines, quote_id=quote)
    return whole(tx, quote)


@api.get("/{quote}")
def get_quote(tx: Tx, quote: Id) -> Quote:
    """Read a quote with its lines."""
    tx.snapshot()
    return whole(tx, quote)


@api.put("/{quote}")
@api.patch("/{quote}")
def update_quote(tx: Tx, quote: Id, change: Change[Quote]) -> Quote:
    """Change a quote or its status; `lines` takes the place of the whole set, while it is a draft."""
    before = whole(tx, quote)
    it = settle(tx, change.onto(before), before)
    tx.update(quotes, it)
    documents.save_lines(tx, quote_lines, before.lines, it.lines, quote_id=quote)
    return whole(tx, quote)


@api.delete("/{quote}")
def delete_quote(tx: Tx, quote: Id) -> None:
    """Delete a quote with its lines; one that was accepted stays."""
    it = etag.unchanged(tx, whole(tx, quote))
    if it.status == "accepted":
        became = "has become a project or an invoice" if it.converted_project_id or it.invoice_id else "was accepted"
        sentence = f"This quote {became} and stays."
        raise Refusal("locked", sentence, errors={"status": [sentence]})
    tx.delete(quotes, quote)
