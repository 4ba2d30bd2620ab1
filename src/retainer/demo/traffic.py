"""A month of requests by the keys of an agency: office hours, a burst over the rate limit, a short outage at night."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from functools import cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from sqlalchemy import Table, bindparam, select

from retainer.app import ROUTES
from retainer.identity.keys import key_list
from retainer.identity.keys.key_list import Key
from retainer.kernel.resource import Operation
from retainer.schema.identity import api_keys
from retainer.store.tx import Actor, Store
from retainer.traffic.answered import RECORD, Answered, Reason
from retainer.traffic.recorder import RequestRecorder
from retainer.values.exact import as_instant, instant_after
from retainer.values.reading import writable_fields

DAYS = 30
PER_DAY = (70, 35, 20, 10)
"""Requests on a working day by the first key, the second and so on; later keys send as few as the last."""
BURST, LIMIT = 640, 600
BURST_DAYS_AGO, OUTAGE_DAYS_AGO = 6, 1
CODES = {403: "missing_scope", 404: "not_found", 422: "validation_failed", 429: "rate_limited", 503: "unavailable"}


class Sender(NamedTuple):
    """A key in use: its operations, the time in which it was valid, and its address."""

    key: Key
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
        """Write the request log of the last month."""
        recorder = RequestRecorder()
        for index, sender in enumerate(self.senders()):
            requests = [*self.everyday(sender, PER_DAY[min(index, len(PER_DAY) - 1)])]
            if index == 0:
                requests += [*self.burst(sender), *self.outage(sender), *self.forbidden(sender)]
            requests.sort(key=lambda answered: answered.time)
            recorder.add(requests)
            recorder.write(self.store)
            if requests:
                with self.store.begin(self.actor, write=True) as tx:
                    used = {"last_used_at": requests[-1].time, "last_used_address": sender.address}
                    tx.update_columns(api_keys, sender.key.id, used)

    def senders(self) -> list[Sender]:
        """Return the keys that can call an operation, without those that have been unused for a month."""
        with self.store.begin(self.actor, write=False) as tx:
            start, keys = instant_after(tx.now, -timedelta(days=DAYS)), key_list.list_keys(tx)
        senders = []
        for key in keys:
            operations = [operation for operation in callable_operations() if operation.scope in key.scopes]
            if operations and not (key.last_used_at and key.last_used_at < start):
                ends = [datetime.fromisoformat(end) for end in (key.expires_at, key.revoked_at) if end]
                address = f"198.51.100.{self.rng.randint(1, 254)}"
                since = datetime.fromisoformat(key.created_at)
                senders.append(Sender(key, operations, since, min([self.now, *ends]), address))
        return senders

    def everyday(self, sender: Sender, per_day: int) -> Iterator[Answered]:
        """Yield the requests of ordinary days: in office hours, and few at weekends."""
        zone = ZoneInfo(self.actor.timezone)
        for ago in range(DAYS):
            day = (self.now.astimezone(zone) - timedelta(days=ago)).date()
            for _ in range(int(per_day * self.rng.uniform(0.7, 1.3)) // (1 if day.weekday() < 5 else 6)):
                minutes = self.rng.triangular(7 * 60, 20 * 60, 11 * 60)
                moment = datetime.combine(day, time(), zone) + timedelta(minutes=minutes)
                if sender.since <= moment < sender.until:
                    operation = self.rng.choice(sender.operations)
                    if operation.writes and self.rng.random() < 0.6:  # clients that write read more
                        operation = sender.operations[0]
                    yield self.answer(sender, operation, moment, self.status(operation))

    def burst(self, sender: Sender) -> Iterator[Answered]:
        """Yield an import that exceeded the rate limit."""
        start = (self.now - timedelta(days=BURST_DAYS_AGO)).replace(hour=9, minute=20, second=0, microsecond=0)
        for n in range(BURST):
            moment = start + timedelta(microseconds=n * 59_000_000 // BURST)
            yield self.answer(sender, sender.operations[0], moment, 200 if n < LIMIT else 429)

    def outage(self, sender: Sender) -> Iterator[Answered]:
        """Yield the requests of a minute in which the database was out of reach."""
        start = (self.now - timedelta(days=OUTAGE_DAYS_AGO)).replace(hour=2, minute=14, second=0, microsecond=431_007)
        for n in range(5):
            yield self.answer(sender, sender.operations[0], start + timedelta(seconds=9 * n), 503)

    def forbidden(self, sender: Sender) -> Iterator[Answered]:
        """Yield a request that the key has no scope for."""
        scope_less = [operation for operation in callable_operations() if operation.scope not in sender.key.scopes]
        moment = self.now - timedelta(hours=3, minutes=7)
        if scope_less and sender.since <= moment < sender.until:
            yield self.answer(sender, next((each for each in scope_less if each.writes), scope_less[0]), moment, 403)

    def status(self, operation: Operation) -> int:
        """Return a plausible status of a response."""
        draw = self.rng.random()
        if operation.writes:
            return 422 if draw < 0.05 else {"POST": 201}.get(operation.method, 200)
        if operation.parameters and draw < 0.12:
            return 404 if draw < 0.02 else 304
        return 200

    def answer(self, sender: Sender, operation: Operation, moment: datetime, status: int) -> Answered:
        """Return a request for an existing record, answered with a status."""
        path = operation.path
        table = operation.resource.parent if operation.resource.parent is not None else operation.resource.table
        for parameter in operation.parameters:
            path = path.replace(f"{{{parameter}}}", str(self.rng.choice(self.ids_of(table))))
        found = RECORD.match(path) if operation.writes and status < 300 else None
        code = CODES.get(status)
        return Answered(
            time=as_instant(moment),
            request_id=f"req_{int(moment.timestamp()) * 1000:012x}{self.rng.getrandbits(48):012x}",
            method=operation.method,
            path=path,
            status=status,
            duration_ms=self.rng.randrange(900, 9000) / (1 if status == 503 else 1000),
            operation=None if status == 429 else operation.id,
            account_id=self.actor.account_id,
            user_id=sender.key.user_id,
            key_id=sender.key.id,
            key=sender.key.prefix,
            address=sender.address,
            record=found and found[0],
            reason=Reason(code, names_for(operation, status)) if code else None,
        )

    def ids_of(self, table: Table | None) -> list[int]:
        """Return the newest ids of a table; 1 if it has none."""
        if table is None:
            return [1]
        if table not in self.ids:
            with self.store.begin(self.actor, write=False) as tx:
                rows = tx.all(select(table.c.id).order_by(table.c.id.desc()).limit(bindparam("limit")), limit=200)
            self.ids[table] = [row_id for (row_id,) in rows] or [1]
        return self.ids[table]


def names_for(operation: Operation, status: int) -> list[str]:
    """Return the names in the reason of a refusal: the missing scope, or a field."""
    if status == 403:
        return [operation.scope] if operation.scope else []
    return list(writable_fields(operation.body))[:1] if status == 422 and operation.body else []


@cache
def callable_operations() -> list[Operation]:
    """Return the operations that need no more than one id; lists first, as they are called most."""
    operations = [each for each in ROUTES.operations if len(each.parameters) <= 1 and each.method != "DELETE"]
    return sorted(operations, key=lambda each: (each.writes, len(each.parameters)))
