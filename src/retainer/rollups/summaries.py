"""Summaries: what each day, month and year came to for projects, clients and users.

They are kept in the transaction that changes a row which they sum, so that a report adds up a few spans, not a million
entries. What a row comes to is written once, in `sources`.
"""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

from sqlalchemy import (
    Delete,
    Insert,
    Select,
    Table,
    Text,
    bindparam,
    cast,
    delete,
    func,
    insert,
    literal,
    or_,
    select,
    union_all,
)

from retainer.identity.accounts import ACTING, operator
from retainer.rollups import buckets
from retainer.rollups.sources import BALANCES, SOURCES, Source
from retainer.schema.rollups import SUMMARIES
from retainer.store.columns import among
from retainer.store.engines import INTEGER, insert_or_add, listed
from retainer.store.store import Store
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx

Days = tuple[str | None, str]
"""The first and the last day of what is asked for; without a first one, everything until the last."""
Sums = dict[tuple[Any, ...], list[int]]
"""Sums by what they are of: keys of a summary."""

NOTHING = literal(0, INTEGER)
SIGN = bindparam("sign", type_=INTEGER)


def add(tx: Tx, source: Source, record_id: int, sign: int = 1, *, by: str = "record_id") -> None:
    """Add to the summaries what the rows of a new record come to or, with the sign -1, take those of an old one away.

    `record_id` is the id of the record; for billed work, that of the invoice's line.
    """
    for statement in _add(source, by):
        tx.run(statement, record_id=record_id, sign=sign)


@contextmanager
def tracking(tx: Tx, source: Source, *, by: str = "record_id", record_id: int) -> Iterator[None]:
    """Keep the summaries right while the block changes what the rows that belong to a record come to."""
    add(tx, source, record_id, -1, by=by)
    yield
    add(tx, source, record_id, by=by)


def tracking_balance(tx: Tx, invoice: int) -> AbstractContextManager[None]:
    """Keep the balance of an invoice right while the block changes it, its payments or its credit notes."""
    return tracking(tx, BALANCES, record_id=invoice)


def read(
    tx: Tx,
    table: Table,
    days: Days,
    by: tuple[str, ...],
    sums: tuple[str, ...],
    projects: Select[Any] | None = None,
    **only: int | str,
) -> Sums:
    """The sums of a summary over these days, by the month or its keys, where there is anything.

    Of all time without a first day; of those rows `only` whose keys have these values, and of these projects.
    """
    first, last = days
    if first is None:
        oldest, newest = (str(span or last)[: buckets.YEAR] for span in tx.one(_known(table)) or ())
        first, last = min(f"{oldest}-01-01", last), min(f"{newest}-12-31", last)
    more, less = buckets.decompose(first, last, tx.today, buckets.MONTH if "month" in by else buckets.YEAR)
    found = tx.all(_sums(table, by, sums, tuple(only), projects), more=json.dumps(more), less=json.dumps(less), **only)
    return {row[: len(by)]: list(row[len(by) :]) for row in found if any(row[len(by) :])}


def outstanding(tx: Tx, table: Table, last: str, by: tuple[str, ...], **only: int | str) -> Sums:
    """What was outstanding and overdue at the end of a day, and how many invoices were."""
    return read(tx, table, (None, last), by, ("outstanding", "overdue", "overdue_count"), None, **only)


def mismatched(tx: Tx) -> list[str]:
    """The summaries that are not what their rows come to; none, unless something is broken."""
    return [table.name for table in SUMMARIES if tx.one(_drift(table), sign=1)]


def inspect(store: Store, *, repair: bool) -> list[str]:
    """The summaries of all accounts that have drifted; written anew when they are to be repaired."""
    with store.unscoped("the doctor looks at every account") as tx:
        owners = tx.all(select(*ACTING))
    found = []
    for owner in owners:
        with store.begin(operator(*owner), write=repair) as tx:
            tx.snapshot()
            names = mismatched(tx)
            found += [f"{name} of account {tx.actor.account_id}" for name in names]
            if names and repair:
                recount(tx)
    return found


