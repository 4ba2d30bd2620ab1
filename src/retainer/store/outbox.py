"""The outbox: what a transaction has changed, of which it writes one event for each record before it commits.

No author can forget it: statements say what they change (`store/announcements.py`), and one that does not is refused.
"""

from collections.abc import Callable, Collection

import msgspec
from msgspec.json import encode
from sqlalchemy import ColumnElement, Table, bindparam, func, insert, literal, select, text

from retainer.store.announcements import CREATED, DELETED, ROW, UPDATED, Change
from retainer.store.constraints import singular
from retainer.store.engines.base import Columns, Rows
from retainer.store.engines.sql import listed_rows
from retainer.store.tables import ONCE, events, totals


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
        self._read: dict[tuple[Table, int], Callable[[], Columns]] = {}

    def note_read(self, table: Table, record_id: int, former: Callable[[], Columns]) -> None:
        """Note the columns of a row as it was first read: an update writes whole records, and is compared with it."""
        self._read.setdefault((table, record_id), former)

    def has_read(self, table: Table, record_id: int) -> bool:
        return (table, record_id) in self._read

    def note_created(self, table: Table, at: str, *ids: int) -> None:
        """Note a new record, by its id and that of its parent, if it has one."""
        self._noted.append((at, resource_of(table), lambda: [ids], CREATED, (), None))

    def note(self, change: Change, at: str, rows: Rows, values: Columns) -> None:
        fields: Collection[str] = self._differing(change, values) if change.is_single else change.fields
        turned = values["status"] if "status" in fields else None
        self._noted.append((at, resource_of(change.table), rows, change.kind, (*fields, *change.parts), turned))

    def announce(self, table: Table, at: str, record_id: int, turned: str, fields: Collection[str]) -> None:
        """Note what a record has become, if no field that is written says so."""
        self._noted.append((at, resource_of(table), lambda: [(record_id,)], UPDATED, fields, turned))

    def _differing(self, change: Change, values: Columns) -> list[str]:
        """Return the written fields whose value is not that of the row as it was read; all if it was not."""
        read = self._read.get((change.table, values[ROW]))
        former = read() if read else {}
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

NO_COUNTER = (
    "The changes of account {} were saved without their events, because it lacks its counter of users. "
    "Repair it with `retainer doctor --repair`."
)


def values_of(found: list[Event]) -> Columns:
    """Return the values of INSERT_EVENT for a single event, or those of INSERT_EVENTS."""
    if len(found) == 1:
        return found[0].row()
    return {"rows": encode([(place, *each.row().values()) for place, each in enumerate(found)]).decode()}
