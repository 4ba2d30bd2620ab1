"""The outbox: what a transaction has changed, of which it writes one event for each record before it commits.

No author can forget it: statements say what they change (`store/announcements.py`), and one that does not is refused.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

import msgspec
from msgspec.json import encode
from sqlalchemy import ColumnElement, Insert, Table, bindparam, func, insert, literal, select, text

from retainer.store.announcements import CREATED, DELETED, ROW, UPDATED, Change
from retainer.store.constraints import singular
from retainer.store.engines.base import Columns, Row, Rows
from retainer.store.engines.sql import listed_rows
from retainer.store.tables import ONCE, events, totals


class NotedChange(NamedTuple):
    at: str
    resource: str
    rows: Rows  # returns the id of each record, with that of its parent
    kind: str
    fields: Collection[str] = ()
    new_status: str | None = None


class RecordEvent(msgspec.Struct):
    at: str
    parent_id: int | None
    kind: str
    fields: set[str]
    new_status: str | None


class Outbox:
    __slots__ = ("_noted", "former_rows")

    def __init__(self) -> None:
        self._noted: list[NotedChange] = []
        self.former_rows: dict[tuple[Table, int], Callable[[], Columns]] = {}

    def note_read(self, table: Table, record_id: int, former: Callable[[], Columns]) -> None:
        """Note the columns of a row as it was first read: an update writes whole records, and is compared with it."""
        self.former_rows.setdefault((table, record_id), former)

    def note_created(self, table: Table, at: str, *ids: int) -> None:
        self._noted.append(NotedChange(at, resource_of(table), lambda: [ids], CREATED))

    def note(self, change: Change, at: str, rows: Rows, values: Columns) -> None:
        fields: Collection[str] = change.fields
        if change.is_single and (read := self.former_rows.get((change.table, values[ROW]))):
            former = read()
            written = {name: values.get(name) for name in fields}
            fields = [name for name in fields if name not in former or former[name] != written[name]]
            # the next update is compared with this one: a status that comes back is a change, too
            self.former_rows[change.table, values[ROW]] = lambda: former | written
        new_status = values["status"] if "status" in fields else None
        self._noted.append(
            NotedChange(at, resource_of(change.table), rows, change.kind, (*fields, *change.parts), new_status)
        )

    def announce(self, table: Table, at: str, record_id: int, new_status: str, fields: Collection[str]) -> None:
        self._noted.append(NotedChange(at, resource_of(table), lambda: [(record_id,)], UPDATED, fields, new_status))

    def rows(self) -> list[Row]:
        """Return the PER_RECORD of each record that existed before or exists now; the type is the most specific one."""
        found: dict[tuple[str, int], RecordEvent] = {}
        for at, resource, rows, kind, fields, new_status in self._noted:
            for record_id, *parent in rows():
                event = found.get((resource, record_id))
                if event is None:
                    found[resource, record_id] = RecordEvent(
                        at, parent[0] if parent else None, kind, {*fields}, new_status
                    )
                elif kind == DELETED and event.kind == CREATED:
                    del found[resource, record_id]
                elif kind == DELETED:
                    event.kind = DELETED
                else:
                    event.fields.update(fields)
                    event.new_status = new_status or event.new_status
        return [
            (
                event.at,
                f"{resource}.{event.new_status or UPDATED}",
                record_id,
                event.parent_id,
                encode(sorted(event.fields)).decode(),
            )
            if event.kind == UPDATED
            else (event.at, f"{resource}.{event.kind}", record_id, event.parent_id, "[]")
            for (resource, record_id), event in found.items()
        ]


def resource_of(table: Table) -> str:
    """Return the name of a record's type in events: `time_entry`."""
    return singular(table).replace(" ", "_")


CONTEXT = ("user_id", "key_id", "link_id", "request_id")  # what all events of a transaction share
PER_RECORD = ("at", "type", "record_id", "parent_id", "fields")
FIRST_ROW = text("LIMIT 1")
NEWEST_ID = select(events.c.id).order_by(events.c.id.desc()).suffix_with(FIRST_ROW).scalar_subquery()
"""The newest id of the account; `max` would take SQLite four times as long."""
NEWEST_AT = select(events.c.at).order_by(events.c.id.desc()).suffix_with(FIRST_ROW)
"""The time of the newest event of the account."""
NEXT_ID: ColumnElement[int] = func.coalesce(NEWEST_ID, literal(0)) + 1
"""The next id of the account: no other transaction takes one at the same time."""


def _inserting(place: ColumnElement[int], columns: Iterable[ColumnElement[Any]]) -> Insert:
    values = select(totals.c.account_id, NEXT_ID + place, *_binds(CONTEXT), *columns).where(ONCE)
    return insert(events).from_select(["account_id", "id", *CONTEXT, *PER_RECORD], values)


def _binds(names: tuple[str, ...]) -> list[ColumnElement[Any]]:
    return [bindparam(name, type_=events.c[name].type) for name in names]


INSERT_EVENT = _inserting(literal(0), _binds(PER_RECORD))
"""Inserts one event, as most transactions do, for half of what rows in JSON cost."""
_place, *_columns = listed_rows("rows", [events.c.id, *events.c[PER_RECORD]]).selected_columns
INSERT_EVENTS = _inserting(_place, _columns)
"""Inserts the events that are bound as `rows`, each with its place among them."""

NO_COUNTER = (
    "The changes of account {} were saved without their events, because it lacks its counter of users. "
    "Repair it with `retainer doctor --repair`."
)
