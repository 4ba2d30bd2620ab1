"""Tables of reports: the same rows as a table of a page and as a CSV file."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Literal, NamedTuple, Protocol, TypeVar

from retainer.console.charts import Chart, RowChart
from retainer.values.exact import half_up
from retainer.web.csv_files import Cell

Kind = Literal["text", "money", "minutes", "percent", "count"]
UNITS: dict[Kind, str] = {"minutes": " (minutes)", "percent": " (%)"}
MINUTES = 60
MINUS, DASH = "\u2212", "\u2013"


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
    """A column: its heading, and the kind of its values."""

    title: str
    kind: Kind = "text"


class ReportTable(NamedTuple):
    """Rows of values with their columns; `name` is that of the CSV file, `total` is the last row."""

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Value]]
    total: Sequence[Value] = ()

    def header(self, currency: str) -> list[str]:
        """Return the headings of the CSV file, with the units of their values."""
        units = UNITS | {"money": f" ({currency})"}
        return [column.title + units.get(column.kind, "") for column in self.columns]

    def cells(self) -> list[list[Cell]]:
        """Return the rows of the CSV file; without the total, so that a sum over a column is right."""
        return [[cell_of(value) for value in row] for row in self.rows]


class Fact(NamedTuple):
    """A figure at the top of a report, its value a year before, and how it has changed."""

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


def decimal(value: float | Decimal | None) -> Decimal | None:
    """Return a figure of a report as a decimal."""
    return None if value is None else Decimal(str(value))


def fact(name: str, now: Value, before: Value, kind: Kind) -> Fact:
    """Return a figure with its change: in percent of what it was, percentages in percentage points."""
    is_known = isinstance(now, int | float | Decimal) and isinstance(before, int | float | Decimal)
    change = ""
    if is_known and kind == "percent":
        points = Decimal(str(now)) - Decimal(str(before))
        change = f"{points.quantize(Decimal('0.1')):+f} points"
    elif is_known and (then := Decimal(str(before))) > 0:
        digits = Decimal(10) ** 6
        change = f"{half_up(int(100 * (Decimal(str(now)) - then) * digits), int(then * digits)):+}%"
    return Fact(name, shown(now, kind), shown(before, kind), change.replace("-", MINUS))
