"""What forms on records share: the state that a page showed, the bodies of the API, its refusals, and the audit log."""

import re
from collections.abc import Collection
from typing import Any

from sqlalchemy import Table

from retainer.console.forms import Form
from retainer.console.labels import in_words
from retainer.console.page_context import File, View
from retainer.errors import FieldErrors, Refusal
from retainer.identity.audit import Fields
from retainer.kernel import etag
from retainer.kernel.body import Patch, RequestBody
from retainer.kernel.resource import Operation
from retainer.store.constraints import singular
from retainer.store.row_mapper import R
from retainer.store.tx import RolledBack, Tx
from retainer.values.records import Record

CHANGED = (
    "Nothing was done this time: the {noun} has changed since you opened this page. Check it, then decide again. "
    "If you pressed the button twice, the first press may have done it."
)
NO_STATE = '"none"'
OF_PROGRAMS = re.compile(r"(?:, with|:)? (?:GET|POST|PATCH|PUT|DELETE) /\S+")
"""The operations that messages of the API name."""


class Rehearsed(RolledBack):
    """Ends a transaction without writing: its page shows what was done in it."""

    def __init__(self, view: View | File) -> None:
        super().__init__()
        self.view = view


def state_of(record: Record) -> str:
    return etag.compute_for_record(record, b"")


def check_state(table: Table, record: Record, form: Form) -> None:
    """Raise `precondition_failed` if the record is not in the state that the page of the form showed."""
    try:
        etag.check_unchanged(form.text("state") or NO_STATE, record)
    except Refusal:
        raise Refusal("precondition_failed", CHANGED.format(noun=singular(table))) from None


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


def new_of(tx: Tx, model: type[R], fields: dict[str, object]) -> R:
    record: R = RequestBody(fields, model, "Create").new(tx)
    return record


def worded(refusal: Refusal, names: Collection[str]) -> str:
    """Return a refusal of the API in the words of a page: its errors, or its message without any."""
    errors: FieldErrors = refusal.members.get("errors", {})
    text = " ".join(sentence for sentences in errors.values() for sentence in sentences) or refusal.message
    return OF_PROGRAMS.sub("", in_words(text, names))
