"""Actions at the head of a record's page: each is a link to a page that shows its consequences, or to a file."""

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlencode

from retainer.billing.quotes.types import Quote
from retainer.console.actions.offers import offers_of
from retainer.console.catalogue import Catalogue, Kind
from retainer.console.displays import display_of
from retainer.values.reading import writable_fields
from retainer.values.records import Record

MAX_BUTTONS = 4
"""Buttons beyond which a menu has all but the next step and the PDF."""


class ActionLink(NamedTuple):
    """A button at the head of a record; a path that begins with a slash is below the console, else the record's."""

    label: str
    path: str
    is_primary: bool = False


def list_actions(
    kind: Kind, record: Record, *, has_einvoice: bool = False
) -> tuple[Sequence[ActionLink], Sequence[ActionLink]]:
    """Return the buttons of a record, the next step first, and those in its menu if there are many."""
    offers = offers_of(kind.name, record)
    edits = [ActionLink("Edit", "edit")] if kind.changing else []
    deletes = (
        [ActionLink("Delete…", "delete")] if kind.deleting and not display_of(kind.name).lock(record).stays else []
    )
    links = [
        *conversions(record),
        *(
            ActionLink(each.label, f"#{each.path}" if each.is_inline else each.path, each.is_next(record))
            for each in offers
        ),
        *edits,
        *file_links(kind, record, has_einvoice=has_einvoice),
        *deletes,
    ]
    links.sort(key=lambda link: not link.is_primary)
    if len(links) <= MAX_BUTTONS:
        return links, ()
    links.sort(key=lambda link: (not link.is_primary, link.path != "pdf"))
    first = max(2, sum(link.is_primary or link.path == "pdf" for link in links))
    return links[:first], links[first:]


def conversions(record: Record) -> list[ActionLink]:
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
        if field in display_of(part.name).preset_only:
            continue
        fields = writable_fields(part.creating.body) if part.creating else {}
        client = getattr(record, "client_id", None) if "client_id" in fields else None
        preset = {"client_id": client, field or "": record.id} if client else {field or "": record.id}
        query = urlencode(preset)
        found.append(ActionLink(part.noun.capitalize(), f"/records/{part.name}/new?{query}"))
    return found
