"""The recorder: writes requests into the request log and its sums, in batches, outside of every request."""

import random
import threading
from collections import Counter, deque
from datetime import timedelta
from typing import Any

from msgspec.json import encode
from sqlalchemy import bindparam, func, select, update

from retainer.schema.requests import HOUR, MINUTE, SUMS, operation_hours, refusals, request_hours, requests
from retainer.store.engines.base import Unavailable
from retainer.store.engines.sql import INTEGER, DialectFunction, insert_or_add, listed_rows
from retainer.store.transaction import Transaction
from retainer.store.tx import Store
from retainer.traffic.answered import RequestLine
from retainer.values.exact import instant_after

ADD_TO_HOURS = insert_or_add(
    request_hours, listed_rows("rows", [*request_hours.primary_key, *request_hours.c[SUMS]]), SUMS
)
ADD_TO_OPERATION_HOURS = insert_or_add(
    operation_hours, listed_rows("rows", [*operation_hours.primary_key, *operation_hours.c[SUMS]]), SUMS
)
PRESENT = select(requests.c.number).where(
    requests.c.account_id == bindparam("account"),
    requests.c.answered_at == bindparam("answered_at"),
    requests.c.number == bindparam("number"),
)

QUIET_SECONDS, BUSY_SECONDS = 2, 5
"""Interval between writes; the longer one follows a write of BUSY_THRESHOLD, as each counts the minute of each key."""
BUSY_THRESHOLD = 1000
BATCH_SIZE = 2000
"""Maximum number of requests in one transaction, which other writers wait for."""
MINUTES_TOGETHER = 200
"""Maximum number of minutes that one transaction counts; each has as many requests as the limit of its key allows."""
MAX_WAITING = 100_000
"""Maximum number of queued requests while the database is unreachable, some 500 bytes each. The oldest are dropped."""

IN_MINUTE = (
    select(func.count())
    .where(requests.c.account_id == bindparam("account"), requests.c.key_id == bindparam("key"))
    .where(requests.c.answered_at >= bindparam("start"), requests.c.answered_at < bindparam("end"))
    .scalar_subquery()
)
THIS_HOUR = (
    request_hours.c.account_id == bindparam("account"),
    request_hours.c.key_id == bindparam("key"),
    request_hours.c.hour == bindparam("hour"),
)
BUSIEST = DialectFunction[int](
    INTEGER, "max({0}, {1})", "greatest({0}, {1})", request_hours.c.busiest_minute, IN_MINUTE
)
KEEP_BUSIEST = update(request_hours).where(*THIS_HOUR).values(busiest_minute=BUSIEST)
KeyMinute = tuple[Any, Any, str]
"""An account, a key of it, and a minute, like `2026-03-10T09:30`."""


class RequestBatch:
    """Requests of keys with consecutive numbers, counted by account, key, operation, status and minute."""

    def __init__(self, number: int, requests: list[RequestLine]) -> None:
        self.number = number  # of the first request
        self.requests = requests
        self.counts = Counter(
            (each.account_id, each.key_id, each.operation, each.status, each.time[:MINUTE]) for each in requests
        )

    def insert(self, tx: Transaction) -> None:
        """Insert the requests, unless they are there: the commit of an earlier attempt may not have been confirmed."""
        first = self.requests[0]
        if tx.one(PRESENT, account=first.account_id, answered_at=first.time, number=self.number) is not None:
            return
        logged, refused = [], []
        for number, each in enumerate(self.requests, self.number):
            logged.append(
                (
                    *(each.account_id, each.time, number, each.key_id, each.request_id, each.method, each.path),
                    *(each.operation, each.status, round(each.duration_ms * 1000), each.address, each.record),
                )
            )
            if each.reason is not None:
                names = encode(each.reason.names).decode()
                refused.append((each.account_id, each.time, number, each.reason.code, names))
        tx.insert_rows(requests, logged)
        tx.insert_rows(refusals, refused)
        self._add_to_sums(tx)

    def _add_to_sums(self, tx: Transaction) -> None:
        hours, operations = Sums(), Sums()
        for (account_id, key_id, operation, status, minute), count in self.counts.items():
            hours.add((account_id, key_id, minute[:HOUR]), status, count)
            if operation is not None:
                operations.add((account_id, key_id, operation, minute[:HOUR]), status, count)
        tx.run(ADD_TO_HOURS, rows=hours.as_rows())
        tx.run(ADD_TO_OPERATION_HOURS, rows=operations.as_rows())

    def minutes(self) -> set[KeyMinute]:
        return {(account_id, key_id, minute) for account_id, key_id, *_, minute in self.counts}


