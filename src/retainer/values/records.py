"""Records: their common fields, and the markers that declare how a field may be written."""

from collections.abc import Iterator
from typing import Annotated, Any, Final, NamedTuple, TypeVar, get_type_hints

import msgspec

from retainer.values.kinds import Id, Instant

M = TypeVar("M")

READ_ONLY: Final[Any] = object()
"""Read-only: always returned; ignored in an update, so that a record can be sent back, and refused in a create."""

SERVER_DEFAULT: Final[Any] = object()
"""Filled in by the server if it is omitted or null; never null in a response."""

WRITE_ONLY: Final[Any] = msgspec.UNSET
"""Write-only: accepted in a body, never returned, and not a column. Such fields come last in their type."""


class Record(msgspec.Struct, gc=False):
    """The fields of every record: its id and when it was created and last changed."""

    id: Annotated[Id, "Assigned by the server, and never reused."]
    created_at: Annotated[Instant, "Never changes; in UTC, with microseconds."]
    updated_at: Annotated[
        Instant, "Time of the last change to one of the record's own fields; derived values do not count."
    ]


class DetailOnly(NamedTuple):
    """Marks a field with the default `WRITE_ONLY` that is returned with a single record, but not in lists.

    Its entries are rows of `table`.
    """

    table: str
    read_only: bool = False


def marked(model: type[msgspec.Struct], kind: type[M]) -> Iterator[tuple[str, Any, M]]:
    """Yield the fields of a type that have a mark of a kind: their names, their hints without marks, and the mark."""
    for name, hint in get_type_hints(model, include_extras=True).items():
        for mark in getattr(hint, "__metadata__", ()):
            if isinstance(mark, kind):
                yield name, hint.__origin__, mark


class RequiredUnless(NamedTuple):
    """Marks a required field that may be omitted if another field is sent."""

    other: str


class NeededUnless(NamedTuple):
    """Marks a field that may be omitted only with one of other fields, or only with all of them.

    A rule of the resource checks it.
    """

    others: tuple[str, ...]
    takes_all: bool = False


class NotOn(NamedTuple):
    """Marks a field with a word that one use of a body refuses, like `Create`; a rule of the resource checks it."""

    use: str
    word: str


class MustMatch(NamedTuple):
    """Marks a read-only field that an update accepts only with its current value, like an invoice's number.

    Ignoring another value would hide a mistake. `advice` says what to do instead.
    """

    advice: str


class AllowedOn(NamedTuple):
    """Marks a field that is writable in only one use of a body, `Create` or `Update`, and read-only in the other."""

    use: str
