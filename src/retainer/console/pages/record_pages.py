"""The page of a single record: what matters first, then the rest, then where it came from."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple
from urllib.parse import urlencode

from retainer.billing.files import DocumentQuery, load_stored
from retainer.billing.quotes.types import Quote
from retainer.console.actions.drafts import project_of
from retainer.console.actions.offers import offers_of
from retainer.console.catalogue import LISTS, NAMES, Catalogue, Kind
from retainer.console.displays import DISPLAYS, display_for, display_of
from retainer.console.editing.calls import change_record, create_record
from retainer.console.editing.record_forms import record_sheet
from retainer.console.kinds import documents
from retainer.console.kinds.display import AnyPage, RecordPage
from retainer.console.labels import field_label, word_of
from retainer.console.names import title_of
from retainer.console.page_context import FileReply, PageContext, Reply
from retainer.console.pages import file_pages, link_pages, message_blocks
from retainer.console.pages.sign_in_pages import destination
from retainer.console.tracked import work_to_begin
from retainer.console.values import AnyBlock, Block, TableBlock, as_columns, badges_of
from retainer.documents.einvoice import missing_facts
from retainer.errors import Refusal
from retainer.identity import accounts, audit
from retainer.identity.keys import key_list
from retainer.kernel.resource import read_id
from retainer.store.tx import Tx
from retainer.traffic.request_log import requests_of_record
from retainer.values.reading import writable_fields
from retainer.values.records import Record
from retainer.work.tasks import Task

REQUESTS = 5
SHOWN, SHOWN_PARTS = 5, 50
"""Related records that a page shows: the others have a list, or for parts, such as milestones, are only counted."""
HEADING = {"id", "created_at", "updated_at", "position", "invoice_line_id", "status", "is_overdue", "days_overdue"}
"""Fields that are not listed: the heading or the end of the page shows them, or people have no use for them."""
TEXTS = ("description", "notes")
"""Fields with long texts, which are shown before the others."""
SAMPLES = {
    "en": ("Sample client", "1 Main Street", "Design of the start page", "Photographs"),
    "de": ("Musterkunde", "Hauptstraße 1", "Gestaltung der Startseite", "Fotografien"),
}
"""The name and the street of the client, and the lines, of the draft that shows what the settings do to a document."""


def show(tx: Tx, context: PageContext) -> Reply:
    kind = context.catalogue.find(context.path_parameters["kind"])
    record = kind.get(tx, read_id(context.path_parameters["record"], kind.table))
    page: AnyPage = RecordPage(tx, context, kind, record)
    display = display_for(kind)
    facts = display.facts(page) if callable(display.facts) else page.facts(*display.facts)
    offered = {action.path: action for action in offers_of(tx, kind, record)}
    forms = [
        offered[path].block(page, record, title, *without) for path, title, without in display.forms if path in offered
    ]
    beside = (*file_pages.blocks(page), *link_pages.blocks(page), *related_blocks(page))
    blocks = [*display.blocks(page), *forms, *message_blocks.blocks(page), *beside, *rest_of(page)]
    warnings = documents.warnings(page)
    written_by = requests_of_record(tx, kind.name, record.id, REQUESTS) if context.may("requests") else []
    actions, more = list_actions(page)
    of_record = audit.AuditFilter(target=kind.noun, target_id=record.id)
    page.names.load()
    return context.render(
        "record",
        kind=kind,
        record=record,
        label=title_of(tx, kind.table, record),
        badges=badges_of(record),
        actions=actions,
        more=more,
        begins=work_to_begin(record),
        additions=new_links(context.catalogue, kind, record),
        warnings=warnings,
        facts=facts,
        blocks=blocks,
        written_by=written_by,
        changes=audit.list_entries(tx, of_record, limit=REQUESTS).entries if context.may("audit") else [],
        names={key.id: key.name for key in key_list.list_keys(tx)} if written_by else {},
    )


def related_blocks(page: AnyPage) -> Iterator[AnyBlock]:
    """Yield the records that refer to this one, in the order of the navigation."""
    relations = [each for each in page.context.catalogue.relations(page.kind.table) if each[0].name in DISPLAYS]
    order = {name: place for place, name in enumerate(LISTS)}
    for kind, field in sorted(relations, key=lambda each: order.get(each[0].name, 0)):
        block = related(page, kind, field)
        if block.rows:
            yield block


def related(page: AnyPage, kind: Kind, field: str | None) -> TableBlock:
    """Return the first records that refer to this one, without columns that would repeat what its page says."""
    display = display_for(kind)
    filters = {field: f"{page.own.id}"} if field else {}
    size = SHOWN if kind.reading else SHOWN_PARTS
    if not display.is_counted:
        records = kind.first(page.tx, filters, size=size)
        total = len(records) if len(records) < size else None
    else:
        listed = kind.page(page.tx, filters, size=size, within=page.own.id)
        records, total = listed.data, listed.meta.total
    columns = as_columns(display.columns)
    known = {name for each in columns for name in (each.field, each.detail) if repeats(page, name, records)}
    known |= {field or ""}
    new = [each._replace(detail="" if each.detail in known else each.detail) for each in columns]
    own = field in {None, f"{page.kind.noun.replace(' ', '_')}_id"}
    title = kind.title if own else f"{kind.title} ({field_label(field or '').lower()})"
    new = [each for each in new if each.field not in known]
    block = page.table(title, records, kind.table, new).without_empty()
    return block._replace(total=total, path=page.path(kind.name, **filters) if kind.reading else "")


def repeats(page: AnyPage, field: str, records: list[Record]) -> bool:
    """Return whether all records refer to the same record as this one does, like tasks to the client of a project."""
    known = getattr(page.own, field, None) if field.endswith("_id") else None
    return known is not None and all(getattr(record, field) == known for record in records)


def rest_of(page: AnyPage) -> Iterator[AnyBlock]:
    """Yield the long texts of a record, and its other fields that say something, unless they were shown above."""
    named_by = next((name for name in NAMES if getattr(page.own, name, None)), "")
    hidden = page.seen | HEADING | {"number", named_by}
    values = {name: getattr(page.own, name) for name in page.own.__struct_fields__ if name not in hidden}
    names = [name for name, value in values.items() if value or (value is False and not name.startswith("is_"))]
    for name in TEXTS:
        if name in names:
            yield Block("text", title=field_label(name), text=getattr(page.own, name))
            names.remove(name)
    block = page.fields("More details", names)
    if block.fields:
        yield block


MAX_BUTTONS = 4
"""Buttons beyond which a menu has all but the next step and the PDF."""


class ActionLink(NamedTuple):
    """A button at the head of a record; a path that begins with a slash is below the console, else the record's."""

    label: str
    path: str
    is_primary: bool = False


