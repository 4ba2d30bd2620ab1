"""Records as a body would describe them, by the same rules."""

from datetime import UTC, date, datetime, time
from typing import Any, TypeVar

import msgspec

from retainer.domain.members import complete, read_members
from retainer.errors import Faults, invalid
from retainer.exact import as_instant, utcnow
from retainer.store.tx import Tx

WORKING_HOUR = time(9, 30, tzinfo=UTC)
T = TypeVar("T", bound=msgspec.Struct)


def at(tx: Tx, day: date) -> None:
    """Let what follows have been done on a day, at the latest now."""
    tx.now = min(as_instant(datetime.combine(day, WORKING_HOUR)), utcnow())


def make(shape: type[T], **members: Any) -> T:
    """A record of a type with these members. Raises `validation_failed`."""
    faults: Faults = {}
    record = complete(shape, read_members(shape, members, faults), members, faults)
    if faults:
        raise invalid(faults)
    return record
