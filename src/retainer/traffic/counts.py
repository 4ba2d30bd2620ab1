"""Counts of requests over time, by key and operation, for charts and usage lines."""

from datetime import UTC, date, datetime, time, timedelta
from functools import cache, lru_cache
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import msgspec
from sqlalchemy import Select, bindparam, func, select

from retainer.schema.requests import HOUR, SUMS, operation_hours, request_hours, requests
from retainer.store.tx import Tx
from retainer.values.exact import as_instant, day_after, instant_after, local_day


class Counts(msgspec.Struct):
    """Number of requests, of failed ones, and of those in the busiest minute, in the order of COUNTS.

    A 429 counts as a client error and in the busiest minute, which can thus exceed the rate limit.
    """

    requests: int = 0
    client_errors: int = 0
    server_errors: int = 0
    limited: int = 0
    busiest_minute: int = 0
    """Of one key."""

    def add(self, other: "Counts") -> None:
        for name in SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.busiest_minute = max(self.busiest_minute, other.busiest_minute)


class CountedHours(NamedTuple):
    """The hours that all figures of a page count, from the first to the last, named by their first instant."""

    since: str
    until: str


class OperationCounts(msgspec.Struct):
    """Number of calls of an operation by a key, and the hour of the last call."""

    key_id: int
    operation: str
    requests: int
    client_errors: int
    server_errors: int
    limited: int
    last_hour: str
    """Like `2026-03-10T09`, in UTC."""


COUNTS = (*(func.sum(request_hours.c[name]) for name in SUMS), func.max(request_hours.c.busiest_minute))
IN_PERIOD = (request_hours.c.hour >= bindparam("since"), request_hours.c.hour <= bindparam("until"))
BY_HOUR = select(request_hours.c.hour, *COUNTS).where(*IN_PERIOD)
BY_HOUR_OF_ALL = BY_HOUR.group_by(request_hours.c.hour)
BY_HOUR_OF_KEY = BY_HOUR_OF_ALL.where(request_hours.c.key_id == bindparam("key_id"))
BY_KEY = select(request_hours.c.key_id, *COUNTS).where(*IN_PERIOD).group_by(request_hours.c.key_id)
USAGE = select(*request_hours.c["key_id", "hour", "requests"]).where(*IN_PERIOD)
LAST_HOUR = (
    select(requests.c.key_id, func.count())
    .where(requests.c.answered_at >= bindparam("since"))
    .group_by(requests.c.key_id)
)
SUMMED = [func.sum(operation_hours.c[name]).label(name) for name in SUMS]


def last_hours(tx: Tx) -> CountedHours:
    """Return the last 24 hours, of which the current one has just begun."""
    return CountedHours(f"{instant_after(tx.now, -timedelta(hours=23))[:HOUR]}:00:00.000000Z", tx.now)


def last_days(tx: Tx, days: int = 30, last: str = "") -> CountedHours:
    """Return the hours of some days in the account's zone, by default those until today.

    An hour belongs to the day on which it begins.
    """
    last = last or tx.today
    first, end = (_first_hour(day_after(last, after), tx.actor.timezone) for after in (1 - days, 1))
    return CountedHours(first, instant_after(end, -timedelta(hours=1)))


def by_hour(tx: Tx, since: str, until: str, key_id: int | None = None) -> dict[str, Counts]:
    """Return the counts of each hour from that of `since` to that of `until`, of one key or all.

    Hours are named by their first instant; hours without requests are included.
    """
    counts = _hours(tx, since, until, key_id)
    hour, end = (datetime.fromisoformat(f"{instant[:HOUR]}:00Z") for instant in (since, until))
    shown = {}
    while hour <= end:
        name = as_instant(hour)
        shown[name] = counts.get(name[:HOUR]) or Counts()
        hour += timedelta(hours=1)
    return shown


def by_day(tx: Tx, days: int = 30, key_id: int | None = None, last: str = "") -> dict[str, Counts]:
    shown = {day: Counts() for day in _days_until(last or tx.today, days)}
    for hour, counts in _hours(tx, *last_days(tx, days, last), key_id).items():
        shown[_day_of(hour, tx.actor.timezone)].add(counts)
    return shown


def usage(tx: Tx, days: int = 30) -> dict[int, list[int]]:
    """Return the requests of each key on each of the last days, today the last; keys without requests are omitted."""
    positions = {day: position for position, day in enumerate(_days_until(tx.today, days))}
    lines: dict[int, list[int]] = {}
    since, until = last_days(tx, days)
    for key_id, hour, count in tx.all(USAGE, since=since[:HOUR], until=until[:HOUR]):
        lines.setdefault(key_id, [0] * days)[positions[_day_of(hour, tx.actor.timezone)]] += count
    return lines


def by_key(tx: Tx, since: str, until: str) -> dict[int, Counts]:
    """Return the counts of each key from the hour of `since` to that of `until`; keys without requests are omitted."""
    rows = tx.all(BY_KEY, since=since[:HOUR], until=until[:HOUR])
    return {key_id: Counts(*figures) for key_id, *figures in rows}


def last_hour(tx: Tx) -> dict[int, int]:
    """Return the number of requests of each key in the last 60 minutes; keys without requests are omitted."""
    return dict(tx.all(LAST_HOUR, since=instant_after(tx.now, -timedelta(hours=1))))


def operations(tx: Tx, since: str, key_id: int | None = None, operation: str | None = None) -> list[OperationCounts]:
    """Return the calls of each operation by each key from the hour of `since` on, the most frequent first."""
    values = {name: value for name, value in (("key_id", key_id), ("operation", operation)) if value is not None}
    rows = tx.all(_operations(frozenset(values)), since=since[:HOUR], **values)
    return [OperationCounts(*row) for row in rows]


@cache
def _operations(names: frozenset[str]) -> Select[Any]:
    conditions = [operation_hours.c[name] == bindparam(name) for name in sorted(names)]
    by = operation_hours.c["key_id", "operation"]
    return (
        select(*by, *SUMMED, func.max(operation_hours.c.hour))
        .where(operation_hours.c.hour >= bindparam("since"), *conditions)
        .group_by(*by)
        .order_by(SUMMED[0].desc(), *by)
    )


def _hours(tx: Tx, since: str, until: str, key_id: int | None) -> dict[str, Counts]:
    statement = BY_HOUR_OF_ALL if key_id is None else BY_HOUR_OF_KEY
    rows = tx.all(statement, since=since[:HOUR], until=until[:HOUR], key_id=key_id)
    return {hour: Counts(*figures) for hour, *figures in rows}


def _days_until(last: str, days: int) -> list[str]:
    return [day_after(last, position - days + 1) for position in range(days)]


def _first_hour(day: str, timezone: str) -> str:
    start = datetime.combine(date.fromisoformat(day), time(), ZoneInfo(timezone)).astimezone(UTC)
    hour = start.replace(minute=0)
    return as_instant(hour if hour == start else hour + timedelta(hours=1))


@lru_cache(maxsize=4096)
def _day_of(hour: str, timezone: str) -> str:
    return local_day(f"{hour}:00Z", timezone)
