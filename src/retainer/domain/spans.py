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
def cover(first: str, last: str, today: str, longest: int = YEAR) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the spans to add and of those to take away for the days of a period, both ends included.

    They are the fewest that do it, of those that have begun: for what lies after today, hardly anything is found.
    """
    begins, ends, now = (date.fromisoformat(day).toordinal() for day in (first, last, today))
    years = [_span(year, 1, YEAR) for year in range(int(first[:YEAR]), int(last[:YEAR]) + 1)]
    parts = years if longest == YEAR else [month for year in years for month in _parts(year)]
    found = _within(parts, begins, ends, now)
    more, less = (tuple(sorted(span.name for span, its in found.items() if its == sign)) for sign in (1, -1))
    return more, less


def _within(parts: list[Span], first: int, last: int, now: int) -> Cover:
    """The days from one to another of spans that follow each other."""
    met = [part for part in parts if first <= part.last and part.first <= last]
    if len(met) > 1:
        ends = _cut(met[0], first - 1, now)[1], _cut(met[-1], last, now)[0]
        return _added((*ends, dict.fromkeys(met[1:-1], 1)))
    (only,) = met
    if first <= only.first and only.last <= last:
        return {only: 1}
    outside = _added((_cut(only, first - 1, now)[0], _cut(only, last, now)[1]))
    return _shorter(_within(_parts(only), first, last, now), _rest(only, outside), now)


def _cut(span: Span, day: int, now: int) -> tuple[Cover, Cover]:
    """The days of a span until a day, and those after it."""
    if day < span.first:
        return {}, {span: 1}
    if span.last <= day:
        return {span: 1}, {}
    pieces = [_cut(part, day, now) for part in _parts(span)]
    until, after = (_added(covers) for covers in zip(*pieces, strict=True))
    return _shorter(until, _rest(span, after), now), _shorter(after, _rest(span, until), now)


def _added(covers: Iterable[Cover]) -> Cover:
    found: Cover = {}
    for its in covers:
        for span, sign in its.items():
            found[span] = found.get(span, 0) + sign
    return {span: sign for span, sign in found.items() if sign}


def _rest(span: Span, of: Cover) -> Cover:
    """What is left of a span."""
    return _added(({span: 1}, {part: -sign for part, sign in of.items()}))


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
