"""Charts of requests: bars and sparklines in whole units of a drawing, which templates render as SVG."""

from collections.abc import Mapping
from typing import NamedTuple

from retainer.console import words
from retainer.store.tx import Tx
from retainer.traffic.counts import Counts, Period, by_day, by_hour, last_hours

BAR_WIDTH, HEIGHT = 10, 100
SPARKLINE_HEIGHT = 20
MIN_HEIGHT, MIN_SPARKLINE_HEIGHT = 3, 2
"""Minimum height of a value above 0, so that one failure among a thousand requests is visible."""


class Segment(NamedTuple):
    """A segment of a stacked bar."""

    kind: str
    y: int
    height: int


class Bar(NamedTuple):
    """A stacked bar: its left edge, its segments from below, its label, and its figures for the table."""

    x: int
    segments: list[Segment]
    label: str
    counts: Counts


class Chart(NamedTuple):
    """A bar chart; the highest bar shows `maximum`."""

    bars: list[Bar]
    maximum: int
    total: Counts

    @property
    def width(self) -> int:
        """Return the width of the drawing."""
        return len(self.bars) * BAR_WIDTH


class Sparkline(NamedTuple):
    """The requests of some days as small bars."""

    heights: list[int]
    total: int


def hourly_chart(tx: Tx, key_id: int | None = None, period: Period | None = None) -> Chart:
    """Return a chart of a period by the hour, by default of the last 24 hours, of one key or all."""
    counts = by_hour(tx, *(period or last_hours(tx)), key_id)
    return status_chart({words.hour_label(hour, tx.actor.timezone): each for hour, each in counts.items()})


def daily_chart(tx: Tx, days: int, key_id: int | None = None, last: str = "") -> Chart:
    """Return a chart of some days, by default those until today, of one key or all."""
    return status_chart({words.day_label(day): each for day, each in by_day(tx, days, key_id, last).items()})


def status_chart(counts: Mapping[str, Counts]) -> Chart:
    """Return a chart of requests by the status of their responses; the keys are labels."""
    maximum = max((each.requests for each in counts.values()), default=0)
    total, bars = Counts(), []
    for index, (label, each) in enumerate(counts.items()):
        bars.append(Bar(index * BAR_WIDTH, _segments(each, maximum), label, each))
        total.add(each)
    return Chart(bars, maximum, total)


def sparkline(days: list[int]) -> Sparkline:
    """Return the sparkline of a key."""
    maximum = max(days, default=0)
    return Sparkline([_scale(count, maximum, SPARKLINE_HEIGHT, MIN_SPARKLINE_HEIGHT) for count in days], sum(days))


def _segments(counts: Counts, maximum: int) -> list[Segment]:
    kinds = {
        "good": counts.requests - counts.client_errors - counts.server_errors,
        "warn": counts.client_errors - counts.limited,
        "limited": counts.limited,
        "bad": counts.server_errors,
    }
    segments, y = [], HEIGHT
    for kind, count in kinds.items():
        if height := _scale(count, maximum, HEIGHT, MIN_HEIGHT):
            y = max(0, y - height)
            segments.append(Segment(kind, y, height))
    return segments


def _scale(count: int, maximum: int, height: int, min_height: int) -> int:
    return max(min_height, count * height // maximum) if count > 0 else 0
