"""Blocks: how the request log keeps requests, those of a key in ten seconds together, as JSON arrays."""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from retainer.kernel.http import MADE, MADE_LENGTH
from retainer.schema.requests import HOUR, PERIOD, SUMS
from retainer.store.engines.base import Row
from retainer.traffic.answered import Answered

MINUTE = len("2026-03-10T09:30")
"""How many characters of an instant name its minute."""
Block = tuple[int, str, int]
"""An account, a period of ten seconds, and a key."""
Minute = tuple[int, int, str]
"""A minute of a key of an account."""
Group = tuple[int, str, int, str, str | None, int, str | None]
"""What requests have in common: account, period, key, method, operation, status and address."""
Stored = tuple[str, str, str, float, str | None]
"""The end of the moment, the request id, the path, the duration in milliseconds, and the record that was written."""
Content = list[tuple[str, str | None, int, str | None, list[Stored]]]
"""The requests of a block by method, operation, status and address."""
Encoded = tuple[str, str | None, int, str | None, msgspec.Raw]
"""One of them, with its requests as JSON."""
encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Content).decode


class Sums(dict[tuple[int | str, ...], list[int]]):
    """The SUMS of requests by what they have in common."""

    def add(self, key: tuple[int | str, ...], status: int, count: int) -> None:
        """Count so many requests that were answered with a status."""
        sums = self.get(key)
        if sums is None:
            sums = self[key] = [0] * len(SUMS)
        sums[0] += count
        if status >= 400:
            sums[1] += count * (status < 500)
            sums[2] += count * (status >= 500)
            sums[3] += count * (status == 429)

    def as_rows(self) -> str:
        """Return sums with their keys as the rows of a statement, in the order in which all servers lock them."""
        return encode([(*key, *figures) for key, figures in sorted(self.items())]).decode()


class Batch(NamedTuple):
    """What one transaction writes: rows of blocks and of their terms, and what is added to sums, as JSON rows."""

    requests: int
    blocks: list[Row]
    terms: list[Row]
    hours: str
    operations: str
    minutes: set[Minute]
    """The minutes in which requests were made."""


class LoggedRequest(msgspec.Struct, frozen=True):
    """A request that a key has made: no query, no body, no header but the request id; the duration in microseconds.

    `record` is the path of the record that it has written: `/time-entries/17`. What is part of a record, like a line or
    a milestone, counts as that record: `/invoices/5`.
    """

    answered_at: str
    number: int
    key_id: int
    request_id: str
    method: str
    path: str
    operation: str | None
    status: int
    duration_us: int
    address: str | None
    record: str | None

    @property
    def position(self) -> str:
        """Where it stands in the log, for `Page.next` and links."""
        return f"{self.answered_at}.{self.number}"


class Blocks:
    """Requests that will be written, each encoded at once, while the processor has it in its caches."""

    def __init__(self) -> None:
        self.requests = 0
        self._groups: dict[Group, list[bytes]] = {}
        self._terms: dict[Block, set[str]] = defaultdict(set)

    def add(self, answered: list[Answered]) -> None:
        """Add the requests that have a key, the others belong to no account."""
        waiting, period, added = self._groups, "-", 0
        for r in answered:
            if r.account_id is None or r.key_id is None:
                continue
            if not r.time.startswith(period):
                period = r.time[:PERIOD]
            group = r.account_id, period, r.key_id, r.method, r.operation, r.status, r.address
            stored = encode((r.time[PERIOD:], r.request_id, r.path, r.duration_ms, r.record))
            try:
                waiting[group].append(stored)
            except KeyError:
                waiting[group] = [stored]
            added += 1
            if r.record is not None:
                self._terms[group[:3]].add(r.record)
            if len(r.request_id) != MADE_LENGTH or r.request_id[:4] != MADE:
                self._terms[group[:3]].add(r.request_id)
        self.requests += added

    def halves(self) -> "list[Blocks]":
        """Return two parts of the requests, each with the terms of its blocks; none of a single request."""
        requests = [(group, each) for group, stored in self._groups.items() for each in stored]
        middle = len(requests) // 2
        return [self._part(requests[:middle]), self._part(requests[middle:])] if middle else []

    def _part(self, requests: list[tuple[Group, bytes]]) -> "Blocks":
        part = Blocks()
        part.requests = len(requests)
        for group, stored in requests:
            part._groups.setdefault(group, []).append(stored)
            part._terms[group[:3]] = self._terms[group[:3]]
        return part

    def drop_oldest(self) -> int:
        """Forget some requests, the oldest; return how many."""
        dropped = len(self._groups.pop(next(iter(self._groups))))
        self.requests -= dropped
        return dropped

    def batch(self, number: int) -> Batch:
        """Return how the requests are written, numbered from `number` on."""
        contents: dict[Block, list[Encoded]] = defaultdict(list)
        counts: dict[Block, int] = defaultdict(int)
        hours, operations = Sums(), Sums()
        for group, stored in self._groups.items():
            account_id, period, key_id, method, operation, status, address = group
            block, count, hour = (account_id, period, key_id), len(stored), period[:HOUR]
            contents[block].append((method, operation, status, address, msgspec.Raw(b"[%b]" % b",".join(stored))))
            counts[block] += count
            if status >= 400:
                self._terms[block].add(f"{status // 100}xx")
            hours.add((account_id, key_id, hour), status, count)
            if operation is not None:
                operations.add((account_id, key_id, operation, hour), status, count)
        rows, terms = [], []
        for block, content in contents.items():
            account_id, period, key_id = block
            rows.append((account_id, period, number, key_id, counts[block], encode(content).decode()))
            terms += [(account_id, term, period, number) for term in self._terms.get(block, ())]
            number += counts[block]
        minutes = {(account_id, key_id, period[:MINUTE]) for account_id, period, key_id in contents}
        return Batch(self.requests, rows, terms, hours.as_rows(), operations.as_rows(), minutes)


def requests_of(period: str, number: int, key_id: int, content: str) -> Iterator[LoggedRequest]:
    """Yield the requests of a block."""
    for method, operation, status, address, group in decode(content):
        for moment, request_id, path, ms, record in group:
            request = key_id, request_id, method, path, operation, status, round(ms * 1000), address, record
            yield LoggedRequest(period + moment, number, *request)
            number += 1