def recount(tx: Tx) -> None:
    """Write the summaries anew from the rows that they sum."""
    for table in SUMMARIES:
        clear, fill = _recount(table)
        tx.run(clear)
        tx.run(fill, sign=1)


@cache
def _known(table: Table) -> Select[Any]:
    """The first and the last span for which there is a sum; each is looked up, for both at once would be a scan."""
    ends: list[Any] = [select(end(table.c.span)).scalar_subquery() for end in (func.min, func.max)]
    return select(*ends)


@cache
def _sums(
    table: Table, by: tuple[str, ...], sums: tuple[str, ...], limits: tuple[str, ...], projects: Select[Any] | None
) -> Select[Any]:
    wanted = [
        func.substr(table.c.span, 1, buckets.MONTH).label("month") if name == "month" else table.c[name] for name in by
    ]
    only = [table.c[name] == bindparam(name) for name in limits]
    if projects is not None:
        only.append(table.c.project_id.in_(projects))
    more = select(*wanted, *table.c[sums]).where(table.c.span.in_(listed("more")), *only)
    less = select(*wanted, *(-table.c[name] for name in sums)).where(table.c.span.in_(listed("less")), *only)
    its = union_all(more, less).subquery().c
    return select(*its[by], *(func.sum(its[name]) for name in sums)).group_by(*its[by])


@cache
def _add(source: Source, by: str) -> list[Insert]:
    """For each summary that a source feeds, what adds the rows of a record that is found `by` a column of theirs."""
    found = []
    for table in source.feeds:
        key, sums = _names(table)
        rows = source.rows
        its = _spanned(table, rows.where(rows.selected_columns[by] == bindparam("record_id"))).subquery()
        found.append(insert_or_add(table, select(ACCOUNT, *its.c[(*key, *sums)]), sums))
    return found


@cache
def _recount(table: Table) -> tuple[Delete, Insert]:
    """To clear a summary, and to sum it up from its rows."""
    key, sums = _names(table)
    return delete(table), insert(table).from_select(("account_id", *key, *sums), _added(table, _all(table)))


@cache
def _drift(table: Table) -> Select[Any]:
    """A row when what is kept, taken from what it should be, leaves anything."""
    key, sums = _names(table)
    kept_now = select(*table.c[key], *(-table.c[name] for name in sums))
    return _added(table, [*_all(table), kept_now]).limit(1)


def _names(table: Table) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The key of a summary but for the account, and its sums."""
    key = tuple(column.name for column in table.primary_key if column.name != "account_id")
    return key, tuple(column.name for column in table.c if column.info.get("sum"))


def _added(table: Table, arms: list[Select[Any]]) -> Select[Any]:
    """What rows add up to, by the key of a summary, where that is anything."""
    key, sums = _names(table)
    its = union_all(*arms).subquery().c
    totals = [func.sum(its[name]) for name in sums]
    whole = select(ACCOUNT, *its[key], *totals).group_by(*its[key])
    return whole.having(or_(*(total != 0 for total in totals)))


def _all(table: Table) -> list[Select[Any]]:
    """All rows of the sources of a summary, of those with a status the ones that count."""
    arms = []
    for source in SOURCES:
        if table in source.feeds:
            rows = source.rows
            counts = [among(rows.selected_columns.status, source.statuses)] if source.statuses else []
            arms.append(_spanned(table, rows.where(*counts)))
    return arms


def _spanned(table: Table, rows: Select[Any]) -> Select[Any]:
    """Rows of a source with the sign that is bound, once for each span that their day lies in."""
    (_, *keys), sums = _names(table)
    its = rows.subquery().c
    lengths = union_all(*(select(literal(length, INTEGER).label("length")) for length in buckets.LENGTHS)).subquery()
    span = func.substr(cast(its.day, Text), 1, lengths.c.length).label("span")
    signed = [(SIGN * its[name] if name in its else NOTHING).label(name) for name in sums]
    return select(span, *its[tuple(keys)], *signed)
