"""The pages that create, change and delete a record: each calls the API's own function, as its operation does."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from retainer.console.actions.basis import check_state, new_of, note, patch_of, state_of
from retainer.console.catalogue import Kind
from retainer.console.editing.locks import lock_of
from retainer.console.editing.sheet import Sheet, compact_rows
from retainer.console.names import load_names, path_of, title_of
from retainer.console.page_context import PageContext, Reply
from retainer.errors import Refusal
from retainer.identity.audit import Target
from retainer.kernel.resource import Operation, read_id
from retainer.store.tx import Tx
from retainer.values.records import Record


class Found(NamedTuple):
    """A record of the path, its kind, and the operation that its form calls."""

    kind: Kind
    operation: Operation
    record: Record

    @property
    def ids(self) -> list[int]:
        parent = [getattr(self.record, self.kind.parent_field)] if self.kind.parent is not None else []
        return [*parent, self.record.id]


class Back(NamedTuple):
    """Where a form leads back to; the label is empty for a list, which the page names anyway."""

    path: str
    label: str


def find(tx: Tx, context: PageContext, has: str) -> Found:
    """Return the record of the path. Raises `not_found`, also if the API has no such operation."""
    kind = context.catalogue.find(context.path_parameters["kind"], has)
    record = kind.get(tx, read_id(context.path_parameters["record"], kind.table))
    return Found(kind, getattr(kind, has), record)


def show_new(tx: Tx, context: PageContext) -> Reply:
    """Show the form of a new record; a link can preset its fields: `?client_id=3`. Raises `not_found`."""
    kind = context.catalogue.find(context.path_parameters["kind"], "creating")
    back = Back(f"/records/{kind.name}", "")
    for parent_id in parent_of(context, kind):
        name = load_names(tx, kind.parent, [parent_id]).get(parent_id) if kind.parent is not None else None
        if kind.parent is None or name is None:
            raise Refusal("not_found", "This record does not exist.")
        back = Back(path_of(context.catalogue, kind.parent, parent_id), name)
    return shown(Sheet(tx, context, kind), f"New {kind.noun}", back, f"Create {kind.noun}")


def create(tx: Tx, context: PageContext) -> Reply:
    """Create the record that a form describes. Raises `not_found`, and the errors of the API."""
    kind = context.catalogue.find(context.path_parameters["kind"], "creating")
    sheet = Sheet(tx, context, kind)
    if is_step(sheet):
        return show_new(tx, context)
    operation, parent = kind.creating, parent_of(context, kind)
    body = sheet.read()
    record = call(tx, operation, [*parent, new_of(tx, kind.record, body)])
    name = title_of(kind.table, record)
    note(tx, "record created", Target(kind.noun, record.id, name), {}, body)
    return context.redirect(kind.path_of(record), f"{name} created.")


def show_edit(tx: Tx, context: PageContext) -> Reply:
    """Show the form that changes a record. Raises `not_found`."""
    kind, _, record = find(tx, context, "changing")
    name = title_of(kind.table, record)
    return shown(Sheet(tx, context, kind, record), f"Edit {name}", Back(kind.path_of(record), name), "Save")


def edit(tx: Tx, context: PageContext) -> Reply:
    """Change a record. Raises `not_found`, `precondition_failed`, and the errors of the API."""
    found = find(tx, context, "changing")
    kind, record = found.kind, found.record
    sheet = Sheet(tx, context, kind, record)
    if is_step(sheet):
        return show_edit(tx, context)
    check_state(kind.table, record, context.form)
    body = sheet.read()
    name, path = title_of(kind.table, record), kind.path_of(record)
    if not body:
        return context.redirect(path, "Nothing was changed.")
    before = {field: msgspec.to_builtins(getattr(record, field, None), enc_hook=str) for field in body}
    record = call(tx, found.operation, [*found.ids, patch_of(tx, kind.record, body)])
    note(tx, "record changed", Target(kind.noun, record.id, name), before, body)
    return context.redirect(path, f"{title_of(kind.table, record)} saved.")


def show_delete(tx: Tx, context: PageContext) -> Reply:
    kind, _, record = find(tx, context, "deleting")
    return context.render(
        "record_delete",
        kind=kind,
        label=title_of(kind.table, record),
        lock=lock_of(record),
        back=kind.path_of(record),
        state=state_of(record),
    )


def delete(tx: Tx, context: PageContext) -> Reply:
    """Delete a record. Raises `not_found`, `precondition_failed`, and the errors of the API."""
    found = find(tx, context, "deleting")
    kind, record = found.kind, found.record
    check_state(kind.table, record, context.form)
    found.operation.handler(tx, *found.ids)
    name = title_of(kind.table, record)
    note(tx, "record deleted", Target(kind.noun, record.id, name), msgspec.to_builtins(record, enc_hook=str), {})
    path = f"/records/{kind.name}" if kind.parent is None else kind.path_of(record)
    return context.redirect(path, f"{name} deleted.", kind="warn")


def parent_of(context: PageContext, kind: Kind) -> list[int]:
    """Return the id of the parent that a link or a form names, if the kind has one. Raises `not_found`."""
    if kind.parent is None:
        return []
    return [read_id(context.typed.text(kind.parent_field), kind.parent)]


def is_step(sheet: Sheet) -> bool:
    """Return whether a button asks for another form: with one more line, or without one."""
    step, _, place = sheet.form.text("step").partition(" ")
    if step and sheet.lines is not None:
        compact_rows(sheet.form, sheet.lines, place)
    return bool(step)


def call(tx: Tx, operation: Operation | None, arguments: Sequence[object]) -> Record:
    """Call the function of an operation; return its record. Raises its errors."""
    if operation is None:
        raise TypeError("The kind has no such operation.")
    result = operation.handler(tx, *arguments)
    tx.raise_errors()
    record: Record = getattr(result, "data", result)
    return record


def shown(sheet: Sheet, title: str, back: Back, button: str) -> Reply:
    kind, record = sheet.kind, sheet.record
    sheet.word_errors()
    return sheet.context.render(
        "record_form",
        sheet=sheet,
        kind=kind,
        title=title,
        back=back.path,
        back_to=back.label,
        button=button,
        parent=sheet.context.typed.text(kind.parent_field) if kind.parent_field and record is None else "",
        state=state_of(record) if record is not None else "",
        rows=sheet.rows(adds=sheet.form.text("step") == "add"),
    )
