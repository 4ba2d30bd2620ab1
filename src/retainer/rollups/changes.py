"""Changes: the one call that whoever writes what sums count must make. Every sum that is kept follows from it."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, partial
from typing import cast

from sqlalchemy import Column, FromClause, HasCTE, Table, bindparam
from sqlalchemy.sql import visitors
from sqlalchemy.sql.dml import UpdateBase
from sqlalchemy.sql.elements import ClauseElement

from retainer.rollups import project_totals, summaries
from retainer.rollups.sources import BALANCES, BILLED_TIME, TIME, Source, negated
from retainer.schema.work import projects
from retainer.store.engines.sql import INTEGER, Part, combined, is_listed, listed, rows_of
from retainer.store.tx import Tx
from retainer.values.records import Record

RECORDS = "records"
"""Rows of a source are found by a list of records, instead of by a column of theirs."""


def insert(tx: Tx, source: Source, table: Table, record: Record) -> int:
    """Write a new record and what its row adds; return its id. Raises `validation_failed` with every error."""
    if tx.engine.combines_writes:
        return tx.insert(table, record, _of_inserted(source, table))
    record_id = tx.insert(table, record)
    added(tx, source, record_id)
    return record_id


def added(tx: Tx, source: Source, record_id: int) -> None:
    """Add what the rows of a source that belong to a record come to; for billed work, to an invoice's line."""
    _apply(tx, source, source.feeds, "record_id", record_id, 1)


def removed(tx: Tx, source: Source, record_id: int) -> None:
    """Take away what the rows of a source that belong to a record come to, before they go."""
    _apply(tx, source, source.feeds, "record_id", record_id, -1)


def added_all(tx: Tx, source: Source, record_ids: list[int]) -> None:
    """Add what the rows of a source that belong to any of many records come to."""
    _apply(tx, source, source.feeds, RECORDS, json.dumps(record_ids), 1)


def removed_all(tx: Tx, source: Source, record_ids: list[int]) -> None:
    """Take away what the rows of a source that belong to any of many records come to, before they go."""
    _apply(tx, source, source.feeds, RECORDS, json.dumps(record_ids), -1)


@contextmanager
def changing(tx: Tx, source: Source, record_id: int, *, by: str = "record_id") -> Iterator[None]:
    """Keep the sums right while the block changes the rows of a source that are found `by` a column of theirs."""
    _apply(tx, source, source.feeds, by, record_id, -1)
    yield
    _apply(tx, source, source.feeds, by, record_id, 1)


def update(tx: Tx, source: Source, table: Table, before: Record, after: Record) -> None:
    """Write a record's fields, and the sums if its row comes to something else now."""
    is_revalued = any(getattr(before, name) != getattr(after, name) for name in _summed_fields(source, table))
    with changing(tx, source, after.id) if is_revalued else nullcontext():
        tx.update(table, after)


def changing_balance(tx: Tx, invoice_id: int) -> AbstractContextManager[None]:
    """Keep the balances right while the block changes an invoice, its payments or its credit notes."""
    return changing(tx, BALANCES, invoice_id)


@contextmanager
def changing_project(tx: Tx, project_ids: list[int]) -> Iterator[None]:
    """Keep the totals of projects right while the block changes their currency or how they are billed."""
    for sign in (-1, 1):
        for project_id in project_ids:
            for source in (TIME, BILLED_TIME):
                _apply(tx, source, (projects,), "project_id", project_id, sign)
        if sign == -1:
            yield


def _apply(tx: Tx, source: Source, feeds: tuple[Table, ...], by: str, record_id: int | str, sign: int) -> None:
    for statement in _statements(source, feeds, by, sign, is_combined=tx.engine.combines_writes):
        tx.run(statement, record_id=record_id)


@cache
def _statements(source: Source, feeds: tuple[Table, ...], by: str, sign: int, *, is_combined: bool) -> list[UpdateBase]:
    rows = source.rows if sign == 1 else negated(source)
    columns = source.rows.selected_columns
    if by == RECORDS:
        rows = rows.where(is_listed(columns.record_id, listed("record_id", INTEGER).scalar_subquery()))
    else:
        rows = rows.where(columns[by] == bindparam("record_id"))
    changed, is_one = rows_of("changed", rows.selected_columns), source.has_one_row and by == "record_id"
    statements = [_adding(feed, changed, is_one=is_one) for feed in feeds]
    if is_combined:  # the rows are read once for all of them
        return [combined(statements[0].add_cte(rows.cte("changed")), *statements[1:])]
    return [statement.add_cte(rows.cte("changed")) for statement in statements]


@cache
def _of_inserted(source: Source, table: Table) -> tuple[Part, ...]:
    """The parts of a statement that add up the rows which another part of it has inserted into a table."""
    inserted = rows_of("inserted", table.c)

    def replace(element: object, **_: object) -> ClauseElement | None:
        if element is table:
            return inserted
        return inserted.c[element.name] if isinstance(element, Column) and element.table is table else None

    rows = cast("HasCTE", visitors.replacement_traverse(source.rows, {}, replace))
    changed = rows_of("changed", source.rows.selected_columns)
    return rows.cte("changed"), *(_adding(feed, changed, is_one=source.has_one_row) for feed in source.feeds)


def _adding(feed: Table, changed: FromClause, *, is_one: bool) -> UpdateBase:
    adding = project_totals.adding if feed is projects else partial(summaries.adding, feed)
    return adding(changed, is_one=is_one)


@cache
def _summed_fields(source: Source, table: Table) -> set[str]:
    """The columns of a table from which a source makes its figures."""
    return {part.name for part in visitors.iterate(source.rows) if isinstance(part, Column) and part.table is table}
