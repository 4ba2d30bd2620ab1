"""The forms that create, change and delete a record, which follow from its kind: each calls the API's own function."""

from functools import partial

from retainer.console.catalogue import Kind
from retainer.console.displays import display_of
from retainer.console.editing.calls import call, change_record, create_record, delete_record, ids_of, worded
from retainer.console.editing.form_pages import FormPage, Section
from retainer.console.names import Link, load_names, path_of, title_of
from retainer.console.page_context import PageContext, Reply
from retainer.errors import Refusal
from retainer.identity.audit import Fields
from retainer.kernel.resource import read_id
from retainer.store.tx import Tx
from retainer.values.records import Record


def section_of(kind: Kind) -> Section:
    """Return the list of a kind; parts of another record have that of its kind."""
    name, title = (kind.name, kind.title) if kind.parent is None else (kind.parent.name, kind.parent.name.capitalize())
    return Section(title, f"/records/{name}", kind.table, kind.get, partial(title_of, kind.table), kind.path_of)


def choose_form(tx: Tx, context: PageContext) -> FormPage:
    """Return the form of the record in the path, or of a new one, whose fields a link can preset: `?client_id=3`.

    Raises `not_found`, also without an operation of the API.
    """
    is_new = "record" not in context.path_parameters
    kind = context.catalogue.find(context.path_parameters["kind"], "creating" if is_new else "changing")
    section = section_of(kind)
    if not is_new:
        return FormPage(section, "Edit {name}", "Save", partial(save, kind), kind=kind, is_guarded=True)
    back, parents = Link("", f"/records/{kind.name}"), list[int]()
    if kind.parent is not None:
        parents = [read_id(context.typed.text(kind.parent_field), kind.parent)]
        names = load_names(tx, kind.parent, parents)
        if not names:
            raise Refusal("not_found", "This record does not exist.")
        back = Link(names[parents[0]], path_of(context.catalogue, kind.parent, parents[0]))
    return FormPage(
        *(section, f"New {kind.noun}", f"Create {kind.noun}", partial(create, kind, parents)),
        kind=kind,
        back=back,
        hidden={kind.parent_field: f"{parents[0]}"} if parents else {},
    )


def create(kind: Kind, parents: list[int], tx: Tx, context: PageContext, _: None, body: Fields) -> Reply:
    record = create_record(tx, kind, ({kind.owner: "me"} if kind.owner else {}) | body, *parents)
    return context.redirect(kind.path_of(record), f"{title_of(kind.table, record)} created.")


def save(kind: Kind, tx: Tx, context: PageContext, record: Record, body: Fields) -> Reply:
    record = change_record(tx, kind, record, body)
    return context.redirect(kind.path_of(record), f"{title_of(kind.table, record)} saved.")


def choose_deletion(_: Tx, context: PageContext) -> FormPage:
    kind = context.catalogue.find(context.path_parameters["kind"], "deleting")
    gone = f"The {kind.noun} is removed for good. This can't be undone; the audit log keeps what it said."
    return FormPage(
        *(section_of(kind), "Delete {name}?", f"Delete {kind.noun}", partial(delete, kind), lambda *_: [gone]),
        obstacle=partial(obstacle_to_deletion, kind),
        is_guarded=True,
        is_danger=True,
    )


def obstacle_to_deletion(kind: Kind, tx: Tx, _: PageContext, record: Record) -> str:
    """Return why a record cannot be deleted: its lock, or what the API says when the page rehearses it."""
    lock = display_of(kind.name).lock(record)
    if lock.stays:
        return f"{lock.reason} It cannot be deleted."
    try:
        call(tx, kind.deleting, *ids_of(kind, record))
    except Refusal as refusal:
        return worded(refusal, kind.record.__struct_encode_fields__)
    return ""


def delete(kind: Kind, tx: Tx, context: PageContext, record: Record, _: Fields) -> Reply:
    delete_record(tx, kind, record)
    path = f"/records/{kind.name}" if kind.parent is None else kind.path_of(record)
    return context.redirect(path, f"{title_of(kind.table, record)} deleted.", kind="warn")
