"""Agreed: what an accepted quote becomes, once."""

from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, Update, bindparam, select, update

from retainer.exact import amount_of
from retainer.store import rules
from retainer.store.tables import metadata
from retainer.store.tx import Tx


def fill_project(tx: Tx, it: Any) -> None:
    """Let a project have its name, client and budget from its quote, as far as it does not say others.

    The budget is the quote's subtotal: time is compared with it before tax.
    """
    if it.quote_id is None:
        return
    row = tx.one(_quote(), id=it.quote_id)
    if row is None:
        tx.fault("quote_id", rules.MISSING.format("quote"))
        it.name = it.name or ""
        return
    number, title, client, status, currency, subtotal, project = row
    if project is not None:
        tx.fault("quote_id", f"Quote {number} has already become project {project}.")
    elif status != "accepted":
        tx.fault("quote_id", f"Quote {number} is {status}: only an accepted quote becomes a project.")
    it.name = it.name or title or number
    if it.client_id is None:
        it.client_id = client
    elif it.client_id != client:
        tx.fault("quote_id", f"Belongs to client {client}, not to client {it.client_id}.")
    if it.budget_amount is None and currency == tx.value(_currency(), id=it.client_id) and subtotal > 0:
        it.budget_amount = amount_of(subtotal, currency)


def convert(tx: Tx, quote: int | None, member: str, record: int) -> None:
    """Let a quote say what it became; `fill_project` has locked it and judged that it is free."""
    if quote is not None:
        tx.run(_converted(member), quote=quote, record=record, now=tx.now)


def quote_of(table: Table) -> ColumnElement[Any]:
    """The quote that a project was made from."""
    quotes = metadata.tables["quotes"]
    return select(quotes.c.id).where(quotes.c.converted_project_id == table.c.id).scalar_subquery()


@cache
def _converted(member: str) -> Update:
    quotes = metadata.tables["quotes"]
    values: dict[str, Any] = {member: bindparam("record"), "updated_at": bindparam("now")}
    return update(quotes).where(quotes.c.id == bindparam("quote")).values(values)


@cache
def _quote() -> Select[Any]:
    quotes = metadata.tables["quotes"]
    wanted = ("number", "title", "client_id", "status", "currency", "subtotal", "converted_project_id")
    return select(*quotes.c[wanted]).where(quotes.c.id == bindparam("id")).with_for_update()


@cache
def _currency() -> Select[Any]:
    clients = metadata.tables["clients"]
    return select(clients.c.currency).where(clients.c.id == bindparam("id"))
