"""Records as a body would describe them, by the same rules."""

from typing import Any, TypeVar

import msgspec

from retainer.domain.members import complete, read_members
from retainer.errors import Faults, invalid

T = TypeVar("T", bound=msgspec.Struct)


def make(shape: type[T], **members: Any) -> T:
    """A record of a type with these members. Raises `validation_failed`."""
    faults: Faults = {}
    record = complete(shape, read_members(shape, members, faults), members, faults)
    if record is None:
        raise invalid(faults)
    return record
