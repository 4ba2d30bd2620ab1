"""Records: their common fields, and the markers that declare how a field may be written."""

from typing import Any, Final, NamedTuple

import msgspec

READ_ONLY: Final[Any] = object()
"""Read-only: always returned; ignored in an update, so that a record can be sent back, and refused in a create."""

SERVER_DEFAULT: Final[Any] = object()
"""Filled in by the server if it is omitted or null; never null in a response."""

WRITE_ONLY: Final[Any] = msgspec.UNSET
"""Write-only: accepted in a body, never returned, and not a column. Such fields come last in their type."""


class Record(msgspec.Struct, gc=False):
    """The fields of every record: its id and when it was created and last changed."""

    id: int
    created_at: str
    updated_at: str


class DetailOnly(NamedTuple):
    """Marks a field with the default `WRITE_ONLY` that is returned with a single record, but not in lists.

    Its entries are rows of `table`.
    """

    table: str
    read_only: bool = False


class RequiredUnless(NamedTuple):
    """Marks a required field that may be omitted if another field is sent."""

    other: str


class MustMatch(NamedTuple):
    """Marks a read-only field that an update accepts only with its current value, like an invoice's number.

    Ignoring another value would hide a mistake. `advice` says what to do instead.
    """

    advice: str


class AllowedOn(NamedTuple):
    """Marks a field that is writable in only one use of a body, `Create` or `Update`, and read-only in the other."""

    use: str
