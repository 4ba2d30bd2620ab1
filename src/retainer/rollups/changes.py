"""Changes: the one call that whoever writes what sums count must make. Every sum that is kept follows from it."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial
from typing import cast

from sqlalchemy import Column, ColumnElement, FromClause, HasCTE, Label, Select, Table, bindparam
from sqlalchemy.sql import visitors
from sqlalchemy.sql.dml import UpdateBase
from sqlalchemy.sql.elements import ClauseElement

from retainer.rollups import record_totals, summaries
from retainer.rollups.record_totals import FORMULAS
from retainer.rollups.sources import BALANCES, SOURCES, Source, key_of, negated
from retainer.store.constraints import Step
from retainer.store.engines.sql import INTEGER, Part, combined, is_listed, listed, rows_of
from retainer.store.tx import Tx
from retainer.values.records import Record

Feeds = tuple[Table, ...]
SOURCE_OF = {source.table: source for source in SOURCES if source.table is not None}
RECORDS = "records"
"""Rows of a source are found by a list of records, instead of by a column of theirs."""


def insert(tx: Tx, source: Source, table: Table, record: Record) -> int:
    """Write a new record and what its row adds; return its id. Raises `validation_failed` with every error."""
    feeds = _named(source, source.feeds, record)
    if tx.engine.combines_writes:
        return tx.insert(table, record, _of_inserted(source, table, feeds))
    record_id = tx.insert(table, record)
    _apply(tx, source, feeds, "record_id", record_id, 1)
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
    """Write a record's fields, and the sums to which its row adds something else now."""
    revalued = tuple(
        feed
        for feed in source.feeds
        if any(getattr(before, name) != getattr(after, name) for name in _summed_fields(source, feed))
    )
    _apply(tx, source, _named(source, revalued, before), "record_id", after.id, -1)
    tx.update(table, after)
    _apply(tx, source, _named(source, revalued, after), "record_id", after.id, 1)


def delete(tx: Tx, table: Table, record: Record) -> None:
    """Delete a record with all that goes with it, and take away what the rows have added to the sums of others.

    Raises what `Tx.delete` does.
    """
    tx.delete(table, record.id, partial(_take_away, tx, record))


def changing_balance(tx: Tx, invoice_id: int) -> AbstractContextManager[None]:
    """Keep the balances right while the block changes an invoice, its payments or its credit notes."""
    return changing(tx, BALANCES, invoice_id)


def _take_away(tx: Tx, record: Record, step: Step) -> None:
    """Take away what the rows add that a step of a deletion deletes, but from what is deleted with them."""
    source = None if step.table is None else SOURCE_OF.get(step.table)
    if source is None:
        return
    if step.found_by is None:
        _apply(tx, source, _named(source, source.feeds, record), "record_id", record.id, -1)
        return
    fields = _naming_fields(source)
    feeds = tuple(feed for feed in source.feeds if fields.get(feed) != step.found_by)
    for statement in _of_doomed(source, feeds, step.doomed, is_combined=tx.engine.combines_writes):
        tx.run(statement, id=record.id)


def _apply(tx: Tx, source: Source, feeds: Feeds, by: str, record_id: int | str, sign: int) -> None:
    for statement in _statements(source, feeds, by, sign, is_combined=tx.engine.combines_writes):
        tx.run(statement, record_id=record_id)


@cache
def _statements(source: Source, feeds: Feeds, by: str, sign: int, *, is_combined: bool) -> list[UpdateBase]:
    rows = source.rows if sign == 1 else negated(source)
    columns = source.rows.selected_columns
    if by == RECORDS:
        rows = rows.where(is_listed(columns.record_id, listed("record_id", INTEGER).scalar_subquery()))
    else:
        rows = rows.where(columns[by] == bindparam("record_id"))
    return _feeding(rows, feeds, is_one=source.has_one_row and by == "record_id", is_combined=is_combined)


@cache
def _of_doomed(source: Source, feeds: Feeds, doomed: ColumnElement[bool], *, is_combined: bool) -> list[UpdateBase]:
    return _feeding(negated(source).where(doomed), feeds, is_one=False, is_combined=is_combined)


def _feeding(rows: Select[int], feeds: Feeds, *, is_one: bool, is_combined: bool) -> list[UpdateBase]:
    """Return the statements that add rows to what they feed; one that is combined reads them once for all."""
    changed = rows_of("changed", rows.selected_columns)
    statements = [_adding(feed, changed, is_one=is_one) for feed in feeds]
    if is_combined and statements:
        return [combined(statements[0].add_cte(rows.cte("changed")), *statements[1:])]
    return [statement.add_cte(rows.cte("changed")) for statement in statements]


@cache
def _of_inserted(source: Source, table: Table, feeds: Feeds) -> tuple[Part, ...]:
    """The parts of a statement that add up the rows which another part of it has inserted into a table."""
    if not feeds:
        return ()
    inserted = rows_of("inserted", table.c)

    def replace(element: object, **_: object) -> ClauseElement | None:
        if element is table:
            return inserted
        return inserted.c[element.name] if isinstance(element, Column) and element.table is table else None

    rows = cast("HasCTE", visitors.replacement_traverse(source.rows, {}, replace))
    changed = rows_of("changed", source.rows.selected_columns)
    return rows.cte("changed"), *(_adding(feed, changed, is_one=source.has_one_row) for feed in feeds)


def _adding(feed: Table, changed: FromClause, *, is_one: bool) -> UpdateBase:
    adding = record_totals.adding if feed in FORMULAS else summaries.adding
    return adding(feed, changed, is_one=is_one)


def _named(source: Source, feeds: Feeds, record: Record) -> Feeds:
    """Return the feeds without the tables of which a record names no row."""
    fields = _naming_fields(source)
    return tuple(feed for feed in feeds if feed not in fields or getattr(record, fields[feed]) is not None)


@cache
def _naming_fields(source: Source) -> dict[Table, str]:
    """Return the field of a source's records that names the row of each table with totals."""
    columns = source.rows.selected_columns
    named = {feed: columns[key_of(feed)] for feed in source.feeds if feed in FORMULAS and source.table is not None}
    return {feed: (column.element if isinstance(column, Label) else column).name for feed, column in named.items()}


@cache
def _summed_fields(source: Source, feed: Table) -> set[str]:
    """Return the fields of a source's records from which it makes what a feed has of it."""
    names = (record_totals if feed in FORMULAS else summaries).fields(source, feed)
    parts = (part for name in names for part in visitors.iterate(source.rows.selected_columns[name]))
    return {part.name for part in parts if isinstance(part, Column) and part.table is source.table}
