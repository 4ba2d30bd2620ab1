"""Makes records with handlers of the API, so that the demo follows its rules, and sets the clock of the demo."""

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from functools import lru_cache
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec

from retainer.errors import FieldErrors, invalid
from retainer.kernel.body import Patch, RequestBody
from retainer.store.tx import Tx
from retainer.values.exact import as_instant, utcnow
from retainer.values.reading import complete, read_fields

WORKING_HOUR = time(9, 30, tzinfo=UTC)
S = TypeVar("S", bound=msgspec.Struct)
T = TypeVar("T")


def at(tx: Tx, day: date) -> None:
    tx.now = min(as_instant(datetime.combine(day, WORKING_HOUR)), utcnow())


def make(model: type[S], **fields: Any) -> S:
    """Return a record of a model with these fields. Raises `validation_failed`."""
    errors = FieldErrors()
    record = complete(model, read_fields(model, fields, errors), fields, errors)
    if errors:
        raise invalid(errors)
    return record


def create(handler: Callable[..., T], tx: Tx, *ids: int, **fields: Any) -> T:
    return handler(tx, *ids, make(_body_type(handler), **fields))


def change(handler: Callable[..., T], tx: Tx, *ids: int, **fields: Any) -> T:
    (model,) = get_args(_body_type(handler))
    return handler(tx, *ids, Patch(tx, RequestBody(fields, model, "Update")))


@lru_cache(maxsize=64)
def _body_type(handler: Callable[..., object]) -> Any:
    *_, body, _returned = get_type_hints(handler).values()
    return body
