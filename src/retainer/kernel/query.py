"""Query parameters: what an operation declares, what a request sends, and the SQL conditions of a list's filters."""

import difflib
from collections.abc import Callable
from functools import cache
from types import NoneType
from typing import Annotated, Any, ClassVar, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

import msgspec
from sqlalchemy import ColumnElement, Table, bindparam, false, or_

from retainer.errors import FieldErrors, Refusal, invalid
from retainer.kernel.http import Request
from retainer.schema import filters
from retainer.schema.filters import DefaultExclusion, Where, since
from retainer.values.kinds import ME, Id, Instant, Text191
from retainer.values.parameters import MAX_LIST, from_text, validate_ranges

T = TypeVar("T")
OneOf = tuple[T, ...]
"""One of these: a comma list, or a parameter that is repeated."""
REPEATED = object()
"""Marks free text, whose commas are its own: several values are several parameters."""


class Query(msgspec.Struct):
    """The query parameters of an operation."""


class Filter(Query):
    """The filters that every list takes; lists add their own fields."""

    ids: Annotated[OneOf[Id] | None, filters.one_of("id", is_small=True)] = None
    q: Annotated[Text191 | None, filters.SEARCH] = None
    created_since: Annotated[Instant | None, since("created_at")] = None
    created_before: Annotated[Instant | None, filters.before("created_at")] = None
    updated_since: Annotated[Instant | None, since("updated_at")] = None
    updated_before: Annotated[Instant | None, filters.before("updated_at")] = None

    sorts: ClassVar[tuple[str, ...]] = ("id",)
    """The fields that a list can be sorted by; the first, with its sign, is the default."""
    default_exclusion: ClassVar[DefaultExclusion | None] = None


class Parameter(msgspec.Struct, frozen=True):
    """A query parameter: how its text is read, and, in a list, how it limits the rows."""

    field: str
    hint: Any
    read: Callable[[str], Any]
    where: Where
    description: str


@cache
def parameters(model: type[Query]) -> dict[str, Parameter]:
    """Return the query parameters of an operation by name."""
    hints = get_type_hints(model, include_extras=True)
    return {field.encode_name: _parameter(field.name, hints[field.name]) for field in msgspec.structs.fields(model)}


def _parameter(name: str, hint: Any) -> Parameter:
    marks = hint.__metadata__ if get_origin(hint) is Annotated else ()
    bare = hint.__origin__ if marks else hint
    inner = next((part for part in get_args(bare) if part is not NoneType), bare)
    where = next((mark for mark in marks if isinstance(mark, Where)), None)
    read = from_text(inner, split=REPEATED not in marks)
    description = " ".join(mark for mark in marks if isinstance(mark, str))
    return Parameter(name, inner, read, where or filters.default(name, inner), description)


def read_pairs(request: Request) -> list[tuple[str, str]]:
    """Return the query parameters as they were sent. Raises `bad_request` for a query that cannot be read."""
    try:
        return parse_qsl(request.query, keep_blank_values=True, errors="strict", max_num_fields=200)
    except ValueError:
        raise Refusal("bad_request", "The query string cannot be read: send at most 200 parameters in UTF-8.") from None


def read_values(pairs: list[tuple[str, str]], readers: dict[str, Callable[[str], Any]]) -> dict[str, Any]:
    """Return the values of parameters; every faulty one is named at once.

    Raises `unknown_parameter` if one is not known (a dropped filter returns the wrong records in silence),
    `validation_failed` otherwise.
    """
    errors: FieldErrors = {}
    values: dict[str, Any] = {}
    for name, text in pairs:
        if name not in readers:
            near = difflib.get_close_matches(name[:64], readers, n=1)
            meant = f" Did you mean {near[0]}?" if near else ""
            errors[name] = [f"Unknown parameter.{meant} Valid are: {', '.join(readers) or 'none'}."]
        elif name in values and not isinstance(values[name], tuple):
            errors.setdefault(name, ["Send this parameter once: it takes one value."])
        else:
            try:
                value = readers[name](text)
                values[name] = (*values.get(name, ()), *value) if isinstance(value, tuple) else value
            except ValueError as error:
                values[name] = None
                errors[name] = [str(error)]
            else:
                if isinstance(value, tuple) and len(values[name]) > MAX_LIST:
                    errors[name] = [f"Must be at most {MAX_LIST} values; these are {len(values[name])}."]
    validate_ranges(values, errors)
    if errors:
        raise invalid(errors, "unknown_parameter" if errors.keys() - readers.keys() else "validation_failed")
    return values


def read_query(request: Request, model: Any) -> Any:
    """Return the query of an operation that is no list."""
    if not request.query:
        return model()
    declared = parameters(model)
    values = read_values(read_pairs(request), {name: parameter.read for name, parameter in declared.items()})
    return model(**{declared[name].field: value for name, value in values.items()})


Signature = tuple[tuple[str, Any], ...]
"""Which filters a list has, without their values: one statement serves all requests of a signature."""


def signature_of(asked: Filter, me: int) -> tuple[Signature, dict[str, Any]]:
    """Return the signature of filters, and the values that its statement binds; `me` is the user whom that means."""
    signature: list[tuple[str, Any]] = []
    values: dict[str, Any] = {}
    for name, parameter in parameters(type(asked)).items():
        value, bound = getattr(asked, name), parameter.where.value
        if isinstance(value, tuple):
            items = [me if item is ME else bound(item) for item in value if item is not None]
            room = 1 << (len(items) - 1).bit_length() if items else 0  # few signatures: filled up to a power of two
            signature.append((name, (room, None in value)))
            items += items[-1:] * (room - len(items))
            values |= {f"{name}__{position}": item for position, item in enumerate(items)}
        elif isinstance(value, bool):
            signature.append((name, value))
        elif value is not None:
            signature.append((name, None))
            values[name] = bound(value)
    return tuple(signature), values


def conditions(table: Table, model: type[Filter], signature: Signature) -> list[ColumnElement[bool]]:
    """Return the SQL conditions of filters with this signature."""
    limits: list[Any] = model.default_exclusion.conditions(table, dict(signature)) if model.default_exclusion else []
    for name, form in signature:
        value: Any = form if isinstance(form, bool) else bindparam(name)
        room, or_none = form if isinstance(form, tuple) else (0, False)
        if room:
            value = [bindparam(f"{name}__{position}") for position in range(room)]
        condition = parameters(model)[name].where.condition(table, value) if room or not or_none else false()
        limits.append(or_(condition, table.c[name].is_(None)) if or_none else condition)
    return limits
