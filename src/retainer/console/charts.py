"""Charts: bars as figures on a plane of whole numbers, which templates draw as SVG."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from retainer.traffic.counts import Counts

STEP, HEIGHT = 10, 100
"""How wide the place of a bar is, and how high the highest one, in units of the drawing."""
LEAST = 3
"""So high is the least that is not nothing, so that one failure among a thousand requests is seen."""


class Part(NamedTuple):
    """A part of a bar."""

    kind: str
    y: int
    height: int


class Bar(NamedTuple):
    """A bar: where it begins, its parts from below, what it says in words, and its figures for the table."""

    x: int
    parts: list[Part]
    label: str
    counts: Counts


class Chart(NamedTuple):
    """Bars beside each other, the highest of which is `most`."""

    bars: list[Bar]
    most: int
    total: Counts

    @property
    def width(self) -> int:
        """How wide the drawing is, in its units."""
        return len(self.bars) * STEP


class Line(NamedTuple):
    """A usage line: small bars of the requests of some days."""

    heights: list[int]
    total: int
    failed: int = 0


def by_status(counts: Mapping[str, Counts]) -> Chart:
    """Return a chart of requests by how they were answered; the labels are the keys."""
    most = max((each.requests for each in counts.values()), default=0)
    bars = [Bar(place * STEP, _parts(each, most), label, each) for place, (label, each) in enumerate(counts.items())]
    return Chart(bars, most, total_of(counts.values()))


def usage_line(days: list[int]) -> Line:
    """Return the usage line of a key."""
    most = max(days, default=0)
    return Line([_height(count, most, 20, least=2) for count in days], sum(days))


def total_of(counts: Iterable[Counts]) -> Counts:
    """Return the sum of counts, and their busiest minute."""
    total = Counts()
    for each in counts:
        total.requests += each.requests
        total.client_errors += each.client_errors
        total.server_errors += each.server_errors
        total.limited += each.limited
        total.busiest_minute = max(total.busiest_minute, each.busiest_minute)
    return total


def _parts(counts: Counts, most: int) -> list[Part]:
    """Return the parts of a bar from below: what was answered well first."""
    kinds = (
        ("good", counts.requests - counts.client_errors - counts.server_errors),
        ("warn", counts.client_errors - counts.limited),
        ("limited", counts.limited),
        ("bad", counts.server_errors),
    )
    parts, bottom = [], HEIGHT
    for kind, count in kinds:
        if height := _height(count, most, HEIGHT, least=LEAST):
            bottom = max(0, bottom - height)
            parts.append(Part(kind, bottom, height))
    return parts


def _height(count: int, most: int, height: int, *, least: int) -> int:
    return max(least, count * height // most) if count > 0 else 0