def list_actions(page: AnyPage) -> tuple[Sequence[ActionLink], Sequence[ActionLink]]:
    kind, record = page.kind, page.own
    links = conversions(page.tx, record)
    for each in offers_of(page.tx, kind, record):
        path = f"#{each.path}" if each.is_inline else each.path
        links.append(ActionLink(each.label, path, each.is_next(record)))
    if kind.changing and has_fields(page):
        links.append(ActionLink("Edit", "edit"))
    links += file_links(page)
    if link_pages.has_links(kind, record):
        links.append(ActionLink("Share link…", "links"))
    if kind.deleting and not display_of(kind.name).lock(record).stays:
        links.append(ActionLink("Delete…", "delete"))
    links.sort(key=lambda link: not link.is_primary)
    if len(links) <= MAX_BUTTONS:
        return links, ()
    links.sort(key=lambda link: (not link.is_primary, link.path != "pdf"))
    first = max(2, sum(link.is_primary or link.path == "pdf" for link in links))
    return links[:first], links[first:]


def has_fields(page: AnyPage) -> bool:
    """Return whether the form of a record can change more of it than what only programs use."""
    return any(field.name != "external_id" for field in record_sheet(page.kind, page.tx, page.context, page.own).fields)


def conversions(tx: Tx, record: Record) -> list[ActionLink]:
    """Return the link to the project of an accepted quote, whose form shows that the quote's price becomes its fee."""
    if not isinstance(record, Quote) or record.status != "accepted" or record.converted_project_id is not None:
        return []
    fields = {**project_of(tx, record), "client_id": record.client_id, "name": record.title or ""}
    return [ActionLink("Create project", f"/records/projects/new?{urlencode(fields)}")]


