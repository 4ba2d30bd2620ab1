"""Filters: how the text of a query parameter is read, and how it limits the rows of a list."""

import re
from collections.abc import Callable, Collection
from decimal import Decimal
from types import NoneType
from typing import Any, NamedTuple, get_args, get_origin

from sqlalchemy import ColumnElement, Table, func, select

from retainer.store.records import comparable_amount
from retainer.values.kinds import UserId

FOUND = "Records in which this text occurs, whatever the case: in {searched}"


class Where(NamedTuple):
    """How a filter limits the rows.

    `condition` makes it from the table and what stands for the value: bound parameters for a comma list, the bool
    itself for a flag, one bound parameter otherwise. `value` says what is bound for each value, `said` which records
    are found.
    """

    condition: Callable[[Table, Any], ColumnElement[bool]]
    value: Callable[[Any], Any] = lambda value: value
    said: str = ""


def default(name: str, hint: Any) -> Where:
    """The rows whose member has this value or, where the hint is that of a comma list, one of these values."""
    if get_origin(hint) is tuple:
        item = get_args(hint)[0]
        kinds = [part for part in get_args(item) if part is not NoneType] if NoneType in get_args(item) else [item]
        words = ["`none` finds those without"] if item not in kinds else []
        words += ["`me` is the key's user"] if UserId in kinds else []
        return one_of(name, f"Records whose `{name}` is one of these{'; ' * bool(words)}{', '.join(words)}.")
    said = f"With true, records whose `{name}` is true; with false, all others."
    said = said if hint is bool else f"Records whose `{name}` is exactly this."
    return Where(lambda table, value: table.c[name] == value, said=said)


def one_of(name: str, said: str = "") -> Where:
    """The rows whose member is one of a comma list."""
    return Where(
        lambda table, values: table.c[name].in_(values), said=said or f"Records whose `{name}` is one of these."
    )


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
    return Where(
        lambda table, value: table.c[name] >= value, said=f"Records whose `{name}` is this {_unit(name)} or later."
    )


def until(name: str) -> Where:
    """The rows whose member has this value or an earlier one."""
    said = f"Records whose `{name}` is this {_unit(name)} or earlier."
    return Where(lambda table, value: table.c[name] <= value, said=said)


def before(name: str) -> Where:
    """The rows whose member has an earlier value than this one."""
    said = f"Records whose `{name}` is earlier than this {_unit(name)}."
    return Where(lambda table, value: table.c[name] < value, said=said)


def at_least(name: str) -> Where:
    """The rows whose amount is this figure or a greater one, whatever the currency."""
    said = f"Records whose `{name}` is this figure or more, in whatever currency."
    return Where(lambda table, value: comparable_amount(table, name) >= value, scaled, said)


def at_most(name: str) -> Where:
    """The rows whose amount is this figure or a smaller one, whatever the currency."""
    said = f"Records whose `{name}` is this figure or less, in whatever currency."
    return Where(lambda table, value: comparable_amount(table, name) <= value, scaled, said)


def truth(condition: Callable[[Table], ColumnElement[bool]], which: str) -> Where:
    """The rows for which a condition is true, or, asked with false, is not; `which` says those in the plural."""
    said = f"With true, {which}; with false, all others."
    return Where(lambda table, yes: condition(table).is_(True) if yes else condition(table).is_not(True), said=said)


def _unit(name: str) -> str:
    return "moment" if name.endswith("_at") else "day"


def scaled(value: Decimal) -> int:
    """A figure as `figure` counts."""
    return int(value.scaleb(4))


def searched(q: str) -> str:
    """The text that a search looks for, without case; its percent signs and underscores stand for themselves."""
    return re.sub(r"([/%_])", r"/\1", q.casefold())


SEARCH = Where(lambda table, q: table.c.search.contains(q, escape="/"), searched, f"{FOUND}.")
"""The rows in whose text a word or a part of it occurs."""
