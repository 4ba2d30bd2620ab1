"""Streams: all records or rows of an account in a table, in chunks, so that any number fits into memory."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
from sqlalchemy import Select, Table, bindparam, select

from retainer.store.details import load_details
from retainer.store.engines.base import Row
from retainer.store.row_mapper import R, row_mapper
from retainer.store.tx import Tx
from retainer.values.records import Record

RECORDS = 50
"""Records that are read at once with their lines, payments and replies: an invoice has up to 200 lines."""
ROWS = 1000


class UnreadableStream(Exception):
    """A stored value is not one that a record can have."""


def stream_records(tx: Tx, table: Table, model: type[R], last: int = 0) -> Iterator[R]:
    """Yield the records of a table after an id as the API returns them one by one, in the order of their ids."""
    while rows := tx.all(_records(table, model), after=last, size=RECORDS):
        try:
            records = row_mapper(table, model).read_all(rows)
            load_details(tx, table, records)
        except (ArithmeticError, ValueError, TypeError, msgspec.MsgspecError) as error:
            raise UnreadableStream(
                f"One of the next {RECORDS} {table.name} after {last} cannot be read: {error!r}."
            ) from error
        yield from records
        last = records[-1].id


def stream_rows(tx: Tx, table: Table, *names: str, size: int = ROWS) -> Iterator[Row]:
    """Yield the id and these columns of each row of a table, in the order of the ids."""
    last = 0
    while rows := tx.all(_rows(table, names), after=last, size=size):
        yield from rows
        last = rows[-1][0]


@cache
def _records(table: Table, model: type[Record]) -> Select[Any]:
    rows = row_mapper(table, model).rows
    return rows.where(table.c.id > bindparam("after")).order_by(table.c.id).limit(bindparam("size"))


@cache
def _rows(table: Table, names: tuple[str, ...]) -> Select[Any]:
    rows = select(table.c.id, *(table.c[name] for name in names)).where(table.c.id > bindparam("after"))
    return rows.order_by(table.c.id).limit(bindparam("size"))
