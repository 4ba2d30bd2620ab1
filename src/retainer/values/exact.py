"""Exact values: money in minor units, decimals and timestamps as text; no floating point."""

import time
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from zoneinfo import ZoneInfo

from iso4217 import Currency

from retainer.errors import part

DIGITS = {currency.code: currency.exponent or 0 for currency in Currency}
"""Decimal places of each ISO 4217 currency."""
UNITS = {currency: Decimal(1).scaleb(-digits) for currency, digits in DIGITS.items()}
"""The minor unit of each currency. Multiplying by it gives the decimal places of the currency, and is exact."""

CLOCK_DIFFERENCE = timedelta(minutes=1)
"""How much the clocks of servers may differ: a time further in the future is of a clock that was ahead."""

MIDNIGHT = datetime.min.time()
FIRST_DAY = date.min.isoformat()
LAST_DAY = date.max.isoformat()


def as_instant(moment: datetime) -> str:
    """Return a timestamp in the format that is stored and returned: RFC 3339 in UTC with microseconds and `Z`."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def utcnow() -> str:
    seconds, microseconds = divmod(time.time_ns() // 1000, 1_000_000)
    return f"{_second(seconds)}.{str(microseconds).zfill(6)}Z"


def instant_after(instant: str, duration: timedelta) -> str:
    return as_instant(datetime.fromisoformat(instant) + duration)


@lru_cache(maxsize=1)
def _second(seconds: int) -> str:
    """Return a second without its time zone; cached, because most calls fall into the same second."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def local_day(instant: str, timezone: str) -> str:
    return datetime.fromisoformat(instant).astimezone(ZoneInfo(timezone)).date().isoformat()


def day_end(day: str, timezone: str) -> str:
    """Return the instant at which a calendar day ends in a time zone. Raises ValueError for an invalid day."""
    return day_start(day_after(day, 1), timezone)


def day_start(day: str, timezone: str) -> str:
    """Return the instant at which a calendar day begins in a time zone. Raises ValueError for an invalid day."""
    return as_instant(datetime.combine(date.fromisoformat(day), MIDNIGHT, ZoneInfo(timezone)))


def decimal_text(value: Decimal) -> str:
    """Return a decimal as text, without exponent and without trailing zeros: `"7.5"`, `"2"`."""
    plain = format(value, "f")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def minor_units(amount: Decimal, currency: str) -> int:
    """Return an amount in whole minor units. Raises ValueError if it has more decimal places than its currency."""
    scaled = amount.scaleb(DIGITS[currency])
    units = int(scaled)
    if units != scaled:
        digits = DIGITS[currency]
        places = {0: "no decimal places", 1: "1 decimal place"}.get(digits, f"{digits} decimal places")
        raise ValueError(f"{currency} has {places}: {part(amount)} has more.")
    return units


def amount_of(units: int, currency: str) -> Decimal:
    """Return minor units as an amount with exactly the decimal places of its currency."""
    return units * UNITS[currency]


def percent(hundredths: int | None) -> float | None:
    """Return hundredths of a percent as a JSON number with two decimal places."""
    return None if hundredths is None else hundredths / 100


def half_up(numerator: int, denominator: int) -> int:
    """Return a quotient rounded to a whole number, halves away from zero; the denominator must be positive."""
    rounded = (2 * abs(numerator) + denominator) // (2 * denominator)
    return rounded if numerator >= 0 else -rounded


def minutes_between(start: str, end: str) -> int:
    """Return the minutes from one timestamp to another, rounded half up."""
    return half_up((datetime.fromisoformat(end) - datetime.fromisoformat(start)) // timedelta(seconds=1), 60)


def day_after(day: str, days: int) -> str:
    """Return the calendar day a number of days later, at most the last day of the calendar."""
    try:
        return (date.fromisoformat(day) + timedelta(days=days)).isoformat()
    except OverflowError:
        return date.max.isoformat()
