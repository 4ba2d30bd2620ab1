"""Buckets: the years, months and days for which sums are stored, and the buckets that make up a period.

The name of a bucket is the common prefix of its days (ISO 8601): `2026`, `2026-11`, `2026-11-22`.
"""

from calendar import isleap, monthrange
from collections.abc import Iterator
from datetime import date
from functools import lru_cache

LENGTHS = YEAR, MONTH, DAY = len("2026"), len("2026-11"), len("2026-11-22")


@lru_cache(maxsize=128)
def decompose(first: str, last: str, longest: int = YEAR) -> tuple[str, ...]:
    """Return the buckets of a period, both ends included: whole years, whole months, and the days that remain.

    `longest` is YEAR or MONTH.
    """
    names = []
    day, end = (date.fromisoformat(text).toordinal() for text in (first, last))
    while day <= end:
        start = date.fromordinal(day)
        fitting = (each for each in _starting_on(start) if each[0] >= longest and day + each[1] - 1 <= end)
        length, days = next(fitting)
        names.append(start.isoformat()[:length])
        day += days
    return tuple(names)


def _starting_on(day: date) -> Iterator[tuple[int, int]]:
    """Yield the length of the name and the number of days of each bucket that starts on a day, the longest first."""
    if (day.month, day.day) == (1, 1):
        yield YEAR, 366 if isleap(day.year) else 365
    if day.day == 1:
        yield MONTH, monthrange(day.year, day.month)[1]
    yield DAY, 1
