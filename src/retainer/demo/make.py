"""Builds records from fields by the rules of request bodies, and sets the clock of the demo."""

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
    """Set the transaction's clock to the morning of a day, at the latest to now."""
    tx.now = min(as_instant(datetime.combine(day, WORKING_HOUR)), utcnow())


def make(model: type[T], **fields: Any) -> T:
    """Return a record of a model with these fields. Raises `validation_failed`."""
    errors: FieldErrors = {}
    record = complete(model, read_fields(model, fields, errors), fields, errors)
    if errors:
        raise invalid(errors)
    return record
