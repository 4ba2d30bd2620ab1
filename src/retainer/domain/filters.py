"""Filters: how a query parameter limits the rows of a list."""

import re
from collections.abc import Callable, Collection
from decimal import Decimal
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Table, func, or_, select

from retainer.store.records import figure
from retainer.store.tables import metadata


class Where(NamedTuple):
    """How a filter limits the rows, when it is not `column = value`.

    `condition` makes it from the table and what stands for the value: bound parameters for a comma list, the bool
    itself for a flag, one bound parameter otherwise. `value` says what is bound for each value.
    """

    condition: Callable[[Table, Any], ColumnElement[bool]]
    value: Callable[[Any], Any] = lambda value: value


class LeftOut(NamedTuple):
    """The rows that a list leaves out, unless it is asked for them by name: with one of some filters."""

    rows: Callable[[Table], ColumnElement[bool]]
    unless: frozenset[str]

    def conditions(self, table: Table, filters: Collection[str]) -> list[ColumnElement[bool]]:
        """What limits a list with these filters to the others."""
        return [self.rows(table).is_not(True)] if self.unless.isdisjoint(filters) else []

    def total(self, table: Table) -> ColumnElement[int]:
        """How many rows are left out."""
        return select(func.count()).select_from(table).where(self.rows(table)).scalar_subquery()


def since(name: str) -> Where:
    """The rows whose member has this value or a later one."""
    return Where(lambda table, value: table.c[name] >= value)


def until(name: str) -> Where:
    """The rows whose member has this value or an earlier one."""
    return Where(lambda table, value: table.c[name] <= value)


def at_least(name: str) -> Where:
    """The rows whose amount is this figure or a greater one, whatever the currency."""
    return Where(lambda table, value: figure(table, name) >= value, scaled)


def at_most(name: str) -> Where:
    """The rows whose amount is this figure or a smaller one, whatever the currency."""
    return Where(lambda table, value: figure(table, name) <= value, scaled)


def scaled(value: Decimal) -> int:
    """A figure as `figure` counts."""
    return int(value.scaleb(4))


def truth(condition: Callable[[Table], ColumnElement[bool]]) -> Where:
    """The rows for which a condition is true, or, asked with false, is not."""
    return Where(lambda table, yes: condition(table).is_(True) if yes else condition(table).is_not(True))


def searched(q: str) -> str:
    """The text that a search looks for, without case; its percent signs and underscores stand for themselves."""
    return re.sub(r"([/%_])", r"/\1", q.casefold())


def _with_client(table: Table, q: Any) -> ColumnElement[bool]:
    clients = metadata.tables["clients"]
    named = select(clients.c.id).where(clients.c.name_folded.contains(q, escape="/"))
    return or_(table.c.search.contains(q, escape="/"), table.c.client_id.in_(named))


SEARCH = Where(lambda table, q: table.c.search.contains(q, escape="/"), searched)
"""The rows in whose text a word or a part of it occurs."""
SEARCH_WITH_CLIENT = Where(_with_client, searched)
"""The same, or in whose client's name it occurs."""
