"""Announcements: what a statement changes of the records of an announced table, as the helper that builds it says.

Each such change becomes an event. A statement that is built without these helpers says nothing, so it is refused when
it is compiled.
"""

from collections.abc import Collection
from typing import Any, NamedTuple

from sqlalchemy import Column, ColumnElement, Delete, Insert, Table, Update, bindparam, delete, insert, update
from sqlalchemy.sql import visitors
from sqlalchemy.sql.dml import UpdateBase
from sqlalchemy.sql.elements import ClauseElement

from retainer.store.engines.base import Columns
from retainer.store.tables import ACCOUNT, NOW

CREATED, UPDATED, DELETED = "created", "updated", "deleted"
STAMPS = frozenset({"id", "account_id", "created_at", "updated_at"})
ROW = "row_id"  # the bind with the id of the only record that a statement changes
ANNOUNCES = "announces"  # the option of a statement with its change, or with None if it changes no field


class Change(NamedTuple):
    """What a statement does to the records of an announced table. It returns their ids, with those of their parents."""

    table: Table
    kind: str
    fields: tuple[str, ...] = ()  # the fields that an update writes; created and deleted records have none
    parts: tuple[str, ...] = ()
    is_single: bool = False  # whether ROW is the only record that it can change


def inserting(table: Table, values: Columns) -> Insert:
    statement = insert(table).values(account_id=ACCOUNT, created_at=NOW, updated_at=NOW, **values)
    return statement.execution_options(**{ANNOUNCES: Change(table, CREATED)}) if is_announced(table) else statement


def updating(
    table: Table,
    *conditions: ColumnElement[bool],
    values: Columns | None = None,
    parts: Collection[str] = (),
    is_single: bool = False,
) -> Update:
    """Return an update of the rows that meet the conditions; it sets `updated_at`.

    `parts` are fields that change with the values, and are not columns. A single row is found by the bind ROW.
    """
    values = values or {}
    this_row = [table.c.id == bindparam(ROW)] if is_single else []
    statement = update(table).where(*this_row, *conditions).values(updated_at=NOW, **values)
    if not is_announced(table):
        return statement
    if not values and not parts:
        raise TypeError(f"A touch of {table} needs the names of the fields that have changed outside of its row.")
    fields = tuple(str(name) for name in values if is_field(table.c[name]))  # columns have quoted names
    change = Change(table, UPDATED, fields, tuple(parts), is_single)
    return statement.returning(*_ids(table)).execution_options(**{ANNOUNCES: change})


def deleting(table: Table, *conditions: ColumnElement[bool]) -> UpdateBase:
    statement = delete(table).where(*conditions)
    if not is_announced(table):
        return statement
    return statement.returning(*_ids(table)).execution_options(**{ANNOUNCES: Change(table, DELETED)})


def erasing(table: Table, *conditions: ColumnElement[bool]) -> Delete:
    """Return a deletion of rows of an account that is deleted as a whole, so that no events are needed."""
    return delete(table).where(*conditions).execution_options(**{ANNOUNCES: None})


def maintaining(table: Table, *conditions: ColumnElement[bool], values: Columns) -> Update:
    """Return an update of columns that are no fields of records, like stored sums; it announces nothing."""
    if written := [name for name in values if name == "updated_at" or is_field(table.c[name])]:
        raise TypeError(f"{', '.join(written)} of {table} are shown. Use `updating`, so that events name the change.")
    return update(table).where(*conditions).values(values).execution_options(**{ANNOUNCES: None})


def announcement_of(statement: ClauseElement) -> Change | None:
    """Return the change that a statement announces. Raises TypeError if it or a part does not say what it changes."""
    options = statement.get_execution_options() if isinstance(statement, UpdateBase) else {}
    for part in visitors.iterate(statement):
        says_what = part is statement and ANNOUNCES in options
        if isinstance(part, UpdateBase) and is_announced(part.table) and not says_what:
            raise TypeError(f"This changes {part.table} without an event. Build it with store/announcements.py.")
    return options.get(ANNOUNCES)


def is_announced(table: Any) -> bool:
    return bool(table.info.get("announced"))


def is_field(column: Column[object]) -> bool:
    """Return whether a column of an announced table is a field of its records that only their own changes write."""
    return column.name not in STAMPS and column.info.keys().isdisjoint({"hidden", "folds", "maintained"})


def _ids(table: Table) -> list[Column[int]]:
    parent = table.info["parent"]
    return [table.c.id, *([table.c[parent]] if parent else [])]
