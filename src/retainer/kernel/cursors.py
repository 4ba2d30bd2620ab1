"""Cursors: the position after a record of a sorted list, stable while records are added or removed."""

from base64 import urlsafe_b64decode
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Annotated, NamedTuple
from zlib import crc32

import msgspec
from msgspec import Meta
from sqlalchemy import ColumnElement, and_, bindparam, false, or_, tuple_

from retainer.errors import invalid
from retainer.store.engines.sql import DAY, INSTANT
from retainer.store.row_mapper import RowMapper
from retainer.values.decoding import decoder
from retainer.values.kinds import MAX_INTEGER, read_day, read_instant

Sort = tuple[str, ...]
Whole = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
UNREADABLE = "Must be the cursor of a `links.next` of this list. Read the list from its first page to get one."
MISPLACED = "This cursor belongs to another list, page, order or filter. Send all parameters of its `links.next`."


class Cursor(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The position after a record of a list: the number of the page that begins there, and the record's sort keys."""

    list_id: str
    page: Annotated[int, Meta(ge=1, le=MAX_INTEGER)]
    sort: Sort
    values: tuple[Whole | str | None, ...]


decode = decoder(Cursor)


def list_id(path: str, filters: msgspec.Struct) -> str:
    """Return what distinguishes a list with some filters from others, however they are written in the query."""
    return f"{crc32(path.encode() + msgspec.json.encode(filters)):08x}"


class SortKey(NamedTuple):
    """A sort key of a list. Null is last in both directions."""

    column: ColumnElement[object]
    is_descending: bool
    is_nullable: bool


@lru_cache(maxsize=256)
def keys_of(records: RowMapper, sort: Sort) -> list[SortKey]:
    """Return the keys of an order, up to the id, which decides between records that are equal otherwise."""
    parts = (*sort, "-id" if sort[-1].startswith("-") else "id")
    names = [part.removeprefix("-") for part in parts]
    return [
        SortKey(column := records.order(name), part.startswith("-"), getattr(column, "nullable", True))
        for name, part in zip(names[: names.index("id") + 1], parts, strict=False)
    ]


def read_cursor(text: str) -> Cursor:
    try:
        return decode(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, msgspec.MsgspecError):
        raise ValueError(UNREADABLE) from None


def check_cursor(cursor: Cursor, keys: Sequence[SortKey]) -> None:
    """Raise `validation_failed` unless the cursor has a value for each key, of its type: databases refuse others."""
    if len(cursor.values) != len(keys) or not all(map(_is_of, cursor.values, keys)):
        raise invalid({"cursor": [UNREADABLE]})


def _is_of(value: int | str | None, key: SortKey) -> bool:
    kind = key.column.type
    if value is None or isinstance(value, int):
        return key.is_nullable if value is None else kind.python_type is int
    readers: dict[object, Callable[[str], str]] = {DAY: read_day, INSTANT: read_instant}
    try:
        return kind.python_type is str and "\0" not in value and readers.get(kind, str)(value) == value
    except ValueError:
        return False


def follows(keys: Sequence[SortKey], nulls: Sequence[bool]) -> ColumnElement[bool]:
    """Return the condition of the records after a cursor.

    Keys of one direction that cannot be null are compared as a row, which an index of them answers directly.
    """
    binds = [bindparam(f"cursor__{place}", type_=key.column.type) for place, key in enumerate(keys)]
    directions = {key.is_descending for key in keys}
    if len(directions) == 1 and not any(key.is_nullable for key in keys):
        found, limit = tuple_(*(key.column for key in keys)), tuple_(*binds)
        return found < limit if directions == {True} else found > limit
    condition: ColumnElement[bool] = false()
    for key, bind, is_null in reversed(list(zip(keys, binds, nulls, strict=True))):
        column = key.column
        if is_null:
            condition = and_(column.is_(None), condition)
        else:
            beyond = column < bind if key.is_descending else column > bind
            parts = [beyond, and_(column == bind, condition), *([column.is_(None)] if key.is_nullable else [])]
            condition = or_(*parts)
    return condition
