"""Shapes: what each field of a record is to people, as its type declares it; forms, lists and pages follow from it."""

from decimal import Decimal
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

from retainer.values import kinds
from retainer.values.common import Color, DiscountPercent, Unit
from retainer.values.records import Record
from retainer.values.texts import Characters

SHAPES: tuple[tuple[object, str], ...] = (
    (kinds.Day, "day"),
    (kinds.Instant, "moment"),
    (kinds.Money, "money"),
    (kinds.SignedMoney, "money"),
    (kinds.UnitPrice, "money"),
    (kinds.Percent, "percent"),
    (kinds.Markup, "percent"),
    (DiscountPercent, "percent"),
    (kinds.Email, "email"),
    (kinds.Url, "url"),
    (kinds.SiteUrl, "url"),
    (kinds.Country, "country"),
    (kinds.Currency, "currency"),
    (Color, "color"),
)
"""The kinds of values that have a shape of their own."""
PLAIN = {bool: "flag", int: "whole", Decimal: "number", str: "text"}
LONG = 255
"""Characters beyond which a text has several lines."""


class DeclaredType(NamedTuple):
    """A field as its type declares it: the plain type without null, and its annotations."""

    type: object
    marks: list[object]

    @property
    def shape(self) -> str:
        """Return the unit of a number, the kind of a text, `choice`, `list`, or the plain type; else an empty text."""
        unit = next((mark.name for mark in self.marks if isinstance(mark, Unit)), None)
        own = unit or next((shape for kind, shape in SHAPES if mark_of(kind) in self.marks), None)
        if own is not None:
            return own
        if get_origin(self.type) in {Literal, list}:
            return "choice" if get_origin(self.type) is Literal else "list"
        plain = PLAIN.get(self.type, "") if isinstance(self.type, type) else ""
        length = next((mark.max_length or 0 for mark in self.marks if isinstance(mark, msgspec.Meta)), 0)
        has_lines = length > LONG and not any(isinstance(mark, Characters) for mark in self.marks)
        return "long" if plain == "text" and has_lines else plain

    @property
    def bounds(self) -> tuple[int, int]:
        marks = [mark for mark in self.marks if isinstance(mark, msgspec.Meta)]
        low = next((mark.ge for mark in marks if mark.ge is not None), 0)
        return int(low), int(next((mark.le for mark in marks if mark.le is not None), kinds.MAX_INTEGER))


def declared(hint: object) -> DeclaredType:
    """Return what a type says, or that of the items of a filter with several values."""
    marks: list[object] = []
    while True:
        if get_origin(hint) is tuple:
            hint = get_args(hint)[0]
        elif get_origin(hint) is Annotated:
            hint, *found = get_args(hint)
            marks += found
        elif get_origin(hint) in {Union, UnionType} and NoneType in get_args(hint):
            hint = next(part for part in get_args(hint) if part is not NoneType)
        else:
            return DeclaredType(hint, marks)


@cache
def shapes_of(model: type[msgspec.Struct]) -> dict[str, str]:
    shapes = {name: declared(hint).shape for name, hint in get_type_hints(model, include_extras=True).items()}
    return shapes | ({"created_at": "moment", "updated_at": "moment"} if issubclass(model, Record) else {})


@cache
def choices_of(model: type[msgspec.Struct]) -> dict[str, tuple[str, ...]]:
    """Return the words of the fields that have one or several of them."""
    hints = {name: declared(hint).type for name, hint in get_type_hints(model, include_extras=True).items()}
    found = {name: declared(*get_args(each)).type if get_origin(each) is list else each for name, each in hints.items()}
    return {name: get_args(each) for name, each in found.items() if get_origin(each) is Literal}


def mark_of(kind: object) -> object:
    mark: object = getattr(kind, "__metadata__", (None,))[0]
    return mark
