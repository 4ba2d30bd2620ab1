"""The form pages that create, change and delete records: they follow from the kind of record."""

from functools import partial
from typing import Any

from retainer.console.catalogue import Kind
from retainer.console.displays import display_of
from retainer.console.editing.calls import call, change_record, create_record, delete_record, ids_of, worded
from retainer.console.editing.fields import fields_of
from retainer.console.editing.form_pages import PREVIEW, FormButton, FormPage, Section
from retainer.console.editing.sheet import Sheet
from retainer.console.editing.uploads import RECEIPT, save_upload
from retainer.console.kinds.display import FREE
from retainer.console.names import Link, load_names, path_of, title_of
from retainer.console.page_context import PageContext, Rehearsal, Reply
from retainer.console.shapes import choices_of
from retainer.console.values import Block
from retainer.console.words import listed
from retainer.documents.wording import unit_text
from retainer.errors import Refusal
from retainer.identity import accounts
from retainer.identity.audit import Fields
from retainer.kernel.resource import read_id
from retainer.shared.numbering import preview_number
from retainer.store.constraints import MOVE
from retainer.store.tx import Tx
from retainer.values.reading import create_only
from retainer.values.records import Record


def section_of(kind: Kind) -> Section:
    """Return the list of a kind; parts of another record have that of its kind."""
    name, title = (kind.name, kind.title) if kind.parent is None else (kind.parent.name, kind.parent.name.capitalize())
    return Section(
        title, f"/records/{name}", kind.table, kind.get, lambda tx, record: title_of(tx, kind.table, record), kind
    )


def choose_form(tx: Tx, context: PageContext) -> FormPage:
    """Return the form of the record in the path, or of a new one, whose fields a link can preset: `?client_id=3`.

    Raises `not_found`, also without an operation of the API.
    """
    is_new = "record" not in context.path_parameters
    kind = context.catalogue.find(context.path_parameters["kind"], "creating" if is_new else "changing")
    section, sheet_of = section_of(kind), partial(record_sheet, kind)
    also = [FormButton(*step)] if is_new and (step := display_of(kind.name).created_as)[0] else []
    form: dict[str, Any] = {"sheet_of": sheet_of, "reads_on": True}
    if sheet_of(tx, context, None if is_new else section.find(tx, context)).lines:
        form |= {"has_preview": True, "steps": lambda *_: [*also, FormButton(PREVIEW, "Preview")]}
    if not is_new:
        return FormPage(section, "Edit {name}", "Save", partial(save, kind), **form)
    back, parents = Link("", f"/records/{kind.name}"), list[int]()
    if kind.parent is not None:
        parents = [read_id(context.typed.text(kind.parent_field), kind.parent)]
        names = load_names(tx, kind.parent, parents)
        if not names:
            raise Refusal("not_found", "This record does not exist.")
        back = Link(names[parents[0]], path_of(context.catalogue, kind.parent, parents[0]))
    return FormPage(
        *(section, f"New {kind.noun}", f"Create {kind.noun}", partial(create, kind, parents)),
        **form,
        back=back,
        hidden={kind.parent_field: f"{parents[0]}"} if parents else {},
    )


def record_sheet(kind: Kind, tx: Tx, context: PageContext, record: Record | None) -> Sheet:
    """Return the form of a record, or of a new one: the fields that its type declares, without those that are locked.

    Those that only a link sets are shown, and cannot be changed.
    """
    display, use = display_of(kind.name), "Create" if record is None else "Update"
    lock = FREE if record is None else display.lock(record)
    without = {*lock.fields, *display.preset_only, *(() if record is None else create_only(kind.record))}
    offered = [field for field in fields_of(kind.record, kind.table, use) if field.name not in kind.left_out]
    sheet = Sheet(tx, context, [field for field in offered if field.name not in without], record, kind=kind)
    sent = {*sheet.preset.texts, *sheet.form.texts}
    sheet.hidden = [field for field in offered if field.name in without and field.name in sent]
    sheet.lock, sheet.rare_names, sheet.parts = lock, {"external_id", *display.rare}, display.parts
    if record is None and display.has_receipt:
        sheet.fields.append(RECEIPT)
    if record is None and kind.name == "clients":
        upcoming = preview_number(tx, kind.table, accounts.get_account(tx)["client_number_pattern"])
        sheet.fields = [
            field._replace(hint=f"Blank: {upcoming}.") if field.name == "number" else field for field in sheet.fields
        ]
    return sheet


def preview(tx: Tx, context: PageContext, record: Record | None, made: Record) -> None:
    """End the transaction with the page of a form, which shows the lines and sums of the document that it would save.

    Raises Rehearsed, if the form asked for that.
    """
    if context.form.text("step") != PREVIEW:
        return
    page, sheet = context.filled.page, context.filled.sheet
    below = [Block("lines_of", document=made, unit_text=unit_text)]
    shown = {"told": (), "obstacle": "", "steps": page.steps(tx, context, record), "below": below}
    raise Rehearsal(page.render(tx, context, record, sheet, **shown))


def create(kind: Kind, parents: list[int], tx: Tx, context: PageContext, _: None, body: Fields) -> Reply:
    step = context.form.text("step")
    status = {"status": step} if step and step == display_of(kind.name).created_as[0] else {}
    record = create_record(tx, kind, ({kind.owner: "me"} if kind.owner else {}) | body | status, *parents)
    preview(tx, context, None, record)
    save_upload(tx, context, kind, record)
    return context.redirect(kind.path_of(record), f"{title_of(tx, kind.table, record)} created.")


def save(kind: Kind, tx: Tx, context: PageContext, record: Record, body: Fields) -> Reply:
    before, record = record, change_record(tx, kind, record, body) if body else record
    preview(tx, context, before, record)
    return context.redirect(kind.path_of(record), f"{title_of(tx, kind.table, record)} saved.")


def choose_deletion(_: Tx, context: PageContext) -> FormPage:
    kind = context.catalogue.find(context.path_parameters["kind"], "deleting")
    gone = f"The {kind.noun} is removed for good. This can't be undone; the audit log keeps what it said."
    return FormPage(
        *(section_of(kind), "Delete {name}", f"Delete {kind.noun}", partial(delete, kind), lambda *_: [gone]),
        obstacle=partial(obstacle_to_deletion, kind),
        is_danger=True,
    )


def obstacle_to_deletion(kind: Kind, tx: Tx, _: PageContext, record: Record) -> str:
    """Return why a record cannot be deleted: its lock, what refers to it, or what the API says in a rehearsal."""
    lock = display_of(kind.name).lock(record)
    if lock.stays:
        return f"{lock.reason} It cannot be deleted."
    if blocking := tx.blocking(kind.table, record.id):
        instead = f" Or archive the {kind.noun}." if "archived" in choices_of(kind.record).get("status", ()) else ""
        return MOVE.format(listed([*blocking.values()])) + instead
    if not tx.writes:
        return ""
    try:
        call(tx, kind.deleting, *ids_of(kind, record))
    except Refusal as refusal:
        return worded(refusal, kind.record.__struct_encode_fields__)
    return ""


def delete(kind: Kind, tx: Tx, context: PageContext, record: Record, _: Fields) -> Reply:
    title = title_of(tx, kind.table, record)
    delete_record(tx, kind, record)
    path = f"/records/{kind.name}" if kind.parent is None else kind.path_of(record)
    return context.redirect(path, f"{title} deleted.", kind="warn")
