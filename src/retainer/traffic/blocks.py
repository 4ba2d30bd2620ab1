"""Blocks: how the request log keeps requests, those of a key in a second together, as JSON arrays."""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from retainer.kernel.http import MADE, MADE_LENGTH
from retainer.schema.requests import HOUR, SUMS
from retainer.store.engines.base import Row
from retainer.traffic.answered import Answered

MINUTE = len("2026-03-10T09:30")
"""How many characters of an instant name its minute."""
Groups = dict[tuple[int | None, str, int | None, str | None, int], list[Answered]]
"""Requests by account, second, key, operation and status: there are few, and nothing is looked up for each request."""
ZEROS = [0] * len(SUMS)
Minute = tuple[int, int, str]
"""A minute of a key of an account."""
Stored = tuple[str, str, str, str, str | None, int, float, str | None, str | None]
encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(list[Stored]).decode


class Sums(dict[tuple[int | str, ...], list[int]]):
    """The SUMS of requests by what they have in common."""

    def add(self, key: tuple[int | str, ...], status: int, count: int) -> None:
        """Count so many requests that were answered with a status."""
        kinds = (True, 400 <= status < 500, status >= 500, status == 429)
        known = self.get(key, ZEROS)
        self[key] = [sum_ + count * kind for sum_, kind in zip(known, kinds, strict=True)]

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


def batch_of(groups: Groups, number: int) -> Batch:
    """Return how requests are written, numbered from `number` on; those without a key are left out."""
    blocks: dict[tuple[int, str, int], list[Answered]] = defaultdict(list)
    of_blocks, hours, operations = Sums(), Sums(), Sums()
    for (account_id, second, key_id, operation, status), requests in groups.items():
        if account_id is not None and key_id is not None:
            count, hour = len(requests), second[:HOUR]
            blocks[account_id, second, key_id] += requests
            of_blocks.add((account_id, second, key_id), status, count)
            hours.add((account_id, key_id, hour), status, count)
            if operation is not None:
                operations.add((account_id, key_id, operation, hour), status, count)
    first, rows, terms = number, [], []
    for block, requests in blocks.items():
        account_id, second, key_id = block
        rows.append((account_id, second, number, key_id, *of_blocks[block][:3], content_of(requests)))
        terms += [(account_id, term, second, number) for term in terms_of(requests)]
        number += len(requests)
    minutes = {(account_id, key_id, second[:MINUTE]) for account_id, second, key_id in blocks}
    return Batch(number - first, rows, terms, hours.as_rows(), operations.as_rows(), minutes)


def content_of(requests: list[Answered]) -> str:
    """Return the content of a block: what is `Stored` of each request."""
    stored: list[Stored] = [
        (r.time, r.request_id, r.method, r.path, r.operation, r.status, r.duration_ms, r.address, r.record)
        for r in requests
    ]
    return encode(stored).decode()


def terms_of(requests: list[Answered]) -> set[str]:
    """Return what a block is looked up by: ids that callers sent, and records that were written."""
    records = {r.record for r in requests if r.record is not None}
    return records | {r.request_id for r in requests if len(r.request_id) != MADE_LENGTH or r.request_id[:4] != MADE}


def requests_of(number: int, key_id: int, content: str) -> Iterator[LoggedRequest]:
    """Yield the requests of a block."""
    for place, stored in enumerate(decode(content), number):
        answered_at, request_id, method, path, operation, status, ms, address, record = stored
        request = key_id, request_id, method, path, operation, status, round(ms * 1000), address, record
        yield LoggedRequest(answered_at, place, *request)
