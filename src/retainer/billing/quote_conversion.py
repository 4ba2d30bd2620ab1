"""Quote conversion: what an accepted quote becomes: a project, an invoice, or both, each once."""

from collections.abc import Callable
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Table, and_, bindparam, case, func, or_, select, update

from retainer.schema.billing import invoices, quotes
from retainer.schema.crm import clients, external_contacts
from retainer.store import constraints
from retainer.store.records import Derived
from retainer.store.tables import TODAY
from retainer.store.tx import Tx
from retainer.values.exact import amount_of


def effective_status(table: Table) -> ColumnElement[Any]:
    """The status of a quote; one that was sent expires by itself."""
    return case((and_(table.c.status == "sent", table.c.valid_until < TODAY), "expired"), else_=table.c.status)


def made_from(column: str) -> Derived:
    """The record that a quote became, or the quote that a record was made from, by this column of the other."""

    def expression(table: Table) -> ColumnElement[Any]:
        other = invoices if table.name == "quotes" else quotes
        counts = [other.c.status != "void"] if other.name == "invoices" else []
        return select(other.c.id).where(other.c[column] == table.c.id, *counts).scalar_subquery()

    return Derived(expression)


def is_converted(table: Table) -> ColumnElement[bool]:
    """Whether a quote has become a project or an invoice that is not void."""
    return or_(table.c.converted_project_id.is_not(None), made_from("quote_id").expression(table).is_not(None))


CONTACT = (
    select(external_contacts.c.id)
    .where(external_contacts.c.id == quotes.c.contact_id, external_contacts.c.client_id == quotes.c.client_id)
    .scalar_subquery()
)
"""The contact of a quote, who may be another client's by now."""
QUOTE = (
    select(
        *quotes.c["number", "title", "client_id"],
        CONTACT,
        func.coalesce(quotes.c.converted_project_id, quotes.c.project_id),
        effective_status(quotes),
        *quotes.c["notes", "terms", "currency", "subtotal", "converted_project_id"],
        made_from("quote_id").expression(quotes),
    )
    .where(quotes.c.id == bindparam("id"))
    .with_for_update(of=quotes)
)
"""In the order of AcceptedQuote's fields."""
CURRENCY = select(clients.c.currency).where(clients.c.id == bindparam("id"))
CONVERT = (
    update(quotes)
    .where(quotes.c.id == bindparam("quote"))
    .values(converted_project_id=bindparam("project"), updated_at=bindparam("now"))
)
ARTICLES = {"project": "a project", "invoice": "an invoice"}


class AcceptedQuote(NamedTuple):
    """What a quote says, and what it has become."""

    number: str
    title: str | None
    client_id: int
    contact_id: int | None
    project_id: int | None
    """That which it became, else that which it is about."""
    status: str
    notes: str | None
    terms: str | None
    currency: str
    subtotal: int
    project: int | None
    invoice: int | None


def accepted(tx: Tx, record: Any, becomes: str) -> AcceptedQuote | None:
    """The quote that a record is made from, locked, with its client; a fault unless it is accepted and free."""
    row = tx.one(QUOTE, id=record.quote_id)
    if row is None:
        tx.error("quote_id", constraints.MISSING.format("quote"))
        return None
    quote = AcceptedQuote(*row)
    made = getattr(quote, becomes)
    if made is not None:
        tx.error("quote_id", f"Quote {quote.number} has already become {becomes} {made}.")
    elif quote.status != "accepted":
        tx.error(
            "quote_id", f"Quote {quote.number} is {quote.status}: only an accepted quote becomes {ARTICLES[becomes]}."
        )
    if record.client_id is None:
        record.client_id = quote.client_id
    elif record.client_id != quote.client_id:
        tx.error("quote_id", f"Belongs to client {quote.client_id}, not to client {record.client_id}.")
    return None if "quote_id" in tx.errors else quote


def fill_project(tx: Tx, record: Any) -> None:
    """Let a project have its name, client and budget from its quote, as far as it does not say others.

    The budget is the quote's subtotal: time is compared with it before tax.
    """
    if record.quote_id is None:
        return
    quote = accepted(tx, record, "project")
    if quote is None:
        record.name = record.name or ""
        return
    record.name = record.name or quote.title or quote.number
    currency = tx.value(CURRENCY, id=record.client_id)
    if record.budget_amount is None and quote.currency == currency and quote.subtotal > 0:
        record.budget_amount = amount_of(quote.subtotal, quote.currency)


def fill_invoice(tx: Tx, record: Any, lines_of: Callable[[Tx, int], list[Any]]) -> None:
    """Let an invoice have client, contact, project, subject, currency and lines from its quote; its own come first."""
    if record.quote_id is None:
        return
    quote = accepted(tx, record, "invoice")
    if quote is not None:
        if record.currency not in {None, quote.currency}:
            tx.error("currency", f"Is {quote.currency}, that of the quote's lines. Leave it out.")
        for member in ("contact_id", "project_id", "currency", "notes", "terms"):
            if getattr(record, member) is None:
                setattr(record, member, getattr(quote, member))
        record.subject = record.subject or quote.title
        record.lines = [
            *(record.lines or []),
            *lines_of(tx, record.quote_id),
        ]  # so that faults name the places of those sent


def convert(tx: Tx, quote: int | None, project: int) -> None:
    """Let a quote say which project it became; `fill_project` has locked it and judged that it is free."""
    if quote is not None:
        tx.run(CONVERT, quote=quote, project=project, now=tx.now)


def touch(tx: Tx, quote: int | None) -> None:
    """Note that a quote has changed: it became an invoice, or that invoice is none any more."""
    if quote is not None:
        tx.touch(quotes, quote)
