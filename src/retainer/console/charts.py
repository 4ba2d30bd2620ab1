"""Charts of amounts, durations, percentages and requests, which templates render as SVG.

Horizontal positions are percentages of the drawing's width and vertical ones are pixels, so that text keeps its size on
every screen. Series differ in their pattern, not only in their colour: charts must be readable in print.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo

from retainer.console import words
from retainer.store.tx import Tx
from retainer.traffic.counts import CountedHours, Counts, by_day, by_hour, last_hours

Pattern = Literal["solid", "striped", "outlined", "good", "warn", "limited", "bad", "line", "dashed", "target"]
"""How a series is drawn: bars filled, striped, outlined or in a colour; lines solid, dashed, or dotted without points.

Bars in colours stand on each other, in the order of the legend.
"""
LINES = frozenset({"line", "dashed", "target"})
STACKED = frozenset({"good", "warn", "limited", "bad"})
Unit = Literal["money", "percent", "milliseconds", "requests"]
SUFFIXES = {"money": "", "percent": "%", "milliseconds": " ms", "requests": ""}

TOP, HEIGHT = 10, 220
"""Pixels above the highest gridline, and from it to the lowest."""
LABELS_HEIGHT = 22
GAP = Decimal("0.28")
"""Share of a group's width that separates it from the next group."""
MAX_TICKS = 5
STEPS = (Decimal(1), Decimal(2), Decimal("2.5"), Decimal(5), Decimal(10))
MAX_LABELS = 13
"""Labels that fit below a chart; with more groups, only some are labelled, and on a phone every third of these."""
MAX_BAR = Decimal(7)
"""Percent of the drawing's width that a bar takes at most, so that few groups do not become walls."""
BAR, BAR_GAP, ROW_LABEL, ROW_GAP = 11, 3, 22, 12
"""Pixels of a bar in a chart with rows, between bars, of a row's label, and between rows."""
FULL = Decimal(100)
MIN_HEIGHT = Decimal(3)
"""Pixels of a bar at least, so that one failure among a thousand requests is visible."""


class Series(NamedTuple):
    name: str
    pattern: Pattern
    values: Sequence[Decimal | None]


class Box(NamedTuple):
    """A bar: left edge and width in percent, top and height in pixels."""

    pattern: Pattern
    x: Decimal
    y: Decimal
    width: Decimal
    height: Decimal


class Point(NamedTuple):
    """A point of a line, and the point before it, if that has a value."""

    pattern: Pattern
    x: Decimal
    y: Decimal
    before: tuple[Decimal, Decimal] | None


class BarGroup(NamedTuple):
    """The bars and points of a label; `description` names their values.

    It begins at `at` percent from the left of a column chart, or pixels from the top of a row chart. A row has a note,
    and a target at a percentage.
    """

    label: str
    at: Decimal
    description: str
    boxes: list[Box]
    points: Sequence[Point] = ()
    note: str = ""
    target: Decimal | None = None


class Chart(NamedTuple):
    """Groups of bars and lines side by side, or of bars below each other; without groups if all values are 0."""

    title: str
    series: list[Series]
    groups: list[BarGroup]
    ticks: list[tuple[Decimal, str]]
    """Gridlines with their labels: pixels from the top, or percent from the left."""
    base: Decimal
    """The position of zero."""
    size: Decimal
    """The width of a column in percent, or the height of a row in pixels."""
    is_rows: bool
    target: str
    """The name of the targets; empty without any."""
    height: Decimal
    every: int
    """One of this number of columns has room for its label."""


class Scale(NamedTuple):
    """The values at the ends of an axis, and the step between its gridlines."""

    low: Decimal
    high: Decimal
    step: Decimal

    def x(self, value: Decimal) -> Decimal:
        """Return the distance of a value in percent from the left of the drawing."""
        return (value - self.low) * FULL / (self.high - self.low)

    def y(self, value: Decimal) -> Decimal:
        """Return the height of a value in pixels from the top of the drawing."""
        return TOP + ((self.high - value) * HEIGHT / (self.high - self.low)).to_integral_value()


