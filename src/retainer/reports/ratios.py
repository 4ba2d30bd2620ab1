"""Ratios: the divisions of reports, each rounded once, halves up."""

from collections.abc import Sequence
from decimal import Decimal

from retainer.values.exact import decimal_text, half_up, percent

MINUTES_OF_HOUR = 60
Ratio = float | None
"""A JSON number with two decimal places; null if the divisor is 0 or less."""


def ratio(part: int, whole: int) -> Ratio:
    """Return a part in percent of a whole, with two decimal places; None when the whole is 0 or less."""
    return percent(half_up(10_000 * part, whole)) if whole > 0 else None


def growth(now: Decimal, before: Decimal) -> int:
    """Return the change from a positive figure to another, in whole percent of the first."""
    (change, whole), base = ((now - before).as_integer_ratio(), before.as_integer_ratio())
    return half_up(100 * change * base[1], whole * base[0])


def average(weighted: Decimal, minutes: int) -> Decimal | None:
    """Divide a sum of percentages x minutes by the minutes: at most three decimal places, None without minutes."""
    if not minutes:
        return None
    return Decimal(decimal_text(Decimal(half_up(int(weighted * 1000), minutes)).scaleb(-3)))


def median(ordered: Sequence[int]) -> int | None:
    """Return the median of sorted numbers, for an even count the mean of the middle two; None without numbers."""
    if not ordered:
        return None
    return half_up(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2], 2)


def of_days(weekly: int, days: int, days_per_week: int) -> int:
    """Return the capacity of a number of working days, from that of a week and its number of working days."""
    return half_up(weekly * days, days_per_week) if days_per_week else 0


def by_the_hour(cost: int) -> int:
    """Return the cost in minor units for a sum of minutes x hourly rate."""
    return half_up(cost, MINUTES_OF_HOUR)
