"""Actions at the head of a record's page: each is a link to a page that shows its consequences, or to a file."""

from typing import NamedTuple

from retainer.console.actions.offers import offers_of
from retainer.console.catalogue import Kind
from retainer.values.records import Record


class ActionLink(NamedTuple):
    """A button at the head of a record; `path` is below the page of the record: `/pdf`."""

    label: str
    path: str
    is_primary: bool = False


def list_actions(kind: Kind, record: Record, *, has_einvoice: bool = False) -> list[ActionLink]:
    """Return the buttons of a record, in their order: first what changes it, then its files."""
    offers = [ActionLink(*offer) for offer in offers_of(record)]
    return [*offers, *file_links(kind, record, has_einvoice=has_einvoice)]


def file_links(kind: Kind, record: Record, *, has_einvoice: bool) -> list[ActionLink]:
    """Return the links to the files of a document: the preview of a draft, else the PDF and the e-invoice."""
    if kind.reading is None or not kind.reading.representations:
        return []
    if getattr(record, "status", "") == "draft":
        return [ActionLink("Preview PDF", "/pdf")]
    return [ActionLink("PDF", "/pdf"), *([ActionLink("E-invoice (XML)", "/xml")] if has_einvoice else [])]
