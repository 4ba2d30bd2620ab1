"""The recorder: writes requests into the request log and its sums, in batches, outside every request."""

import random
import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from msgspec.json import encode
from sqlalchemy import bindparam, func, select, update

from retainer.schema.requests import HOUR, SUMS, operation_hours, request_hours, requests
from retainer.store.engines import OutcomeUnknown, Unavailable
from retainer.store.engines.base import Row
from retainer.store.engines.sql import insert_or_add, listed_rows
from retainer.store.transaction import UnscopedTx
from retainer.store.tx import Store
from retainer.traffic.answered import Answered
from retainer.values.exact import LAST_DAY, as_instant, utcnow

BATCH = 5000
MOST_WAITING = 20_000
"""So many requests wait while the database is out of reach, at less than a kilobyte each; then the oldest are lost."""
MOST_LOCKED = 20
"""So many keys have their busiest minutes counted in one transaction, whose end other servers wait for."""
LONGEST_PATH, LONGEST_METHOD = 500, 20
KEY = re.compile(r"rtn_[0-9A-Za-z]+")
MINUTE = len("2026-03-10T09:30")
"""How many characters of an instant name its minute."""
Sums = dict[tuple[Any, ...], list[int]]

ADD_TO_HOURS = insert_or_add(
    request_hours, listed_rows("rows", [*request_hours.primary_key, *request_hours.c[SUMS]]), SUMS
)
ADD_TO_OPERATION_HOURS = insert_or_add(
    operation_hours, listed_rows("rows", [*operation_hours.primary_key, *operation_hours.c[SUMS]]), SUMS
)
FIRST = (requests.c.account_id == bindparam("account"), requests.c.answered_at == bindparam("answered_at"))
PRESENT = select(requests.c.number).where(*FIRST, requests.c.number == bindparam("number"))
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
    """Requests of this process that are not in the database yet."""

    def __init__(self) -> None:
        self._waiting: deque[Answered] = deque()
        self._batch: list[Answered] = []
        self._number = random.getrandbits(48)  # of the first in the batch; another process has others
        self._is_unsure = False
        self._lost = 0
        self._minutes: set[tuple[Any, ...]] = set()

    def add(self, answered: Iterable[Answered]) -> None:
        """Keep requests until they are written: those with a key, the others belong to no account."""
        self._waiting.extend(each for each in answered if each.key_id is not None)
        while len(self._waiting) > MOST_WAITING:
            self._waiting.popleft()
            self._lost += 1

    def write(self, store: Store) -> None:
        """Write what waits. Raises what the database raises: when it was out of reach, the same is tried again."""
        while self._batch or self._waiting:
            if not self._batch:
                self._batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            try:
                with store.unscoped("requests of all accounts are logged", write=True) as tx:
                    if not (self._is_unsure and self._is_written(tx)):
                        insert(tx, self._batch, self._number)
            except Unavailable as error:
                self._is_unsure = self._is_unsure or isinstance(error, OutcomeUnknown)
                raise
            except Exception:
                self._lost += len(self._batch)
                self._next()
                raise
            self._minutes |= {(each.account_id, each.key_id, each.time[:MINUTE]) for each in self._batch}
            self._next()
        self._keep_busiest(store, utcnow()[:MINUTE])

    def finish(self, store: Store) -> None:
        """Write what waits for the last time: no minute goes on."""
        self.write(store)
        self._keep_busiest(store, LAST_DAY)

    def take_lost(self) -> int:
        """Return how many requests were lost since the last call: too many waited, or the database refused them."""
        lost, self._lost = self._lost, 0
        return lost

    def _is_written(self, tx: UnscopedTx) -> bool:
        """Whether the batch was written, though the commit was not confirmed: all of it or nothing."""
        first = self._batch[0]
        values = {"account": first.account_id, "answered_at": first.time, "number": self._number}
        return tx.one(PRESENT, **values) is not None

    def _keep_busiest(self, store: Store, before: str) -> None:
        """Count the requests of minutes that are over: each server once, after its own are there, the last one all."""
        over = sorted(each for each in self._minutes if each[2] < before)  # in the order in which all servers lock them
        for first in range(0, len(over), MOST_LOCKED):
            part = over[first : first + MOST_LOCKED]
            with store.unscoped("the busiest minutes of keys", write=True) as tx:
                for account_id, key_id, minute in part:
                    start = f"{minute}:00.000000Z"
                    end = as_instant(datetime.fromisoformat(start) + timedelta(minutes=1))
                    tx.run(KEEP_BUSIEST, account=account_id, key=key_id, hour=minute[:HOUR], start=start, end=end)
            self._minutes.difference_update(part)

    def _next(self) -> None:
        self._number += len(self._batch)
        self._batch, self._is_unsure = [], False


def insert(tx: UnscopedTx, batch: list[Answered], number: int) -> None:
    """Insert requests, numbered from `number` on, and add them to the sums."""
    tx.insert_rows(requests, [row_of(each, place) for place, each in enumerate(batch, number)])
    groups = Counter((each.account_id, each.key_id, each.operation, each.time[:HOUR], each.status) for each in batch)
    hours: Sums = defaultdict(lambda: [0] * len(SUMS))
    operations: Sums = defaultdict(lambda: [0] * len(SUMS))
    for (account_id, key_id, operation, hour, status), count in groups.items():
        kinds = (True, 400 <= status < 500, status >= 500, status == 429)
        sums = [hours[account_id, key_id, hour]]
        if operation is not None:
            sums.append(operations[account_id, key_id, operation, hour])
        for each in sums:
            each[:] = (known + count * kind for known, kind in zip(each, kinds, strict=True))
    tx.run(ADD_TO_HOURS, rows=as_rows(hours))
    tx.run(ADD_TO_OPERATION_HOURS, rows=as_rows(operations))


def row_of(answered: Answered, number: int) -> Row:
    """Return a request as a row, with a path that every database takes, and that does not hold a key by mistake."""
    path = answered.path[:LONGEST_PATH].replace("\0", "\ufffd")
    return (
        answered.account_id,
        answered.time,
        number,
        answered.key_id,
        answered.request_id,
        answered.method[:LONGEST_METHOD],
        KEY.sub("rtn_***", path) if "rtn_" in path else path,
        answered.operation,
        answered.status,
        answered.status // 100 if answered.status >= 400 else None,
        round(answered.duration_ms * 1000),
        answered.address,
        answered.record,
    )


def as_rows(sums: Sums) -> str:
    """Return sums with their keys as the rows of a statement, in the order in which all servers lock them."""
    return encode([(*key, *figures) for key, figures in sorted(sums.items())]).decode()
