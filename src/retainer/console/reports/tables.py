"""Tables of reports: the same rows as a table of a page and as a CSV file."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Literal, NamedTuple, Protocol, TypeVar

from retainer.console.charts import Chart, RowChart
from retainer.console.words import MINUS
from retainer.reports.ratios import growth
from retainer.web.csv_files import Cell

Kind = Literal["text", "note", "money", "minutes", "percent", "count"]
UNITS: dict[Kind, str] = {"minutes": " (minutes)", "percent": " (%)"}
MINUTES = 60
MAX_GROWTH = 10
"""Growth above this is not given in percent."""
DASH = "\u2013"


class InCurrency(Protocol):
    """A row of a report with the currency of its amounts."""

    currency: str


R = TypeVar("R", bound=InCurrency)


class Label(NamedTuple):
    """A text that links to a page of the console."""

    text: str
    link: str


Value = Label | str | int | float | Decimal | None


class Column(NamedTuple):
    """A column: its heading, and the kind of its values; a page shows a note below the first cell of its row."""

    title: str
    kind: Kind = "text"


class ShownCell(NamedTuple):
    """A value as the page shows it."""

    text: str
    link: str
    is_number: bool


class Line(NamedTuple):
    """A row as the page shows it, with the note below its first cell."""

    cells: list[ShownCell]
    note: str


class ReportTable(NamedTuple):
    """Rows of values with their columns; `name` is that of the CSV file, `total` is the last row."""

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Value]]
    total: Sequence[Value] = ()

    @property
    def lines(self) -> list[Line]:
        """Return the rows of the page."""
        return [line_of(row, self.columns) for row in self.rows]

    @property
    def total_line(self) -> Line:
        """Return the last row of the page."""
        return line_of(self.total, self.columns)

    def header(self, currency: str) -> list[str]:
        """Return the headings of the CSV file, with the units of their values."""
        units = UNITS | {"money": f" ({currency})"}
        return [column.title + units.get(column.kind, "") for column in self.columns]

    def cells(self) -> list[list[Cell]]:
        """Return the rows of the CSV file; without the total, so that a sum over a column is right."""
        return [[cell_of(value) for value in row] for row in self.rows]


class Fact(NamedTuple):
    """A figure at the top of a report, a sentence about its value a year before, and how it has changed."""

    name: str
    text: str
    before: str
    change: str


class Report(NamedTuple):
    """What a report shows, in this order."""

    facts: list[Fact]
    charts: list[Chart | RowChart]
    tables: list[ReportTable]
    other_currencies: list[str]
    """Currencies with figures of their own, which these do not include."""
    note: str = ""


def line_of(row: Sequence[Value], columns: Sequence[Column]) -> Line:
    """Return a row of a page."""
    cells, note = [], ""
    for value, column in zip(row, columns, strict=True):
        if column.kind == "note":
            note = "" if value is None else shown(value, column.kind)
        else:
            link = value.link if isinstance(value, Label) else ""
            cells.append(ShownCell(shown(value, column.kind), link, column.kind != "text"))
    return Line(cells, note)


def cell_of(value: Value) -> Cell:
    """Return a value for a CSV file."""
    if isinstance(value, Label):
        return value.text
    return Decimal(str(value)) if isinstance(value, float) else value


def shown(value: Value, kind: Kind) -> str:
    """Return a value as people read it."""
    if value is None:
        return DASH
    if isinstance(value, Label | str):
        return value.text if isinstance(value, Label) else value
    if kind == "minutes":
        return hours(int(value))
    number = value if isinstance(value, int) else Decimal(str(value))
    if kind == "percent":
        return f"{Decimal(number).quantize(Decimal('0.1')):,f}%".replace("-", MINUS)
    return f"{number:,}".replace("-", MINUS)


def hours(minutes: int) -> str:
    """Return minutes as hours: `1,204:30`."""
    whole, rest = divmod(abs(minutes), MINUTES)
    return f"{MINUS if minutes < 0 else ''}{whole:,}:{rest:02}"


def in_currency(rows: Iterable[R], currency: str) -> list[R]:
    """Return the rows of a report that are in a currency."""
    return [row for row in rows if row.currency == currency]


def own_first(rows: Iterable[R], own: str) -> list[R]:
    """Return the rows of a report by currency, those in the account's own first."""
    return sorted(rows, key=lambda row: (row.currency != own, row.currency))


def decimal(value: float | Decimal | None) -> Decimal | None:
    """Return a figure of a report as a decimal."""
    return None if value is None else Decimal(str(value))


def fact(name: str, now: Value, before: Value, kind: Kind) -> Fact:
    """Return a figure, what it was a year before, and how it has changed."""
    if not isinstance(before, int | float | Decimal) or (kind != "percent" and not before):
        return Fact(name, shown(now, kind), "Nothing a year before", "")
    change = ""
    if isinstance(now, int | float | Decimal):
        change = change_of(Decimal(str(now)), Decimal(str(before)), kind)
    return Fact(name, shown(now, kind), f"{shown(before, kind)} a year before", change.replace("-", MINUS))


def change_of(now: Decimal, before: Decimal, kind: Kind) -> str:
    """Return a change: of percentages in points, of others in percent of what was, if that says something.

    A percentage of a negative figure has no meaning, and one of almost nothing would be a number of many digits.
    """
    if kind == "percent":
        return "unchanged" if now == before else f"{(now - before).quantize(Decimal('0.1')):+f} points"
    if before <= 0:
        return ""
    if now > MAX_GROWTH * before:
        return f"more than {MAX_GROWTH} times as much"
    return "unchanged" if now == before else f"{growth(now, before):+}%"
