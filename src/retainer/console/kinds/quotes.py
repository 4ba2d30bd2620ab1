"""Quotes: documents with a price, which a client may accept."""

from collections.abc import Iterator

from sqlalchemy import ColumnElement, Table, literal

from retainer.billing.quotes.types import Quote, effective_status
from retainer.console.kinds.display import Display
from retainer.console.records import documents
from retainer.console.records.blocks import Block, Fact
from retainer.console.records.page import RecordPage
from retainer.console.values import Column
from retainer.rollups.list_sums import Sum


def is_open(table: Table) -> ColumnElement[bool]:
    return effective_status(table) == literal("sent")


def blocks(page: RecordPage[Quote]) -> Iterator[Block]:
    page.seen |= {"title"}
    facts = [documents.day("Valid until", page.record.valid_until), Fact("Contact", page.value("contact_id"))]
    yield documents.document_block(page, facts, [])
    yield from documents.texts(notes=page.record.notes, terms=page.record.terms)


DISPLAY = Display(
    columns=(Column("number", "title"), "client_id", "issue_date", "valid_until", "total", "status"),
    filters=("client_id", "status", "issue_date_from", "issue_date_to"),
    views=(
        ("All", ""),
        ("Draft", "status=draft"),
        ("Sent", "status=sent&sort=valid_until"),
        ("Accepted", "status=accepted"),
        ("Expired", "status=expired"),
    ),
    sums=(Sum("total", is_open, "Open"),),
    facts=("client_id", "total", "issue_date", "valid_until"),
    blocks=blocks,
    related=documents.RELATED,
)