def draw(
    title: str,
    unit: Unit,
    labels: Sequence[str],
    series: list[Series],
    rows: Sequence[tuple[str, Decimal | None]] = (),
    target: str = "",
) -> Chart:
    """Return a chart of bars side by side, with lines above them.

    With `rows`, which are the note and the target of each label, its bars are below each other.
    """
    drawn = [each for each in series if any(value or (each.pattern in LINES and value == 0) for value in each.values)]
    series = drawn or series[:1]
    bars = [each for each in series if each.pattern not in LINES]
    is_stacked = any(each.pattern in STACKED for each in bars)
    values = [value for each in series for value in each.values if value]
    sums = [sum(filter(None, column), Decimal(0)) for column in zip(*(each.values for each in bars), strict=True)]
    targets = [aim for _, aim in rows if aim is not None]
    scale = scale_of([*(sums if is_stacked else values), *targets], is_whole=unit == "requests")
    place, height = scale.x if rows else scale.y, Decimal(TOP + HEIGHT + LABELS_HEIGHT)
    size = FULL / max(1, len(labels))
    columns = 1 if is_stacked else len(bars)
    width = step = min(MAX_BAR, size * (1 - GAP) / max(1, columns))
    first, zero, groups = (size - width * columns) / 2, place(Decimal(0)), []
    if rows:
        width, step, first = Decimal(BAR), Decimal(BAR + BAR_GAP), Decimal(ROW_LABEL)
        size = first + step * len(bars) + ROW_GAP
        height = size * len(labels) + LABELS_HEIGHT
    for index, label in enumerate(labels if values else ()):
        note, aim = rows[index] if rows else ("", None)
        boxes, points, middle, floor = [], [], size * index + size / 2, zero
        for position, each in enumerate(bars):
            if value := each.values[index]:
                near, far = sorted((place(value), zero))
                across, length = size * index + first + step * (0 if is_stacked else position), far - near
                tall = max(MIN_HEIGHT, length)
                if is_stacked:
                    near = floor = floor - tall
                top = min(near, zero - tall) if value > 0 else near
                box = (near, across, length, width) if rows else (across, top, width, tall)
                boxes.append(Box(each.pattern, *box))
        for each in series:
            value, earlier = each.values[index], each.values[index - 1] if index else None
            if value is not None and each.pattern in LINES:
                before = None if earlier is None else (middle - size, scale.y(earlier))
                points.append(Point(each.pattern, middle, scale.y(value), before))
        at, description = None if aim is None else place(aim), description_of(series, index, unit)
        groups.append(BarGroup(label, size * index, description, boxes, points, note, at))
    values = [scale.low + scale.step * index for index in range(int((scale.high - scale.low) / scale.step) + 1)]
    ticks, every = [(place(value), compact(value, unit)) for value in values], -(-len(labels) // MAX_LABELS)
    return Chart(title, series, groups, ticks, zero, size, bool(rows), target if targets else "", height, every)


def scale_of(values: Sequence[Decimal], *, is_whole: bool = False) -> Scale:
    """Return an axis of round numbers that includes 0 and all values; a count has only whole ones."""
    low, high = min([*values, Decimal(0)]), max([*values, Decimal(0)])
    if low == high:
        return Scale(Decimal(0), Decimal(1), Decimal(1))
    rough = max((high - low) / MAX_TICKS, Decimal(is_whole))
    steps = [each.scaleb(rough.adjusted()) for each in STEPS]
    step = next(each for each in steps if each >= rough and not (is_whole and each % 1))
    lowest, highest = (low / step).to_integral_value(ROUND_FLOOR), (high / step).to_integral_value(ROUND_CEILING)
    return Scale(lowest * step, highest * step, step)


def description_of(series: list[Series], index: int, unit: Unit) -> str:
    values = [(each.name, each.values[index]) for each in series]
    texts = [f"{name} {words.number(value)}{SUFFIXES[unit]}" for name, value in values if value is not None]
    return ", ".join(texts) or "nothing"


def compact(value: Decimal, unit: Unit) -> str:
    """Return a value of an axis: `12k`, `1.5M`, `80%`."""
    if unit == "percent":
        return f"{words.number(value.normalize())}%"
    for digits, suffix in ((9, "B"), (6, "M"), (3, "k")):
        if abs(value) >= Decimal(10) ** digits:
            return f"{words.number(value.scaleb(-digits).normalize())}{suffix}"
    return words.number(value.normalize())


class RequestChart(NamedTuple):
    chart: Chart
    rows: Mapping[str, Counts]
    total: Counts


def hourly_chart(tx: Tx, key_id: int | None = None, period: CountedHours | None = None) -> RequestChart:
    """Return the hours of a period, by default the last 24; the one that the end of summer time repeats is one bar."""
    rows, zone = dict[str, Counts](), ZoneInfo(tx.actor.timezone)
    for hour, counts in by_hour(tx, *(period or last_hours(tx)), key_id).items():
        at = datetime.fromisoformat(hour).astimezone(zone)
        rows.setdefault(f"{at.day} {at:%b, %H:%M}", Counts()).add(counts)
    return status_chart(rows)


def daily_chart(tx: Tx, days: int, key_id: int | None = None, last: str = "") -> RequestChart:
    return status_chart({words.day_label(day): each for day, each in by_day(tx, days, key_id, last).items()})


def status_chart(rows: Mapping[str, Counts]) -> RequestChart:
    total = Counts()
    for each in rows.values():
        total.add(each)
    columns: dict[Pattern, tuple[str, Callable[[Counts], int]]] = {
        "good": ("Successful", lambda each: each.requests - each.client_errors - each.server_errors),
        "warn": ("Client error (4xx)", lambda each: each.client_errors - each.limited),
        "limited": ("Rate limited (429)", lambda each: each.limited),
        "bad": ("Server error (5xx)", lambda each: each.server_errors),
    }
    series = [
        Series(name, pattern, [Decimal(count(each)) or None for each in rows.values()])
        for pattern, (name, count) in columns.items()
    ]
    labels = [label.rpartition(", ")[2] for label in rows]  # of an hour, its time: the table has its day
    return RequestChart(draw("Requests", "requests", labels, series), rows, total)
