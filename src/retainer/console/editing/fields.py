"""The fields of forms, as the types of the API declare them: label, control, choices, default and hint."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import cache
from types import NoneType
from typing import get_args, get_type_hints

import msgspec
import pycountry
from iso4217 import Currency as IsoCurrency
from sqlalchemy import Table

from retainer.console.controls import days, plain
from retainer.console.controls.control import Control, Field, Options
from retainer.console.controls.records import Reference, References
from retainer.console.controls.rows import Rows
from retainer.console.editing.hints import hint_of
from retainer.console.labels import USUAL, field_label, word_of
from retainer.console.names import Only
from retainer.console.shapes import DeclaredType, declared, mark_of
from retainer.documents.wording import country_name
from retainer.store.constraints import reference_columns
from retainer.store.row_mapper import RefersTo
from retainer.store.tables import metadata
from retainer.values import kinds
from retainer.values.reading import WritableField, writable_fields
from retainer.values.records import DetailOnly, Record

UNITS = {"percent": "%", "days": "days", "seconds": "seconds"}
"""Units that the label of a field repeats."""
LINE_FIELDS = (
    *("description", "quantity", "unit", "unit_price", "discount_percent", "tax_rate", "project_id"),
    "is_optional",
)
"""The fields of a line of a document, in the order of the form; what bills work follows from the work."""
UNITS_OF_ACCOUNT = {"BOV", "CHE", "CHW", "CLF", "COU", "MXV", "USN", "UYI", "UYW", "XAD"}
"""Codes of ISO 4217 for funds. Metals, and codes for tests and for none, have no exponent there."""


@cache
def countries() -> tuple[tuple[str, str], ...]:
    named = ((country.alpha_2, country_name(country.alpha_2, "en")) for country in pycountry.countries)
    return tuple(sorted(named, key=lambda pair: pair[1]))


@cache
def currencies() -> tuple[tuple[str, str], ...]:
    """Return the codes and names of the currencies in which people pay, by code."""
    names = {currency.alpha_3: currency.name for currency in pycountry.currencies}
    codes = sorted({currency.code for currency in IsoCurrency if currency.exponent is not None} - UNITS_OF_ACCOUNT)
    return tuple((code, f"{code} · {names[code]}" if code in names else code) for code in codes)


CONTROLS: dict[str, Callable[[DeclaredType], Control]] = {
    "choice": lambda found: plain.Choice(options_of(found)),
    "color": lambda found: plain.Color(length=max_length(found)),
    "country": lambda _: plain.Choice(countries()),
    "currency": lambda _: plain.Currency(currencies()),
    "day": lambda _: days.Day(),
    "days": lambda _: plain.Whole("days"),
    "email": lambda found: Control(type="email", length=max_length(found)),
    "flag": lambda _: plain.Flag(),
    "long": lambda found: plain.LongText(length=max_length(found)),
    "minutes": lambda found: plain.Hours(*found.bounds),
    "moment": lambda _: days.DayAndTime(),
    "money": lambda _: plain.Amount(),
    "number": lambda _: plain.Number(),
    "percent": lambda _: plain.Number("%"),
    "phone": lambda found: Control(type="tel", length=max_length(found)),
    "seconds": lambda _: plain.Whole("seconds"),
    "text": lambda found: Control(length=max_length(found)),
    "url": lambda found: plain.Url(length=max_length(found)),
    "whole": lambda _: plain.Whole(),
}
"""The controls of values by their shape."""


@cache
def fields_of(model: type[msgspec.Struct], table: Table, use: str = "Create") -> tuple[Field, ...]:
    return tuple(_fields(model, table, use))


def choose_fields(model: type[msgspec.Struct], table: Table, *names: str, use: str = "Create") -> list[Field]:
    by_name = {field.name: field for field in fields_of(model, table, use)}
    return [by_name[name] for name in names]


def _fields(model: type[msgspec.Struct], table: Table, use: str) -> Iterator[Field]:
    hints = get_type_hints(model, include_extras=True)
    targets = dict(reference_columns(table))
    for name, written in writable_fields(model, use).items():
        found = declared(hints[written.name])
        mark = next((mark for mark in found.marks if isinstance(mark, RefersTo)), None)
        target = targets.get(name, metadata.tables[mark.target] if mark else None)
        part = next((mark for mark in found.marks if isinstance(mark, DetailOnly)), None)
        control = control_of(found, target, "template" if mark and mark.is_template else "open")
        if part is not None:
            control = rows_of(found, metadata.tables[part.table])
        if control is not None and name != "position":
            about = next((mark for mark in found.marks if isinstance(mark, str)), "")  # that of a record is for callers
            hint = hint_of(table.name, name, use) if issubclass(model, Record) else about
            yield _field(name, table, control, written, found, model)._replace(hint=hint)


def _field(
    name: str, table: Table, control: Control, written: WritableField, found: DeclaredType, model: type[msgspec.Struct]
) -> Field:
    label, unit, default = field_label(name, table), UNITS.get(found.shape, ""), written.default
    return Field(
        name,
        f"{label}, {unit}" if unit else label,
        control,
        is_required=written.required,
        is_filled_in=default is None and NoneType not in get_args(get_type_hints(model)[written.name]),
        default=default if isinstance(default, str | int | Decimal) and default != "" else None,
        usual=USUAL.get((table.name, name), ""),
    )


def rows_of(found: DeclaredType, table: Table) -> Control | None:
    """Return the control of the lines of a document; None for parts that no form sends."""
    (item,) = get_args(found.type)
    if not issubclass(item, Record):
        return None
    by_name = {field.name: field for field in fields_of(item, table, "Child")}
    return Rows(tuple(by_name[name] for name in LINE_FIELDS if name in by_name), max_length(found))


def max_length(found: DeclaredType) -> int:
    """Return the most characters of a text, or items of a list; 0 without a limit."""
    meta = (mark for mark in found.marks if isinstance(mark, msgspec.Meta))
    return next((mark.max_length for mark in meta if mark.max_length is not None), 0)


def control_of(found: DeclaredType, target: Table | None = None, only: Only = "open") -> Control | None:
    """Return the control of a value; None for what only programs send."""
    if found.shape == "list":
        item = declared(get_args(found.type)[0])
        if target is not None:
            return References(target, only)
        if item.shape == "choice":
            return plain.Choices(options_of(item))
        return plain.Numbers() if item.shape == "whole" else None
    if target is not None:
        return Reference(target, only)
    make = CONTROLS.get(found.shape)
    return None if make is None or mark_of(kinds.Id) in found.marks else make(found)


def options_of(found: DeclaredType) -> Options:
    return tuple((value, word_of(value)) for value in get_args(found.type))
