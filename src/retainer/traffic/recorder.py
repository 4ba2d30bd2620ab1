"""The recorder: writes requests into the request log and its sums, in batches, outside of every request."""

import random
import threading
from collections import deque
from datetime import timedelta

from sqlalchemy import bindparam, func, select, update

from retainer.schema.requests import HOUR, request_hours, requests
from retainer.store.engines import OutcomeUnknown, Unavailable
from retainer.store.tx import Store
from retainer.traffic.answered import Answered
from retainer.traffic.batches import Batch, Minute
from retainer.values.exact import LAST_DAY, instant_after, utcnow

QUIET_SECONDS, BUSY_SECONDS = 2, 5
"""Interval between writes; the longer one applies above BUSY_THRESHOLD, as each write has a cost for each key."""
BUSY_THRESHOLD = 1000
BATCH_SIZE = 5000
"""Maximum number of requests in one transaction, which other writers wait for."""
MAX_WAITING = 100_000
"""Maximum number of queued requests while the database is unreachable, some 500 bytes each. The oldest are dropped."""
MAX_REFUSED = 20
"""Number of refused requests that one write searches for by halving. After that, refused batches are dropped whole."""
MAX_LOCKED = 20
"""Maximum number of keys in one transaction that updates busiest minutes, which other servers wait for."""

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
KEEP_BUSIEST = (
    update(request_hours).where(*THIS_HOUR, request_hours.c.busiest_minute < IN_MINUTE).values(busiest_minute=IN_MINUTE)
)


class RequestRecorder:
    """The requests of this process that are not in the database yet."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # held briefly, for `_waiting` and `_dropped`
        self._writing = threading.Lock()  # held during a write, for its batches and minutes
        self._waiting: deque[Answered] = deque()
        self._batches: list[Batch] = []
        """Batches taken from `_waiting`; the last one is written next."""
        self._number = random.getrandbits(48)  # of the next request; other processes start elsewhere
        self._is_unsure = False
        self._dropped = 0
        self._minutes: set[Minute] = set()

    def add(self, answered: list[Answered]) -> None:
        """Queue requests until they are written. Requests without a key belong to no account and are skipped."""
        with self._lock:
            self._waiting.extend(each for each in answered if each.key_id is not None)
            while len(self._waiting) > MAX_WAITING:
                self._waiting.popleft()
                self._dropped += 1

    def is_due(self, seconds: float) -> bool:
        return seconds >= (BUSY_SECONDS if len(self._waiting) > BUSY_THRESHOLD else QUIET_SECONDS)

    def count_dropped(self, requests: int = 1) -> None:
        with self._lock:
            self._dropped += requests

    def pop_dropped(self) -> int:
        """Return the number of requests dropped since the last call: too many waited, or the database refused them."""
        with self._lock:
            dropped, self._dropped = self._dropped, 0
        return dropped

    def write(self, store: Store) -> None:
        """Write all queued requests. Raises errors of the database; after an outage, the same batch is tried again.

        A batch that the database refuses is halved until the refused request stands alone. That request is dropped.
        """
        with self._writing:
            self._write(store)

    def finish(self, store: Store) -> None:
        """Write all queued requests before the process ends, and count the current minute too.

        A write that another thread has begun is awaited.
        """
        with self._writing:
            try:
                self._write(store)
            finally:
                self._keep_busiest(store, LAST_DAY)

    def _write(self, store: Store) -> None:
        refusal, refused = None, 0
        while batch := self._next_batch():
            try:
                with store.unscoped(write=True) as tx:
                    if not (self._is_unsure and batch.is_written(tx)):
                        batch.insert(tx)
            except Unavailable as error:
                self._is_unsure = self._is_unsure or isinstance(error, OutcomeUnknown)
                raise
            except Exception as error:  # noqa: BLE001  # raised below, after the other requests are written
                refusal = error
                self._end_batch()
                halves = batch.halves() if refused < MAX_REFUSED else []
                self._batches += halves
                if not halves:
                    refused += 1
                    self.count_dropped(len(batch.requests))
            else:
                self._end_batch()
                if len(self._minutes) < MAX_WAITING:
                    self._minutes |= batch.minutes()
        self._keep_busiest(store, utcnow())
        if refusal is not None:
            raise refusal

    def _next_batch(self) -> Batch | None:
        if not self._batches:
            with self._lock:
                taken = [self._waiting.popleft() for _ in range(min(BATCH_SIZE, len(self._waiting)))]
            if not taken:
                return None
            self._batches.append(Batch(self._number, taken))
            self._number += len(taken)
        return self._batches[-1]

    def _end_batch(self) -> None:
        self._batches.pop()
        self._is_unsure = False

    def _keep_busiest(self, store: Store, before: str) -> None:
        """Count the requests of minutes that have ended. Each server does so after its own requests are written."""
        over = sorted(each for each in self._minutes if f"{each[2]}:59" < before)  # the order in which all lock them
        for first in range(0, len(over), MAX_LOCKED):
            part = over[first : first + MAX_LOCKED]
            with store.unscoped(write=True) as tx:
                for account_id, key_id, minute in part:
                    start = f"{minute}:00.000000Z"
                    values = {"start": start, "end": instant_after(start, timedelta(minutes=1))}
                    tx.run(KEEP_BUSIEST, account=account_id, key=key_id, hour=minute[:HOUR], **values)
            self._minutes.difference_update(part)
