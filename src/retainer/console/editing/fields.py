"""The fields of forms, as the types of the API declare them: label, control, choices, default and hint."""

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec
import pycountry
from sqlalchemy import Table

from retainer.console.labels import field_label, in_words, word_of
from retainer.console.typed import number_text
from retainer.store.constraints import reference_columns
from retainer.store.row_mapper import RefersTo
from retainer.store.tables import metadata
from retainer.values import kinds
from retainer.values.common import Color
from retainer.values.exact import DIGITS
from retainer.values.reading import WritableField, writable_fields
from retainer.values.records import DetailOnly, Record
from retainer.values.texts import Characters

Shape = str
"""The control of a field: one of the values of SHAPES, or what `shape_of` adds to them."""
SHAPES: tuple[tuple[object, Shape], ...] = (
    (kinds.Day, "day"),
    (kinds.Instant, "moment"),
    (kinds.Money, "money"),
    (kinds.SignedMoney, "money"),
    (kinds.UnitPrice, "money"),
    (kinds.Percent, "percent"),
    (kinds.Markup, "percent"),
    (kinds.Email, "email"),
    (kinds.Url, "url"),
    (kinds.SiteUrl, "url"),
    (kinds.Country, "choice"),
    (kinds.Currency, "choice"),
    (Color, "color"),
)
"""The kinds of values that have a control of their own."""
UNITS = ("days", "seconds")
"""Units with which names of the API end, and which a label repeats."""
LONG = 255
"""Characters beyond which a text has a field of several lines."""
LINE_FIELDS = ("description", "quantity", "unit", "unit_price", "discount_percent", "tax_rate", "project_id")
"""The fields of a line of a document, in the order of the form; what bills work follows from the work."""
HELPFUL = re.compile(
    r"[Bb]lank|[Oo]nly for|[Nn]ot before|[Uu]nique|[Oo]ne of|never|instead|seconds|Limit|Monthly|negative"
)
"""What marks the sentences that help a person to fill in a field; the others explain records to programs."""
OF_PROGRAMS = re.compile(r"your own system|is deleted|reports count|`q`")
REWORDED = (
    (re.compile(r"\b([Nn]ull|[Oo]mitted):"), "If blank:"),
    (re.compile(r"\bDefault:"), "If blank:"),
    (re.compile(r"\bNull\b"), "Blank"),
    (re.compile(r"\bnull\b"), "blank"),
)
"""Terms of the API, and what people read instead."""
RARE = frozenset(
    {
        *("external_id", "tax_exemption_reason", "registration_number", "early_payment_discount_percent", "region"),
        *("early_payment_discount_days", "address_line2", "is_template", "expected_status", "keyword", "receipt_url"),
        *("check_interval_seconds", "maintenance_until", "reimbursable", "markup_percent", "started_at", "ended_at"),
        *("parent_id", "milestone_id", "requester_name", "requester_email", "payment_terms_days"),
    }
)
"""Fields that a form shows under "More fields"."""
WITHOUT = {
    "invoices": ("status", "quote_id"),
    "projects": ("quote_id",),
    "quotes": ("accepted_by", "decline_reason"),
    "sites": ("wp_version", "wp_update_version", "php_version"),
}
"""The fields of tables that an action sets, or that the site itself reports; a link can preset them."""


class Field(NamedTuple):
    """A field of a form; `default` is the text of a new record, `columns` are the fields of each row."""

    name: str
    label: str
    shape: Shape
    hint: str = ""
    is_required: bool = False
    is_filled_in: bool = False
    """Whether the server fills it in if it is blank."""
    default: str = ""
    options: tuple[tuple[str, str], ...] = ()
    low: int = 0
    high: int = 0
    length: int = 0
    target: Table | None = None
    columns: tuple["Field", ...] = ()


@cache
def fields_of(model: type[msgspec.Struct], table: Table, use: str = "Create") -> tuple[Field, ...]:
    """Return the fields that a form of a type offers, in the order of their declaration."""
    return tuple(_fields(model, table, use))


def choose_fields(model: type[msgspec.Struct], table: Table, *names: str, use: str = "Create") -> list[Field]:
    """Return these fields of a type, in this order, for the form of an action."""
    by_name = {field.name: field for field in fields_of(model, table, use)}
    return [by_name[name] for name in names]


def _fields(model: type[msgspec.Struct], table: Table, use: str) -> Iterator[Field]:
    hints = get_type_hints(model, include_extras=True)
    targets = dict(reference_columns(table))
    for name, declared in writable_fields(model, use).items():
        bare, metas = flattened(hints[declared.name])
        target = next((metadata.tables[mark.target] for mark in metas if isinstance(mark, RefersTo)), None)
        field = Field(name, field_label(name), "text", target=targets.get(name, target))
        part = next((mark for mark in metas if isinstance(mark, DetailOnly)), None)
        if part is not None:
            (item,) = get_args(bare)
            if issubclass(item, Record):
                by_name = {each.name: each for each in fields_of(item, metadata.tables[part.table], "Child")}
                columns = tuple(by_name[each] for each in LINE_FIELDS)
                yield field._replace(shape="rows", columns=columns)
            continue
        shape = shape_of(name, bare, metas, field.target)
        if shape is not None and name != "position":
            yield _completed(field._replace(shape=shape), declared, bare, metas, model)


