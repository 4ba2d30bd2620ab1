"""Filters: conditions that query parameters put on the rows of a list."""

import operator
import re
from collections.abc import Callable, Collection
from decimal import Decimal
from types import NoneType
from typing import Any, NamedTuple, get_args, get_origin

from sqlalchemy import ColumnElement, Select, Table, or_

from retainer.store.row_mapper import comparable_amount
from retainer.values.collation import Fold, base_letters, printed_form
from retainer.values.kinds import UserId

FOUND = "Records that contain this text, ignoring case and accents, in {searched}"


class Where(NamedTuple):
    """A condition of a filter on the rows.

    `condition` builds it from the table and a placeholder: bound parameters for a comma list, or its words if the
    filter `is_literal`; the bool itself for a flag; one bound parameter otherwise. The placeholders of the filters
    `beside` it follow, None for one that was not sent. `value` converts each value before it is bound; `description`
    names the records that are returned.
    """

    condition: Callable[..., ColumnElement[bool]]
    value: Callable[[Any], Any] = lambda value: value
    description: str = ""
    is_small: bool = False
    """Whether few records pass: sorting them is faster than reading an index in the order of the list.

    Of a flag, only with true.
    """
    is_literal: bool = False
    """Whether the words of a comma list are part of the statement, for an index of the rows with some of them."""
    beside: tuple[str, ...] = ()
    """The other filters that the condition depends on."""


def default(name: str, hint: Any) -> Where:
    """Return the default filter: rows whose field has the value or, for a comma list, one of the values."""
    if get_origin(hint) is tuple:
        item = get_args(hint)[0]
        kinds = [part for part in get_args(item) if part is not NoneType] if NoneType in get_args(item) else [item]
        words = ["`none` finds records without one"] if item not in kinds else []
        words += ["`me` is the user of the key"] if UserId in kinds else []
        return one_of(name, f"Records whose `{name}` is one of these{'; ' * bool(words)}{', '.join(words)}.")
    description = f"With true, records whose `{name}` is true; with false, the others."
    description = description if hint is bool else f"Records whose `{name}` is exactly this."
    return Where(lambda table, value: table.c[name] == value, description=description)


def one_of(name: str, description: str = "", *, is_small: bool = False) -> Where:
    """Return a filter for one of the values of a comma list; `is_small` if few rows have the same value."""
    description = description or f"Records whose `{name}` is one of these."
    return Where(lambda table, values: table.c[name].in_(values), description=description, is_small=is_small)


def one_of_folded(*names: str, is_small: bool = False, fold: Fold = str.casefold) -> Where:
    description = f"Records whose {' or '.join(f'`{name}`' for name in names)} is one of these, ignoring case."
    return Where(
        lambda table, texts: or_(*(table.c[f"{name}_folded"].in_(texts) for name in names)), fold, description, is_small
    )


ONE_OF_NUMBERS, ONE_OF_CODES = (one_of_folded(name, fold=printed_form) for name in ("number", "code"))
"""The filters of records by what people and documents call them."""


class DefaultExclusion(NamedTuple):
    """The rows that a list excludes, unless it is requested with one of the filters `unless`."""

    rows: Callable[[Table], ColumnElement[bool]]
    unless: frozenset[str]
    total: Select[int]
    """The statement that counts the excluded rows, from a stored total if there may be many."""
    by_default: tuple[tuple[str, bool], ...] = ()
    """The filters that have the same effect in a list without filters."""

    def conditions(self, table: Table, filters: Collection[str]) -> list[ColumnElement[bool]]:
        return [self.rows(table).is_not(True)] if self.unless.isdisjoint(filters) else []


def _of_time(compare: Callable[[Any, Any], ColumnElement[bool]], which: str) -> Callable[[str], Where]:
    def filter_by(name: str) -> Where:
        limit = which.format("moment" if name.endswith("_at") else "day")
        description = f"Records whose `{name}` is {limit}."
        return Where(lambda table, value: compare(table.c[name], value), description=description)

    return filter_by


since, until = _of_time(operator.ge, "this {} or later"), _of_time(operator.le, "this {} or earlier")
before = _of_time(operator.lt, "earlier than this {}")


def at_least(name: str) -> Where:
    description = f"Records whose `{name}` is at least this amount, in any currency."
    return Where(lambda table, value: comparable_amount(table, name) >= value, scaled, description)


def at_most(name: str) -> Where:
    description = f"Records whose `{name}` is at most this amount, in any currency."
    return Where(lambda table, value: comparable_amount(table, name) <= value, scaled, description)


def truth(condition: Callable[[Table], ColumnElement[bool]], which: str) -> Where:
    """Return a filter for rows that meet a condition or, with false, do not; `which` names the former in the plural."""
    description = f"With true, {which}; with false, the others."
    return Where(
        lambda table, value: condition(table).is_(True) if value else condition(table).is_not(True),
        description=description,
    )


def scaled(value: Decimal) -> int:
    return int(value.scaleb(4))


def searched(q: str) -> str:
    """Return the base letters of a search text, with the wildcards of LIKE escaped."""
    return re.sub(r"([/%_])", r"/\1", base_letters(q))


SEARCH = Where(lambda table, q: table.c.search.contains(q, escape="/"), searched, f"{FOUND}.")
"""The filter for rows whose search text contains this text."""
