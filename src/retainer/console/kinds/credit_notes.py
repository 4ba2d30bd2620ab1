"""Credit notes: documents that take back a part of an invoice."""

from collections.abc import Iterator

from retainer.billing.credit_notes.types import CreditNote
from retainer.console.kinds.display import Display
from retainer.console.records import documents
from retainer.console.records.page import RecordPage
from retainer.console.values import AnyBlock, Column, Fact
from retainer.console.words import money
from retainer.rollups.list_sums import Sum


def blocks(page: RecordPage[CreditNote]) -> Iterator[AnyBlock]:
    note = page.record
    applied = (("Applied to the balance", note.applied_amount), ("To refund", note.refundable_amount))
    own_sums = [(label, money(value, note.currency)) for label, value in applied if value]
    yield documents.document_block(page, [Fact("Invoice", page.value("invoice_id"))], own_sums)
    yield from documents.texts(explanation=note.description)


DISPLAY = Display(
    columns=(Column("number", "description"), "client_id", "invoice_id", "issue_date", "reason", "total"),
    filters=("client_id", "reason", "issue_date_from", "issue_date_to"),
    sums=(Sum("total"),),
    facts=("client_id", "invoice_id", "total", "issue_date", "reason"),
    blocks=blocks,
    related=documents.RELATED,
)
