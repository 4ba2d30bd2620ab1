"""Files of clients, contacts and projects: each row as the fields of a body, before anything is written.

A cell that cannot be read becomes an error of its field, reported with those of the rules. A row that names the
same record as an earlier one is refused, because only one of them could be kept.
"""

import gettext
import re
from collections.abc import Callable
from functools import cache, partial
from zoneinfo import ZoneInfo

import msgspec
import pycountry

from retainer.errors import part
from retainer.exchange import tables
from retainer.exchange.columns import (
    CellForm,
    Cells,
    ColumnMapping,
    ImportSource,
    check_mapping,
    read_currency,
    read_source,
)
from retainer.exchange.plans import DescribedRow, ImportPlan, encode
from retainer.exchange.record_sources import CHOICES, FIELDS, WORDS, Records
from retainer.exchange.tables import TOO_LONG, BadCell, name_of
from retainer.exchange.time_files import NamedRecord
from retainer.values.collation import sort_key
from retainer.values.decoding import decoder

WHOLE = re.compile(r"\D*([0-9]{1,9})\D*")
MINUTES = 60
AT_CLIENT = ("first_name", "last_name")
"""The columns of a file of clients that make the row name a person there, who has its email address and phone, too."""


class RecordRow(msgspec.Struct, array_like=True, tag="row"):
    """A row of a file: the fields of its record, and the names of the records that it refers to."""

    line: int
    cells: list[str]
    table: str
    reason: str | None = None
    """Why it cannot be imported; then it has no fields."""
    name: str = ""
    fields: dict[str, str | int | bool] = {}
    unreadable: dict[str, str] = {}
    """The cells that cannot be read, by their fields, each with a sentence."""
    client: str | None = None
    manager: str | None = None
    person: dict[str, str] = {}
    """The fields of the contact that a row of a client also names."""

    @property
    def external_id(self) -> str | None:
        found = self.fields.get("external_id")
        return None if found is None else str(found)


Item = NamedRecord | RecordRow
"""A line of a plan: a client that rows name, or a row of the file."""
decode: Callable[[bytes | str], Item] = decoder(Item)  # type: ignore[arg-type]  # a union


def plan(records: Records, content: bytes, source: ImportSource, mapping: ColumnMapping, zone: ZoneInfo) -> ImportPlan:
    """Return what a file would import. Raises `validation_failed` for what the file as a whole leaves open."""
    check_mapping(mapping, source.columns)
    table = read_source(content, source, mapping, zone, FIELDS)
    lines: dict[tuple[str, ...], int] = {}
    rows = [_read_row(records.table, cells, table.form, lines) for cells in table.rows]
    named = dict.fromkeys(NamedRecord("client", row.client) for row in rows if row.client and row.reason is None)
    items: list[Item] = [*named, *rows]
    return ImportPlan(table.headings, encode(items), len(items), [])


def describe(line: bytes) -> DescribedRow | None:
    """Return a row of a plan as people read it; None for a client that rows name."""
    item = decode(line)
    if isinstance(item, NamedRecord):
        return None
    values = {"client": item.client or "", "manager": item.manager or "", **item.fields, **item.person}
    reasons = [item.reason] if item.reason else [*item.unreadable.values()]
    return DescribedRow(item.line, {name: str(value) for name, value in values.items() if value != ""}, reasons)


def _read_row(table: str, cells: Cells, form: CellForm, lines: dict[tuple[str, ...], int]) -> RecordRow:
    row = RecordRow(cells.row.line, cells.row.cells, table)
    if cells.row.is_too_long:
        row.reason = TOO_LONG
        return row
    for field in cells.places:
        if cells[field]:
            _read_cell(row, field, cells[field], form)
    if table == "clients":
        _take_person(row)
    _divide_address(row, cells)
    names = [row.fields.get(name, "") for name in ("first_name", "last_name", "email")]
    row.name = str(row.fields.get("name") or " ".join(str(each) for each in names[:2] if each) or names[2])
    key = (row.external_id,) if row.external_id else _identity(row)
    first = lines.setdefault(key, row.line)
    if first != row.line:
        row.reason = (
            f"Names the same record as line {first}. Correct one of them, or give each an {part('external_id')}."
        )
    return row


