"""Events: they have no holes, and agree with the records that they announce.

The newest event of each record says whether it exists, and the newest one with a status says which it has. A bit for
each record remembers what was seen, so that millions of events fit into memory.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from typing import Any

from sqlalchemy import Select, Table, bindparam, select

from retainer.doctor.findings import Finding
from retainer.schema import metadata
from retainer.schema.identity import accounts
from retainer.schema.sites import sites
from retainer.schema.webhooks import webhooks
from retainer.store.announcements import CREATED, DELETED, UPDATED, is_announced
from retainer.store.constraints import singular
from retainer.store.engines.sql import is_listed
from retainer.store.outbox import resource_of
from retainer.store.streams import stream_rows
from retainer.store.tables import events
from retainer.store.tx import Tx
from retainer.values.exact import instant_after

CHUNK = 2000
ANNOUNCED = {resource_of(table): table for table in metadata.sorted_tables if is_announced(table)}
NEWEST_FIRST = (
    select(*events.c["id", "at", "type", "record_id"])
    .where(events.c.id < bindparam("before"))
    .order_by(events.c.id.desc())
    .limit(bindparam("size"))
)
BEYOND = 2**53
"""More than any id."""


class Bits:
    """A set of ids in a bit for each."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def add(self, number: int) -> bool:
        """Add an id; return whether it is new."""
        place, bit = number >> 3, 1 << (number & 7)
        if place >= len(self._bytes):
            self._bytes.extend(bytes(place - len(self._bytes) + 1))
        is_new = not self._bytes[place] & bit
        self._bytes[place] |= bit
        return is_new

    def __contains__(self, number: int) -> bool:
        place = number >> 3
        return place < len(self._bytes) and bool(self._bytes[place] & 1 << (number & 7))


class Walk:
    """What a walk over the events of an account, newest first, has seen."""

    def __init__(self) -> None:
        self.newest = self.oldest = 0
        self.oldest_at = "1970-01-01T00:00:00.000000Z"
        self.seen: dict[str, Bits] = defaultdict(Bits)
        self._with_status: dict[str, Bits] = defaultdict(Bits)

    def take(self, tx: Tx, rows: list[Any]) -> Iterator[Finding]:
        """Yield the holes between events of a chunk, and the records that do not agree with theirs."""
        existing: dict[str, dict[int, bool]] = defaultdict(dict)
        statuses: dict[str, dict[int, str]] = defaultdict(dict)
        for event_id, at, kind, record_id in rows:
            if self.oldest and event_id != self.oldest - 1:
                hole = f"{event_id + 1} to {self.oldest - 1}"
                yield Finding(f"Events {hole} are missing, between others that are there.")
            self.newest, self.oldest = self.newest or event_id, event_id
            self.oldest_at = at
            resource, _, change = kind.partition(".")
            if self.seen[resource].add(record_id):
                existing[resource][record_id] = change != DELETED
            if change not in {CREATED, UPDATED} and self._with_status[resource].add(record_id) and change != DELETED:
                statuses[resource][record_id] = change
        for resource, expected in existing.items():
            if resource in ANNOUNCED:
                yield from _compare(tx, ANNOUNCED[resource], expected, statuses[resource])


def find(tx: Tx, event_days: int) -> Iterator[Finding]:
    walk, before = Walk(), BEYOND
    while rows := tx.all(NEWEST_FIRST, before=before, size=CHUNK):
        yield from walk.take(tx, rows)
        before = rows[-1][0]
    created = str(tx.field(accounts.c.created_at, tx.account_id))
    if walk.oldest > 1 and created > instant_after(tx.now, -timedelta(days=event_days)):
        kept = f"and the account is younger than RETAINER_EVENT_DAYS={event_days}"
        yield Finding(f"Events 1 to {walk.oldest - 1} are missing, {kept}.")
    yield from _unannounced(tx, walk, max(walk.oldest_at, instant_after(tx.now, -timedelta(days=event_days))))
    for webhook_id, position in stream_rows(tx, webhooks, "position"):
        if position > walk.newest:
            what = f"It has taken event {position}, but the newest one is {walk.newest}."
            yield Finding(what, f"webhook {webhook_id}")


def _compare(tx: Tx, table: Table, expected: dict[int, bool], statuses: dict[int, str]) -> Iterator[Finding]:
    has_status = "status" in table.c and table is not sites  # a pause of a site is no event of its own
    rows = tx.all(_listed(table, has_status=has_status), ids=json.dumps([*expected]))
    found: dict[int, object] = dict(rows)
    kind = singular(table)
    for record_id, exists in expected.items():
        if exists and record_id not in found:
            yield Finding("It is missing, but its events do not say that it was deleted.", f"{kind} {record_id}")
        elif not exists and record_id in found:
            yield Finding("It exists, but its events say that it was deleted.", f"{kind} {record_id}")
        elif has_status and record_id in statuses and found.get(record_id) != statuses[record_id]:
            what = f"status is {found.get(record_id)}, but its newest event says {statuses[record_id]}."
            yield Finding(what, f"{kind} {record_id}")


def _unannounced(tx: Tx, walk: Walk, moment: str) -> Iterator[Finding]:
    """Yield records that were created after a moment since which all events are kept, and have none."""
    for resource, table in ANNOUNCED.items():
        last, kind = 0, singular(table)
        while rows := tx.all(_created_after(table), moment=moment, after=last, size=CHUNK):
            for (record_id,) in rows:
                if record_id not in walk.seen[resource]:
                    yield Finding("It was created without an event.", f"{kind} {record_id}")
            last = rows[-1][0]


@cache
def _listed(table: Table, *, has_status: bool) -> Select[Any]:
    status = table.c.status if has_status else table.c.id
    return select(table.c.id, status).where(is_listed(table.c.id, "ids"))


@cache
def _created_after(table: Table) -> Select[Any]:
    moment = bindparam("moment", type_=table.c.created_at.type)
    chunk = select(table.c.id).where(table.c.created_at > moment, table.c.id > bindparam("after"))
    return chunk.order_by(table.c.id).limit(bindparam("size"))
