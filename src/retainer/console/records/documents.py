"""The page of an invoice, quote or credit note, like the document itself: parties, dates, lines, tax and sums."""

from collections.abc import Iterator

from retainer.billing.credit_notes.types import CreditNote, CreditNoteLine
from retainer.billing.invoices.types import Invoice, InvoiceLine
from retainer.billing.quotes.types import Quote, QuoteLine
from retainer.console import words
from retainer.console.records.blocks import Block, DocumentBlock, DocumentLine, Fact, Party, TableBlock, TextBlock
from retainer.console.records.page import RecordPage
from retainer.console.records.values import NOTHING, Value, percent_text
from retainer.console.words import money, short_day
from retainer.documents.einvoice import missing_facts
from retainer.documents.facts import Customer, Document, Issuer
from retainer.documents.warnings import warnings_of
from retainer.documents.wording import country_name, unit_text
from retainer.schema.billing import payments
from retainer.schema.work import projects

Printable = Invoice | Quote | CreditNote
PARTS = 50
"""Payments of an invoice that its page shows; the newest, if there are more."""
HIDDEN = frozenset(
    {
        *("number", "status", "client_id", "contact_id", "issue_date", "due_date", "valid_until", "currency", "lines"),
        *("subtotal", "tax_total", "total", "tax_breakdown", "amount_paid", "amount_credited", "balance_due"),
        *("refund_due", "client_snapshot", "payments", "credit_notes", "is_overdue", "days_overdue", "subject"),
        *("title", "notes", "terms", "purchase_order", "applied_amount", "refundable_amount", "description"),
        *("invoice_id", "reason", "unbilled_work", "record_payment", "record_refund", "amount"),
    }
)


def facts(page: RecordPage) -> list[Fact]:
    """Return the client, the total, what is due, and when."""
    record = page.record
    if isinstance(record, Invoice):
        found = [*page.facts("client_id"), Fact("Total", amount(record, "total"))]
        if record.sent_at is not None:
            tone = "bad" if record.is_overdue else ""
            found.append(Fact("Balance due", amount(record, "balance_due")._replace(tone=tone)))
        late = f"{words.count(record.days_overdue, 'day')} overdue" if record.is_overdue else ""
        return [*found, *page.facts("issue_date"), *(fact._replace(note=late) for fact in page.facts("due_date"))]
    if isinstance(record, Quote):
        return [
            *page.facts("client_id"),
            Fact("Total", amount(record, "total")),
            *page.facts("issue_date", "valid_until"),
        ]
    return [*page.facts("client_id", "invoice_id", "total", "issue_date", "reason")]


def warnings(page: RecordPage) -> list[str]:
    """Return what a draft probably should not say."""
    is_draft = isinstance(page.record, Invoice | Quote) and page.record.status == "draft"
    return [warning.message for warning in warnings_of(page.document, page.tx.today)] if is_draft else []


def has_einvoice(page: RecordPage) -> bool:
    return isinstance(page.record, Invoice | CreditNote) and not missing_facts(page.document)


def blocks(page: RecordPage) -> Iterator[Block]:
    """Yield the document, its payments and credits, and its texts."""
    record = page.record
    if not isinstance(record, Printable):
        return
    yield document_block(page, record, page.document)
    if isinstance(record, Invoice) and record.payments:
        yield payment_table(page, record)
    for title, text in (("Notes", getattr(record, "notes", None)), ("Terms", getattr(record, "terms", None))):
        if text:
            yield TextBlock(title, text)
    if isinstance(record, CreditNote) and record.description:
        yield TextBlock("Explanation", record.description)


def document_block(page: RecordPage, record: Printable, document: Document) -> DocumentBlock:
    client = page.value("client_id")
    parties = [
        Party("From", Value("text", document.issuer.name), address(document.issuer)),
        Party("To", client._replace(text=document.customer.name), address(document.customer)),
    ]
    lines = [line(page, each) for each in record.lines]
    has_discounts = any(each.discount_percent for each in record.lines)
    return DocumentBlock(parties, dates(page, record, document), lines, sums(record), has_discounts)


