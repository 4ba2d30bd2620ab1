"""Columns: which field each column of a file of another program is, by its heading, and how its cells are read."""

from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from itertools import chain
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from retainer.errors import FieldErrors, invalid
from retainer.exchange import tables
from retainer.exchange.tables import NO, YES, BadCell, DayOrder, DecimalMark, FileRow, FileTable, heading_key, name_of
from retainer.values.decoding import decoder
from retainer.values.exact import DIGITS

IssuedState = Literal["draft", "open", "paid", "void"]
MAX_HEADINGS = 300
"""Characters of the headings that a message repeats."""
Ways = tuple[tuple[str, ...], ...]
"""Fields of which one group must be there, such as a duration, or a start with an end."""


class ImportSource(NamedTuple):
    """A program that people come from: the headings of each field, in the order in which they are preferred."""

    name: str
    title: str
    columns: Mapping[str, tuple[str, ...]]
    needs: tuple[str, ...]
    """The fields by which its files are recognised."""
    needs_one_of: tuple[Ways, ...] = ()
    """For each of these, a file must have all fields of one way."""


class ColumnMapping(msgspec.Struct, forbid_unknown_fields=True):
    """What a person says about a file: which column is what, and what the file itself leaves open.

    A field with a blank heading is left out.
    """

    columns: dict[str, str] = {}
    day_order: DayOrder | None = None
    decimal_mark: DecimalMark | None = None
    yes: list[str] = []
    no: list[str] = []
    currency: str | None = None
    """That of invoices without one in the file."""
    tax_rate: Decimal | None = None
    """In percent, that of the lines of invoices in a file without taxes."""
    paid_on: Literal["issue_date", "due_date"] | None = None
    """When invoices were paid whose day of payment is not in the file."""
    states: dict[str, IssuedState] = {}
    """What words for the state of an invoice mean."""


class CellFields(NamedTuple):
    """The fields of a kind of file whose cells have other forms in other files."""

    days: tuple[str, ...]
    numbers: tuple[str, ...]
    truths: tuple[str, ...] = ()
    amounts: tuple[str, ...] = ()
    """Those whose headings may name a currency."""


class CellForm(NamedTuple):
    """How the cells of a file are read, as all of its rows have decided."""

    order: DayOrder
    marks: dict[str, DecimalMark]
    yes: frozenset[str]
    no: frozenset[str]
    zone: ZoneInfo
    currency: str | None
    """The currency that the heading of the amounts names."""


class Cells:
    """The cells of a row by the field of their column; empty ones are blank."""

    def __init__(self, places: Mapping[str, int], row: FileRow) -> None:
        self.places, self.row = places, row

    def __getitem__(self, field: str) -> str:
        place = self.places.get(field)
        return "" if place is None else self.row.cells[place].strip()

    def __contains__(self, field: str) -> bool:
        return field in self.places


