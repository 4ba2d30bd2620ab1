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
Unit = Literal["money", "percent"]
Values = Sequence[Decimal | None]

TOP, HEIGHT = 10, 220
"""Pixels above the highest gridline, and from it to the lowest."""
LABELS_HEIGHT = 22
GAP = Decimal("0.28")
"""Share of a group's width that separates it from the next group."""
MAX_TICKS = 5
STEPS = (Decimal(1), Decimal(2), Decimal("2.5"), Decimal(5), Decimal(10))
MAX_LABELS = 13
"""Labels that fit below a chart; with more groups, only some are labelled."""
BAR, BAR_GAP, ROW_LABEL, ROW_GAP = 11, 3, 20, 14
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
    """The bars and points at a label; `description` names their values, `is_labelled` whether the label fits."""

    label: str
    x: Decimal
    width: Decimal
    middle: Decimal
    is_labelled: bool
    description: str
    boxes: list[Box]
    points: list[Point]


class Chart(NamedTuple):
    """Grouped bars and lines over labels."""

    title: str
    series: list[Series]
    groups: list[Group]
    ticks: list[Tick]
    base: int

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


class RowChart(NamedTuple):
    """Horizontal bars of subjects with names; `zero` is where bars begin."""

    title: str
    series: list[Series]
    rows: list[Row]
    zero: Decimal
    height: int
    target: str
    """The name of the targets; empty without any."""


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

    def y(self, value: Decimal) -> int:
        """Return the height of a value in pixels from the top of the drawing."""
        return TOP + int(((self.high - value) * HEIGHT / (self.high - self.low)).to_integral_value())


def column_chart(title: str, unit: Unit, labels: Sequence[str], series: list[Series]) -> Chart:
    """Return a chart of groups of bars beside each other, and of lines above them."""
    scale = scale_of([value for each in series for value in each.values if value is not None])
    bars = [each for each in series if each.pattern not in LINES]
    lines = [each for each in series if each.pattern in LINES]
    width = FULL / max(1, len(labels))
    every = -(-len(labels) // MAX_LABELS)
    groups = []
    for index, label in enumerate(labels):
        left = width * index
        groups.append(
            Group(
                label,
                left,
                width,
                left + width / 2,
                index % every == 0,
                description_of(series, index, unit),
                _columns(scale, bars, index, left, width),
                _points(scale, lines, index, width),
            )
        )
    ticks = [Tick(scale.y(value), compact(value, unit)) for value in _tick_values(scale)]
    return Chart(title, series, groups, ticks, scale.y(Decimal(0)))


def _columns(scale: Scale, bars: list[Series], index: int, left: Decimal, width: Decimal) -> list[Box]:
    bar_width = width * (1 - GAP) / max(1, len(bars))
    boxes = []
    for position, each in enumerate(bars):
        value = each.values[index]
        if value:
            top, bottom = sorted((scale.y(value), scale.y(Decimal(0))))
            x = left + width * GAP / 2 + bar_width * position
            boxes.append(Box(each.pattern, x, top, bar_width, max(1, bottom - top)))
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
    ends = [value for each in series for value in each.values if value is not None]
    ends += [subject.target for subject in subjects if subject.target is not None]
    low, high = min([*ends, Decimal(0)]), max([*ends, Decimal(0)])
    span = (high - low) or Decimal(1)
    zero = -low * FULL / span
    row_height = ROW_LABEL + len(series) * (BAR + BAR_GAP) + ROW_GAP
    rows = []
    for index, subject in enumerate(subjects):
        top = index * row_height
        boxes = []
        for position, each in enumerate(series):
            value = each.values[index]
            if value:
                width = abs(value) * FULL / span
                x = zero if value > 0 else zero - width
                boxes.append(Box(each.pattern, x, top + ROW_LABEL + position * (BAR + BAR_GAP), width, BAR))
        at = None if subject.target is None else (subject.target - low) * FULL / span
        rows.append(Row(subject.label, subject.note, top, description_of(series, index, unit), boxes, at))
    return RowChart(title, series, rows, zero, row_height * len(subjects), target)


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
    return f"{value:,f}" + ("%" if unit == "percent" else "")


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
