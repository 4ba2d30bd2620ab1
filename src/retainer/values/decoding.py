"""Decoding: functions that read JSON as a type, safe for concurrent first use.

msgspec describes a struct when it is first read, and shows the description to other threads before it is complete. A
thread that reads by an incomplete description ends the whole process (StructInfo_Convert in msgspec's _core.c, 0.22).
Here one thread at a time describes a type, and nobody reads by it before.
"""

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from retainer.errors import as_text

T = TypeVar("T")
_describing = threading.Lock()


def decoder(kind: type[T]) -> Callable[[bytes | str], T]:
    """Return the function that reads JSON as a type. It raises `msgspec.DecodeError`."""
    with _describing:
        return msgspec.json.Decoder(kind).decode


def lines_decoder(kind: type[T]) -> Callable[[bytes | str], list[T]]:
    """Return the function that reads each line of a text as a type. It raises `msgspec.DecodeError`."""
    with _describing:
        return msgspec.json.Decoder(kind).decode_lines


def json_text(value: object) -> str:
    return msgspec.json.encode(value, enc_hook=as_text).decode()


def converter(kind: object) -> Callable[[object], object]:
    """Return the function that reads a value of decoded JSON as a kind. It raises `msgspec.ValidationError`."""
    holder: Any = msgspec.defstruct("Holder", [("value", kind)], array_like=True)  # msgspec keeps structs, not kinds
    decoder(holder)
    return lambda value: msgspec.convert((value,), holder).value
