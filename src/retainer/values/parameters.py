"""Query parameters: parsing of their text, which has no types for numbers and flags."""

import re
from collections.abc import Callable
from types import NoneType
from typing import Any, get_args, get_origin

from retainer.errors import FieldErrors
from retainer.values.kinds import LARGEST_INTEGER
from retainer.values.reading import INVALID, reader, unwrapped

WHOLE = re.compile(r"[0-9]{1,16}")
INTEGER = re.compile(r"-?[0-9]{1,100}")
LONGEST_LIST = 100
RANGES = {"_to": "_from", "_before": "_since", "_max": "_min"}
"""The suffix of the end of a range, and that of its start."""


def read_whole(text: str) -> int | None:
    """Return the whole number that a text is in plain digits, as far as JSON clients count; None for any other text."""
    number = int(text) if WHOLE.fullmatch(text) else None
    return number if number is not None and number <= LARGEST_INTEGER else None


def from_text(hint: Any, *, split: bool = True) -> Callable[[str], Any]:
    """Return the parser of a type hint for text, which has no types for numbers and flags.

    A tuple is a comma list, unless `split` is false; the word `none` stands for null. The parser raises ValueError,
    whose message says what is accepted.
    """
    if get_origin(hint) is tuple:
        read_one = from_text(get_args(hint)[0])

        def read_list(text: str) -> Any:
            parts = text.split(",") if split else [text]
            if len(parts) > LONGEST_LIST:
                raise ValueError(f"Must be a comma list of at most {LONGEST_LIST} values; this has {len(parts)}.")
            return tuple(read_one(part.strip()) for part in parts)

        return read_list
    if NoneType in get_args(hint):
        (inner,) = (part for part in get_args(hint) if part is not NoneType)
        return _or_none(from_text(inner))
    bare, convert = unwrapped(hint)[0], reader(hint, "Query")

    def read(text: str) -> Any:
        raw: Any = text
        if bare is bool:
            raw = {"true": True, "false": False}.get(text, text)
        elif bare is int and INTEGER.fullmatch(text):
            raw = int(text)
        errors: FieldErrors = {}
        value = convert(raw, "", errors)
        if value is INVALID:
            raise ValueError(errors[""][0])
        return value

    return read


def _or_none(read: Callable[[str], Any]) -> Callable[[str], Any]:
    def read_or_none(text: str) -> Any:
        try:
            return None if text == "none" else read(text)
        except ValueError as error:
            raise ValueError(f"{str(error).removesuffix('.')}, or none.") from None

    return read_or_none


def check_ranges(values: dict[str, Any], errors: FieldErrors) -> None:
    """Add an error for each range whose end lies before its start (contract 1.6)."""
    for end_name, end in values.items():
        for end_suffix, start_suffix in RANGES.items():
            start_name = end_name.removesuffix(end_suffix) + start_suffix
            start = values.get(start_name) if end_name.endswith(end_suffix) else None
            if start is not None and end is not None and end < start:
                relation = "be less than" if end_suffix == "_max" else "lie before"
                errors[end_name] = [f"Must not {relation} {start_name}, which is {start}."]


def read_number(text: str, largest: int = LARGEST_INTEGER) -> int:
    """Parse the number of a page or of the records on it. Raises ValueError, whose message says what is accepted."""
    number = read_whole(text)
    if number is None or not 1 <= number <= largest:
        raise ValueError(f"Must be a whole number from 1 to {largest}.")
    return number


def read_sort(names: list[str], text: str) -> tuple[str, ...]:
    """Parse the order of a list. Raises ValueError, whose message says what is accepted."""
    parts = tuple(part.strip() for part in text.split(","))
    if len(parts) > len(names) + 1 or any(part.removeprefix("-") not in {*names, "id"} for part in parts):
        raise ValueError(f"Must be a comma list of: {', '.join(names)}, id; a minus sign before a name descends.")
    return parts
