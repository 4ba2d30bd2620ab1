"""Summaries: sums of time of each year, month and day, by project and client, and by user.

They are updated in the transaction that changes the rows they sum, so a report adds up a few buckets instead of a
million entries. The figures of a row are defined once, in `sources`. The name of a bucket is the common prefix of its
days (ISO 8601): `2026`, `2026-11`, `2026-11-22`.
"""

import json
from calendar import isleap, monthrange
from collections.abc import Iterable, Iterator
from datetime import date
from functools import cache, lru_cache
from typing import Any

import sqlalchemy as sa

from retainer.rollups.record_totals import SIGN
from retainer.rollups.sources import ONE, SOURCES, ZERO
from retainer.store.engines.base import Row
from retainer.store.engines.sql import insert_or_add, is_listed
from retainer.store.tx import Tx
from retainer.values.exact import day_after

LENGTHS = YEAR, MONTH, DAY = len("2026"), len("2026-11"), len("2026-11-22")
Days = tuple[str | None, str]
"""The first and the last day of a period; without a first day, all days up to the last."""
Names = tuple[str, ...]


class Figures(dict[str, int]):
    """Sums by name; 0 for a sum without rows."""

    def __missing__(self, name: str) -> int:
        return 0


Sums = dict[tuple[Any, ...], Figures]  # figures by the key of a summary


def read(
    tx: Tx,
    table: sa.Table,
    days: Days,
    by: tuple[str, ...],
    sums: tuple[str, ...],
    projects: sa.SelectBase | None = None,
    **only: int | str,
) -> Sums:
    """Return the sums of a summary for a period, grouped `by` its keys or `month`; groups of zeros are omitted.

    `projects` selects the ids of projects to limit the rows to, `only` has values of keys to limit them to.
    """
    first, last = days
    if first is None:
        oldest, newest = (str(bucket or last)[:YEAR] for bucket in tx.one(_first_and_last_bucket(table)) or ())
        first, last = min(f"{oldest}-01-01", last), min(f"{newest}-12-31", last)
    names = decompose(first, last, MONTH if "month" in by else YEAR)
    rows = tx.all(_sums(table, by, sums, tuple(only), projects), buckets=json.dumps(names), last=last, **only)
    return keyed(rows, len(by), sums)


def keyed(rows: Iterable[Row], keys: int, names: Names) -> Sums:
    """Return the figures of rows by the keys that come before them; groups of zeros are omitted."""
    return {row[:keys]: Figures(zip(names, row[keys:], strict=True)) for row in rows if any(row[keys:])}


@cache
def _first_and_last_bucket(table: sa.Table) -> sa.Select[Any]:
    """Return a select of the first and the last bucket; two subqueries, as min and max together scan the table."""
    ends: list[Any] = [sa.select(end(table.c.bucket)).scalar_subquery() for end in (sa.func.min, sa.func.max)]
    return sa.select(*ends)


@cache
def _sums(
    table: sa.Table, by: tuple[str, ...], sums: tuple[str, ...], limits: tuple[str, ...], projects: sa.SelectBase | None
) -> sa.Select[Any]:
    keys = [
        sa.func.substr(table.c.bucket, 1, MONTH).label("month") if name == "month" else table.c[name] for name in by
    ]
    conditions = [table.c[name] == sa.bindparam(name) for name in limits]
    if projects is not None:
        conditions.append(table.c.project_id.in_(projects))
    in_period = is_listed(table.c.bucket, "buckets")
    sign = sa.case((table.c.bucket > sa.bindparam("last"), -1), else_=1)
    totals = (sa.func.sum(sign * table.c[name]) for name in sums)
    return sa.select(*keys, *totals).where(in_period, *conditions).group_by(*keys)


def adding(table: sa.Table, rows: sa.Select[Any], *, is_single: bool) -> sa.Insert:
    """Return the statement that adds the figures of rows to a summary; Citus plans no insertion with a CTE.

    A single row is in each bucket once, so that nothing is grouped.
    """
    key, sums = _names(table)
    sums = tuple(name for name in sums if name in rows.selected_columns)
    bucketed = _bucketed(table, rows.subquery(), sums, SIGN)
    return insert_or_add(table, bucketed if is_single else _totals(key, sums, [bucketed]), sums)


