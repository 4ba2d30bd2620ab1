"""Records: what a row looks like outside the database, and how a row becomes one."""

from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeVar, get_type_hints

import msgspec
from sqlalchemy import Column, ColumnElement, Select, Table, bindparam, func, select

from retainer.store.columns import amount_of
from retainer.store.tables import metadata


class Default:
    """The default of a member that callers cannot or need not give."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


ro: Final[Any] = Default("ro")
"""Read-only: always answered; accepted in a body, so that a record can be sent back, and ignored."""

auto: Final[Any] = Default("auto")
"""Filled in by the server when it is left out or null; never null in an answer."""


class Record(msgspec.Struct, gc=False):
    """What every record answers: its id and when it was made and last changed."""

    id: int
    created_at: str
    updated_at: str


R = TypeVar("R", bound=Record)


class Derived:
    """A member that is computed from other rows by one expression of the record's table."""

    def __init__(
        self, expression: Callable[[Table], ColumnElement[Any]], out: Callable[[Any], Any] | None = None
    ) -> None:
        self.expression = expression
        self.out = out


class RefersTo:
    """A list of ids that must exist in a table of the account."""

    def __init__(self, target: str) -> None:
        self.target = target


def count_of(child: str, column: str) -> Derived:
    """How many rows of another table refer to the record."""

    def expression(table: Table) -> ColumnElement[Any]:
        rows = metadata.tables[child]
        return select(func.count()).select_from(rows).where(rows.c[column] == table.c.id).scalar_subquery()

    return Derived(expression)


class View:
    """How the rows of a table are read as one type of record."""

    def __init__(self, table: Table, shape: type[Record]) -> None:
        hints = get_type_hints(shape, include_extras=True)
        self.table = table
        self.columns: list[ColumnElement[Any]] = []
        self.shape = shape
        self._converters: list[tuple[int, Callable[[Any], Any]]] = []
        self._amounts: list[int] = []
        for position, name in enumerate(shape.__struct_fields__):
            column = table.c.get(name)
            if isinstance(column, Column):
                self.columns.append(column)
                out = column.info.get("out")
                if column.info.get("money"):
                    self._amounts.append(position)
            else:
                derived = next(m for m in hints[name].__metadata__ if isinstance(m, Derived))
                self.columns.append(derived.expression(table).label(name))
                out = derived.out
            if out is not None:
                self._converters.append((position, out))
        fields = shape.__struct_fields__
        self._currency = fields.index("currency") if self._amounts else -1
        self.rows: Select[Any] = select(*self.columns).select_from(table)
        self.one = self.rows.where(table.c.id == bindparam("id"))
        self.locked = self.one.with_for_update(of=table)

    def read(self, row: tuple[Any, ...]) -> Any:
        """A row of `columns` as a record."""
        values = list(row)
        for position, convert in self._converters:
            if values[position] is not None:
                values[position] = convert(values[position])
        for position in self._amounts:
            if values[position] is not None:
                values[position] = amount_of(values[position], values[self._currency])
        return self.shape(*values)


@cache
def view(table: Table, shape: type[Record]) -> View:
    """The view of a table as a type; made once, when every table is known."""
    return View(table, shape)
