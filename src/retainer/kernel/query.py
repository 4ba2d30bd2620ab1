"""Query parameters: their declarations, their values, and the SQL conditions of filters."""

from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType
from typing import Annotated, Any, ClassVar, TypeVar, get_args, get_type_hints
from urllib.parse import parse_qsl, urlencode

import msgspec
from sqlalchemy import ColumnElement, Table, bindparam, false, or_

from retainer.errors import FieldErrors, Refusal, invalid
from retainer.kernel.http import Request
from retainer.schema import filters
from retainer.schema.filters import DefaultExclusion, Where, since
from retainer.values.kinds import ME, Id, Instant, Searched
from retainer.values.parameters import MAX_LIST, from_text, validate_ranges
from retainer.values.reading import unwrapped

T = TypeVar("T")
Q = TypeVar("Q", bound="Query")
OneOf = tuple[T, ...]
"""Several values: a comma-separated list, or a repeated parameter."""
REPEATED = object()
"""Marks free text, which may contain commas: several values need a repeated parameter."""


class Query(msgspec.Struct, omit_defaults=True):
    """The query parameters of an operation."""

    for_files: ClassVar[tuple[str, ...]] = ()
    """The parameters that only other forms than JSON have."""
    without: ClassVar[frozenset[str]] = frozenset()
    """The parameters of the class above that these do not have."""


class Filter(Query):
    """The filters of every list; lists add their own fields."""

    ids: Annotated[OneOf[Id] | None, filters.one_of("id", is_small=True)] = None
    q: Annotated[Searched | None, filters.SEARCH] = None
    created_since: Annotated[Instant | None, since("created_at")] = None
    created_before: Annotated[Instant | None, filters.before("created_at")] = None
    updated_since: Annotated[Instant | None, since("updated_at")] = None
    updated_before: Annotated[Instant | None, filters.before("updated_at")] = None

    sorts: ClassVar[tuple[str, ...]] = ("id",)
    """The fields by which a list can be sorted; the first, with its sign, is the default."""
    default_exclusion: ClassVar[DefaultExclusion | None] = None


class Parameter(msgspec.Struct, frozen=True):
    """A query parameter: its parser, and its condition if it is a filter."""

    field: str
    hint: Any
    read: Callable[[str], object]
    where: Where
    description: str


@cache
def parameters(model: type[Query]) -> dict[str, Parameter]:
    hints, found = get_type_hints(model, include_extras=True), {}
    for field in msgspec.structs.fields(model):
        if field.name in model.without:
            continue
        bare, marks = unwrapped(hints[field.name])
        inner = next((part for part in get_args(bare) if part is not NoneType), bare)
        where = next((mark for mark in marks if isinstance(mark, Where)), None) or filters.default(field.name, inner)
        read = from_text(inner, split=REPEATED not in marks)
        description = " ".join(mark for mark in marks if isinstance(mark, str))
        found[field.encode_name] = Parameter(field.name, inner, read, where, description)
    return found


def read_pairs(request: Request) -> list[tuple[str, str]]:
    """Return the query parameters as they were sent. Raises `bad_request` for an unreadable query."""
    if not request.query:
        return []
    try:
        return parse_qsl(request.query, keep_blank_values=True, errors="strict", max_num_fields=200)
    except ValueError:
        raise Refusal("bad_request", "The query string cannot be read: send at most 200 parameters in UTF-8.") from None


def others_of(pairs: list[tuple[str, str]], *names: str) -> str:
    """Return all parameters but some, as they were sent, so that these can follow them."""
    others = urlencode([pair for pair in pairs if pair[0] not in names])
    return f"{others}&" if others else ""


Readers = Mapping[str, Callable[[str], object]]
"""The parsers of parameters by name."""


def read_query(pairs: list[tuple[str, str]], model: type[Q], others: Readers) -> tuple[Q, dict[str, Any]]:
    """Return the query of an operation, and the values of its `others`.

    Raises one refusal for all invalid parameters: `unknown_parameter` if one is unknown (ignoring a misspelt filter
    would return the wrong records), else `validation_failed`.
    """
    if not pairs:
        return model(), {}
    declared = parameters(model)
    readers = {**others, **{name: parameter.read for name, parameter in declared.items()}}
    errors = FieldErrors()
    values: dict[str, Any] = {}
    for name, text in pairs:
        if name not in readers:
            if name not in errors:
                errors.note_unknown(name, readers, is_parameter=True)
        elif name in values and not isinstance(values[name], tuple):
            errors.setdefault(name, ["Send this parameter only once: it has a single value."])
        else:
            try:
                value = readers[name](text)
                values[name] = (*values.get(name, ()), *value) if isinstance(value, tuple) else value
            except ValueError as error:
                values[name] = None
                errors.note(name, str(error))
            else:
                if isinstance(value, tuple) and len(values[name]) > MAX_LIST:
                    errors[name] = [f"Must be at most {MAX_LIST} values; these are {len(values[name])}."]
    validate_ranges(values, errors)
    if errors:
        raise invalid(errors, "unknown_parameter" if errors.keys() - readers.keys() else "validation_failed")
    found = {name: values.pop(name) for name in others if name in values}
    return model(**{declared[name].field: value for name, value in values.items()}), found


FilterShape = bool | tuple[int, bool] | frozenset[str] | None
"""What of a filter is part of the SQL text; its other values are bound.

A flag itself; of a comma list, the number of values, and whether null is among them; the words of a filter that
`is_literal`; None for a single value.
"""
FilterShapes = tuple[tuple[str, FilterShape], ...]
"""The filters of a request without their values: requests with the same shapes share a statement."""


def shapes_of(asked: Filter, me: int) -> tuple[FilterShapes, dict[str, Any]]:
    """Return the shapes of filters, and the values to bind; `me` is the id of the calling user."""
    shapes: list[tuple[str, FilterShape]] = []
    values: dict[str, Any] = {}
    for name, parameter in parameters(type(asked)).items():
        value = getattr(asked, name)
        if value is None:
            continue
        bound = parameter.where.value
        if isinstance(value, bool):
            shapes.append((name, value))
        elif not isinstance(value, tuple):
            shapes.append((name, None))
            values[name] = bound(value)
        elif parameter.where.is_literal and value:
            shapes.append((name, frozenset(value)))
        else:
            items = [me if item is ME else bound(item) for item in value if item is not None]
            shapes.append((name, (len(items), None in value)))
            values |= {f"{name}__{position}": item for position, item in enumerate(items)}
    return tuple(shapes), values


def conditions(table: Table, model: type[Filter], shapes: FilterShapes) -> list[ColumnElement[bool]]:
    limits = model.default_exclusion.conditions(table, dict(shapes)) if model.default_exclusion else []
    sent: dict[str, object] = {}  # what a condition is built from: bound parameters, or what is part of the SQL text
    for name, shape in shapes:
        if isinstance(shape, tuple):
            sent[name] = [bindparam(f"{name}__{position}") for position in range(shape[0])]
        else:
            sent[name] = bindparam(name) if shape is None else shape
    for name, shape in shapes:
        where = parameters(model)[name].where
        condition = where.condition(table, sent[name], *map(sent.get, where.beside)) if sent[name] != [] else false()
        is_or_null = isinstance(shape, tuple) and shape[1]
        limits.append(or_(condition, table.c[name].is_(None)) if is_or_null else condition)
    return limits
