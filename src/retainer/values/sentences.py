"""Sentences about plain kinds of values: what one accepts, and what is wrong with a value."""

import difflib
import re
from decimal import Decimal
from typing import Any, Literal, get_args, get_origin

import msgspec

from retainer.errors import FALSE, about_pattern, part
from retainer.values.kinds import QUOTED

WHOLE = re.compile(r"-?[0-9]+")


def form_of(hint: Any, metas: tuple[Any, ...] = ()) -> str:
    """Return what a plain kind accepts, as the end of "Must be ..."."""
    meta = next((meta for meta in metas if isinstance(meta, msgspec.Meta)), msgspec.Meta())
    if get_origin(hint) is Literal:
        return f"one of: {part(', '.join(get_args(hint)))}"
    if hint is bool:
        return f"true or {FALSE}"
    if hint is int:
        return f"a whole number from {meta.ge} to {meta.le}"
    return f"text of {meta.min_length} to {meta.max_length} characters"


def hint_about(hint: object, value: object) -> str:
    """Return what is wrong with a value of a plain kind, as the end of "Must be ...; "; may be empty."""
    if isinstance(value, str):
        if get_origin(hint) is Literal and (advice := about_pattern(value, get_args(hint))):
            return advice
        near = difflib.get_close_matches(value.casefold()[:64], map(str, get_args(hint)), n=1, cutoff=0.75)
        looks_right = (hint is int and WHOLE.fullmatch(value)) or (hint is bool and value in {"true", "false"})
        return (
            f"did you mean {near[0]}?" if near else QUOTED if looks_right else f"this has {len(value)}." * (hint is str)
        )
    is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    return "this is a number. Put it in quotes." if hint is str and is_number else ""