def _completed(
    field: Field, declared: WritableField, bare: object, metas: list[object], model: type[msgspec.Struct]
) -> Field:
    """Return a field with what its declaration says about its values."""
    meta = [mark for mark in metas if isinstance(mark, msgspec.Meta)]
    description = next((mark for mark in metas if isinstance(mark, str)), "")
    unit = "%" if field.shape == "percent" else next((each for each in UNITS if field.name.endswith(f"_{each}")), "")
    low, high = bounds_of(metas)
    filled_in = declared.default is None and NoneType not in get_args(get_type_hints(model)[declared.name])
    return field._replace(
        label=f"{field.label}, {unit}" if unit else field.label,
        hint=hint_of(description, model),
        is_required=declared.required,
        is_filled_in=filled_in,
        default=default_text(declared.default),
        options=options_of(bare, metas),
        low=low,
        high=high,
        length=next((mark.max_length for mark in meta if mark.max_length is not None), 0),
    )


def flattened(hint: object) -> tuple[object, list[object]]:
    """Return a plain type without null, and all that its declaration says."""
    metas: list[object] = []
    while True:
        if get_origin(hint) is Annotated:
            hint, *found = get_args(hint)
            metas += found
        elif get_origin(hint) in {Union, UnionType} and NoneType in get_args(hint):
            hint = next(part for part in get_args(hint) if part is not NoneType)
        else:
            return hint, metas


def bounds_of(metas: list[object]) -> tuple[int, int]:
    """Return the lowest and the highest number of a declaration."""
    meta = [mark for mark in metas if isinstance(mark, msgspec.Meta)]
    low = next((mark.ge for mark in meta if mark.ge is not None), 0)
    return int(low), int(next((mark.le for mark in meta if mark.le is not None), kinds.MAX_INTEGER))


def mark_of(kind: object) -> object:
    mark: object = getattr(kind, "__metadata__", (None,))[0]
    return mark


def shape_of(name: str, bare: object, metas: list[object], target: Table | None) -> Shape | None:
    """Return the control of a field; None for what only programs send."""
    own = next((shape for kind, shape in SHAPES if mark_of(kind) in metas), None)
    if own is not None or bare is bool:
        return own or "flag"
    if get_origin(bare) is Literal:
        return "choice"
    if get_origin(bare) is list:
        item, _ = flattened(get_args(bare)[0])
        return None if item is not int else "numbers" if target is None else "references"
    if bare is int:
        if name.endswith("_id"):
            return None if target is None else "reference"
        return "hours" if name.endswith("_minutes") else "whole"
    if bare is Decimal:
        return "percent" if name.endswith("_percent") else "number"
    if bare is str:
        length = next((mark.max_length or 0 for mark in metas if isinstance(mark, msgspec.Meta)), 0)
        has_lines = not any(isinstance(mark, Characters) for mark in metas) and length > LONG
        return "long" if has_lines else "text"
    return None


def options_of(bare: object, metas: list[object]) -> tuple[tuple[str, str], ...]:
    """Return the values of a choice with their labels."""
    if get_origin(bare) is Literal:
        return tuple((value, word_of(value)) for value in get_args(bare))
    return next((named() for kind, named in NAMED if mark_of(kind) in metas), ())


@cache
def countries() -> tuple[tuple[str, str], ...]:
    """Return the codes and names of countries, by name."""
    named = ((country.alpha_2, getattr(country, "common_name", country.name)) for country in pycountry.countries)
    return tuple(sorted(named, key=lambda pair: pair[1]))


@cache
def currencies() -> tuple[tuple[str, str], ...]:
    """Return the codes and names of currencies, the euro first, the others by code."""
    names = {currency.alpha_3: currency.name for currency in pycountry.currencies}
    codes = ("EUR", *sorted(DIGITS.keys() - {"EUR"}))
    return tuple((code, f"{code} · {names[code]}" if code in names else code) for code in codes)


NAMED: tuple[tuple[object, Callable[[], tuple[tuple[str, str], ...]]], ...] = (
    (kinds.Country, countries),
    (kinds.Currency, currencies),
)
"""The kinds of codes that have names."""


def default_text(value: object) -> str:
    """Return the default of a field as its text; empty if the server fills it in."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Decimal):
        return number_text(value, "en")
    return str(value) if isinstance(value, str | int) else ""


def hint_of(description: str, model: type[msgspec.Struct]) -> str:
    """Return what a form says about a field: its description without what helps programs alone."""
    for term, reworded in REWORDED:
        description = term.sub(reworded, description)
    sentences = re.split(r"(?<=[.;])\s+(?=[A-Z])", description)
    kept = [each for each in sentences if HELPFUL.search(each) and not OF_PROGRAMS.search(each)]
    text = in_words(" ".join(kept).rstrip(";"), model.__struct_encode_fields__)
    return text[:1].upper() + text[1:]
