"""Query parameters: parsers of their text."""

import re
from collections.abc import Callable
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from retainer.errors import MAX_SUGGESTIONS, FieldErrors, marked, none_of, part, shown
from retainer.values.kinds import MAX_INTEGER
from retainer.values.reading import INVALID, reader, unwrapped

WHOLE = re.compile(r"[0-9]{1,16}")
INTEGER = re.compile(r"-?[0-9]{1,100}")
MAX_LIST = 100
RANGES = {"_to": "_from", "_before": "_since", "_max": "_min"}
"""The suffix of the end of a range, and that of its start."""


def read_whole(text: str) -> int | None:
    """Return the whole number that a text holds in plain digits, up to MAX_INTEGER; None for any other text."""
    number = int(text) if WHOLE.fullmatch(text) else None
    return number if number is not None and number <= MAX_INTEGER else None


def from_text(hint: Any, *, split: bool = True) -> Callable[[str], object]:
    """Return the parser of text for a type hint.

    A tuple is a comma-separated list, unless `split` is false; the word `none` means null. The parser raises
    ValueError with a message that says what is accepted.
    """
    if get_origin(hint) is tuple:
        read_one = from_text(get_args(hint)[0])

        def read_list(text: str) -> object:
            parts = text.split(",") if split else [text]
            if len(parts) > MAX_LIST:
                raise ValueError(f"Must be a comma-separated list of at most {MAX_LIST} values; this has {len(parts)}.")
            entries = [part.strip() for part in parts]
            return (read_one(*entries),) if len(entries) == 1 else _read_entries(read_one, get_args(hint)[0], entries)

        return read_list
    if NoneType in get_args(hint):
        (inner,) = (part for part in get_args(hint) if part is not NoneType)
        return _or_none(from_text(inner))
    bare, convert = unwrapped(hint)[0], reader(hint, "Query")

    def read(text: str) -> object:
        raw: object = text
        if bare is bool:
            raw = {"true": True, "false": False}.get(text, text)
        elif bare is int and INTEGER.fullmatch(text):
            raw = int(text)
        errors = FieldErrors()
        value = convert(raw, "", errors)
        if value is INVALID:
            raise ValueError(marked(errors[""][0]))
        return value

    return read


def words_of(hint: Any) -> tuple[str, ...]:
    """Return the words that a kind of value accepts; empty if it accepts others, too."""
    bare, metas = unwrapped(hint)
    if get_origin(bare) is Literal:
        return get_args(bare)
    schemas = [getattr(meta, "extra_json_schema", None) or {} for meta in metas]
    return next((tuple(schema["enum"]) for schema in schemas if "enum" in schema), ())


def _read_entries(read_one: Callable[[str], object], hint: Any, entries: list[str]) -> tuple[object, ...]:
    """Return the values of a list. Raises ValueError with all entries that are wrong."""
    values, wrong = list[object](), dict[str, str]()
    for entry in entries:
        try:
            values.append(read_one(entry))
        except ValueError as error:
            wrong.setdefault(entry, str(error))
    if not wrong:
        return tuple(values)
    is_optional = NoneType in get_args(hint)
    inner = next((each for each in get_args(hint) if each is not NoneType), hint) if is_optional else hint
    if words := words_of(inner):
        none = " Or send none." * is_optional
        raise ValueError(f"Must be one of: {part(', '.join(words))}. {none_of(wrong, words)}{none}")
    named = ", ".join(shown(entry) or "the empty one" for entry in [*wrong][:MAX_SUGGESTIONS])
    raise ValueError(f"{next(iter(wrong.values()))} Correct {named}.")


def _or_none(read: Callable[[str], object]) -> Callable[[str], object]:
    def read_or_none(text: str) -> object:
        try:
            return None if text == "none" else read(text)
        except ValueError as error:
            raise ValueError(f"{error} Or send none.") from None

    return read_or_none


def validate_ranges(values: dict[str, Any], errors: FieldErrors) -> None:
    """Note an error for each range whose end is before its start."""
    for end_name, end in values.items():
        for end_suffix, start_suffix in RANGES.items():
            start_name = end_name.removesuffix(end_suffix) + start_suffix
            start = values.get(start_name) if end_name.endswith(end_suffix) else None
            if start is not None and end is not None and end < start:
                relation = "be less than" if end_suffix == "_max" else "be before"
                errors.note(end_name, f"Must not {relation} {part(start_name)}, which is {part(start)}.")


def read_number(text: str, maximum: int = MAX_INTEGER) -> int:
    number = read_whole(text)
    if number is None or not 1 <= number <= maximum:
        raise ValueError(f"Must be a whole number from 1 to {maximum}.")
    return number


def read_sort(names: list[str], text: str) -> tuple[str, ...]:
    parts, known = tuple(part.strip() for part in text.split(",")), [*names, "id"]
    sent = [part.removeprefix("-") for part in parts]
    is_known = set(sent) <= set(known)
    if len(parts) > len(known) or not is_known:
        message = f"Must be a comma-separated list of: {', '.join(known)}; a minus sign sorts descending."
        raise ValueError(message if is_known else f"{message} {none_of(sent, known)}")
    return parts
