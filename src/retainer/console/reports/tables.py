"""Cells and tables of reports, shown on a page and written to a CSV file, and changes since a year before."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Literal, NamedTuple

from retainer.console.words import MINUS
from retainer.values.exact import half_up

Format = Literal["text", "note", "money", "minutes", "percent", "count"]
MINUTES = 60
MAX_GROWTH = 10
"""Growth above this is not given in percent."""
DASH = "\u2013"
"""What stands for a figure that does not exist; a sum of nothing is 0."""


Value = str | int | Decimal | None


class Cell(NamedTuple):
    """A value, how it is shown, and the page that it links to; a note is shown below the first cell of its row."""

    value: Value
    format: Format = "text"
    link: str = ""

    @property
    def text(self) -> str:
        return shown(self.value, self.format)

    @property
    def is_loss(self) -> bool:
        return self.format in {"money", "percent"} and isinstance(self.value, int | Decimal) and self.value < 0


class ShownTable(NamedTuple):
    """Rows of cells, with the titles and formats of their columns; `total` is the last row of the page."""

    title: str
    columns: Sequence[tuple[str, Format]]
    rows: Sequence[Sequence[Cell]]
    total: Sequence[Cell] = ()


class Fact(NamedTuple):
    """A figure at the top of a report, a sentence about its value a year before, and how it has changed."""

    name: str
    text: str
    before: str = ""
    change: str = ""


def unit_of(form: Format, currency: str) -> str:
    """Return the unit of a format, as it follows the heading of a CSV file: ` (minutes)`."""
    return {"minutes": " (minutes)", "percent": " (%)", "money": f" ({currency})"}.get(form, "")


def shown(value: Value, form: Format) -> str:
    """Return a value as people read it."""
    if value is None:
        return DASH
    if isinstance(value, str):
        return value
    if form == "minutes":
        return hours(int(value))
    if form == "percent":
        return f"{Decimal(value).quantize(Decimal('0.1')):,f}%".replace("-", MINUS)
    return f"{value:,}".replace("-", MINUS)


def hours(minutes: int) -> str:
    """Return minutes as hours: `1,204:30`."""
    whole, rest = divmod(abs(minutes), MINUTES)
    return f"{MINUS if minutes < 0 else ''}{whole:,}:{rest:02}"


def decimal(value: float | Decimal | None) -> Decimal | None:
    return None if value is None else Decimal(str(value))


def own_first(rows: Iterable[Any], own: str) -> list[Any]:
    """Return the rows of a report by currency, those in the account's own first."""
    return sorted(rows, key=lambda row: (row.currency != own, row.currency))


def fact(name: str, now: Value, before: Value, form: Format) -> Fact:
    """Return a figure, what it was a year before, and how it has changed."""
    if not isinstance(before, int | Decimal) or (form != "percent" and not before):
        return Fact(name, shown(now, form), "No data a year ago")
    change = ""
    if isinstance(now, int | Decimal):
        change = change_of(Decimal(now), Decimal(before), form)
    return Fact(name, shown(now, form), f"{shown(before, form)} a year ago", change.replace("-", MINUS))


def change_of(now: Decimal, before: Decimal, form: Format) -> str:
    """Return a change: of percentages in points, of others in percent of what was, if that says something.

    A percentage of a negative figure has no meaning, and one of almost nothing would be a number of many digits.
    """
    if form == "percent":
        return "unchanged" if now == before else f"{(now - before).quantize(Decimal('0.1')):+f} points"
    if before <= 0:
        return ""
    if now > MAX_GROWTH * before:
        return f"more than {MAX_GROWTH} times as much"
    (change, whole), base = (now - before).as_integer_ratio(), before.as_integer_ratio()
    return "unchanged" if now == before else f"{half_up(100 * change * base[1], whole * base[0]):+}%"
