"""Query parameters: how their text is read, where numbers and flags have no type of their own."""

import re
from collections.abc import Callable
from types import NoneType
from typing import Any, get_args, get_origin

from retainer.errors import FieldErrors
from retainer.values.kinds import LARGEST_INTEGER
from retainer.values.reading import INVALID, reader, unwrapped

WHOLE = re.compile(r"[0-9]{1,16}")
LONGEST_LIST = 100
RANGES = {"_to": "_from", "_before": "_since", "_max": "_min"}
"""How the names of the two ends of a range end."""


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
        faults: FieldErrors = {}
        found = convert(value, "", faults)
        if found is INVALID:
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


def check_ranges(values: dict[str, Any], faults: FieldErrors) -> None:
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
