"""Names of records that have none of their own, such as drafts, payments and time: they are called by what they are."""

import json
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, select

from retainer.console import words
from retainer.schema.billing import expenses, invoices, payments
from retainer.schema.crm import clients
from retainer.schema.work import projects, tasks, time_entries
from retainer.store.engines.sql import is_listed
from retainer.store.tx import Tx
from retainer.values.exact import amount_of


def _draft(client: str) -> str:
    return f"Draft for {client}"


def _payment(amount: int, currency: str, invoice: str) -> str:
    noun = "Payment" if amount > 0 else "Refund"
    return f"{noun} of {words.money(amount_of(abs(amount), currency), currency)} on {invoice}"


def _time(minutes: int, day: str, *places: str | None) -> str:
    return ", ".join([f"{words.hours(minutes)} h on {words.short_day(day)}", *list(filter(None, places))[:1]])


def _expense(amount: int, currency: str, day: str) -> str:
    return f"{words.money(amount_of(amount, currency), currency)} on {words.short_day(day)}"


Said = tuple[Callable[..., str], tuple[ColumnElement[Any], ...], tuple[Table, ...]]
SAID: dict[Table, Said] = {
    invoices: (_draft, (clients.c.name,), (clients,)),
    payments: (_payment, (payments.c.amount, payments.c.currency, invoices.c.number), (invoices,)),
    time_entries: (
        _time,
        (time_entries.c.duration_minutes, time_entries.c.date, tasks.c.title, projects.c.name, clients.c.name),
        (tasks, projects, clients),
    ),
    expenses: (_expense, (expenses.c.amount, expenses.c.currency, expenses.c.date), ()),
}
"""How records are called, by their table: the words, the columns that they tell, and the tables of these."""


def load_unnamed(tx: Tx, table: Table, ids: Iterable[int]) -> dict[int, str]:
    """Return what records without names are called, by their ids; of a table whose records all have one, nothing."""
    wanted = [*ids]
    if table not in SAID or not wanted:
        return {}
    say = SAID[table][0]
    return {record_id: say(*told) for record_id, *told in tx.all(_by_id(table), ids=json.dumps(wanted))}


@cache
def _by_id(table: Table) -> Select[Any]:
    _, columns, joined = SAID[table]
    source: Any = table
    for each in joined:
        reference = f"{each.name.removesuffix('s')}_id"
        source = source.outerjoin(each, each.c.id == table.c[reference])
    return select(table.c.id, *columns).select_from(source).where(is_listed(table.c.id, "ids"))
