"""The recorder: writes requests into the request log and its sums, in batches, outside every request."""

import random
import threading

from sqlalchemy import bindparam, func, select, update

from retainer.schema.requests import HOUR, SUMS, operation_hours, request_blocks, request_hours, request_terms
from retainer.store.engines import OutcomeUnknown, Unavailable
from retainer.store.engines.sql import insert_or_add, listed_rows
from retainer.store.transaction import UnscopedTx
from retainer.store.tx import Store
from retainer.traffic.answered import Answered
from retainer.traffic.blocks import Batch, Blocks, Minute
from retainer.values.exact import LAST_DAY, utcnow

QUIET_SECONDS, BUSY_SECONDS = 2, 5
"""How often requests are written: rarely when there are more than FEW, for each time costs something for each key."""
FEW = 1000
MOST_WAITING = 100_000
"""So many requests wait while the database is out of reach, at some 200 bytes each; then the oldest are lost."""
MOST_REFUSED = 20
"""So many requests that the database refuses are looked for one by one; then it is not for their content."""
MOST_LOCKED = 20
"""So many keys have their busiest minutes counted in one transaction, whose end other servers wait for."""

ADD_TO_HOURS = insert_or_add(
    request_hours, listed_rows("rows", [*request_hours.primary_key, *request_hours.c[SUMS]]), SUMS
)
ADD_TO_OPERATION_HOURS = insert_or_add(
    operation_hours, listed_rows("rows", [*operation_hours.primary_key, *operation_hours.c[SUMS]]), SUMS
)
PRESENT = select(request_blocks.c.number).where(
    request_blocks.c.account_id == bindparam("account"),
    request_blocks.c.period == bindparam("period"),
    request_blocks.c.number == bindparam("number"),
)
IN_MINUTE = (
    select(func.sum(request_blocks.c.requests))
    .where(request_blocks.c.account_id == bindparam("account"), request_blocks.c.key_id == bindparam("key"))
    .where(request_blocks.c.period >= bindparam("start"), request_blocks.c.period <= bindparam("end"))
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
    """Requests of this process that are not in the database yet."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # held for a moment, for what waits
        self._waiting = Blocks()
        self._parts: list[Blocks] = []
        """What was taken and is not written yet; the last is the next one, as the batch has it."""
        self._batch: Batch | None = None
        self._number = random.getrandbits(48)  # of the next request; another process has others
        self._is_unsure = False
        self._lost = 0
        self._minutes: set[Minute] = set()

    def add(self, answered: list[Answered]) -> None:
        """Keep requests until they are written."""
        with self._lock:
            self._waiting.add(answered)
            while self._waiting.requests > MOST_WAITING:
                self._lost += self._waiting.drop_oldest()

    def is_due(self, seconds: float) -> bool:
        """Whether what waits should be written, when it was written so many seconds ago."""
        return seconds >= (BUSY_SECONDS if self._waiting.requests > FEW else QUIET_SECONDS)

    def lose(self, requests: int = 1) -> None:
        """Count requests that will not be written."""
        with self._lock:
            self._lost += requests

    def write(self, store: Store) -> None:
        """Write what waits. Raises what the database raises: when it was out of reach, the same is tried again.

        A batch that it refuses is halved until the refused request stands alone: that is lost, the others are written.
        """
        refusal, refused = None, 0
        while batch := self._batch or self._take():
            try:
                with store.unscoped("requests of all accounts are logged", write=True) as tx:
                    if not (self._is_unsure and is_written(tx, batch)):
                        insert(tx, batch)
            except Unavailable as error:
                self._is_unsure = self._is_unsure or isinstance(error, OutcomeUnknown)
                raise
            except Exception as error:  # noqa: BLE001  # raised below, when the others are written
                refusal, part = error, self._end_batch()
                halves = part.halves() if refused < MOST_REFUSED else []
                self._parts += halves
                if not halves:
                    refused += 1
                    self.lose(part.requests)
            else:
                self._minutes |= batch.minutes
                self._end_batch()
        self._keep_busiest(store, utcnow())
        if refusal is not None:
            raise refusal

    def finish(self, store: Store) -> None:
        """Write what waits for the last time: no minute goes on."""
        try:
            self.write(store)
        finally:
            self._keep_busiest(store, LAST_DAY)

    def take_lost(self) -> int:
        """Return how many requests were lost since the last call: too many waited, or the database refused them."""
        with self._lock:
            lost, self._lost = self._lost, 0
        return lost

    def _take(self) -> Batch | None:
        """Make a batch of the next part, or of all that waits; None for nothing."""
        if not self._parts:
            with self._lock:
                waiting, self._waiting = self._waiting, Blocks()
            if not waiting.requests:
                return None
            self._parts.append(waiting)
        part = self._parts[-1]
        self._batch = part.batch(self._number)
        self._number += part.requests
        return self._batch

    def _end_batch(self) -> Blocks:
        """Return the part that was written or refused, and forget it."""
        self._batch, self._is_unsure = None, False
        return self._parts.pop()

    def _keep_busiest(self, store: Store, before: str) -> None:
        """Count the requests of minutes that are over: each server once, after its own are there, the last one all."""
        over = sorted(each for each in self._minutes if f"{each[2]}:59" < before)  # in the order in which all lock them
        for first in range(0, len(over), MOST_LOCKED):
            part = over[first : first + MOST_LOCKED]
            with store.unscoped("the busiest minutes of keys", write=True) as tx:
                for account_id, key_id, minute in part:
                    periods = {"start": f"{minute}:0", "end": f"{minute}:5"}
                    tx.run(KEEP_BUSIEST, account=account_id, key=key_id, hour=minute[:HOUR], **periods)
            self._minutes.difference_update(part)


def is_written(tx: UnscopedTx, batch: Batch) -> bool:
    """Whether a batch was written, though the commit was not confirmed: all of it or nothing."""
    account_id, period, number, *_ = batch.blocks[0]
    return tx.one(PRESENT, account=account_id, period=period, number=number) is not None


def insert(tx: UnscopedTx, batch: Batch) -> None:
    """Insert requests, and add them to the sums."""
    tx.insert_rows(request_blocks, batch.blocks)
    tx.insert_rows(request_terms, batch.terms)
    tx.run(ADD_TO_HOURS, rows=batch.hours)
    tx.run(ADD_TO_OPERATION_HOURS, rows=batch.operations)