@cache
def rebuilding(table: sa.Table) -> tuple[sa.Delete, sa.Insert]:
    key, sums = _names(table)
    totals = _totals(key, sums, _all(table))
    return sa.delete(table), sa.insert(table).from_select(("account_id", *key, *sums), totals)


@cache
def difference(table: sa.Table) -> sa.Select[Any]:
    """Return a select of one key whose stored sums differ from its rows; no row if there is none."""
    key, sums = _names(table)
    stored = sa.select(*table.c["account_id", *key], *(-table.c[name] for name in sums))
    return _totals(key, sums, [*_all(table), stored]).limit(1)


def _names(table: sa.Table) -> tuple[Names, Names]:
    """Return the names of a summary's key columns, without the account, and of its sums."""
    key = tuple(column.name for column in table.primary_key if column.name != "account_id")
    return key, tuple(column.name for column in table.c if column.info.get("sum"))


def _totals(key: Names, sums: Names, selects: list[sa.Select[Any]]) -> sa.Select[Any]:
    """Return a select of rows summed by the key of a summary; groups of zeros are omitted."""
    columns = sa.union_all(*selects).subquery().c
    totals = [sa.func.sum(columns[name]) for name in sums]
    groups = sa.select(*columns["account_id", *key], *totals).group_by(*columns["account_id", *key])
    return groups.having(sa.or_(*(total != 0 for total in totals)))


def _all(table: sa.Table) -> list[sa.Select[Any]]:
    sums = _names(table)[1]
    return [_bucketed(table, source.rows.subquery(), sums) for source in SOURCES if table in source.summaries]


def _bucketed(table: sa.Table, rows: sa.FromClause, sums: Names, sign: sa.ColumnElement[int] = ONE) -> sa.Select[Any]:
    """Return a select of the rows of a source, once for each bucket that contains their day."""
    _, *keys = _names(table)[0]
    columns = rows.c
    lengths = sa.union_all(
        *(sa.select(sa.literal(length, sa.Integer).label("length")) for length in LENGTHS)
    ).subquery()
    bucket = sa.func.substr(sa.cast(columns.day, sa.Text), 1, lengths.c.length).label("bucket")
    figures = [(sign * columns.get(name, ZERO)).label(name) for name in sums]
    referred = [sa.func.coalesce(columns[key], 0).label(key) if key != "currency" else columns[key] for key in keys]
    return sa.select(columns.account_id, bucket, *referred, *figures)


@lru_cache(maxsize=128)
def decompose(first: str, last: str, longest: int = YEAR) -> tuple[str, ...]:
    """Return the buckets of a period, both ends included, as few as possible. `longest` is YEAR or MONTH.

    Those that begin after the last day are to be subtracted: until 28 November, a year less 3 buckets is shorter than
    10 months and 28 days, and most reports end today, after which hardly any time is recorded.
    """
    found = _within(first, last, longest)
    day = date.fromisoformat(last)
    month_end = day.replace(day=monthrange(day.year, day.month)[1])
    for length, begin, end in (
        (YEAR, day.replace(month=1, day=1), day.replace(month=12, day=31)),
        (MONTH, day.replace(day=1), month_end),
    ):
        if length >= longest and first <= str(begin) and last < str(end):
            whole = _within(first, str(end), longest)
            found = min(found, whole + _within(day_after(last, 1), str(end), longest), key=len)
    return tuple(found)


def _within(first: str, last: str, longest: int) -> list[str]:
    names = []
    day, end = (date.fromisoformat(text).toordinal() for text in (first, last))
    while day <= end:
        start = date.fromordinal(day)
        fitting = (each for each in _starting_on(start) if each[0] >= longest and day + each[1] - 1 <= end)
        length, days = next(fitting)
        names.append(start.isoformat()[:length])
        day += days
    return names


def _starting_on(day: date) -> Iterator[tuple[int, int]]:
    """Yield the length of the name and the number of days of each bucket that starts on a day, the longest first."""
    if (day.month, day.day) == (1, 1):
        yield YEAR, 366 if isleap(day.year) else 365
    if day.day == 1:
        yield MONTH, monthrange(day.year, day.month)[1]
    yield DAY, 1
