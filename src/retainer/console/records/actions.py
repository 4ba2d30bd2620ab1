"""Actions at the head of a record's page: each is a link to a page that shows its consequences, or to a file."""

from typing import NamedTuple
from urllib.parse import urlencode

from retainer.billing.quotes.types import Quote
from retainer.console.actions.offers import offers_of
from retainer.console.catalogue import Catalogue, Kind
from retainer.console.editing.fields import WITHOUT
from retainer.console.editing.locks import lock_of
from retainer.crm.clients import Client
from retainer.values.reading import writable_fields
from retainer.values.records import Record
from retainer.work.projects import Project


class ActionLink(NamedTuple):
    """A button at the head of a record; a path that begins with a slash is below the console, else the record's."""

    label: str
    path: str
    is_primary: bool = False


def list_actions(kind: Kind, record: Record, *, has_einvoice: bool = False) -> list[ActionLink]:
    """Return the buttons of a record, in their order: the next step, what changes it, its files, and its end."""
    offers = [ActionLink(*offer) for offer in offers_of(record)]
    edits = [ActionLink("Edit", "edit")] if kind.changing else []
    deletes = [ActionLink("Delete…", "delete")] if kind.deleting and not lock_of(record).stays else []
    files = file_links(kind, record, has_einvoice=has_einvoice)
    return [*offers, *bills(record), *conversions(record), *edits, *files, *deletes]


def bills(record: Record) -> list[ActionLink]:
    """Return the link to the page that bills a client or a project."""
    is_billed = isinstance(record, Project) and record.client_id and record.billing_type != "non_billable"
    return [ActionLink("Bill…", "bill", is_primary=True)] if isinstance(record, Client) or is_billed else []


def conversions(record: Record) -> list[ActionLink]:
    """Return what an accepted quote can become."""
    if not isinstance(record, Quote) or record.status != "accepted":
        return []
    query = urlencode({"quote_id": record.id})
    invoice = [ActionLink("Create invoice", f"/records/invoices/new?{query}", is_primary=True)]
    project = [ActionLink("Create project", f"/records/projects/new?{query}")]
    return [*(invoice if record.invoice_id is None else []), *(project if record.converted_project_id is None else [])]


def file_links(kind: Kind, record: Record, *, has_einvoice: bool) -> list[ActionLink]:
    """Return the links to the files of a document: the preview of a draft, else the PDF and the e-invoice."""
    if kind.reading is None or not kind.reading.representations:
        return []
    if getattr(record, "status", "") == "draft":
        return [ActionLink("Preview PDF", "pdf")]
    return [ActionLink("PDF", "pdf"), *([ActionLink("E-invoice (XML)", "xml")] if has_einvoice else [])]


def new_links(catalogue: Catalogue, kind: Kind, record: Record) -> list[ActionLink]:
    """Return the links to the forms of records that would belong to this one, with what follows from it filled in."""
    found = []
    for part, field in catalogue.parts_of(kind):
        if field in WITHOUT.get(part.table.name, ()):
            continue
        fields = writable_fields(part.creating.body) if part.creating else {}
        client = getattr(record, "client_id", None) if "client_id" in fields else None
        preset = {"client_id": client, field or "": record.id} if client else {field or "": record.id}
        query = urlencode(preset)
        found.append(ActionLink(part.noun.capitalize(), f"/records/{part.name}/new?{query}"))
    return found
