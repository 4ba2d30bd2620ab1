"""Changes: the functions that write summed records. Call them whenever a record that sums count is written."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial

from sqlalchemy import Column, ColumnElement, Label, Select, Table, TableClause, bindparam, column
from sqlalchemy.sql import visitors
from sqlalchemy.sql.dml import UpdateBase

from retainer.rollups import record_totals, summaries
from retainer.rollups.record_totals import FORMULAS
from retainer.rollups.sources import BALANCES, SOURCES, Source, key_of, negated
from retainer.store.constraints import Step
from retainer.store.engines.sql import INTEGER, is_listed, listed
from retainer.store.tx import Tx
from retainer.values.records import Record

Targets = tuple[Table, ...]
"""Summaries, and tables with record totals."""
SOURCE_OF = {source.table: source for source in SOURCES if source.table is not None}
RECORDS = "records"
"""Finds rows of a source by a list of records instead of by a column."""


def insert(tx: Tx, source: Source, table: Table, record: Record) -> int:
    """Insert a new record and add its row to the sums; return its id. Raises `validation_failed` with all errors."""
    targets = _named(source, source.targets, record)
    record_id = tx.insert(table, record)
    _apply(tx, source, targets, "record_id", record_id, 1)
    return record_id


def added(tx: Tx, source: Source, record_id: int) -> None:
    """Add the rows of a source that belong to a record; for billed work, to an invoice line."""
    _apply(tx, source, source.targets, "record_id", record_id, 1)


def removed(tx: Tx, source: Source, record_id: int) -> None:
    """Subtract the rows of a source that belong to a record, before they are deleted."""
    _apply(tx, source, source.targets, "record_id", record_id, -1)


def added_all(tx: Tx, source: Source, record_ids: list[int]) -> None:
    """Add the rows of a source that belong to any of these records."""
    _apply(tx, source, source.targets, RECORDS, json.dumps(record_ids), 1)


def removed_all(tx: Tx, source: Source, record_ids: list[int]) -> None:
    """Subtract the rows of a source that belong to any of these records, before they are deleted."""
    _apply(tx, source, source.targets, RECORDS, json.dumps(record_ids), -1)


@contextmanager
def changing(tx: Tx, source: Source, record_id: int, *, by: str = "record_id") -> Iterator[None]:
    """Keep the sums exact while the block changes rows of a source, found `by` a column."""
    _apply(tx, source, source.targets, by, record_id, -1)
    yield
    _apply(tx, source, source.targets, by, record_id, 1)


def update(tx: Tx, source: Source, table: Table, before: Record, after: Record) -> None:
    """Update a record, and the sums to which its row adds a different value."""
    revalued = tuple(
        target
        for target in source.targets
        if any(getattr(before, name) != getattr(after, name) for name in _summed_fields(source, target))
    )
    _apply(tx, source, _named(source, revalued, before), "record_id", after.id, -1)
    tx.update(table, after)
    _apply(tx, source, _named(source, revalued, after), "record_id", after.id, 1)


def delete(tx: Tx, table: Table, record: Record) -> None:
    """Delete a record and its dependents, and subtract their rows from the remaining sums.

    Raises what `Tx.delete` raises.
    """
    tx.delete(table, record.id, partial(_subtract_deleted, tx, record))


def changing_balance(tx: Tx, invoice_id: int) -> AbstractContextManager[None]:
    """Keep the balances exact while the block changes an invoice, its payments or its credit notes."""
    return changing(tx, BALANCES, invoice_id)


def _subtract_deleted(tx: Tx, record: Record, step: Step) -> None:
    """Subtract the rows that a step of a deletion deletes, except from sums that are deleted, too."""
    source = None if step.table is None else SOURCE_OF.get(step.table)
    if source is None:
        return
    if step.found_by is None:
        _apply(tx, source, _named(source, source.targets, record), "record_id", record.id, -1)
        return
    fields = _naming_fields(source)
    targets = tuple(target for target in source.targets if fields.get(target) != step.found_by)
    for statement in _of_doomed(source, targets, step.doomed):
        tx.run(statement, id=record.id)


def _apply(tx: Tx, source: Source, targets: Targets, by: str, record_id: int | str, sign: int) -> None:
    for statement in _statements(source, targets, by, sign):
        tx.run(statement, record_id=record_id)


@cache
def _statements(source: Source, targets: Targets, by: str, sign: int) -> list[UpdateBase]:
    rows = source.rows if sign == 1 else negated(source)
    columns = source.rows.selected_columns
    if by == RECORDS:
        rows = rows.where(is_listed(columns.record_id, listed("record_id", INTEGER).scalar_subquery()))
    else:
        rows = rows.where(columns[by] == bindparam("record_id"))
    return _adding_to(rows, targets, single_row=source.has_one_row and by == "record_id")


@cache
def _of_doomed(source: Source, targets: Targets, doomed: ColumnElement[bool]) -> list[UpdateBase]:
    return _adding_to(negated(source).where(doomed), targets, single_row=False)


def _adding_to(rows: Select[int], targets: Targets, *, single_row: bool) -> list[UpdateBase]:
    """Return the statements that add rows to targets.

    An update reads the rows by the name of a CTE, because rows in its FROM would not be limited to the account. Citus
    plans no insertion with a CTE.
    """
    changed = TableClause("changed", *(column(each.name, each.type) for each in rows.selected_columns))
    return [
        record_totals.adding(target, changed, single_row=single_row).add_cte(rows.cte("changed"))
        if target in FORMULAS
        else summaries.adding(target, rows.subquery("changed"), single_row=single_row)
        for target in targets
    ]


def _named(source: Source, targets: Targets, record: Record) -> Targets:
    """Return the targets, without the tables to which a record has no reference."""
    fields = _naming_fields(source)
    return tuple(target for target in targets if target not in fields or getattr(record, fields[target]) is not None)


@cache
def _naming_fields(source: Source) -> dict[Table, str]:
    """Return, for each table with totals, the field of a source's records that refers to it."""
    columns = source.rows.selected_columns
    named = {
        target: columns[key_of(target)] for target in source.targets if target in FORMULAS and source.table is not None
    }
    return {target: (column.element if isinstance(column, Label) else column).name for target, column in named.items()}


@cache
def _summed_fields(source: Source, target: Table) -> set[str]:
    """Return the fields of a source's records that its figures for a target are computed from."""
    names = (record_totals if target in FORMULAS else summaries).fields(source, target)
    parts = (part for name in names for part in visitors.iterate(source.rows.selected_columns[name]))
    return {part.name for part in parts if isinstance(part, Column) and part.table is source.table}
