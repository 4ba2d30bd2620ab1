"""Quotes: offers to clients.

A sent quote reads `expired` after its `valid_until`. An accepted quote becomes a project (`POST /projects` with
`quote_id`), an invoice (`POST /invoices` with `quote_id`), or both, each once; from then on it is locked. When the
invoice is void or credited in full, or its draft is deleted, the quote can become another one.

A line with `is_optional` is printed below the total, which leaves it out. The update that accepts the quote names those
that the client wants in `accepted_line_ids`: they become ordinary lines, and the document gets a new version. Invoices
and projects take ordinary lines alone.
"""

from decimal import Decimal
from typing import Annotated

from msgspec.structs import replace

from retainer.billing import facts, files, papers, rules
from retainer.billing.document_types import SEARCH_WITH_CLIENT
from retainer.billing.merging import keep_equal_lines, merge_lines
from retainer.billing.quotes.types import Quote, QuoteLine, QuoteMeta, Status, effective_status, is_converted
from retainer.billing.reading import load_parties, load_projects
from retainer.billing.writing import save_lines
from retainer.errors import BodyErrors, Refusal, for_callers, part
from retainer.kernel.answers import WithMeta
from retainer.kernel.body import New, Patch
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.schema.billing import quote_lines, quotes
from retainer.schema.filters import ONE_OF_NUMBERS, Where, since, truth, until
from retainer.shared import relations
from retainer.shared.numbering import next_document_number
from retainer.store.details import load_details
from retainer.store.tx import Tx
from retainer.values.exact import day_after
from retainer.values.kinds import Code50, Code191, Day, Id, Searched
from retainer.values.reading import writable_fields

TRANSITIONS = {
    "draft": ("sent", "accepted", "declined", "cancelled"),
    "sent": ("accepted", "declined", "cancelled"),
    **dict.fromkeys(("accepted", "declined", "expired", "cancelled"), ("draft",)),
}
REOPEN_CALL = for_callers(': PATCH /quotes/{quote_id} with {"status": "draft"}')
REOPEN = f"Set its status to draft first{REOPEN_CALL}."
CANCEL_CALL = for_callers(': PATCH /quotes/{quote_id} with {"status": "cancelled"}, then with {"status": "draft"}')
CANCEL = f"Cancel it first, then set its status to draft{CANCEL_CALL}."
LOCKED_FIELDS = ("client_id", "currency", "issue_date", "tax_exemption_reason", "lines")
"""The fields that only a draft can change."""
LOCKED_IN_USE = [name for name in writable_fields(Quote) if name != "external_id"]
"""The fields that are fixed once the quote has become a project or an invoice."""
STAMPED = ("sent", "accepted", "declined")
NEED_LINES = ("sent", "accepted")
VALID_DAYS = 30


class QuoteFilter(Filter):
    sorts = ("-created_at", "issue_date", "valid_until", "number", "total")
    q: Annotated[Searched | None, SEARCH_WITH_CLIENT] = None
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


def way_to_draft(status: Status) -> str:
    """Return how a quote that is not converted becomes a draft again, so that its lines can change."""
    return REOPEN if "draft" in TRANSITIONS[status] else CANCEL


def load_quote(tx: Tx, quote_id: int) -> Quote:
    """Return a quote with its lines. Raises `not_found`."""
    quote = tx.get(quotes, quote_id, Quote)
    load_details(tx, quotes, [quote])
    return quote


def save_quote(tx: Tx, quote: Quote, before: Quote | None) -> WithMeta[Quote, QuoteMeta]:
    """Write the quote that a body describes, with its lines."""
    former = before.status if before else "draft"
    has_become = before is not None and is_in_use(before)
    is_locked = has_become or "draft" not in {former, quote.status}
    current = before.lines if before else []
    quote.lines = merge_lines(tx, QuoteLine, quote.lines, current, is_locked=is_locked)
    if before and has_become:
        relations.validate_locked(tx, quote, before, "converted", LOCKED_IN_USE)
    elif before and is_locked:
        relations.validate_locked(tx, quote, before, former, LOCKED_FIELDS, way_to_draft(former))
    accept_lines(tx, quote, former)
    parties = load_parties(tx, quote.client_id, quote.contact_id, Quote)
    projects = load_projects(tx, [quote.project_id, *(line.project_id for line in quote.lines)])
    rules.settle_client(tx, quote, before, parties, tx.actor.currency)
    rules.validate_project(tx, quote, before, projects)
    tax_rate = parties.client.tax_rate if parties else Decimal(0)
    for line in rules.each_line(tx, quote.lines):
        rules.complete_line(tx, line, quote, tax_rate, projects)
    keep_equal_lines(quote.lines, current)
    rules.compute_totals(quote)
    complete_dates(tx, quote, former)
    if quote.number is None:
        quote.number = next_document_number(tx, quotes, quote.issue_date)
    if before is None:
        quote.id = tx.insert(quotes, quote)
    else:
        tx.update(quotes, quote)
    save_lines(tx, quote_lines, before.lines if before else None, quote.lines, quote_id=quote.id)
    if parties is not None and former == "draft" != quote.status:
        papers.issue(tx, quote, facts.of_quote(quote, parties))
    elif before is not None and former != "draft" != quote.status:
        papers.revise(tx, quote, before)
    saved = load_quote(tx, quote.id)
    return WithMeta(saved, QuoteMeta(facts.warnings(tx, saved, parties, former)))


