"""Ratios: what reports divide, each rounded once, halves up."""

from collections.abc import Sequence
from decimal import Decimal

from retainer.values.exact import decimal_text, half_up, percent

MINUTES_OF_HOUR = 60
Ratio = float | None
"""A JSON number with two places, null when there is nothing to divide by (contract 1.4)."""


def ratio(part: int, whole: int) -> Ratio:
    """A part in percent of a whole, with two places; null when the whole is nothing or less."""
    return percent(half_up(10_000 * part, whole)) if whole > 0 else None


def average(weighted: Decimal, minutes: int) -> Decimal | None:
    """A percentage that was multiplied by minutes, of all of them: with at most three places, null without minutes."""
    if not minutes:
        return None
    return Decimal(decimal_text(Decimal(half_up(int(weighted * 1000), minutes)).scaleb(-3)))


def median(ordered: Sequence[int]) -> int | None:
    """The number in the middle, or the mean of the two; null without numbers."""
    if not ordered:
        return None
    return half_up(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2], 2)


def of_days(weekly: int, days: int, of_week: int) -> int:
    """What so many working days have of a weekly capacity, when each week has so many of them."""
    return half_up(weekly * days, of_week) if of_week else 0


def by_the_hour(cost: int) -> int:
    """What minutes x rate comes to when the rate is for an hour, in minor units."""
    return half_up(cost, MINUTES_OF_HOUR)
