"""Spans: the years, months and days for which sums are kept, and the fewest of them that make up a period.

The name of a span is what the days in it begin with (ISO 8601): `2026`, `2026-11`, `2026-11-22`.
"""

from calendar import monthrange
from collections.abc import Iterable
from datetime import date
from functools import lru_cache
from typing import NamedTuple

LENGTHS = YEAR, MONTH, DAY = len("2026"), len("2026-11"), len("2026-11-22")


class Span(NamedTuple):
    """A span by its name, and the ordinals of its first and last day."""

    name: str
    first: int
    last: int


Cover = dict[Span, int]
"""Spans that make up a period when they are added or, with the sign -1, taken away."""


@lru_cache(maxsize=128)
def decompose(first: str, last: str, today: str, longest: int = YEAR) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the spans to add and of those to take away for the days of a period, both ends included.

    They are the fewest that do it, of those that have begun: for what lies after today, hardly anything is found.
    """
    begins, ends, now = (date.fromisoformat(day).toordinal() for day in (first, last, today))
    years = [_span(year, 1, YEAR) for year in range(int(first[:YEAR]), int(last[:YEAR]) + 1)]
    parts = years if longest == YEAR else [month for year in years for month in _parts(year)]
    found = _together(_split(part, begins, ends, now)[0] for part in parts)
    more, less = (tuple(sorted(span.name for span, its in found.items() if its == sign)) for sign in (1, -1))
    return more, less


def _split(span: Span, first: int, last: int, now: int) -> tuple[Cover, Cover]:
    """The days of a span from one to another, and its other days."""
    if last < span.first or span.last < first:
        return {}, {span: 1}
    if first <= span.first and span.last <= last:
        return {span: 1}, {}
    pieces = [_split(part, first, last, now) for part in _parts(span)]
    within, beyond = (_together(covers) for covers in zip(*pieces, strict=True))
    return _shorter(within, _rest(span, beyond), now), _shorter(beyond, _rest(span, within), now)


def _together(covers: Iterable[Cover]) -> Cover:
    """Covers of spans that have no day in common."""
    return {span: sign for its in covers for span, sign in its.items()}


def _rest(span: Span, of: Cover) -> Cover:
    """What is left of a span."""
    return {span: 1} | {part: -sign for part, sign in of.items()}


def _shorter(one: Cover, other: Cover, now: int) -> Cover:
    return min(one, other, key=lambda its: (sum(span.first <= now for span in its), len(its)))


def _parts(span: Span) -> list[Span]:
    """The months of a year, or the days of a month."""
    first = date.fromordinal(span.first)
    if len(span.name) == YEAR:
        return [_span(first.year, month, MONTH) for month in range(1, 13)]
    return [Span(date.fromordinal(day).isoformat(), day, day) for day in range(span.first, span.last + 1)]


def _span(year: int, month: int, kind: int) -> Span:
    """A month, or the year that begins with it."""
    first, ends = date(year, month, 1), month if kind == MONTH else 12
    return Span(first.isoformat()[:kind], first.toordinal(), date(year, ends, monthrange(year, ends)[1]).toordinal())
