"""The pages that create, change and delete a record: each calls the API's own function, as its operation does."""

import re
from collections.abc import Collection
from typing import Any

import msgspec
from sqlalchemy import Table

from retainer.console.catalogue import Kind
from retainer.console.displays import display_of
from retainer.console.editing.sheet import Sheet
from retainer.console.forms import Form
from retainer.console.labels import in_words
from retainer.console.names import Link, load_names, path_of, title_of
from retainer.console.page_context import PageContext, Reply
from retainer.errors import FieldErrors, Refusal
from retainer.identity import audit
from retainer.identity.audit import Fields, Target
from retainer.kernel import etag
from retainer.kernel.body import Patch, RequestBody
from retainer.kernel.resource import Operation, read_id
from retainer.store.constraints import singular
from retainer.store.row_mapper import R
from retainer.store.tx import Tx
from retainer.values.records import Record

CHANGED = (
    "Nothing was done this time: the {noun} has changed since you opened this page. Check it, then decide again. "
    "If you pressed the button twice, the first press may have done it."
)
NO_STATE = '"none"'
OF_PROGRAMS = re.compile(r"(?:, with|:)? (?:GET|POST|PATCH|PUT|DELETE) /\S+")
"""The operations that messages of the API name."""


def sheet_of(tx: Tx, context: PageContext) -> Sheet:
    """Return the form of the record in the path, or of a new one. Raises `not_found`, also without an API operation."""
    name, record_id = context.path_parameters["kind"], context.path_parameters.get("record")
    kind = context.catalogue.find(name, "creating" if record_id is None else "changing")
    return Sheet(tx, context, kind, None if record_id is None else kind.get(tx, read_id(record_id, kind.table)))


def show(tx: Tx, context: PageContext) -> Reply:
    """Show the form of a new record or of a stored one; a link can preset its fields: `?client_id=3`."""
    sheet = sheet_of(tx, context)
    kind, record = sheet.kind, sheet.record
    sheet.word_errors()
    if record is not None:
        name = title_of(kind.table, record)
        title, button, back = f"Edit {name}", "Save", Link(name, kind.path_of(record))
    else:
        title, button, back = f"New {kind.noun}", f"Create {kind.noun}", Link("", f"/records/{kind.name}")
    for parent_id in parent_of(context, kind) if record is None else ():
        names = load_names(tx, kind.parent, [parent_id])
        if not names:
            raise Refusal("not_found", "This record does not exist.")
        back = Link(names[parent_id], path_of(context.catalogue, kind.parent, parent_id))
    return context.render(
        "record_form",
        sheet=sheet,
        kind=kind,
        title=title,
        back=back.path,
        back_to=back.text,
        button=button,
        parent=context.typed.text(kind.parent_field) if kind.parent_field and record is None else "",
        state=state_of(record) if record is not None else "",
        rows=sheet.rows(adds=sheet.form.text("step") == "add"),
    )


def send(tx: Tx, context: PageContext) -> Reply:
    """Create or change a record; the buttons of lines show the form with one more, or without one.

    Raises `not_found`, `precondition_failed`, and the errors of the API.
    """
    if context.form.text("step"):
        return show(tx, context)
    sheet = sheet_of(tx, context)
    kind, record = sheet.kind, sheet.record
    if record is None:
        body = ({kind.owner: "me"} if kind.owner else {}) | sheet.read()
        record, done = create_record(tx, kind, body, *parent_of(context, kind)), "created"
    else:
        check_state(kind.table, record, context.form)
        body = sheet.read()
        if not body:
            return context.redirect(kind.path_of(record), "Nothing was changed.")
        record, done = change_record(tx, kind, record, body), "saved"
    return context.redirect(kind.path_of(record), f"{title_of(kind.table, record)} {done}.")


def create_record(tx: Tx, kind: Kind, body: Fields, *parent: int) -> Record:
    """Create a record as its operation does, and note it in the audit log. Raises the errors of the API."""
    made = call(tx, kind.creating, *parent, body=body)
    record: Record = getattr(made, "data", made)
    audit.note(tx, "record created", target_of(kind, record), after=body or None)
    return record


def change_record(tx: Tx, kind: Kind, record: Record, body: Fields) -> Record:
    before = {field: msgspec.to_builtins(getattr(record, field, None), enc_hook=str) for field in body}
    made = call(tx, kind.changing, *ids_of(kind, record), body=body)
    audit.note(tx, "record changed", target_of(kind, record), before=before, after=body)
    changed: Record = getattr(made, "data", made)
    return changed


def show_delete(tx: Tx, context: PageContext) -> Reply:
    kind = context.catalogue.find(context.path_parameters["kind"], "deleting")
    record = kind.get(tx, read_id(context.path_parameters["record"], kind.table))
    return context.render(
        "record_delete",
        kind=kind,
        label=title_of(kind.table, record),
        lock=display_of(kind.name).lock(record),
        back=kind.path_of(record),
        state=state_of(record),
    )


def delete(tx: Tx, context: PageContext) -> Reply:
    kind = context.catalogue.find(context.path_parameters["kind"], "deleting")
    record = kind.get(tx, read_id(context.path_parameters["record"], kind.table))
    check_state(kind.table, record, context.form)
    delete_record(tx, kind, record)
    path = f"/records/{kind.name}" if kind.parent is None else kind.path_of(record)
    return context.redirect(path, f"{title_of(kind.table, record)} deleted.", kind="warn")


def delete_record(tx: Tx, kind: Kind, record: Record) -> None:
    whole = record if not kind.owner else tx.get(kind.table, record.id, kind.record)
    call(tx, kind.deleting, *ids_of(kind, record))
    audit.note(tx, "record deleted", target_of(kind, record), before=msgspec.to_builtins(whole, enc_hook=str))


def ids_of(kind: Kind, record: Record) -> list[int]:
    """Return the ids in the path of a record: that of its parent, if it has one, and its own."""
    return [*([getattr(record, kind.parent_field)] if kind.parent is not None else []), record.id]


def target_of(kind: Kind, record: Record) -> Target:
    return Target(kind.noun, record.id, title_of(kind.table, record))


def parent_of(context: PageContext, kind: Kind) -> list[int]:
    """Return the id of the parent that a link or a form names, if the kind has one. Raises `not_found`."""
    if kind.parent is None:
        return []
    return [read_id(context.typed.text(kind.parent_field), kind.parent)]


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
