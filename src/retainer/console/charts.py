"""Charts of amounts, durations, percentages and requests, which templates render as SVG.

In the first three, horizontal positions are percentages of the drawing's width and vertical ones are pixels, so that
text keeps its size on every screen. Series differ in their pattern, not only in their colour: charts must be readable
in print.
"""

from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Literal, NamedTuple

from retainer.console import words
from retainer.store.tx import Tx
from retainer.traffic.counts import Counts, Period, by_day, by_hour, last_hours

Pattern = Literal["solid", "striped", "outlined", "line", "dashed", "target"]
"""How a series is drawn: bars filled, striped or outlined; lines solid, dashed, or dotted without points."""
LINES = frozenset({"line", "dashed", "target"})
Unit = Literal["money", "percent", "milliseconds"]
SUFFIXES = {"percent": "%", "milliseconds": " ms"}

TOP, HEIGHT = 10, 220
"""Pixels above the highest gridline, and from it to the lowest."""
LABELS_HEIGHT = 22
GAP = Decimal("0.28")
"""Share of a group's width that separates it from the next group."""
MAX_TICKS = 5
STEPS = (Decimal(1), Decimal(2), Decimal("2.5"), Decimal(5), Decimal(10))
MAX_LABELS, LABELS_ON_PHONE = 13, 3
"""Labels that fit below a chart; with more groups, only some are labelled, and on a phone every third of these."""
MAX_BAR = Decimal(7)
"""Percent of the drawing's width that a bar takes at most, so that few groups do not become walls."""
BAR, BAR_GAP, ROW_LABEL, ROW_GAP = 11, 3, 22, 12
"""Pixels of a bar in a chart with rows, between bars, of a row's label, and between rows."""
FULL = Decimal(100)
REQUESTS_HEIGHT, MIN_REQUESTS_HEIGHT = 100, 3
SPARKLINE_HEIGHT, MIN_SPARKLINE_HEIGHT = 20, 2
"""Heights of charts of requests; a value above 0 has a minimum, so that one failure among a thousand is visible."""


class Series(NamedTuple):
    """A named series with a value for each label; None where there is nothing to draw."""

    name: str
    pattern: Pattern
    values: Sequence[Decimal | None]


class Box(NamedTuple):
    """A bar: left edge and width in percent, top and height in pixels."""

    pattern: Pattern
    x: Decimal
    y: int
    width: Decimal
    height: int


class Point(NamedTuple):
    """A point of a line, and the point before it, if that has a value."""

    pattern: Pattern
    x: Decimal
    y: int
    before: tuple[Decimal, int] | None


class Tick(NamedTuple):
    """A gridline and its label: pixels from the top, or percent from the left."""

    at: Decimal
    text: str


class Group(NamedTuple):
    """The bars and points of a subject; `description` names their values.

    It begins at `at` percent from the left of a column chart, or pixels from the top of a row chart. `is_labelled` says
    whether the label fits below a column, `is_spare` whether it does not on a phone. A row has a note, and a target at
    a percentage.
    """

    label: str
    at: Decimal
    description: str
    boxes: list[Box]
    points: Sequence[Point] = ()
    is_labelled: bool = True
    is_spare: bool = False
    note: str = ""
    target: Decimal | None = None


class Chart(NamedTuple):
    """Groups of bars and lines beside each other, or of bars below each other; without groups if all values are 0."""

    title: str
    series: list[Series]
    groups: list[Group]
    ticks: list[Tick]
    base: Decimal
    """The position of zero."""
    size: Decimal
    """The width of a column in percent, or the height of a row in pixels."""
    is_rows: bool = False
    target: str = ""
    """The name of the targets; empty without any."""
    height: int = TOP + HEIGHT + LABELS_HEIGHT


class Subject(NamedTuple):
    """A row's label, the note beside it, and its target."""

    label: str
    note: str = ""
    target: Decimal | None = None


