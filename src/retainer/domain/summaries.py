"""Summaries: what each month came to for projects, clients and users.

They are kept in the transaction that changes a row which they sum, so that a report over years adds up months, not a
million entries. What a row comes to is written once, in `sources`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Delete,
    Insert,
    Select,
    Subquery,
    Table,
    Text,
    Update,
    bindparam,
    cast,
    delete,
    func,
    insert,
    literal,
    select,
    union_all,
    update,
)

from retainer.domain.accounts import ACTING, operator
from retainer.domain.periods import Days
from retainer.domain.sources import SOURCES, SUMMARIES, Source
from retainer.store.columns import among
from retainer.store.engines import INTEGER
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Store, Tx

DAY = 1  # its place in the rows of a source
Sums = dict[tuple[Any, ...], list[int]]
"""Sums by what they are of: the month and the other keys of a summary."""


def add(tx: Tx, source: Source, own: int, sign: int = 1) -> None:
    """Add to the summaries what the rows of a new record come to or, with the sign -1, take those of an old one away.

    `own` is the id of the record; for billed work, that of the invoice's line.
    """
    _move(tx, source, [(tx.all(_found(source, "own"), own=own), sign)])


@contextmanager
def kept(tx: Tx, source: Source, *, by: str = "own", own: int) -> Iterator[None]:
    """Keep the summaries right while the block changes what the rows that belong to a record come to."""
    before = tx.all(_found(source, by), own=own)
    yield
    now = tx.all(_found(source, by), own=own)
    if now != before:
        _move(tx, source, [(before, -1), (now, 1)])


def _move(tx: Tx, source: Source, moves: list[tuple[list[tuple[Any, ...]], int]]) -> None:
    for names, keys, sums, more, new in _plan(source):
        net: Sums = {}
        for rows, sign in moves:
            for row in rows:
                its = net.setdefault((str(row[DAY])[:7], *[row[place] for place in keys]), [0] * len(sums))
                for position, place in enumerate(sums):
                    its[position] += sign * row[place]
        for key, change in net.items():
            values = dict(zip(names, (*key, *change), strict=True))
            if any(change) and not tx.run(more, **values):
                tx.run(new, **values)


@cache
def _plan(source: Source) -> list[tuple[tuple[str, ...], list[int], list[int], Update, Insert]]:
    """For each summary that a source feeds: its columns, the places of keys and sums in a row, to add and to begin."""
    told, found = list(source.rows().selected_columns.keys()), []
    for table in source.feeds:
        keys, sums = _names(table, source)
        places = [told.index(name) for name in keys], [told.index(name) for name in sums]
        same = [table.c[name] == bindparam(name) for name in ("month", *keys)]
        more: dict[str, Any] = {name: table.c[name] + bindparam(name, type_=INTEGER) for name in sums}
        statements = update(table).where(*same).values(more), _new(table, sums)
        found.append((("month", *keys, *sums), *places, *statements))
    return found


def read(tx: Tx, table: Table, days: Days, by: tuple[str, ...], sums: tuple[str, ...], **only: int | str) -> Sums:
    """The sums of a summary over days, by some of its keys; of those rows `only` whose keys have these values."""
    found = tx.all(_sums(table, by, sums, tuple(only)), **only, **days.bound())
    return {row[: len(by)]: list(row[len(by) :]) for row in found}


def drifted(tx: Tx) -> list[str]:
    """The summaries that are not what their rows come to; none, unless something is broken."""
    return [table.name for table in SUMMARIES if _whole(tx, table, Days.months_only()) != _whole(tx, table, Days.all())]


def inspect(store: Store, *, repair: bool) -> list[str]:
    """The summaries of all accounts that have drifted; written anew when they are to be repaired."""
    with store.everywhere("the doctor looks at every account") as tx:
        owners = tx.all(select(*ACTING))
    found = []
    for owner in owners:
        with store.begin(operator(*owner), write=repair) as tx:
            tx.snapshot()
            names = drifted(tx)
            found += [f"{name} of account {tx.actor.account_id}" for name in names]
            if names and repair:
                recount(tx)
    return found


def recount(tx: Tx) -> None:
    """Write the summaries anew from the rows that they sum."""
    for table in SUMMARIES:
        keys, sums = _names(table)
        tx.run(_clear(table))
        for key, its in _whole(tx, table, Days.all()).items():
            tx.run(_new(table, sums), **dict(zip(("month", *keys, *sums), (*key, *its), strict=True)))


def _whole(tx: Tx, table: Table, days: Days) -> Mapping[tuple[Any, ...], list[int]]:
    keys, sums = _names(table)
    found = read(tx, table, days, ("month", *keys), sums)
    return {key: its for key, its in found.items() if any(its)}


def _names(table: Table, source: Source | None = None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The keys of a summary but for the month, and its sums; of those the ones that a source has."""
    told = None if source is None else source.rows().selected_columns
    sums = tuple(column.name for column in table.c if column.info.get("sum") and (told is None or column.name in told))
    keys = tuple(column.name for column in table.primary_key if column.name not in {"account_id", "month"})
    return keys, sums


@cache
def _found(source: Source, by: str) -> Select[Any]:
    rows = source.rows()
    return rows.where(rows.selected_columns[by] == bindparam("own"))


@cache
def _new(table: Table, sums: tuple[str, ...]) -> Insert:
    keys, _ = _names(table)
    values: dict[str, Any] = {name: bindparam(name) for name in ("month", *keys, *sums)}
    return insert(table).values(account_id=ACCOUNT, **values)


@cache
def _clear(table: Table) -> Delete:
    return delete(table)


@cache
def _sums(table: Table, by: tuple[str, ...], sums: tuple[str, ...], limits: tuple[str, ...]) -> Select[Any]:
    its = _over(table, sums)
    wanted = [*its.c[by], *(func.sum(its.c[name]) for name in sums)]
    return select(*wanted).where(*(its.c[name] == bindparam(name) for name in limits)).group_by(*its.c[by])


def _over(table: Table, sums: tuple[str, ...]) -> Subquery:
    """The whole months of a period, and the rows of the days that it has beyond them or that they have beyond it."""
    keys, _ = _names(table)
    whole = table.c.month.between(bindparam("first_month"), bindparam("last_month"))
    arms = [select(*table.c["month", *keys, *sums]).where(whole)]
    for source in SOURCES:
        rows = source.rows().subquery()
        if table not in source.feeds or not set(sums) & set(rows.c.keys()):
            continue
        for edge in ("left", "right"):
            sign = bindparam(f"{edge}_sign", type_=INTEGER)
            month = func.substr(cast(rows.c.day, Text), 1, 7).label("month")
            told = [(sign * rows.c[name] if name in rows.c else literal(0, INTEGER)).label(name) for name in sums]
            within: list[ColumnElement[bool]] = [rows.c.day.between(bindparam(f"{edge}_from"), bindparam(f"{edge}_to"))]
            within += [among(rows.c.status, source.of)] if source.of else []
            arms.append(select(month, *rows.c[keys], *told).where(*within))
    return union_all(*arms).subquery()
