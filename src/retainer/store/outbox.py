"""The outbox: what a transaction has changed, of which it writes one event for each record before it commits.

No author can forget it: `store/statements.py` finds every INSERT, UPDATE and DELETE of an announced table when it
compiles a statement, and refuses one whose records cannot be known.
"""

from collections.abc import Collection
from typing import Any, NamedTuple

import msgspec
from msgspec.json import encode
from sqlalchemy import (
    BinaryExpression,
    BindParameter,
    Column,
    ColumnElement,
    Delete,
    Insert,
    Table,
    Update,
    bindparam,
    func,
    insert,
    literal,
    select,
    text,
)
from sqlalchemy.sql import operators, visitors
from sqlalchemy.sql.dml import UpdateBase
from sqlalchemy.sql.elements import ClauseElement

from retainer.store.constraints import singular
from retainer.store.engines.base import Columns, Row, Rows
from retainer.store.engines.sql import listed_rows
from retainer.store.row_mapper import RowMapper, decode_row
from retainer.store.tables import ONCE, PARTS, events, totals

CREATED, UPDATED, DELETED = "created", "updated", "deleted"
STAMPS = frozenset({"id", "account_id", "created_at", "updated_at"})


class Change(NamedTuple):
    """What a statement does to the records of an announced table."""

    table: Table
    resource: str
    parent: str | None
    """The column of the record's parent."""
    kind: str
    fields: tuple[str, ...] = ()
    """The fields that an update writes; created and deleted records have none."""
    parts: tuple[str, ...] = ()
    """The fields that change with it, and are not columns."""
    bound: str | None = None
    """The name of the value that is the id of the only record it can change."""
    is_certain: bool = False
    """Whether it changes that record in any case, without comparing values."""
    returns: tuple[Column[int], ...] = ()
    """The columns that the statement has to return, so that its records are known."""


def change_of(statement: ClauseElement) -> Change | None:
    """Return what a statement announces, or None. Raises TypeError if that cannot be known."""
    parts = {id(part): part for part in visitors.iterate(statement) if isinstance(part, UpdateBase)}
    changing = [part for part in parts.values() if _announces(part)]
    if not changing:
        return None
    part, *others = changing
    table: Any = part.table
    resource, parent = resource_of(table), table.info["parent"]
    if others:
        raise TypeError(f"One statement changes records twice, of {table} first. Write two statements.")
    if isinstance(part, Insert):
        if part.select is not None or part._multi_values:  # noqa: SLF001
            raise TypeError(f"Insert records of {table} one by one with Tx.insert, so that their ids are known.")
        return Change(table, resource, parent, CREATED)
    bound = _bound_id(part)
    returns = () if bound and not parent else (table.c.id, *([table.c[parent]] if parent else []))
    if returns and (part is not statement or part._returning):  # noqa: SLF001
        raise TypeError(f"The records of {table} that a part of a statement changes are unknown. Write it alone.")
    if isinstance(part, Delete):
        return Change(table, resource, parent, DELETED, bound=bound, returns=returns)
    fields = tuple(name for name in _written(part) if is_field(table.c[name]))
    outside = tuple(part.get_execution_options().get(PARTS, ()))
    if not fields and not outside and _written(part) == {"updated_at"}:
        raise TypeError(f"A touch of {table} needs the names of the fields that have changed outside of its row.")
    is_certain = len(part._where_criteria) == 1  # type: ignore[attr-defined]  # noqa: SLF001
    return Change(table, resource, parent, UPDATED, fields, outside, bound, is_certain, returns)


def is_field(column: Column[object]) -> bool:
    """Return whether a column of an announced table is a field of its records that only their own changes write."""
    return column.name not in STAMPS and column.info.keys().isdisjoint({"hidden", "folds", "maintained"})


def _announces(part: UpdateBase) -> bool:
    """Return whether a part of a statement is a change to announce: each one sets `updated_at`, stored sums do not."""
    table: Any = part.table
    if not table.info.get("announced"):
        return False
    if not isinstance(part, Update):
        return True
    written = _written(part)
    if "updated_at" not in written and any(is_field(table.c[name]) for name in written):
        raise TypeError(f"An update of {table} must set updated_at, as it changes fields of its records.")
    return "updated_at" in written


def _written(part: Any) -> set[str]:
    return {str(getattr(column, "name", column)) for column in part._values}  # noqa: SLF001  # also a quoted_name


def _bound_id(part: Any) -> str | None:
    """Return the name of the value that the id of a changed row must equal."""
    for condition in part._where_criteria:  # noqa: SLF001
        if isinstance(condition, BinaryExpression) and condition.operator is operators.eq:
            bind = condition.right
            if condition.left is part.table.c.id and isinstance(bind, BindParameter):
                return bind.key
    return None


