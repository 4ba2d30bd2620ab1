"""Records: what a row looks like outside the database, and how a row becomes one."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from sqlalchemy import ColumnElement, Select, Table, bindparam, case, select, type_coerce

from retainer.store.engines.sql import INTEGER, json_row
from retainer.values.exact import DIGITS, amount_of, minor_units
from retainer.values.records import WRITE_ONLY, DetailOnly, Record

Convert = Callable[[Any], Any]
MINOR = {currency: 10 ** (4 - digits) for currency, digits in DIGITS.items() if digits != 2}
BASE_FIELDS = frozenset(Record.__struct_fields__)
decode_row = msgspec.json.Decoder(list[Any]).decode
R = TypeVar("R", bound=Record)


class Derived(NamedTuple):
    """A member that is computed from other rows by one expression of the record's table."""

    expression: Callable[[Table], ColumnElement[Any]]
    out: Callable[[Any], Any] | None = None
    money: bool = False
    """In minor units of the record's currency."""


def split_ids(text: str | None) -> list[int]:
    """Return the ids of a comma list, sorted; none when there is no list."""
    return sorted(map(int, text.split(","))) if text else []


class RefersTo(NamedTuple):
    """A list of ids that must exist in a table of the account."""

    target: str


def comparable_amount(table: Table, name: str) -> ColumnElement[Any]:
    """An amount in ten-thousandths of its currency's unit: in minor units 1000 JPY and 10.00 EUR are the same."""
    return type_coerce(table.c[name] * case(MINOR, value=table.c.currency, else_=100), INTEGER)


class RowMapper:
    """How the rows of a table are read as one type of record, and how a record is written to them.

    `held` are the fields that the record itself holds; what others are derived from or kept up to date by is not.
    """

    def __init__(self, table: Table, model: type[Record]) -> None:
        hints = get_type_hints(model, include_extras=True)
        answered = [field for field in msgspec.structs.fields(model) if field.default is not WRITE_ONLY]
        fields = [field.name for field in answered]
        self.model, self.table, self.kinds = model, table, get_type_hints(model)
        self.columns: list[ColumnElement[Any]] = []
        stored = (name for name in fields if name in table.c and name not in BASE_FIELDS)
        self.names = [name for name in stored if "maintained" not in table.c[name].info]
        self.held = [*_held_fields(table, model, hints)]
        self._into = [(name, table.c[name].info["into"]) for name in self.names if "into" in table.c[name].info]
        self._out: list[tuple[int, Convert]] = []
        self._derived: list[tuple[int, Convert]] = []
        self._money = [name for name in self.names if table.c[name].info.get("money")]
        self._amounts: list[int] = []
        self._currency = fields.index("currency") if "currency" in fields else -1
        for position, name in enumerate(fields):
            marks = getattr(hints[name], "__metadata__", ())
            derived = next((mark for mark in marks if isinstance(mark, Derived)), None)
            if derived is None:
                self.columns.append(table.c[name])
                self._amounts += [position] if table.c[name].info.get("money") else []
                if "embedded" in table.c[name].info:
                    self._out.append((position, msgspec.json.Decoder(hints[name]).decode))
                elif "out" in table.c[name].info:
                    self._out.append((position, table.c[name].info["out"]))
            else:
                self.columns.append(derived.expression(table).label(name))
                self._amounts += [position] if derived.money else []
                if derived.out is not None:
                    self._derived.append((position, derived.out))
        self.rows: Select[Any] = select(json_row(*self.columns)).select_from(table)
        self.one = self.rows.where(table.c.id == bindparam("id"))

    def read(self, row: Sequence[Any]) -> Any:
        """A row of `rows` as a record."""
        values = decode_row(row[0])
        for position, convert in self._derived:
            values[position] = convert(values[position])
        for position, convert in self._out:
            if values[position] is not None:
                values[position] = convert(values[position])
        for position in self._amounts:
            if values[position] is not None:
                values[position] = amount_of(values[position], values[self._currency])
        return self.model(*values)

    def write(self, record: Record, note_error: Callable[[str, str], None]) -> dict[str, Any]:
        """The columns that a record's members fill, without sums that are kept.

        Amounts with too many digits are told to `note_error`.
        """
        values = {name: getattr(record, name) for name in self.names}
        for name, convert in self._into:
            if values[name] is not None:
                values[name] = convert(values[name])
        for name in self._money:
            try:
                values[name] = None if values[name] is None else minor_units(values[name], values["currency"])
            except ValueError as error:
                note_error(name, str(error))
        return values

    def order(self, name: str) -> Any:
        """What a member sorts by: its text without case, its place among its words, its figure, or its value."""
        known = (self.table.c.get(f"{name}{end}") for end in ("_sort", "_folded", ""))
        column: Any = next((column for column in known if column is not None), None)
        kind = self.kinds[name]
        if column is None:
            column = next(column for column in self.columns if column.name == name)
        if name in self._money:
            return comparable_amount(self.table, name)
        words = {word: place for place, word in enumerate(get_args(kind))} if get_origin(kind) is Literal else {}
        return case(words, value=getattr(column, "element", column)) if words else column


def _held_fields(table: Table, model: type[Record], hints: dict[str, object]) -> Iterator[str]:
    """Yield the fields that a record holds itself, its children included: no figure that follows from other rows."""
    for field in msgspec.structs.fields(model):
        marks = getattr(hints[field.name], "__metadata__", ())
        if field.default is WRITE_ONLY:
            is_held = any(isinstance(mark, DetailOnly) for mark in marks)
        elif any(isinstance(mark, Derived) for mark in marks):
            is_held = False
        else:
            is_held = "maintained" not in table.c[field.name].info
        if is_held:
            yield field.name


@cache
def folds(table: Table) -> dict[str, tuple[tuple[str, ...], Callable[[str], str]]]:
    """The folded columns of a table, what they fold, and how."""
    return {column.name: (column.info["folds"], column.info["fold"]) for column in table.c if "folds" in column.info}


@cache
def row_mapper(table: Table, model: type[Record]) -> RowMapper:
    """The view of a table as a type; made once, when every table is known."""
    return RowMapper(table, model)
