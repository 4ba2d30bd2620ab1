"""Records: convert rows of tables to records and back."""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from sqlalchemy import ColumnElement, Select, Table, bindparam, case, select, type_coerce

from retainer.store.engines.base import Row
from retainer.store.engines.sql import INTEGER, json_row
from retainer.values.decoding import decoder, lines_decoder
from retainer.values.exact import DIGITS, UNITS, minor_units
from retainer.values.records import WRITE_ONLY, Record, marked

Convert = Callable[[Any], Any]
MINOR = {currency: 10 ** (4 - digits) for currency, digits in DIGITS.items() if digits != 2}
BASE_FIELDS = frozenset(Record.__struct_fields__)
decode_row, decode_rows = decoder(list[Any]), lines_decoder(list[Any])
R = TypeVar("R", bound=Record)


class Derived(NamedTuple):
    """Marks a field that one expression over the record's table computes."""

    expression: Callable[[Table], ColumnElement[Any]]
    out: Convert | None = None
    """Converts a value. Null becomes false or 0 in a field that is never null."""
    money: bool = False  # whether it is in minor units of the record's currency


def derived_fields(model: type[msgspec.Struct]) -> dict[str, Derived]:
    return {name: mark for name, _, mark in marked(model, Derived)}


class RefersTo(NamedTuple):
    """Marks a field whose id, or list of ids, is that of a record, where no column of the row says so."""

    target: str
    is_template: bool = False
    """Whether the record is a template."""


def comparable_amount(table: Table, name: str) -> ColumnElement[int]:
    """Return an amount in ten-thousandths of a unit of its currency: 1000 JPY and 10.00 EUR have equal minor units."""
    return type_coerce(table.c[name] * case(MINOR, value=table.c.currency, else_=100), INTEGER)


class RowMapper:
    def __init__(self, table: Table, model: type[msgspec.Struct]) -> None:
        hints = get_type_hints(model, include_extras=True)
        derived = derived_fields(model)
        fields = [field.name for field in msgspec.structs.fields(model) if field.default is not WRITE_ONLY]
        stored = [name for name in fields if name in table.c and name not in BASE_FIELDS]
        self.model, self.table, self.kinds = model, table, get_type_hints(model)
        self.names = [name for name in stored if "maintained" not in table.c[name].info]
        self.columns: list[ColumnElement[Any]] = []
        self._into = [(name, table.c[name].info["into"]) for name in self.names if "into" in table.c[name].info]
        self._out: list[tuple[int, Convert, Callable[[], object] | None]] = []
        """Positions with their conversions, and what makes a value of null where the field has none."""
        self._stored = [(fields.index(name), name) for name in self.names]
        self._money = [name for name in self.names if table.c[name].info.get("money")]
        self._amounts: list[int] = []
        self._currency = fields.index("currency") if "currency" in fields else -1
        for position, name in enumerate(fields):
            if name in derived:
                self.columns.append(derived[name].expression(table).label(name))
                self._amounts += [position] if derived[name].money else []
                if (out := derived[name].out) is not None:
                    kind = self.kinds[name]
                    self._out.append((position, out, kind if kind in {bool, int} else None))
            else:
                self.columns.append(table.c[name])
                self._amounts += [position] if table.c[name].info.get("money") else []
                if "embedded" in table.c[name].info:
                    self._out.append((position, decoder(hints[name]), None))
                elif "out" in table.c[name].info:
                    self._out.append((position, table.c[name].info["out"], None))
        self.rows: Select[str] = select(json_row(*self.columns)).select_from(table)
        if "id" in table.c:
            self.one = self.rows.where(table.c.id == bindparam("id"))

    def read_all(self, rows: Iterable[Row]) -> list[Any]:
        return self.read_values(decode_row(row[0]) for row in rows)

    def read_values(self, rows: Iterable[list[Any]]) -> list[Any]:
        """Return the records of decoded rows, each with the values of `columns`."""
        model, out, amounts, currency, records = self.model, self._out, self._amounts, self._currency, []
        for values in rows:
            for position, convert, empty in out:
                if (value := values[position]) is not None:
                    values[position] = convert(value)
                elif empty is not None:
                    values[position] = empty()
            unit = UNITS.get(values[currency]) if amounts else None
            for position in amounts:
                if (value := values[position]) is not None:
                    values[position] = value * unit
            records.append(model(*values))
        return records

    def write(self, record: Record, note_error: Callable[[str, str], None]) -> dict[str, Any]:
        """Return the columns of a record, without maintained ones. Notes an error for too many digits of an amount."""
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

    def stored(self, row: Row) -> dict[str, Any]:
        """Return the columns that `write` returns of the record of a row of `rows`."""
        values = decode_row(row[0])
        return {name: values[position] for position, name in self._stored}

    def order(self, name: str) -> ColumnElement[Any]:
        """Return what a field sorts by: its folded text, its position in its enumeration, its amount, or its value."""
        if name in self._money:
            return comparable_amount(self.table, name)
        candidates = (self.table.c.get(f"{name}{end}") for end in ("_sort", "_folded", ""))
        column: Any = next((column for column in candidates if column is not None), None)
        if column is None:
            column = next(column for column in self.columns if column.name == name)
        kind = self.kinds[name]
        words = {word: position for position, word in enumerate(get_args(kind))} if get_origin(kind) is Literal else {}
        return case(words, value=getattr(column, "element", column)) if words else column


@cache
def folds(table: Table) -> dict[str, tuple[tuple[str, ...], Callable[[str], str]]]:
    """Return the folded columns of a table, their sources, and the function that folds them."""
    return {column.name: (column.info["folds"], column.info["fold"]) for column in table.c if "folds" in column.info}


@cache
def row_mapper(table: Table, model: type[msgspec.Struct]) -> RowMapper:
    """Return the mapper of a table and a type, created on first use, when every table is declared."""
    return RowMapper(table, model)