def file_links(page: AnyPage) -> list[ActionLink]:
    if not page.kind.representations:
        return []
    if getattr(page.own, "status", "") == "draft":
        return [ActionLink("Preview PDF", "pdf")]
    if getattr(page.own, "is_imported", False):
        return [ActionLink("PDF", "pdf")] if load_stored(page.tx, page.own) else []
    links, is_void = [ActionLink("PDF", "pdf")], getattr(page.own, "status", "") == "void"
    if not is_void and not missing_facts(page.document):
        links.append(ActionLink("E-invoice (XML)", "xml"))
    if is_void or getattr(page.own, "document_version", 1) > 1:
        links.append(ActionLink("PDF as first issued", "pdf?version=1"))
    return links


def new_links(catalogue: Catalogue, kind: Kind, record: Record) -> list[ActionLink]:
    """Return links to new records that refer to this one, and to its client."""
    found = []
    for part, field in catalogue.relations(kind.table):
        fields = writable_fields(part.creating.body) if part.creating and part.changing else {}
        if fields and (field is None or (field in fields and field not in display_of(part.name).preset_only)):
            client = getattr(record, "client_id", None) if "client_id" in fields else None
            preset = {"client_id": client} if client else {}
            query = urlencode(preset | {field or part.parent_field: record.id})
            found.append(ActionLink(part.noun.capitalize(), f"/records/{part.name}/new?{query}"))
    return found


def show_file(tx: Tx, context: PageContext) -> Reply:
    """Return a file; a draft's is the preview of what will be issued. Raises `not_found` and what it lacks.

    `version=1` in the query asks for the document as it was first issued.
    """
    kind = context.catalogue.find(context.path_parameters["kind"])
    record_id = read_id(context.path_parameters["record"], kind.table)
    form = next((form for form in kind.representations if form.suffix == context.path_parameters["suffix"]), None)
    if form is None:
        raise Refusal("not_found", f"There is no such file of this {kind.noun}.")
    version = {"version": 1} if context.query.text("version") == "1" else {}
    return FileReply(form.media_type, form.prepare(tx, kind.get(tx, record_id), DocumentQuery(**version)).finish)


def show_sample(tx: Tx, context: PageContext) -> Reply:
    """Return the PDF of a draft for a sample client: both exist only until their transaction is rolled back."""
    clients, invoices = (context.catalogue.find(name, "creating") for name in ("clients", "invoices"))
    form, *_ = invoices.representations
    name, street, design, photographs = SAMPLES[accounts.get_account(tx)["document_language"]]
    address = {"address_line1": street, "postal_code": "10115", "city": "Berlin"}
    client = create_record(tx, clients, {"name": name, **address})
    lines = [
        {"description": design, "quantity": "12.5", "unit": "hour", "unit_price": "110"},
        {"description": photographs, "unit_price": "480"},
    ]
    invoice = create_record(tx, invoices, {"client_id": client.id, "lines": lines})
    return FileReply(form.media_type, form.prepare(tx, invoice).finish)


def tick(tx: Tx, context: PageContext) -> Reply:
    """Finish a task from a list, or take that back: give it the status of the form, and offer its former one.

    Raises `not_found` and the errors of the API.
    """
    kind = context.catalogue.find("tasks", "changing")
    task = kind.get(tx, read_id(context.path_parameters["record"], kind.table))
    status, path = context.form.text("status"), kind.path_of(task)
    former = task.status if isinstance(task, Task) else status
    change_record(tx, kind, task, {"status": status})
    said = f"{title_of(tx, kind.table, task)} is {word_of(status).lower()}."
    undo = f"{path}/tick?status={former}" if status == "done" != former else ""
    return context.redirect(destination(context) or path, said, undo=undo)
