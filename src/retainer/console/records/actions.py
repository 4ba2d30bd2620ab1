"""Actions at the head of a record's page: each is a link to a page that shows its consequences, or to a file."""

from typing import NamedTuple

from retainer.console.catalogue import Kind
from retainer.values.records import Record


class ActionLink(NamedTuple):
    """A button at the head of a record; `path` is below the page of the record: `/pdf`."""

    label: str
    path: str
    is_primary: bool = False


def list_actions(kind: Kind, record: Record) -> list[ActionLink]:
    """Return the buttons of a record, in their order: first what changes it, then its files."""
    return file_links(kind, record)


def file_links(kind: Kind, record: Record) -> list[ActionLink]:
    """Return the link to the PDF of a document; that of a draft is a preview."""
    if kind.reading is None or not kind.reading.representations:
        return []
    return [ActionLink("Preview" if getattr(record, "status", "") == "draft" else "PDF", "/pdf")]
