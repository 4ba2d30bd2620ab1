"""Filters: how the text of a query parameter is read, and how it limits the rows of a list."""

import re
from collections.abc import Callable, Collection
from decimal import Decimal
from types import NoneType
from typing import Any, NamedTuple, get_args, get_origin

from sqlalchemy import ColumnElement, Table, func, or_, select

from retainer.domain.members import FAULTY, reader, unwrapped
from retainer.domain.values import LARGEST_INTEGER, UserId
from retainer.errors import Faults
from retainer.store.records import figure
from retainer.store.tables import metadata

WHOLE = re.compile(r"[0-9]{1,16}")
LONGEST_LIST = 100
RANGES = {"_to": "_from", "_before": "_since", "_max": "_min"}
"""How the names of the two ends of a range end."""
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


def usual(name: str, hint: Any) -> Where:
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
    return Where(lambda table, value: figure(table, name) >= value, scaled, said)


def at_most(name: str) -> Where:
    """The rows whose amount is this figure or a smaller one, whatever the currency."""
    said = f"Records whose `{name}` is this figure or less, in whatever currency."
    return Where(lambda table, value: figure(table, name) <= value, scaled, said)


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


def _with_client(table: Table, q: Any) -> ColumnElement[bool]:
    clients = metadata.tables["clients"]
    named = select(clients.c.id).where(clients.c.name_folded.contains(q, escape="/"))
    return or_(table.c.search.contains(q, escape="/"), table.c.client_id.in_(named))


SEARCH = Where(lambda table, q: table.c.search.contains(q, escape="/"), searched, f"{FOUND}.")
"""The rows in whose text a word or a part of it occurs."""
SEARCH_WITH_CLIENT = Where(_with_client, searched, f"{FOUND}, or in the client's name.")
"""The same, or in whose client's name it occurs."""


def from_text(hint: Any, *, split: bool = True) -> Callable[[str], Any]:
    """How a value of a declared kind is read from text, where numbers and flags have no type of their own.

    A tuple is a comma list, unless its text is not to be split; the word `none` stands for null. What is returned
    raises ValueError with the sentence that says what is taken.
    """
    if get_origin(hint) is tuple:
        read_one = from_text(get_args(hint)[0])

        def read_list(given: str) -> Any:
            parts = given.split(",") if split else [given]
            if len(parts) > LONGEST_LIST:
                raise ValueError(f"Must be a comma list of at most {LONGEST_LIST} values; this has {len(parts)}.")
            return tuple(read_one(part.strip()) for part in parts)

        return read_list
    if NoneType in get_args(hint):
        (inner,) = (part for part in get_args(hint) if part is not NoneType)
        return _or_none(from_text(inner))
    bare, convert = unwrapped(hint)[0], reader(hint)

    def read(given: str) -> Any:
        value: Any = given
        if bare is bool:
            value = {"true": True, "false": False}.get(given, given)
        elif bare is int and WHOLE.fullmatch(given):
            value = int(given)
        faults: Faults = {}
        found = convert(value, "", faults)
        if found is FAULTY:
            raise ValueError(faults[""][0])
        return found

    return read


def _or_none(read: Callable[[str], Any]) -> Callable[[str], Any]:
    def read_or_none(given: str) -> Any:
        try:
            return None if given == "none" else read(given)
        except ValueError as fault:
            raise ValueError(f"{str(fault).removesuffix('.')}, or none.") from None

    return read_or_none


def check_ranges(values: dict[str, Any], faults: Faults) -> None:
    """Note a fault for each range whose end lies before its start (contract 1.6)."""
    for end_name, end in values.items():
        for end_suffix, start_suffix in RANGES.items():
            start_name = end_name.removesuffix(end_suffix) + start_suffix
            start = values.get(start_name) if end_name.endswith(end_suffix) else None
            if start is not None and end is not None and end < start:
                relation = "be less than" if end_suffix == "_max" else "lie before"
                faults[end_name] = [f"Must not {relation} {start_name}, which is {start}."]


def read_number(given: str, largest: int = LARGEST_INTEGER) -> int:
    """Read the number of a page, or of the records on it. Raises ValueError with what is taken."""
    if not WHOLE.fullmatch(given) or not 1 <= int(given) <= largest:
        raise ValueError(f"Must be a whole number from 1 to {largest}.")
    return int(given)


def read_sort(names: list[str], given: str) -> tuple[str, ...]:
    """Read the order of a list. Raises ValueError with what is taken."""
    parts = tuple(part.strip() for part in given.split(","))
    if len(parts) > len(names) + 1 or any(part.removeprefix("-") not in {*names, "id"} for part in parts):
        raise ValueError(f"Must be a comma list of: {', '.join(names)}, id; a minus sign before a name descends.")
    return parts
