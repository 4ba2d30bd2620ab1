"""Calls of the API's own functions, as its operations do: they create, change and delete records for forms."""

import hashlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from retainer.console.catalogue import Kind
from retainer.console.labels import in_words
from retainer.console.names import title_of
from retainer.errors import FieldErrors, Refusal, Unreadable, invalid
from retainer.identity import audit
from retainer.identity.audit import Fields, Target
from retainer.kernel import etag
from retainer.kernel.body import Patch, RequestBody
from retainer.kernel.resource import Operation
from retainer.store.row_mapper import R
from retainer.store.tx import Tx
from retainer.values.reading import read_fields
from retainer.values.records import Record

T = TypeVar("T", bound=msgspec.Struct)


def create_record(tx: Tx, kind: Kind, body: Fields, *parent: int) -> Record:
    """Create a record as its operation does, and note it in the audit log. Raises the errors of the API."""
    made = call(tx, kind.creating, *parent, body=body)
    record: Record = getattr(made, "data", made)
    audit.note(tx, "record created", target_of(tx, kind, record), after=body or None)
    return record


def change_record(tx: Tx, kind: Kind, record: Record, body: Fields, action: audit.Action = "record changed") -> Record:
    before = {field: msgspec.to_builtins(getattr(record, field, None), enc_hook=str) for field in body}
    made = call(tx, kind.changing, *ids_of(kind, record), body=body)
    changed: Record = getattr(made, "data", made)
    audit.note(tx, action, target_of(tx, kind, changed), before=before, after=body)
    return changed


def delete_record(tx: Tx, kind: Kind, record: Record) -> None:
    whole = record if not kind.owner else tx.get(kind.table, record.id, kind.record)
    target = target_of(tx, kind, record)
    call(tx, kind.deleting, *ids_of(kind, record))
    audit.note(tx, "record deleted", target, before=msgspec.to_builtins(whole, enc_hook=str))


def ids_of(kind: Kind, record: Record) -> list[int]:
    """Return the ids in the path of a record: that of its parent, if it has one, and its own."""
    return [*([getattr(record, kind.parent_field)] if kind.parent is not None else []), record.id]


def target_of(tx: Tx, kind: Kind, record: Record) -> Target:
    return Target(kind.noun, record.id, title_of(tx, kind.table, record))


def digest_of(values: Iterable[object]) -> str:
    return hashlib.sha256(repr([*values]).encode()).hexdigest()[:16]


def state_of(record: Record) -> str:
    return etag.compute_for_record(record, b"")


def call(tx: Tx, operation: Operation | None, *ids: int, body: Fields | None = None) -> Any:
    """Call the function of an operation with the ids of its path and its body; return its result. Raises its errors."""
    if operation is None:
        raise TypeError("The kind has no such operation.")
    build = new_of if operation.use == "Create" else patch_of
    result = operation.handler(tx, *ids, *([] if body is None else [build(tx, operation.body, body)]))
    tx.raise_errors()
    return result


def patch_of(tx: Tx, model: type[R], fields: dict[str, object]) -> Patch[R]:
    return Patch(tx, RequestBody(fields, model, "Update"))


def new_of(tx: Tx, model: type[T], fields: dict[str, object]) -> T:
    record: T = RequestBody(fields, model, "Create").new(tx)
    return record


def take_unreadable(values: Fields) -> FieldErrors:
    """Remove what could not be read; return its errors."""
    errors = FieldErrors()
    for name, value in [*values.items()]:
        if isinstance(value, Unreadable):
            errors.note(name, value.message)
            del values[name]
    return errors


def changes_of(tx: Tx, model: type[msgspec.Struct], fields: Fields) -> Fields:
    """Return the values of fields; note the errors of those that cannot be read."""
    errors = FieldErrors()
    values = read_fields(model, fields, errors)
    tx.note_unreadable(errors)
    return values


@contextmanager
def errors_at(name: str) -> Iterator[None]:
    """Show the errors of the API at one field of a form."""
    try:
        yield
    except Refusal as refusal:
        found = refusal.members.get("errors") or {"": [refusal.message]}
        raise invalid({name: [text for texts in found.values() for text in texts]}, refusal.code) from None


def worded(refusal: Refusal, names: Collection[str]) -> str:
    """Return a refusal of the API in the words of a page: its errors, or its message without any."""
    errors: FieldErrors = refusal.members.get("errors", {})
    sentences = [sentence for texts in errors.values() for sentence in texts] or [refusal.message]
    return " ".join(in_words(sentence, names) for sentence in sentences)
