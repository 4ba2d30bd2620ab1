"""Documents: the page of an invoice, quote or credit note, like the document itself: parties, dates, lines and sums."""

from collections.abc import Iterable, Sequence

from retainer.billing.credit_notes.types import CreditNote, CreditNoteLine
from retainer.billing.invoices.types import Invoice, InvoiceLine
from retainer.billing.quotes.types import Quote, QuoteLine
from retainer.console import words
from retainer.console.records.blocks import DocumentBlock, DocumentLine, Fact, Party, TextBlock
from retainer.console.records.page import AnyPage
from retainer.console.values import NOTHING, Value, percent_text
from retainer.console.words import money, short_day
from retainer.documents.einvoice import missing_facts
from retainer.documents.facts import Customer, Issuer
from retainer.documents.warnings import warnings_of
from retainer.documents.wording import country_name, unit_text
from retainer.schema.work import projects

Printable = Invoice | Quote | CreditNote
Sums = Sequence[tuple[str, str]]
RELATED = ("invoices", "projects", "credit-notes")


def warnings(page: AnyPage) -> list[str]:
    """Return what a draft probably should not say."""
    is_draft = isinstance(page.own, Invoice | Quote) and page.own.status == "draft"
    return [warning.message for warning in warnings_of(page.document, page.tx.today)] if is_draft else []


def has_einvoice(page: AnyPage) -> bool:
    return isinstance(page.own, Invoice | CreditNote) and not missing_facts(page.document)


def document_block(page: AnyPage, own_facts: Iterable[Fact], own_sums: Sums) -> DocumentBlock:
    """Return the document: after its number and date, and below its total, with what only its kind has."""
    record, document = page.record, page.document
    page.seen |= {"client_snapshot", "issue_date", "contact_id", "number"}
    parties = [
        Party("From", Value("text", document.issuer.name), address(document.issuer)),
        Party("To", page.value("client_id")._replace(text=document.customer.name), address(document.customer)),
    ]
    issued = "Issue date" if not document.is_draft or page.own.issue_date else "Issue date (if issued today)"
    facts = [
        Fact("Number", Value("text", document.number or "set when issued")),
        day(issued, document.issue_date),
        *own_facts,
        text("Order number", document.purchase_order),
        text("Subject", document.subject),
    ]
    lines = [line(page, each) for each in record.lines]
    return DocumentBlock(
        parties,
        [fact for fact in facts if fact.value != NOTHING],
        lines,
        [*sums(record), *own_sums],
        has_discounts=any(each.discount_percent for each in record.lines),
    )


def texts(**named: str | None) -> list[TextBlock]:
    return [TextBlock(title.capitalize(), text) for title, text in named.items() if text]


def day(label: str, value: str | None) -> Fact:
    return Fact(label, Value("day", short_day(value)) if value else NOTHING)


def text(label: str, value: str | None) -> Fact:
    return Fact(label, Value("text", value) if value else NOTHING)


def address(party: Issuer | Customer) -> list[str]:
    """Return the lines of an address, and the VAT number."""
    place = " ".join(filter(None, (party.postal_code, party.city)))
    country = country_name(party.country, "en") if party.country else ""
    vat = f"VAT number {party.vat_number}" if party.vat_number else ""
    return [each for each in (party.address_line1, party.address_line2, place, party.region, country, vat) if each]


def line(page: AnyPage, each: QuoteLine | InvoiceLine | CreditNoteLine) -> DocumentLine:
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
        unit_price=f"{each.unit_price:,f}".replace("-", words.MINUS),
        discount=f"{percent_text(each.discount_percent)}%" if each.discount_percent else "",
        tax=f"{percent_text(each.tax_rate)}%",
        amount=f"{each.amount:,f}".replace("-", words.MINUS),
        work=work,
    )


def sums(record: Printable) -> list[tuple[str, str]]:
    """Return the sums of all documents: net, the tax of each rate, and the total."""
    taxes = [
        (f"Tax {percent_text(tax.tax_rate)}% on {tax.taxable_amount:,f}", money(tax.tax_amount, record.currency))
        for tax in record.tax_breakdown
    ]
    return [
        ("Subtotal", money(record.subtotal, record.currency)),
        *taxes,
        ("Total", money(record.total, record.currency)),
    ]