def _read_cell(row: RecordRow, field: str, text: str, form: CellForm) -> None:
    """Note what a cell says, as JSON would have it, or that it cannot be read."""
    target = "budget_minutes" if field == "budget_hours" else field
    try:
        if field == "client":
            row.client = name_of(text)
        elif field == "manager":
            row.manager = name_of(text)
        else:
            row.fields[target] = READERS[field](text, field, form) if field in READERS else name_of(text)
    except BadCell as error:
        row.unreadable[target] = str(error)


def _take_person(row: RecordRow) -> None:
    person = {name: str(row.fields.pop(name)) for name in AT_CLIENT if name in row.fields}
    if person:
        row.fields.setdefault("name", " ".join(person.values()))
        row.person = person | {name: str(row.fields[name]) for name in ("email", "phone") if name in row.fields}


def _divide_address(row: RecordRow, cells: Cells) -> None:
    """Divide an address of several lines, such as that of Harvest, into the two that there are."""
    lines = [name_of(line) for line in cells["address_line1"].splitlines() if line.strip()]
    if len(lines) > 1 and "address_line2" not in row.fields:
        row.fields |= {"address_line1": lines[0], "address_line2": ", ".join(lines[1:])}


def _identity(row: RecordRow) -> tuple[str, ...]:
    """Return what identifies a record without an id: its names, and those of its client and its person."""
    email = str(row.fields.get("email", "")) if row.table == "external_contacts" else row.person.get("email", "")
    names = (row.name, row.client or "", " ".join(row.person.get(each, "") for each in AT_CLIENT))
    return ("", *map(sort_key, names), email.casefold())


def _read_minutes(text: str, field: str, form: CellForm, *, factor: int = 1) -> int:
    """Return minutes, of a number of them or of hours. Raises BadCell."""
    if factor > 1 and ":" in text:
        return tables.read_seconds(text, form.marks[field]) // MINUTES
    return int((tables.read_decimal(text, form.marks[field]) * factor).to_integral_value("ROUND_HALF_UP"))


def _read_days(text: str, _: str, __: CellForm) -> int | str:
    """Return a number of days like `14`, `14 Tage` or `Net 30`; other text as it is, which the rules refuse."""
    found = WHOLE.fullmatch(text)
    return int(found[1]) if found else text


def _read_choice(text: str, _: str, __: CellForm) -> str:
    value = name_of(text).casefold().replace(" ", "_").replace("-", "_")
    return WORDS.get(value, value)


def _read_country(text: str, _: str, __: CellForm) -> str:
    """Return the code of a country, by its code or its name in English or German. Raises BadCell."""
    code = _countries().get(name_of(text).casefold())
    if code is None:
        raise BadCell(f"“{text}” is not a country. Write its code, like DE.")
    return code


@cache
def _countries() -> dict[str, str]:
    german = gettext.translation("iso3166-1", pycountry.LOCALES_DIR, languages=["de"]).gettext
    found: dict[str, str] = {}
    for country in pycountry.countries:
        names = (country.alpha_2, country.alpha_3, country.name, getattr(country, "common_name", country.name))
        for name in (*names, german(country.name), german(names[-1])):
            found.setdefault(name.casefold(), country.alpha_2)
    return found


READERS: dict[str, Callable[[str, str, CellForm], str | int | bool]] = {
    **dict.fromkeys(
        ("hourly_rate", "tax_rate", "fixed_fee", "retainer_amount", "budget_amount"),
        lambda text, field, form: format(tables.read_decimal(text, form.marks[field]), "f"),
    ),
    **dict.fromkeys(CHOICES, _read_choice),
    **dict.fromkeys(FIELDS.days, lambda text, _, form: tables.read_day(text, form.order).isoformat()),
    **dict.fromkeys(("notes", "description", "external_id"), lambda text, _, __: text),
    "budget_minutes": _read_minutes,
    "budget_hours": partial(_read_minutes, factor=MINUTES),
    "payment_terms_days": _read_days,
    "is_primary": lambda text, field, form: tables.read_truth(text, field, form.yes, form.no),
    "country": _read_country,
    "currency": lambda text, _, __: read_currency(text) or "",
}
"""How the cells of columns are read that are no plain text."""
