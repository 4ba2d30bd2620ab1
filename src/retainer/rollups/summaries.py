"""Summaries: the sums of each day, month and year by project, client and user.

They are updated in the transaction that changes the rows they sum, so that a report adds up a few spans, not a million
entries. The figures of a row are defined once, in `sources`.
"""

import json
from functools import cache
from typing import Any

from sqlalchemy import (
    Delete,
    FromClause,
    Insert,
    Integer,
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

from retainer.rollups import buckets
from retainer.rollups.sources import SOURCES, ZERO, Source
from retainer.schema.columns import in_literals
from retainer.store.engines.sql import insert_or_add, is_listed, listed
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx

Days = tuple[str | None, str]
"""The first and the last day of a period; without a first one, all days until the last."""
Names = tuple[str, ...]
Sums = dict[tuple[Any, ...], list[int]]
"""Lists of sums by the key of a summary."""


def read(
    tx: Tx,
    table: Table,
    days: Days,
    by: tuple[str, ...],
    sums: tuple[str, ...],
    projects: Select[Any] | None = None,
    **only: int | str,
) -> Sums:
    """Return the sums of a summary over these days, grouped `by` its keys or `month`; groups of zeros are left out.

    `projects` limits the rows to projects whose ids it selects, `only` to keys with these values.
    """
    first, last = days
    if first is None:
        oldest, newest = (str(span or last)[: buckets.YEAR] for span in tx.one(_first_and_last_span(table)) or ())
        first, last = min(f"{oldest}-01-01", last), min(f"{newest}-12-31", last)
    added, subtracted = buckets.decompose(first, last, tx.today, buckets.MONTH if "month" in by else buckets.YEAR)
    spans = {"added": json.dumps(added), "subtracted": json.dumps(subtracted)}
    rows = tx.all(_sums(table, by, sums, tuple(only), projects), **spans, **only)
    return {row[: len(by)]: list(row[len(by) :]) for row in rows if any(row[len(by) :])}


def outstanding(tx: Tx, table: Table, last: str, by: tuple[str, ...], **only: int | str) -> Sums:
    """Return the outstanding and overdue amounts and the number of overdue invoices at the end of a day."""
    return read(tx, table, (None, last), by, ("outstanding", "overdue", "overdue_count"), None, **only)


@cache
def _first_and_last_span(table: Table) -> Select[Any]:
    """The first and the last span of a summary, as two subqueries: both in one query would scan the table."""
    ends: list[Any] = [select(end(table.c.span)).scalar_subquery() for end in (func.min, func.max)]
    return select(*ends)


@cache
def _sums(
    table: Table, by: tuple[str, ...], sums: tuple[str, ...], limits: tuple[str, ...], projects: Select[Any] | None
) -> Select[Any]:
    keys = [
        func.substr(table.c.span, 1, buckets.MONTH).label("month") if name == "month" else table.c[name] for name in by
    ]
    conditions = [table.c[name] == bindparam(name) for name in limits]
    if projects is not None:
        conditions.append(table.c.project_id.in_(projects))
    added = select(*keys, *table.c[sums]).where(is_listed(table.c.span, listed("added").scalar_subquery()), *conditions)
    negated = (-table.c[name] for name in sums)
    subtracted = select(*keys, *negated).where(
        is_listed(table.c.span, listed("subtracted").scalar_subquery()), *conditions
    )
    columns = union_all(added, subtracted).subquery().c
    return select(*columns[by], *(func.sum(columns[name]) for name in sums)).group_by(*columns[by])


def adding(table: Table, rows: FromClause, *, is_one: bool) -> Insert:
    """Return the statement that adds rows of a source to a summary: the figures that they have."""
    key, sums = _names(table)
    sums = tuple(name for name in sums if name in rows.c)
    spanned = _spanned(table, rows, sums)
    if is_one:  # which spares the sorting of groups
        return insert_or_add(table, select(ACCOUNT, *spanned.subquery().c[(*key, *sums)]), sums)
    return insert_or_add(table, _totals(key, sums, [spanned]), sums)


def fields(source: Source, table: Table) -> set[str]:
    """Return the columns of a source's rows from which sums of a summary are made."""
    (_, *keys), sums = _names(table)
    return {"day", *keys, *sums} & set(source.rows.selected_columns.keys())


@cache
def rebuilding(table: Table) -> tuple[Delete, Insert]:
    """Return the statements that clear a summary, and that fill it from its rows."""
    key, sums = _names(table)
    totals = _totals(key, sums, _all(table))
    return delete(table), insert(table).from_select(("account_id", *key, *sums), totals)


@cache
def difference(table: Table) -> Select[Any]:
    """Select a row if the stored sums, subtracted from those of the rows, leave a difference."""
    key, sums = _names(table)
    stored = select(*table.c[key], *(-table.c[name] for name in sums))
    return _totals(key, sums, [*_all(table), stored]).limit(1)


def _names(table: Table) -> tuple[Names, Names]:
    """Return the names of the key columns of a summary, without the account, and of its sums."""
    key = tuple(column.name for column in table.primary_key if column.name != "account_id")
    return key, tuple(column.name for column in table.c if column.info.get("sum"))


def _totals(key: Names, sums: Names, selects: list[Select[Any]]) -> Select[Any]:
    """Sum rows by the key of a summary; groups of zeros are left out."""
    columns = union_all(*selects).subquery().c
    totals = [func.sum(columns[name]) for name in sums]
    groups = select(ACCOUNT, *columns[key], *totals).group_by(*columns[key])
    return groups.having(or_(*(total != 0 for total in totals)))


def _all(table: Table) -> list[Select[Any]]:
    """Return selects of all rows of a summary, one for each source; only statuses that count."""
    selects = []
    for source in SOURCES:
        if table in source.feeds:
            rows = source.rows
            conditions = [in_literals(rows.selected_columns.status, source.statuses)] if source.statuses else []
            selects.append(_spanned(table, rows.where(*conditions).subquery(), _names(table)[1]))
    return selects


def _spanned(table: Table, rows: FromClause, sums: Names) -> Select[Any]:
    """Select the rows of a source with these sums, once for each span that contains their day."""
    _, *keys = _names(table)[0]
    columns = rows.c
    lengths = union_all(*(select(literal(length, Integer).label("length")) for length in buckets.LENGTHS)).subquery()
    span = func.substr(cast(columns.day, Text), 1, lengths.c.length).label("span")
    figures = [columns.get(name, ZERO).label(name) for name in sums]
    referred = [func.coalesce(columns[key], 0).label(key) if key != "currency" else columns[key] for key in keys]
    return select(span, *referred, *figures)
