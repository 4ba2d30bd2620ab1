"""Exact arithmetic: minor units of currencies, one rounding, and how a whole is divided without loss."""

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import floor

DIGITS = {"EUR": 2, "USD": 2, "JPY": 0, "KWD": 3, "CLF": 4}

exact = lru_cache(100_000)(Fraction)


class Ties:
    """How many exact halves were rounded: the ties."""

    count = 0


def half_up(number: Fraction | int) -> int:
    """Return the nearest whole number; halves go away from zero."""
    below, rest = divmod(number.numerator, number.denominator)
    beyond = 2 * rest - number.denominator
    Ties.count += beyond == 0
    return below + (beyond > 0 or (beyond == 0 and below >= 0))


def rounded(number: Fraction, digits: int) -> Fraction:
    """Return a number rounded to decimal places."""
    return Fraction(half_up(number * 10**digits), 10**digits)


def in_units(amount: str | Fraction, currency: str) -> Fraction:
    """Return an amount in minor units of its currency."""
    return Fraction(amount) * 10 ** DIGITS[currency]


def money(units: Fraction | int, currency: str) -> str:
    """Return minor units as an amount, with the digits of its currency."""
    return f"{Decimal(int(units)).scaleb(-DIGITS[currency]):f}"


def clamp(number: int, *bounds: tuple[int, int]) -> int:
    """Return a number, or the nearest that lies between all these pairs, each in either order."""
    return max(*map(min, bounds), min(*map(max, bounds), number))


def allocate(units: int, weights: Sequence[int]) -> list[int]:
    """Return whole numbers in proportion to weights; the largest remainders, the first of equals, get one more each."""
    fair = [Fraction(units * weight, sum(weights)) for weight in weights]
    parts = [floor(part) for part in fair]
    losers = sorted(range(len(fair)), key=lambda place: parts[place] - fair[place])
    for place in losers[: units - sum(parts)]:
        parts[place] += 1
    return parts


def day_after(day: str, days: int) -> str:
    """Return the day that is some days after another."""
    return (date.fromisoformat(day) + timedelta(days=days)).isoformat()
