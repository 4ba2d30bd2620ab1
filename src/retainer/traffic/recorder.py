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
"""Interval between writes; the longer one follows a write of BUSY_THRESHOLD, as each write has a cost for each key."""
BUSY_THRESHOLD = 1000
BATCH_SIZE = 5000
"""Maximum number of requests in one transaction, which other writers wait for."""
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
        # The rows of these hours are locked by now, so requests of other servers are counted before or after.
        for account_id, key_id, minute in {
            (account_id, key_id, minute) for account_id, key_id, *_, minute in self.counts
        }:
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
        """Write all queued requests, after a write that another thread has begun; return the time until the next one.

        Raises errors of the database. After an outage, the same batch is tried again; a refused one is dropped.
        """
        written = 0
        with self._writing:
            while batch := self._next_batch():
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
                written += len(batch.requests)
        return timedelta(seconds=BUSY_SECONDS if written >= BUSY_THRESHOLD else QUIET_SECONDS)

    def _next_batch(self) -> RequestBatch | None:
        if self._batch is None:
            with self._lock:
                taken = [self._waiting.popleft() for _ in range(min(BATCH_SIZE, len(self._waiting)))]
            if taken:
                self._batch = RequestBatch(self._number, taken)
                self._number += len(taken)
        return self._batch
