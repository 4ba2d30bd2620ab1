"""Periods: the days of a report."""

import json
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated
from zoneinfo import ZoneInfo

import msgspec

from retainer.schema.identity import accounts
from retainer.store.tx import Tx
from retainer.values.exact import as_instant
from retainer.values.kinds import Day, Timezone

MAX_DAYS = 1096  # days: three years, one of them a leap year
FIRST_DAY = "0001-01-01"
WEEK = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


class Period(msgspec.Struct):
    """The days of a report, inclusive, in the account's time zone; without a first day, all until the last."""

    from_: Annotated[Day | None, "First day, inclusive; null means everything up to `to`."] = msgspec.field(name="from")
    to: Annotated[Day, "Last day, inclusive."]
    timezone: Annotated[Timezone, "The account's time zone, in which days begin and end."]

    @property
    def first(self) -> str:
        return self.from_ or FIRST_DAY

    @property
    def days(self) -> tuple[str | None, str]:
        return self.from_, self.to

    def moments(self) -> dict[str, str]:
        """Return the instants at which the period begins (`since`) and before which it ends (`until`)."""
        return {"since": _midnight(self.first, self.timezone, 0), "until": _midnight(self.to, self.timezone, 1)}


def _midnight(day: str, timezone: str, days: int) -> str:
    try:
        start = datetime.combine(date.fromisoformat(day) + timedelta(days=days), time(), ZoneInfo(timezone))
        return as_instant(start)
    except OverflowError:  # the ends of the calendar
        return as_instant(datetime.combine(date.max if days else date.min, time.max if days else time.min, UTC))


def resolve_period(
    tx: Tx, since: str | None, until: str | None, default_start: Callable[[date], date] | None
) -> Period:
    """Return the requested period: by default until today, and since `default_start` of the last day, if any.

    Raises `validation_failed` if it ends before it begins, or is too long.
    """
    last = until or tx.today
    if since is None and default_start is not None:
        since = default_start(date.fromisoformat(last)).isoformat()
    if since is not None and since > last:
        hint = "" if until else ", today. Send to as well"
        tx.error("from", f"Must not be after to, which is {last}{hint}.")
    elif since is not None and days_from(since, last) > MAX_DAYS:
        days = days_from(since, last)
        tx.error("from", f"Lies {days} days before the end of {last}; at most {MAX_DAYS} are possible. Ask for less.")
    tx.raise_errors()
    return Period(since, last, tx.actor.timezone)


def days_from(first: str, last: str) -> int:
    return (date.fromisoformat(last) - date.fromisoformat(first)).days + 1


def month_begins(day: date) -> date:
    return day.replace(day=1)


def year_begins(day: date) -> date:
    return day.replace(month=1, day=1)


def months(period: Period) -> list[str]:
    first, last = (12 * int(day[:4]) + int(day[5:7]) - 1 for day in (period.first, period.to))
    return [f"{number // 12:04}-{number % 12 + 1:02}" for number in range(first, last + 1)]


def month_of(name: str, period: Period) -> Period:
    """Return the days of a month, by its name, that a period has."""
    first = date.fromisoformat(f"{name}-01")
    last = first.replace(day=monthrange(first.year, first.month)[1])
    days = max(period.first, first.isoformat()), min(period.to, last.isoformat())
    return msgspec.structs.replace(period, from_=days[0], to=days[1])


def working_weekdays(tx: Tx) -> frozenset[int]:
    """Return the account's working days of a week; Monday is 0."""
    return frozenset(WEEK.index(name) for name in json.loads(tx.field(accounts.c.working_weekdays, tx.account_id)))


def working_days(period: Period, working: frozenset[int]) -> int:
    weeks, rest = divmod(days_from(period.first, period.to), len(WEEK))
    start = date.fromisoformat(period.first).weekday()
    return weeks * len(working) + sum((start + day) % len(WEEK) in working for day in range(rest))