def count_minutes(tx: Transaction, minutes: list[KeyMinute]) -> None:
    """Keep the number of requests of each minute, if it is the busiest of its hour."""
    hours = Sums()
    for account_id, key_id, minute in minutes:
        hours.add((account_id, key_id, minute[:HOUR]), 0, 0)
    tx.run(ADD_TO_HOURS, rows=hours.as_rows())  # locks them, so that requests of other servers are counted now or later
    for account_id, key_id, minute in minutes:
        start = f"{minute}:00.000000Z"
        values = {"start": start, "end": instant_after(start, timedelta(minutes=1))}
        tx.run(KEEP_BUSIEST, account=account_id, key=key_id, hour=minute[:HOUR], **values)


class Sums(dict[tuple[Any, ...], list[int]]):
    """The SUMS of requests by key and hour."""

    def add(self, key: tuple[Any, ...], status: int, count: int) -> None:
        sums = self.setdefault(key, [0] * len(SUMS))
        sums[0] += count
        sums[1] += count * (400 <= status < 500)
        sums[2] += count * (status >= 500)
        sums[3] += count * (status == 429)

    def as_rows(self) -> str:
        """Return the keys and sums as JSON rows, in the order in which all servers lock them."""
        return encode([(*key, *figures) for key, figures in sorted(self.items())]).decode()


class RequestRecorder:
    """The requests of this process that are not in the database yet."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # held briefly, to take from `_waiting`, and for `_dropped`
        self._writing = threading.Lock()  # held during a write, for its batch
        self._waiting: deque[RequestLine] = deque()
        self._batch: RequestBatch | None = None
        """The batch that was taken from `_waiting` and is not written yet."""
        self._minutes: set[KeyMinute] = set()
        """The minutes of requests that are written, until they are counted."""
        self._number = random.getrandbits(48)  # of the next request; other processes start elsewhere
        self._dropped = 0

    def add(self, answered: list[RequestLine]) -> None:
        """Queue requests until they are written. Requests without a key belong to no account and are skipped."""
        for each in answered:
            if each.key_id is not None:
                self._waiting.append(each)  # without the lock, which each request would take
        if len(self._waiting) > MAX_WAITING:
            with self._lock:
                while len(self._waiting) > MAX_WAITING:
                    self._waiting.popleft()
                    self._dropped += 1

    def pop_dropped(self) -> int:
        """Return the number of requests dropped since the last call: too many waited, or the database refused them."""
        with self._lock:
            dropped, self._dropped = self._dropped, 0
        return dropped

    def write(self, store: Store) -> timedelta:
        """Write the requests that are queued now, after a write that another thread has begun.

        Return the time until the next one. Those that are queued meanwhile wait for it: one after another, they would
        hold the thread for as long as requests arrive, in ever smaller batches. Raises errors of the database. After
        an outage, the same batch is tried again; a refused one is dropped.
        """
        written = 0
        with self._writing:
            queued = len(self._waiting) + (len(self._batch.requests) if self._batch else 0)
            while written < queued and (batch := self._next_batch()):
                self._insert(store, batch)
                written += len(batch.requests)
            self._count_minutes(store)
        return timedelta(seconds=BUSY_SECONDS if written >= BUSY_THRESHOLD else QUIET_SECONDS)

    def _insert(self, store: Store, batch: RequestBatch) -> None:
        try:
            with store.unscoped(write=True) as tx:
                batch.insert(tx)
        except Unavailable:
            raise
        except Exception:
            self._batch = None
            with self._lock:
                self._dropped += len(batch.requests)
            raise
        self._batch = None
        self._minutes |= batch.minutes()

    def _count_minutes(self, store: Store) -> None:
        """Count minutes once for all batches of a write: with each batch, a busy minute would be counted many times."""
        while minutes := sorted(self._minutes)[:MINUTES_TOGETHER]:
            self._minutes.difference_update(minutes)
            try:
                with store.unscoped(write=True) as tx:
                    count_minutes(tx, minutes)
            except Unavailable:
                self._minutes.update(minutes)
                raise

    def _next_batch(self) -> RequestBatch | None:
        if self._batch is None:
            with self._lock:
                taken = [self._waiting.popleft() for _ in range(min(BATCH_SIZE, len(self._waiting)))]
            if taken:
                self._batch = RequestBatch(self._number, taken)
                self._number += len(taken)
        return self._batch