def read_mapping(content: bytes) -> ColumnMapping:
    """Return a mapping from JSON. Raises `validation_failed`."""
    try:
        return decoder(ColumnMapping)(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise invalid({"mapping": [f"{error}."]}) from None


def check_mapping(mapping: ColumnMapping, fields: Collection[str]) -> None:
    """Raise `validation_failed` if a mapping names a column for something else than these fields."""
    errors = FieldErrors()
    for name in mapping.columns:
        if name not in fields:
            errors.note_unknown(name, fields, "columns.")
    errors.raise_errors()


class SourceTable(NamedTuple):
    """A table of a source: its headings, its rows, and how their cells are read."""

    headings: list[str]
    rows: list[Cells]
    form: CellForm
    file: str = ""
    """Its name in a ZIP."""


def read_source(
    content: bytes, source: ImportSource, mapping: ColumnMapping, zone: ZoneInfo, fields: CellFields
) -> SourceTable:
    """Return the table of a file. Raises `validation_failed` if it has none, and for all that it leaves open."""
    return read_rows(require_rows(find_table(content, source, mapping)), source, mapping, zone, fields)


def require_rows(table: FileTable) -> FileTable:
    if not table.rows:
        raise invalid({"file": ["Has headings, but no rows. Export the data again, with the period that you need."]})
    return table


def find_table(content: bytes, source: ImportSource, mapping: ColumnMapping) -> FileTable:
    """Return the rows of a file. Raises `validation_failed` with what it lacks to be a file of the source."""
    text = tables.decode(content)
    table = tables.read_table(text, lambda cells: not _lacking(source, mapping, cells))
    if table is None:
        headings = tables.guess_headings(text)
        lacking = ", ".join(each.replace("_", " ") for each in _lacking(source, mapping, headings))
        begins = ", ".join(filter(str.strip, headings))[:MAX_HEADINGS]
        message = (
            f"Has no column for {lacking}. Its headings seem to be: {begins}. Name the columns that have other ones."
        )
        raise invalid({"file": [message]})
    return table


def read_rows(
    table: FileTable, source: ImportSource, mapping: ColumnMapping, zone: ZoneInfo, fields: CellFields
) -> SourceTable:
    """Return a table as its cells are read. Raises `validation_failed` for all that its rows leave open."""
    places = place_columns(source, mapping, table.headings)
    form = read_form(table, places, mapping, zone, fields)
    return SourceTable(table.headings, [Cells(places, row) for row in table.rows], form)


def _lacking(source: ImportSource, mapping: ColumnMapping, cells: list[str]) -> list[str]:
    """Return what headings lack to be those of a source, and those that a person has named."""
    found = place_columns(source, mapping, cells)
    named = [name for name, heading in mapping.columns.items() if heading]
    lacking = [name for name in dict.fromkeys((*source.needs, *named)) if name not in found]
    ways = (ways for ways in source.needs_one_of if not any(all(name in found for name in way) for way in ways))
    return lacking + [" or ".join(" and ".join(way) for way in each) for each in ways]


def place_columns(source: ImportSource, mapping: ColumnMapping, headings: list[str]) -> dict[str, int]:
    """Return the place of the column of each field; of several, the first."""
    places: dict[str, int] = {}
    for key in (lambda heading: name_of(heading).casefold(), heading_key):
        for place, heading in enumerate(headings):
            places.setdefault(key(heading), place)
    found: dict[str, int] = {}
    for name, names in source.columns.items():
        wanted = (name_of(mapping.columns[name]).casefold(),) if name in mapping.columns else names
        known = [places[each] for each in wanted if each in places]
        if known:
            found[name] = known[0]
    for name, heading in mapping.columns.items():
        if name not in found and name_of(heading).casefold() in places:
            found[name] = places[name_of(heading).casefold()]
    return found


def read_form(
    table: FileTable, places: Mapping[str, int], mapping: ColumnMapping, zone: ZoneInfo, fields: CellFields
) -> CellForm:
    """Return how the cells of a table are read. Raises `validation_failed` for all that its rows leave open."""
    errors = FieldErrors()

    def column(name: str) -> Iterator[str]:
        return (row.cells[places[name]] for row in table.rows)

    order, marks = mapping.day_order, dict[str, DecimalMark]()
    days = [name for name in fields.days if name in places]
    with errors.noting():
        order = order or tables.day_order(chain.from_iterable(map(column, days)), "".join(days[:1]))
    for name in fields.numbers:
        if name in places:
            with errors.noting():
                marks[name] = mapping.decimal_mark or tables.decimal_mark(column(name), name)
    also_yes, also_no = ({name_of(word).casefold() for word in words} for words in (mapping.yes, mapping.no))
    yes, no = YES.difference(mapping.no) | also_yes, NO | also_no
    for name in fields.truths:
        for word in dict.fromkeys(column(name)) if name in places else ():
            with errors.noting():
                tables.read_truth(word, name, yes, no)
    errors.raise_errors()
    headings = [table.headings[places[name]] for name in fields.amounts if name in places]
    currency = next(filter(None, map(tables.currency_in, headings)), None)
    return CellForm(order or "day_first", marks, yes, no, zone, currency)


def read_currency(cell: str) -> str | None:
    """Return the code of a currency like `EUR` or `Euro - EUR`. Raises BadCell for another text."""
    code = cell[-len("EUR") :].upper()
    if cell and code not in DIGITS:
        raise BadCell(f"“{cell}” is not a currency. Write its code, like EUR.")
    return code or None
