"""Changes: use these instead of `insert`, `update` and `delete` of a `Tx` for tables with stored sums (`sources`).

Each change subtracts the figures of the rows as they were from the sums, and adds those that they have now.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial

from sqlalchemy import ColumnElement, Table, bindparam
from sqlalchemy.sql.dml import UpdateBase

from retainer.rollups import record_totals, summaries
from retainer.rollups.sources import SOURCES, Source
from retainer.store.constraints import DeletionStep
from retainer.store.engines.sql import is_listed
from retainer.store.tx import Tx
from retainer.values.records import Record

By = str | ColumnElement[bool]
Targets = tuple[Table, ...]  # summaries, and tables with totals on their records
SOURCE_OF = {source.table: source for source in SOURCES if source.table is not None}
RECORDS = "records"  # finds rows of a source by a list of records instead of by a column


def insert(tx: Tx, table: Table, record: Record, **hidden: object) -> int:
    """Insert a new record and add its row to the sums; return its id. Raises `validation_failed` with all errors."""
    source = SOURCE_OF.get(table)
    targets = () if source is None else _referred(source, record)
    record_id = tx.insert(table, record, **hidden)
    if source is not None:
        _apply(tx, source, targets, "record_id", 1, record_id=record_id)
    return record_id


def update(tx: Tx, table: Table, before: Record, after: Record) -> None:
    source = SOURCE_OF.get(table)
    if source is None or all(getattr(before, name) == getattr(after, name) for name in source.fields):
        tx.update(table, after)
        return
    _apply(tx, source, _referred(source, before), "record_id", -1, record_id=after.id)
    tx.update(table, after)
    _apply(tx, source, _referred(source, after), "record_id", 1, record_id=after.id)


def delete(tx: Tx, table: Table, record: Record) -> None:
    """Delete a record and its dependents, also from the sums that remain. Raises what `Tx.delete` raises."""
    tx.delete(table, record.id, partial(_subtract_deleted, tx, record))


def added(tx: Tx, source: Source, record_ids: Sequence[int]) -> None:
    """Add the rows of a source that belong to these records; for billed work, to invoice lines."""
    _apply(tx, source, (*source.records, *source.summaries), RECORDS, 1, record_id=json.dumps(record_ids))


def removed(tx: Tx, source: Source, record_ids: Sequence[int]) -> None:
    """Subtract the rows of a source that belong to these records, before they are deleted or no longer count."""
    _apply(tx, source, (*source.records, *source.summaries), RECORDS, -1, record_id=json.dumps(record_ids))


@contextmanager
def changing(tx: Tx, source: Source, record_id: int, *, by: By = "record_id", **values: object) -> Iterator[None]:
    """Keep the sums exact while the block changes rows of a source, found `by` a column or a condition."""
    targets = (*source.records, *source.summaries)
    _apply(tx, source, targets, by, -1, record_id=record_id, **values)
    yield
    _apply(tx, source, targets, by, 1, record_id=record_id, **values)


def _referred(source: Source, record: Record) -> Targets:
    """Return the targets, without the tables to which a record has no reference."""
    referred = (table for table, field in source.records.items() if getattr(record, field) is not None)
    return (*referred, *source.summaries)


def _subtract_deleted(tx: Tx, record: Record, step: DeletionStep) -> None:
    """Subtract the rows that a step of a deletion deletes, except from sums that are deleted, too."""
    source = None if step.table is None else SOURCE_OF.get(step.table)
    if source is None:
        return
    if step.found_by is None:
        _apply(tx, source, _referred(source, record), "record_id", -1, record_id=record.id)
    else:
        remaining = (table for table, field in source.records.items() if field != step.found_by)
        _apply(tx, source, (*remaining, *source.summaries), step.doomed, -1, id=record.id)


def _apply(tx: Tx, source: Source, targets: Targets, by: By, sign: int, **values: object) -> None:
    for statement in _statements(source, targets, by):
        tx.run(statement, sign=sign, **values)


@cache
def _statements(source: Source, targets: Targets, by: By) -> list[UpdateBase]:
    """Return the statements that add to targets the rows of a source, found by a column, by RECORDS or a condition."""
    columns = source.rows.selected_columns
    if isinstance(by, str) and by == RECORDS:
        rows = source.rows.where(is_listed(columns.record_id, "record_id"))
    else:
        rows = source.rows.where(columns[by] == bindparam("record_id") if isinstance(by, str) else by)
    is_single = isinstance(by, str) and by == "record_id" and source.table is not None and "id" in source.table.c
    return [
        record_totals.adding(target, rows, source.records[target], is_single=is_single)
        if target in source.records
        else summaries.adding(target, rows, is_single=is_single)
        for target in targets
    ]
