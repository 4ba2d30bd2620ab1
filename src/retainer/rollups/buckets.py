"""Spans: the years, months and days for which sums are kept, and the fewest of them that make up a period.

The name of a span is the common prefix of its days (ISO 8601): `2026`, `2026-11`, `2026-11-22`.
"""

from calendar import monthrange
from collections.abc import Iterable
from datetime import date
from functools import lru_cache
from typing import NamedTuple

LENGTHS = YEAR, MONTH, DAY = len("2026"), len("2026-11"), len("2026-11-22")


class Span(NamedTuple):
    """A span: its name, and the ordinals of its first and last day."""

    name: str
    first: int
    last: int


Cover = dict[Span, int]
"""Spans that make up a period, with the sign 1 for those to add and -1 for those to subtract."""


@lru_cache(maxsize=128)
def decompose(first: str, last: str, today: str, longest: int = YEAR) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the spans to add and of those to subtract for a period, both ends included.

    They are as few as possible, counting only those that begin by today: for later ones there is hardly any sum.
    `longest` is YEAR or MONTH.
    """
    begins, ends, now = (date.fromisoformat(day).toordinal() for day in (first, last, today))
    years = [_span(year, 1, YEAR) for year in range(int(first[:YEAR]), int(last[:YEAR]) + 1)]
    parts = years if longest == YEAR else [month for year in years for month in _parts(year)]
    cover = _merged(_split(part, begins, ends, now)[0] for part in parts)
    added, subtracted = (tuple(sorted(span.name for span in cover if cover[span] == sign)) for sign in (1, -1))
    return added, subtracted


def _split(span: Span, first: int, last: int, now: int) -> tuple[Cover, Cover]:
    """Return the covers of the days of a span from one to another, and of its other days."""
    if last < span.first or span.last < first:
        return {}, {span: 1}
    if first <= span.first and span.last <= last:
        return {span: 1}, {}
    pieces = [_split(part, first, last, now) for part in _parts(span)]
    within, beyond = (_merged(covers) for covers in zip(*pieces, strict=True))
    return _shorter(within, _complement(span, beyond), now), _shorter(beyond, _complement(span, within), now)


def _merged(covers: Iterable[Cover]) -> Cover:
    """Merge covers of spans that have no day in common."""
    return {span: sign for cover in covers for span, sign in cover.items()}


def _complement(span: Span, cover: Cover) -> Cover:
    """Return a cover of the days of a span that are not in another."""
    return {span: 1} | {part: -sign for part, sign in cover.items()}


def _shorter(one: Cover, other: Cover, now: int) -> Cover:
    return min(one, other, key=lambda cover: (sum(span.first <= now for span in cover), len(cover)))


def _parts(span: Span) -> list[Span]:
    """Return the months of a year, or the days of a month."""
    first = date.fromordinal(span.first)
    if len(span.name) == YEAR:
        return [_span(first.year, month, MONTH) for month in range(1, 13)]
    return [Span(date.fromordinal(day).isoformat(), day, day) for day in range(span.first, span.last + 1)]


def _span(year: int, month: int, length: int) -> Span:
    """Return the span of a month, or of the year that begins with it."""
    first, last_month = date(year, month, 1), month if length == MONTH else 12
    last = date(year, last_month, monthrange(year, last_month)[1])
    return Span(first.isoformat()[:length], first.toordinal(), last.toordinal())
