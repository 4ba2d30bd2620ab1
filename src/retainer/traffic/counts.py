"""Counts: how many requests in which time, by key and operation, for charts, usage lines and questions of admins."""

import msgspec

from retainer.store.tx import Tx


class Counts(msgspec.Struct):
    """Requests of some time: how many, how many of them failed, and how many there were in the busiest minute.

    429s are among the client errors, and in the busiest minute: it shows what was tried beside the plan's limit.
    """

    requests: int = 0
    client_errors: int = 0
    server_errors: int = 0
    limited: int = 0
    busiest_minute: int = 0
    """Of one key."""


class OperationCounts(msgspec.Struct):
    """How often a key has called an operation, and in which hour last."""

    key_id: int
    operation: str
    requests: int
    client_errors: int
    server_errors: int
    limited: int
    last_hour: str


def by_hour(tx: Tx, since: str, until: str, key_id: int | None = None) -> dict[str, Counts]:
    """Return the counts of each hour from that of `since` to that of `until`, of one key or all; 0 where nothing was."""
    raise NotImplementedError


def by_day(tx: Tx, days: int = 30, key_id: int | None = None) -> dict[str, Counts]:
    """Return the counts of the last days, today the last, of one key or all; an hour is of the day that it begins on."""
    raise NotImplementedError


def usage(tx: Tx, days: int = 30) -> dict[int, list[int]]:
    """Return the requests of each key on each of the last days, today the last; keys that made none are left out."""
    raise NotImplementedError


def by_key(tx: Tx, since: str) -> dict[int, Counts]:
    """Return the counts of each key from the hour of `since` on; keys that made no request are left out."""
    raise NotImplementedError


def last_hour(tx: Tx) -> dict[int, int]:
    """Return how many requests each key has made in the last 60 minutes; keys that made none are left out."""
    raise NotImplementedError


def operations(tx: Tx, since: str, key_id: int | None = None, operation: str | None = None) -> list[OperationCounts]:
    """Return which key has called which operation from the hour of `since` on, the most frequent first.

    Of one key: what it does. Of one operation: who still uses it.
    """
    raise NotImplementedError
