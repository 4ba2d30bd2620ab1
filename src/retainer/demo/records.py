"""Records as a body would describe them, by the same rules."""

from datetime import UTC, date, datetime, time
from typing import Any, TypeVar

import msgspec

from retainer.errors import FieldErrors, invalid
from retainer.store.tx import Tx
from retainer.values.exact import as_instant, utcnow
from retainer.values.reading import complete, read_fields

WORKING_HOUR = time(9, 30, tzinfo=UTC)
T = TypeVar("T", bound=msgspec.Struct)


def at(tx: Tx, day: date) -> None:
    """Let what follows have been done on a day, at the latest now."""
    tx.now = min(as_instant(datetime.combine(day, WORKING_HOUR)), utcnow())


def make(shape: type[T], **members: Any) -> T:
    """A record of a type with these members. Raises `validation_failed`."""
    faults: FieldErrors = {}
    record = complete(shape, read_fields(shape, members, faults), members, faults)
    if faults:
        raise invalid(faults)
    return record