def dates(page: RecordPage, record: Printable, document: Document) -> list[Fact]:
    """Return what a document says above its lines; the dates of a draft are those that issuing would set."""
    issued = "Issue date" if not document.is_draft or getattr(record, "issue_date", None) else "Issue date, if today"
    found = [Fact("Number", Value("text", document.number or "set when issued")), day(issued, document.issue_date)]
    if isinstance(record, Invoice):
        found.append(day("Due", document.due_date))
        service = [each for each in (document.service_from, document.service_to) if each]
        if service:
            found.append(Fact("Work", Value("text", words.days(service[0], service[-1]))))
    found.append(day("Valid until", document.valid_until))
    if isinstance(record, CreditNote):
        found.append(Fact("Invoice", page.value("invoice_id")))
    found.append(Fact("Contact", page.value("contact_id") if hasattr(record, "contact_id") else NOTHING))
    for label, text in (("Order number", document.purchase_order), ("Subject", document.subject)):
        found.append(Fact(label, Value("text", text) if text else NOTHING))
    return [fact for fact in found if fact.value != NOTHING]


def day(label: str, text: str | None) -> Fact:
    return Fact(label, Value("day", short_day(text)) if text else NOTHING)


def address(party: Issuer | Customer) -> list[str]:
    """Return the lines of an address, and the VAT number."""
    place = " ".join(filter(None, (party.postal_code, party.city)))
    country = country_name(party.country, "en") if party.country else ""
    lines = [party.address_line1, party.address_line2, place, party.region, country]
    vat = f"VAT number {party.vat_number}" if party.vat_number else ""
    return [text for text in (*lines, vat) if text]


def line(page: RecordPage, each: QuoteLine | InvoiceLine | CreditNoteLine) -> DocumentLine:
    project_id = None if isinstance(each, CreditNoteLine) else each.project_id
    unit = None if isinstance(each, CreditNoteLine) else each.unit
    work = ""
    if isinstance(each, InvoiceLine):
        parts = [(len(each.time_entry_ids), "time entry", "time entries"), (len(each.expense_ids), "expense", "")]
        parts.append((int(each.milestone_id is not None), "milestone", ""))
        work = ", ".join(words.count(*part) for part in parts if part[0])
    return DocumentLine(
        description=each.description,
        project=NOTHING if project_id is None else Value("link", link=page.names.refer(projects, project_id)),
        quantity=f"{each.quantity.normalize():,f}" + (f" {unit_text(unit, each.quantity, 'en')}" if unit else ""),
        unit_price=f"{each.unit_price:,f}",
        discount=f"{percent_text(each.discount_percent)}%" if each.discount_percent else "",
        tax=f"{percent_text(each.tax_rate)}%",
        amount=f"{each.amount:,f}",
        work=work,
    )


def sums(record: Printable) -> list[tuple[str, str]]:
    """Return the sums below the lines: net, the tax of each rate, the total, and what is still due."""
    currency = record.currency
    found = [("Subtotal", money(record.subtotal, currency))]
    found += [
        (f"Tax {percent_text(tax.tax_rate)}% on {tax.taxable_amount:,f}", money(tax.tax_amount, currency))
        for tax in record.tax_breakdown
    ]
    found.append(("Total", money(record.total, currency)))
    if isinstance(record, Invoice):
        less = (("Paid", record.amount_paid), ("Credited", record.amount_credited))
        found += [(label, money(-value, currency)) for label, value in less if value]
        if record.sent_at is not None:
            found.append(("Balance due", money(record.balance_due, currency)))
        if record.refund_due:
            found.append(("To refund", money(record.refund_due, currency)))
    if isinstance(record, CreditNote):
        applied = (("Applied to the balance", record.applied_amount), ("To refund", record.refundable_amount))
        found += [(label, money(value, currency)) for label, value in applied if value]
    return found


def payment_table(page: RecordPage, invoice: Invoice) -> TableBlock:
    names = ("paid_date", "kind", "method", "reference", "notes", "amount")
    return page.table("Payments", invoice.payments[-PARTS:], payments, names)._replace(total=len(invoice.payments))


def amount(record: Printable, name: str) -> Value:
    return Value("number", money(getattr(record, name), record.currency))
