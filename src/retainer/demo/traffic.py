"""A month of requests by the keys of an agency: office hours, a burst that met the limit, a bad minute at night."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from functools import cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from sqlalchemy import Table, bindparam, select

from retainer.app import ROUTES
from retainer.kernel.resource import Operation
from retainer.schema.identity import api_keys
from retainer.store.tx import Actor, Store
from retainer.traffic.answered import RECORD, Answered
from retainer.traffic.recorder import RequestRecorder
from retainer.values.exact import as_instant

DAYS = 30
PER_DAY = (70, 35, 20, 10)
"""Requests on a working day, of the first key, the second and so on; the others make as few as the last."""
BURST, LIMIT = 640, 600
BURST_DAYS_AGO, BAD_NIGHT_DAYS_AGO = 6, 1
SHOWN = api_keys.c["last_used_at", "id", "user_id", "prefix", "scopes", "created_at", "expires_at", "revoked_at"]
KEYS = select(*SHOWN).order_by(api_keys.c.id)


class DemoKey(NamedTuple):
    """A key, and from when until when it could be used."""

    id: int
    user_id: int
    prefix: str
    operations: list[Operation]
    since: datetime
    until: datetime
    address: str


class Traffic:
    """The requests of an agency."""

    def __init__(self, store: Store, actor: Actor, rng: random.Random) -> None:
        self.store, self.actor, self.rng = store, actor, rng
        self.now = datetime.now(UTC)
        self.ids: dict[Table, list[int]] = {}

    def request(self) -> None:
        """Write the log of the last month."""
        recorder = RequestRecorder()
        for place, key in enumerate(self.keys()):
            requests = [*self.everyday(key, PER_DAY[min(place, len(PER_DAY) - 1)])]
            if place == 0:
                requests += [*self.burst(key), *self.bad_night(key)]
            requests.sort(key=lambda answered: answered.time)
            recorder.add(requests)
            recorder.write(self.store)
            if requests:
                with self.store.begin(self.actor, write=True) as tx:
                    used = {"last_used_at": requests[-1].time, "last_used_address": key.address}
                    tx.update_columns(api_keys, key.id, used)

    def keys(self) -> list[DemoKey]:
        """Return the keys that can call something, without those that nobody has used for long."""
        start = as_instant(self.now - timedelta(days=DAYS))
        with self.store.begin(self.actor, write=False) as tx:
            rows = tx.all(KEYS)
        keys = []
        for last_used_at, key_id, user_id, prefix, scopes, created_at, *ends in rows:
            operations = [each for each in callable_operations() if each.scope in scopes.split()]
            until = min([self.now, *(datetime.fromisoformat(end) for end in ends if end)])
            address = f"198.51.100.{self.rng.randint(1, 254)}"
            if operations and not (last_used_at and last_used_at < start):
                since = datetime.fromisoformat(created_at)
                keys.append(DemoKey(key_id, user_id, prefix, operations, since, until, address))
        return keys

    def everyday(self, key: DemoKey, per_day: int) -> Iterator[Answered]:
        """Yield what a key requests on ordinary days: in office hours, and little on weekends."""
        zone = ZoneInfo(self.actor.timezone)
        for ago in range(DAYS):
            day = (self.now.astimezone(zone) - timedelta(days=ago)).date()
            for _ in range(int(per_day * self.rng.uniform(0.7, 1.3)) // (1 if day.weekday() < 5 else 6)):
                minutes = int(self.rng.triangular(7 * 60, 20 * 60, 11 * 60))
                moment = datetime.combine(day, time(), zone) + timedelta(minutes=minutes)
                moment += timedelta(microseconds=self.rng.randrange(60_000_000))
                if key.since <= moment < key.until:
                    operation = self.rng.choice(key.operations)
                    if operation.writes and self.rng.random() < 0.6:  # who writes reads more
                        operation = key.operations[0]
                    yield self.answer(key, operation, moment, self.status(operation))

    def burst(self, key: DemoKey) -> Iterator[Answered]:
        """Yield an import that was too fast for a minute."""
        start = (self.now - timedelta(days=BURST_DAYS_AGO)).replace(hour=9, minute=20, second=0, microsecond=0)
        for n in range(BURST):
            moment = start + timedelta(microseconds=n * 59_000_000 // BURST)
            yield self.answer(key, key.operations[0], moment, 200 if n < LIMIT else 429)

    def bad_night(self, key: DemoKey) -> Iterator[Answered]:
        """Yield a minute in which the database was out of reach."""
        start = (self.now - timedelta(days=BAD_NIGHT_DAYS_AGO)).replace(hour=2, minute=14, second=0, microsecond=0)
        for n in range(5):
            yield self.answer(key, key.operations[0], start + timedelta(seconds=9 * n, microseconds=431_007), 503)

    def status(self, operation: Operation) -> int:
        """Return how a request may have been answered."""
        draw = self.rng.random()
        if operation.writes:
            return 422 if draw < 0.05 else {"POST": 201, "DELETE": 204}.get(operation.method, 200)
        if operation.parameters and draw < 0.12:
            return 404 if draw < 0.02 else 304
        return 200

    def answer(self, key: DemoKey, operation: Operation, moment: datetime, status: int) -> Answered:
        """Return a request for a record that is there, answered with a status."""
        path = operation.path
        table = operation.resource.parent if operation.resource.parent is not None else operation.resource.table
        for parameter in operation.parameters:
            path = path.replace(f"{{{parameter}}}", str(self.rng.choice(self.ids_of(table))))
        found = RECORD.match(path) if operation.writes and status < 300 else None
        return Answered(
            time=as_instant(moment),
            request_id=f"req_{int(moment.timestamp()) * 1000:012x}{self.rng.getrandbits(48):012x}",
            method=operation.method,
            path=path,
            status=status,
            duration_ms=self.rng.randrange(900, 9000) / (1 if status == 503 else 1000),
            operation=None if status == 429 else operation.id,
            account_id=self.actor.account_id,
            user_id=key.user_id,
            key_id=key.id,
            key=key.prefix,
            address=key.address,
            record=found and found[0],
        )

    def ids_of(self, table: Table | None) -> list[int]:
        """Return the ids of records that there are; 1 where there is none."""
        if table is None:
            return [1]
        if table not in self.ids:
            with self.store.begin(self.actor, write=False) as tx:
                rows = tx.all(select(table.c.id).order_by(table.c.id.desc()).limit(bindparam("most")), most=200)
            self.ids[table] = [row_id for (row_id,) in rows] or [1]
        return self.ids[table]


@cache
def callable_operations() -> list[Operation]:
    """Return the operations that need no more than one id; lists first, as they are called most."""
    operations = [each for each in ROUTES.operations if len(each.parameters) <= 1 and each.method != "DELETE"]
    return sorted(operations, key=lambda each: (each.writes, len(each.parameters)))
