"""Charts of amounts, durations and percentages, which templates render as SVG.

Horizontal positions are percentages of the drawing's width and vertical ones are pixels, so that text keeps its size on
every screen. Series differ in their pattern, not only in their colour: charts must be readable in print.
"""

from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Literal, NamedTuple

Pattern = Literal["solid", "striped", "outlined", "line", "dashed", "target"]
"""How a series is drawn: bars filled, striped or outlined; lines solid, dashed, or dotted without points."""
LINES = frozenset({"line", "dashed", "target"})
Unit = Literal["money", "percent", "milliseconds"]
SUFFIXES = {"percent": "%", "milliseconds": " ms"}
Values = Sequence[Decimal | None]

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


class Series(NamedTuple):
    """A named series with a value for each label; None where there is nothing to draw."""

    name: str
    pattern: Pattern
    values: Values


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
    """A gridline and its label."""

    y: int
    text: str


class Group(NamedTuple):
    """The bars and points at a label; `description` names their values.

    `is_labelled` says whether the label fits, `is_spare` whether it does not on a phone.
    """

    label: str
    x: Decimal
    width: Decimal
    middle: Decimal
    is_labelled: bool
    is_spare: bool
    description: str
    boxes: list[Box]
    points: list[Point]


class Chart(NamedTuple):
    """Grouped bars and lines over labels; without groups if all values are 0."""

    title: str
    series: list[Series]
    groups: list[Group]
    ticks: list[Tick]
    base: int

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to draw."""
        return not self.groups

    @property
    def height(self) -> int:
        """Return the height of the drawing."""
        return TOP + HEIGHT + LABELS_HEIGHT


class Row(NamedTuple):
    """The bars of a subject, with its target, if it has one; `note` is shown beside the label."""

    label: str
    note: str
    y: int
    description: str
    boxes: list[Box]
    target: Decimal | None


class RowTick(NamedTuple):
    """A vertical gridline, its label, and the side of it on which the label is anchored."""

    x: Decimal
    text: str
    anchor: Literal["start", "middle", "end"]
    is_zero: bool


class RowChart(NamedTuple):
    """Horizontal bars of subjects with names, over an axis."""

    title: str
    series: list[Series]
    rows: list[Row]
    ticks: list[RowTick]
    target: str
    """The name of the targets; empty without any."""

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to draw."""
        return not any(row.boxes for row in self.rows)

    @property
    def bars_top(self) -> int:
        """Return the distance of the first bar from the top of its row."""
        return ROW_LABEL

    @property
    def bars_height(self) -> int:
        """Return the height of the bars of a row."""
        return len(self.series) * (BAR + BAR_GAP) - BAR_GAP

    @property
    def plane_height(self) -> int:
        """Return the height of the rows."""
        return len(self.rows) * _row_height(self.series)

    @property
    def height(self) -> int:
        """Return the height of the drawing."""
        return self.plane_height + LABELS_HEIGHT


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
        """Return the distance of a value in percent from the left of the drawing."""
        return (value - self.low) * FULL / (self.high - self.low)

    def y(self, value: Decimal) -> int:
        """Return the height of a value in pixels from the top of the drawing."""
        return TOP + int(((self.high - value) * HEIGHT / (self.high - self.low)).to_integral_value())


def column_chart(title: str, unit: Unit, labels: Sequence[str], series: list[Series]) -> Chart:
    """Return a chart of groups of bars beside each other, and of lines above them."""
    series = _drawn(series)
    values = [value for each in series for value in each.values if value]
    scale = scale_of(values)
    bars = [each for each in series if each.pattern not in LINES]
    lines = [each for each in series if each.pattern in LINES]
    width = FULL / max(1, len(labels))
    every = -(-len(labels) // MAX_LABELS)
    groups = []
    for index, label in enumerate(labels if values else ()):
        left = width * index
        groups.append(
            Group(
                label,
                left,
                width,
                left + width / 2,
                index % every == 0,
                index // every % LABELS_ON_PHONE != 0,
                description_of(series, index, unit),
                _columns(scale, bars, index, left, width),
                _points(scale, lines, index, width),
            )
        )
    ticks = [Tick(scale.y(value), compact(value, unit)) for value in _tick_values(scale)]
    return Chart(title, series, groups, ticks, scale.y(Decimal(0)))


def _columns(scale: Scale, bars: list[Series], index: int, left: Decimal, width: Decimal) -> list[Box]:
    bar_width = min(MAX_BAR, width * (1 - GAP) / max(1, len(bars)))
    first = left + (width - bar_width * len(bars)) / 2
    boxes = []
    for position, each in enumerate(bars):
        value = each.values[index]
        if value:
            top, bottom = sorted((scale.y(value), scale.y(Decimal(0))))
            boxes.append(Box(each.pattern, first + bar_width * position, top, bar_width, max(1, bottom - top)))
    return boxes


def _points(scale: Scale, lines: list[Series], index: int, width: Decimal) -> list[Point]:
    points = []
    for each in lines:
        value, earlier = each.values[index], each.values[index - 1] if index else None
        if value is not None:
            x = width * index + width / 2
            before = None if earlier is None else (x - width, scale.y(earlier))
            points.append(Point(each.pattern, x, scale.y(value), before))
    return points


def row_chart(title: str, unit: Unit, subjects: Sequence[Subject], series: list[Series], target: str = "") -> RowChart:
    """Return a chart of subjects below each other, each with a bar for each series."""
    series = _drawn(series)
    ends = [value for each in series for value in each.values if value is not None]
    ends += [subject.target for subject in subjects if subject.target is not None]
    scale = scale_of(ends)
    zero = scale.x(Decimal(0))
    rows = []
    for index, subject in enumerate(subjects):
        top = index * _row_height(series)
        boxes = []
        for position, each in enumerate(series):
            value = each.values[index]
            if value:
                left, right = sorted((zero, scale.x(value)))
                y = top + ROW_LABEL + position * (BAR + BAR_GAP)
                boxes.append(Box(each.pattern, left, y, right - left, BAR))
        at = None if subject.target is None else scale.x(subject.target)
        rows.append(Row(subject.label, subject.note, top, description_of(series, index, unit), boxes, at))
    has_target = any(subject.target is not None for subject in subjects)
    return RowChart(title, series, rows, _row_ticks(scale, unit), target if has_target else "")


def _row_height(series: list[Series]) -> int:
    return ROW_LABEL + len(series) * (BAR + BAR_GAP) + ROW_GAP


def _row_ticks(scale: Scale, unit: Unit) -> list[RowTick]:
    ends: dict[Decimal, Literal["start", "end"]] = {scale.low: "start", scale.high: "end"}
    return [
        RowTick(scale.x(value), compact(value, unit), ends.get(value, "middle"), not value)
        for value in _tick_values(scale)
    ]


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


def _tick_values(scale: Scale) -> list[Decimal]:
    return [scale.low + scale.step * index for index in range(int((scale.high - scale.low) / scale.step) + 1)]


def description_of(series: list[Series], index: int, unit: Unit) -> str:
    """Return the values at a label in words: `Invoiced 1,200.00, collected 900.00`."""
    values = [(each.name, each.values[index]) for each in series]
    text = ", ".join(f"{name} {exact(value, unit)}" for name, value in values if value is not None)
    return text or "nothing"


def exact(value: Decimal, unit: Unit) -> str:
    """Return a value with all its digits."""
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


def percent(position: Decimal) -> str:
    """Return a horizontal position as an attribute of SVG."""
    return f"{position:.3f}%"
