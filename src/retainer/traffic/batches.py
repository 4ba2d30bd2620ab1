"""Batches: the requests that one transaction writes, as rows of the request log and as sums of hours."""

from collections import Counter
from typing import Any

from msgspec.json import encode
from sqlalchemy import bindparam, select

from retainer.schema.requests import HOUR, MINUTE, SUMS, operation_hours, refusals, request_hours, requests
from retainer.store.engines.base import Row
from retainer.store.engines.sql import insert_or_add, listed_rows
from retainer.store.transaction import UnscopedTx
from retainer.traffic.answered import Answered

Minute = tuple[Any, Any, str]
"""An account, a key, and a minute like `2026-03-10T09:30`."""

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


class Batch:
    """Requests of keys with consecutive numbers, counted by account, key, operation, status and minute."""

    def __init__(self, number: int, requests: list[Answered]) -> None:
        self.number = number  # of the first request
        self.requests = requests
        self.counts = Counter(
            (each.account_id, each.key_id, each.operation, each.status, each.time[:MINUTE]) for each in requests
        )

    def halves(self) -> "list[Batch]":
        middle = len(self.requests) // 2
        if not middle:
            return []
        return [Batch(self.number, self.requests[:middle]), Batch(self.number + middle, self.requests[middle:])]

    def minutes(self) -> set[Minute]:
        return {(account_id, key_id, minute) for account_id, key_id, _, _, minute in self.counts}

    def rows(self) -> list[Row]:
        return [
            (
                each.account_id,
                each.time,
                number,
                each.key_id,
                each.request_id,
                each.method,
                each.path,
                each.operation,
                each.status,
                round(each.duration_ms * 1000),
                each.address,
                each.record,
            )
            for number, each in enumerate(self.requests, self.number)
        ]

    def refusals(self) -> list[Row]:
        return [
            (each.account_id, each.time, number, each.reason.code, encode(each.reason.names).decode())
            for number, each in enumerate(self.requests, self.number)
            if each.reason is not None
        ]

    def insert(self, tx: UnscopedTx) -> None:
        hours, operations = Sums(), Sums()
        for (account_id, key_id, operation, status, minute), count in self.counts.items():
            hours.add((account_id, key_id, minute[:HOUR]), status, count)
            if operation is not None:
                operations.add((account_id, key_id, operation, minute[:HOUR]), status, count)
        tx.insert_rows(requests, self.rows())
        if refused := self.refusals():
            tx.insert_rows(refusals, refused)
        tx.run(ADD_TO_HOURS, rows=hours.as_rows())
        tx.run(ADD_TO_OPERATION_HOURS, rows=operations.as_rows())

    def is_written(self, tx: UnscopedTx) -> bool:
        """Return whether the batch is in the database after an unconfirmed commit. It is there as a whole or not."""
        first = self.requests[0]
        return tx.one(PRESENT, account=first.account_id, answered_at=first.time, number=self.number) is not None


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
