"""Records: the fields that every record has, and the markers that declare how a field may be written."""

from typing import Any, Final, NamedTuple

import msgspec

READ_ONLY: Final[Any] = object()
"""Read-only: always answered; ignored in a change, so that a record can be sent back, and refused in a new one."""

SERVER_DEFAULT: Final[Any] = object()
"""Filled in by the server when it is left out or null; never null in an answer."""

WRITE_ONLY: Final[Any] = msgspec.UNSET
"""Write-only: accepted in a body, never answered, and not a column. Such fields come last in their type."""


class Record(msgspec.Struct, gc=False):
    """The fields of every record: its id and when it was created and last changed."""

    id: int
    created_at: str
    updated_at: str


class DetailOnly(NamedTuple):
    """Marks a field with the default `WRITE_ONLY` that is answered with a single record, and not in lists."""

    read_only: bool = False


class RequiredUnless(NamedTuple):
    """Marks a required field that may be left out when another one is sent."""

    other: str


class Stated(NamedTuple):
    """Marks a read-only field that a change takes only when it says what the record holds, like an invoice's number.

    Ignoring anything else would hide a mistake. `advice` says what to do instead.
    """

    advice: str


class AllowedOn(NamedTuple):
    """Marks a field that is writable in only one use of a body, `Create` or `Update`, and read-only in the other."""

    use: str