class Event(msgspec.Struct):
    """What has happened to a record in a transaction."""

    at: str
    resource: str
    record_id: int
    parent_id: int | None
    kind: str
    fields: Collection[str]
    turned: str | None
    """What its status has become."""

    def merge(self, kind: str, fields: Collection[str], turned: str | None) -> None:
        """Add what the transaction did to the record later."""
        if kind == DELETED:
            self.kind, self.fields = DELETED, ()
        elif self.kind == UPDATED:
            self.fields = {*self.fields, *fields}
            self.turned = turned or self.turned

    def row(self) -> Columns:
        """Return the columns of PER_RECORD, in this order; the type is the most specific one, like `invoice.paid`."""
        is_update = self.kind == UPDATED
        return {
            "at": self.at,
            "type": f"{self.resource}.{(is_update and self.turned) or self.kind}",
            "record_id": self.record_id,
            "parent_id": self.parent_id,
            "fields": encode(sorted(set(self.fields))).decode() if is_update else "[]",
        }


Noted = tuple[str, str, Rows, str, Collection[str], str | None]
"""A change: its instant, the resource, the records, what was done to them, the fields, and what the status became."""


class Outbox:
    """The changes that a transaction has noted, in their order, and the rows that it has read."""

    __slots__ = ("_noted", "_read")

    def __init__(self) -> None:
        self._noted: list[Noted] = []
        self._read: dict[tuple[Table, int], tuple[RowMapper, Row]] = {}

    def note_read(self, mapper: RowMapper, record_id: int, row: Row) -> None:
        """Note a row as it was first read: an update writes whole records, and is compared with it."""
        self._read.setdefault((mapper.table, record_id), (mapper, row))

    def note(self, change: Change, at: str, rows: Rows, values: Columns) -> None:
        """Note what a statement has changed."""
        fields: Collection[str] = change.fields
        turned = None
        if change.kind == UPDATED:
            if change.bound is not None:
                fields = self._differing(change, values[change.bound], values)
            if "status" in fields:
                turned = values["status"]
            fields = (*fields, *change.parts)
        self._noted.append((at, change.resource, rows, change.kind, fields, turned))

    def announce(self, table: Table, at: str, record_id: int, turned: str, fields: Collection[str]) -> None:
        """Note what a record has become, if no field that is written says so."""
        self._noted.append((at, resource_of(table), lambda: [(record_id,)], UPDATED, fields, turned))

    def _differing(self, change: Change, record_id: int, values: Columns) -> list[str]:
        """Return the written fields whose value is not that of the row as it was read; all if it was not."""
        read = self._read.get((change.table, record_id))
        if read is None:
            if "status" in change.fields:
                raise RuntimeError(f"Read the record of {change.table} first: its former status is unknown.")
            return [*change.fields]
        mapper, row = read
        former = mapper.stored(decode_row(row[0]))
        return [name for name in change.fields if name not in former or former[name] != values.get(name)]

    def events(self) -> list[Event]:
        """Return one event for each record that exists before or after the transaction."""
        found: dict[tuple[str, int], Event] = {}
        for at, resource, rows, kind, fields, turned in self._noted:
            for record_id, *parent in rows():
                key = (resource, record_id)
                event = found.get(key)
                if event is None:
                    parent_id = parent[0] if parent else None
                    found[key] = Event(at, resource, record_id, parent_id, kind, fields, turned)
                elif kind == DELETED and event.kind == CREATED:
                    del found[key]
                else:
                    event.merge(kind, fields, turned)
        return list(found.values())


def resource_of(table: Table) -> str:
    """Return the name of a record's type in events: `time_entry`."""
    return singular(table).replace(" ", "_")


CONTEXT = ("user_id", "key_id", "request_id")
"""What all events of a transaction share."""
PER_RECORD = ("at", "type", "record_id", "parent_id", "fields")
FIRST_ROW = text("LIMIT 1")
NEWEST_ID = select(events.c.id).order_by(events.c.id.desc()).suffix_with(FIRST_ROW).scalar_subquery()
"""The newest id of the account; `max` would take SQLite four times as long."""
NEXT_ID: ColumnElement[int] = func.coalesce(NEWEST_ID, literal(0)) + 1
"""The next id of the account: no other transaction takes one at the same time."""
_context = {name: bindparam(name, type_=events.c[name].type) for name in CONTEXT}
_names = ["account_id", "id", *CONTEXT, *PER_RECORD]
_record = [bindparam(name, type_=events.c[name].type) for name in PER_RECORD]
_place, *_columns = listed_rows("rows", [events.c.id, *events.c[PER_RECORD]]).selected_columns
INSERT_EVENT = insert(events).from_select(
    _names, select(totals.c.account_id, NEXT_ID, *_context.values(), *_record).where(ONCE)
)
INSERT_EVENTS = insert(events).from_select(
    _names, select(totals.c.account_id, NEXT_ID + _place, *_context.values(), *_columns).where(ONCE)
)


def values_of(found: list[Event]) -> Columns:
    """Return the values of INSERT_EVENT for a single event, or those of INSERT_EVENTS."""
    if len(found) == 1:
        return found[0].row()
    return {"rows": encode([(place, *each.row().values()) for place, each in enumerate(found)]).decode()}