def accept_lines(errors: BodyErrors, quote: Quote, former: str) -> None:
    """Make the optional lines ordinary that the client accepts; note an error for ids that are not lines of the quote.

    Ids of ordinary lines are accepted, so that a repeated request is none to refuse.
    """
    accepted = set(quote.accepted_line_ids or ())
    known = {line.id for line in quote.lines}
    for position, line_id in enumerate(quote.accepted_line_ids or ()):
        if line_id not in known:
            errors.error(
                f"accepted_line_ids.{position}", "Is no line of this quote. Name its optional lines by their ids."
            )
    chosen = [line.id for line in quote.lines if line.is_optional and line.id in accepted]
    if chosen and not (quote.status == "accepted" != former):
        errors.error("accepted_line_ids", "Must come with the status accepted, in the update that accepts the quote.")
        return
    quote.lines = [replace(line, is_optional=False) if line.id in chosen else line for line in quote.lines]


def complete_dates(tx: Tx, quote: Quote, former: str) -> None:
    """Fill in the days and moments of a quote; note an error for a step that its status cannot take."""
    quote.issue_date = quote.issue_date or tx.today
    quote.valid_until = quote.valid_until or day_after(quote.issue_date, VALID_DAYS)
    relations.validate_date_order(tx, quote, "issue_date", "valid_until")
    validate_status(tx, quote, former)
    if quote.status == "draft":
        quote.sent_at = quote.accepted_at = quote.declined_at = None
    elif quote.status in STAMPED and quote.status != former:
        setattr(quote, f"{quote.status}_at", tx.now)
    quote.status = "sent" if quote.status == "expired" else quote.status


def validate_status(tx: Tx, quote: Quote, former: str) -> None:
    relations.validate_transition(tx, former, quote.status, TRANSITIONS)
    if quote.status in NEED_LINES and former == "draft" and not quote.lines and tx.readable("lines"):
        tx.error("status", f"A quote without lines cannot be {quote.status}. Add a line first.")
    elif quote.status == "accepted" != former and not any(map(rules.is_counted, quote.lines)) and tx.readable("lines"):
        tx.error("accepted_line_ids", "All lines are optional: name those that the client accepts.")
    if quote.status == "sent" != former and quote.valid_until < tx.today and tx.readable("valid_until", "issue_date"):
        advice = f"Move {part('valid_until')} to {part(tx.today)} or later."
        message = f"Cannot be sent: it was valid until {part(quote.valid_until)}. {advice}"
        tx.error("status", message, "invalid_transition")


def is_in_use(quote: Quote) -> bool:
    return bool(quote.converted_project_id or quote.invoice_id)


api = Resource("/quotes", tag="Quotes", scope="invoices", table=quotes)
api.lists(Quote, QuoteFilter, "List quotes, newest first; without their lines.")


@api.post()
def create_quote(tx: Tx, body: New[Quote]) -> WithMeta[Quote, QuoteMeta]:
    """Create a quote with its lines; number, dates and currency have defaults."""
    return save_quote(tx, body, None)


@api.get("/{quote_id}", representations=files.PRINTED_AS)
def get_quote(tx: Tx, quote_id: Id, _: files.DocumentQuery) -> Quote:
    """Read a quote with its lines.

    `Accept: application/pdf` returns its PDF. Once it is sent, that is drawn from what was sent; a change of what it
    prints makes a new version, and `version` reads an earlier one. It prints Latin, Greek, Cyrillic, Hebrew, Arabic,
    Thai, Devanagari, Chinese, Japanese and Korean; other characters become squares.
    """
    tx.snapshot()
    return load_quote(tx, quote_id)


@api.put("/{quote_id}")
@api.patch("/{quote_id}")
def update_quote(tx: Tx, quote_id: Id, patch: Patch[Quote]) -> WithMeta[Quote, QuoteMeta]:
    """Change a quote or its status; in a draft, `lines` replaces all lines."""
    before = load_quote(tx, quote_id)
    return save_quote(tx, patch.apply_to(before), before)


@api.delete("/{quote_id}")
def delete_quote(tx: Tx, quote_id: Id) -> None:
    """Delete a quote with its lines, unless it was accepted."""
    before = load_quote(tx, quote_id)
    if before.status == "accepted":
        became = "has become a project or an invoice" if is_in_use(before) else "was accepted"
        message = f"This quote {became} and stays."
        raise Refusal("locked", message, errors={"status": [message]})
    tx.delete(quotes, quote_id)
