"""Records: what every record answers, and what a declaration says of its fields beside their kinds."""

from typing import Any, Final, NamedTuple

import msgspec

READ_ONLY: Final[Any] = object()
"""Read-only: always answered; accepted in a body, so that a record can be sent back, and ignored."""

SERVER_DEFAULT: Final[Any] = object()
"""Filled in by the server when it is left out or null; never null in an answer."""

WRITE_ONLY: Final[Any] = msgspec.UNSET
"""Write-only: taken in a body, never answered, and no column. Such members stand last in their type."""


class Record(msgspec.Struct, gc=False):
    """What every record answers: its id and when it was made and last changed."""

    id: int
    created_at: str
    updated_at: str


class DetailOnly(NamedTuple):
    """A member with the default `wo` that is answered with a single record, and not in lists."""

    read_only: bool = False


class RequiredUnless(NamedTuple):
    """A required member that may be left out when this other one is sent."""

    other: str


class AllowedOn(NamedTuple):
    """A member that can be sent in one use of a body alone, `Create` or `Update`; in the other it is read-only."""

    use: str
