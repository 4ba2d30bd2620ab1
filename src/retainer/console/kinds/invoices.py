"""Invoices: documents that ask for money, with what was paid and what is still due."""

from collections.abc import Iterator, Sequence

from sqlalchemy import ColumnElement, Table

from retainer.billing.invoices.invoices import LOCKED_FIELDS
from retainer.billing.invoices.types import Invoice
from retainer.console import words
from retainer.console.kinds.display import FREE, Display, Lock
from retainer.console.records import documents
from retainer.console.records.page import RecordPage
from retainer.console.values import AnyBlock, Column, Fact, Value, Values
from retainer.console.values import money as amount
from retainer.console.words import money
from retainer.rollups.list_sums import Sum
from retainer.schema.billing import OPEN_INVOICES, is_issued
from retainer.schema.columns import in_literals


def is_open(table: Table) -> ColumnElement[bool]:
    return in_literals(table.c.status, OPEN_INVOICES)


def balances(_: Values, found: Sequence[Invoice]) -> dict[int, Value]:
    """Return what is left to pay by invoice; nothing is owed on a draft."""
    return {each.id: amount(each.balance_due, each.currency) for each in found if each.status != "draft"}


def facts(page: RecordPage[Invoice]) -> list[Fact]:
    invoice = page.record
    found = page.facts("client_id", "total")
    if invoice.status != "draft":
        tone = "bad" if invoice.is_overdue else ""
        found.append(Fact("Balance due", page.value("balance_due")._replace(tone=tone)))
    late = f"{words.count(invoice.days_overdue, 'day')} late" if invoice.is_overdue else ""
    return [*found, *page.facts("issue_date"), *(fact._replace(note=late) for fact in page.facts("due_date"))]


def blocks(page: RecordPage[Invoice]) -> Iterator[AnyBlock]:
    invoice, document = page.record, page.document
    page.seen |= {"subject", "purchase_order", "credit_notes", "payments"}
    service = [each for each in (document.service_from, document.service_to) if each]
    own_facts = [
        documents.day("Due", document.due_date),
        documents.text("Service date", words.days(service[0], service[-1]) if service else None),
        Fact("Contact", page.value("contact_id")),
    ]
    yield documents.document_block(page, own_facts, sums(invoice))
    yield from documents.texts(notes=invoice.notes, terms=invoice.terms)


def sums(invoice: Invoice) -> list[tuple[str, str]]:
    less = (("Paid", invoice.amount_paid), ("Credited", invoice.amount_credited))
    found = [(label, money(-value, invoice.currency)) for label, value in less if value]
    if invoice.status != "draft":
        found.append(("Balance due", money(invoice.balance_due, invoice.currency)))
    if invoice.refund_due:
        found.append(("To refund", money(invoice.refund_due, invoice.currency)))
    return found


def lock(invoice: Invoice) -> Lock:
    reason = "This invoice is issued, so its client, date, lines and terms are fixed. To correct it, credit it."
    return FREE if invoice.status == "draft" else Lock(LOCKED_FIELDS, stays=True, reason=reason)


DISPLAY = Display(
    columns=(
        Column("number", "subject"),
        "client_id",
        "issue_date",
        "due_date",
        "total",
        Column("balance_due", load=balances),
        "status",
    ),
    filters=("client_id", "status", "issue_date_from", "issue_date_to"),
    views=(
        ("All", ""),
        ("Open", "status=open&sort=due_date"),
        ("Overdue", "status=overdue&sort=due_date"),
        ("Draft", "status=draft"),
        ("Paid", "status=paid"),
    ),
    sums=(Sum("total", is_issued, "Issued"), Sum("balance_due", is_open, "Outstanding")),
    facts=facts,
    blocks=blocks,
    related=("payments", *documents.RELATED),
    lock=lock,
    rare=("tax_exemption_reason",),
    preset_only=("status", "quote_id"),
)