class Scale(NamedTuple):
    """The values at the ends of an axis, and the step between its gridlines."""

    low: Decimal
    high: Decimal
    step: Decimal

    def x(self, value: Decimal) -> Decimal:
        return (value - self.low) * FULL / (self.high - self.low)

    def y(self, value: Decimal) -> int:
        return TOP + int(((self.high - value) * HEIGHT / (self.high - self.low)).to_integral_value())

    def values(self) -> list[Decimal]:
        return [self.low + self.step * index for index in range(int((self.high - self.low) / self.step) + 1)]


def column_chart(title: str, unit: Unit, labels: Sequence[str], series: list[Series]) -> Chart:
    """Return a chart of groups of bars beside each other, and of lines above them."""
    series = _drawn(series)
    values = [value for each in series for value in each.values if value]
    scale, size = scale_of(values), FULL / max(1, len(labels))
    bars = [each for each in series if each.pattern not in LINES]
    every, width = -(-len(labels) // MAX_LABELS), min(MAX_BAR, size * (1 - GAP) / max(1, len(bars)))
    groups = []
    for index, label in enumerate(labels if values else ()):
        left = size * index
        boxes = []
        for position, each in enumerate(bars):
            if value := each.values[index]:
                top, bottom = sorted((scale.y(value), scale.y(Decimal(0))))
                x = left + (size - width * len(bars)) / 2 + width * position
                boxes.append(Box(each.pattern, x, top, width, max(1, bottom - top)))
        points = []
        for each in series:
            value, earlier = each.values[index], each.values[index - 1] if index else None
            if value is not None and each.pattern in LINES:
                x = left + size / 2
                before = None if earlier is None else (x - size, scale.y(earlier))
                points.append(Point(each.pattern, x, scale.y(value), before))
        fits = (index % every == 0, index // every % LABELS_ON_PHONE != 0)
        groups.append(Group(label, left, description_of(series, index, unit), boxes, points, *fits))
    ticks = [Tick(Decimal(scale.y(value)), compact(value, unit)) for value in scale.values()]
    return Chart(title, series, groups, ticks, Decimal(scale.y(Decimal(0))), size)


def row_chart(title: str, unit: Unit, subjects: Sequence[Subject], series: list[Series], target: str = "") -> Chart:
    """Return a chart of subjects below each other, each with a bar for each series."""
    series = _drawn(series)
    ends = [value for each in series for value in each.values if value is not None]
    targets = [subject.target for subject in subjects if subject.target is not None]
    scale, size = scale_of([*ends, *targets]), ROW_LABEL + len(series) * (BAR + BAR_GAP) + ROW_GAP
    zero, groups = scale.x(Decimal(0)), []
    for index, (label, note, aim) in enumerate(subjects):
        top, boxes = index * size, []
        for position, each in enumerate(series):
            if value := each.values[index]:
                left, right = sorted((zero, scale.x(value)))
                y = top + ROW_LABEL + position * (BAR + BAR_GAP)
                boxes.append(Box(each.pattern, left, y, right - left, BAR))
        at = None if aim is None else scale.x(aim)
        description = description_of(series, index, unit)
        groups.append(Group(label, Decimal(top), description, boxes, note=note, target=at))
    ticks = [Tick(scale.x(value), compact(value, unit)) for value in scale.values()]
    shown = groups if any(group.boxes for group in groups) else []
    height = len(groups) * size + LABELS_HEIGHT
    named = target if targets else ""
    return Chart(title, series, shown, ticks, zero, Decimal(size), is_rows=True, target=named, height=height)


def _drawn(series: list[Series]) -> list[Series]:
    """Return the series with something to draw: a bar that is not 0, or any point of a line; at least the first."""
    found = [
        each
        for each in series
        if any(value is not None if each.pattern in LINES else bool(value) for value in each.values)
    ]
    return found or series[:1]


def scale_of(values: Sequence[Decimal]) -> Scale:
    """Return an axis of round numbers that includes 0 and all values."""
    low, high = min([*values, Decimal(0)]), max([*values, Decimal(0)])
    if low == high:
        return Scale(Decimal(0), Decimal(1), Decimal(1))
    rough = (high - low) / MAX_TICKS
    power = Decimal(1).scaleb(rough.adjusted())
    step = next(each * power for each in STEPS if each * power >= rough)
    lowest, highest = (low / step).to_integral_value(ROUND_FLOOR), (high / step).to_integral_value(ROUND_CEILING)
    return Scale(lowest * step, highest * step, step)


def description_of(series: list[Series], index: int, unit: Unit) -> str:
    """Return the values at a label in words: `Invoiced 1,200.00, collected 900.00`."""
    values = [(each.name, each.values[index]) for each in series]
    text = ", ".join(f"{name} {exact(value, unit)}" for name, value in values if value is not None)
    return text or "nothing"


def exact(value: Decimal, unit: Unit) -> str:
    return f"{value:,f}" + SUFFIXES.get(unit, "")


def compact(value: Decimal, unit: Unit) -> str:
    """Return a value of an axis: `12k`, `1.5M`, `80%`."""
    if unit == "percent":
        return f"{_plain(value)}%"
    for digits, suffix in ((9, "B"), (6, "M"), (3, "k")):
        if abs(value) >= Decimal(10) ** digits:
            return f"{_plain(value.scaleb(-digits))}{suffix}"
    return _plain(value)


def _plain(value: Decimal) -> str:
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


class Bar(NamedTuple):
    """A stacked bar of requests, with its figures for the table."""

    label: str
    counts: Counts
    segments: list[tuple[str, int, int]]
    """The kind, top and height of each segment, from below."""


class RequestChart(NamedTuple):
    """A chart of requests by the status of their responses; the highest bar shows `maximum`."""

    bars: list[Bar]
    maximum: int
    total: Counts


class Sparkline(NamedTuple):
    """The requests of some days as small bars."""

    heights: list[int]
    total: int


def hourly_chart(tx: Tx, key_id: int | None = None, period: Period | None = None) -> RequestChart:
    counts = by_hour(tx, *(period or last_hours(tx)), key_id)
    return status_chart({words.hour_label(hour, tx.actor.timezone): each for hour, each in counts.items()})


def daily_chart(tx: Tx, days: int, key_id: int | None = None, last: str = "") -> RequestChart:
    return status_chart({words.day_label(day): each for day, each in by_day(tx, days, key_id, last).items()})


def status_chart(counts: Mapping[str, Counts]) -> RequestChart:
    maximum, total = max((each.requests for each in counts.values()), default=0), Counts()
    for each in counts.values():
        total.add(each)
    return RequestChart([Bar(label, each, _segments(each, maximum)) for label, each in counts.items()], maximum, total)


def sparkline(days: list[int]) -> Sparkline:
    maximum = max(days, default=0)
    return Sparkline([_scaled(count, maximum, SPARKLINE_HEIGHT, MIN_SPARKLINE_HEIGHT) for count in days], sum(days))


def _segments(counts: Counts, maximum: int) -> list[tuple[str, int, int]]:
    kinds = {
        "good": counts.requests - counts.client_errors - counts.server_errors,
        "warn": counts.client_errors - counts.limited,
        "limited": counts.limited,
        "bad": counts.server_errors,
    }
    segments, y = [], REQUESTS_HEIGHT
    for kind, count in kinds.items():
        if height := _scaled(count, maximum, REQUESTS_HEIGHT, MIN_REQUESTS_HEIGHT):
            y = max(0, y - height)
            segments.append((kind, y, height))
    return segments


def _scaled(count: int, maximum: int, height: int, min_height: int) -> int:
    return max(min_height, count * height // maximum) if count > 0 else 0
