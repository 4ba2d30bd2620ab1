"""Periods: the days that a report is about."""

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated
from zoneinfo import ZoneInfo

import msgspec
from sqlalchemy import select

from retainer.schema.identity import accounts
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values.exact import as_instant
from retainer.values.kinds import Day, Timezone

LONGEST = 1096  # days: three years, one of them a leap year
ALWAYS = "0001-01-01"
WEEK = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
WORKING = select(accounts.c.working_weekdays).where(accounts.c.id == ACCOUNT)


class Period(msgspec.Struct):
    """The days of a report, both included, in the account's time zone; without a first day, all until the last."""

    from_: Annotated[Day | None, "First day, included; null: everything up to `to`."] = msgspec.field(name="from")
    to: Annotated[Day, "Last day, included."]
    timezone: Annotated[Timezone, "The account's, in which days begin and end."]

    @property
    def first(self) -> str:
        """The first day; the calendar's when there is none."""
        return self.from_ or ALWAYS

    @property
    def days(self) -> tuple[str | None, str]:
        """Both ends, the first null when there is none."""
        return self.from_, self.to

    def moments(self) -> dict[str, str]:
        """The moment at which the period begins, and the one at which it has ended."""
        return {"since": _midnight(self.first, self.timezone, 0), "until": _midnight(self.to, self.timezone, 1)}


def _midnight(day: str, timezone: str, later: int) -> str:
    try:
        start = datetime.combine(date.fromisoformat(day) + timedelta(days=later), time(), ZoneInfo(timezone))
        return as_instant(start)
    except OverflowError:  # the ends of the calendar
        return as_instant(datetime.combine(date.max if later else date.min, time.max if later else time.min, UTC))


def resolve_period(tx: Tx, since: str | None, until: str | None, usual: Callable[[date], date] | None) -> Period:
    """The period that is asked for: until today, and since what is usual for its last day, or always.

    Raises `validation_failed` when it ends before it begins, or is too long.
    """
    last = until or tx.today
    if since is None and usual is not None:
        since = usual(date.fromisoformat(last)).isoformat()
    if since is not None and since > last:
        rest = "" if until else ", today. Send to as well"
        tx.error("from", f"Must not be after to, which is {last}{rest}.")
    elif since is not None and days_from(since, last) > LONGEST:
        days = days_from(since, last)
        tx.error("from", f"Lies {days} days before the end of {last}; at most {LONGEST} are possible. Ask for less.")
    tx.raise_errors()
    return Period(since, last, tx.actor.timezone)


def days_from(first: str, last: str) -> int:
    """How many days there are from one to another, both included."""
    return (date.fromisoformat(last) - date.fromisoformat(first)).days + 1


def month_begins(day: date) -> date:
    """The first day of the month."""
    return day.replace(day=1)


def year_begins(day: date) -> date:
    """The first day of the year."""
    return day.replace(month=1, day=1)


def twelve_months_before(day: date) -> date:
    """The first day of the same month a year before."""
    return day.replace(year=max(1, day.year - 1), day=1)


def months(period: Period) -> list[str]:
    """Every month that has a day in the period: `2026-03`, in order."""
    first, last = (12 * int(day[:4]) + int(day[5:7]) - 1 for day in (period.first, period.to))
    return [f"{number // 12:04}-{number % 12 + 1:02}" for number in range(first, last + 1)]


def working_days(tx: Tx, period: Period) -> tuple[int, int]:
    """How many days of the period the account works, and how many of each week."""
    chosen = {WEEK.index(name) for name in json.loads(tx.value(WORKING))}
    weeks, rest = divmod(days_from(period.first, period.to), len(WEEK))
    start = date.fromisoformat(period.first).weekday()
    return weeks * len(chosen) + sum((start + day) % len(WEEK) in chosen for day in range(rest)), len(chosen)
