"""Quotes: documents with a price, which a client may accept."""

from collections.abc import Iterator

from sqlalchemy import ColumnElement, Table, literal

from retainer.billing.quotes.quotes import LOCKED_FIELDS, is_in_use
from retainer.billing.quotes.types import Quote, effective_status
from retainer.console.kinds.display import FREE, Display, Lock
from retainer.console.records import documents
from retainer.console.records.page import RecordPage
from retainer.console.values import AnyBlock, Column, Fact
from retainer.rollups.list_sums import Sum
from retainer.values.reading import writable_fields


def is_open(table: Table) -> ColumnElement[bool]:
    return effective_status(table) == literal("sent")


def blocks(page: RecordPage[Quote]) -> Iterator[AnyBlock]:
    page.seen |= {"title"}
    facts = [documents.day("Valid until", page.record.valid_until), Fact("Contact", page.value("contact_id"))]
    yield documents.document_block(page, facts, [])
    yield from documents.texts(notes=page.record.notes, terms=page.record.terms)


def lock(quote: Quote) -> Lock:
    if is_in_use(quote):
        reason = "This quote has become a project or an invoice, so it is fixed."
        return Lock(writable_fields(Quote).keys() - {"external_id"}, stays=True, reason=reason)
    reason = "The lines and the client of a quote change only in a draft: set its status to Draft first."
    return FREE if quote.status == "draft" else Lock(LOCKED_FIELDS, stays=quote.status == "accepted", reason=reason)


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
    lock=lock,
    rare=("tax_exemption_reason",),
    preset_only=("accepted_by", "decline_reason"),
)
