"""Documents: the page of an invoice, quote or credit note, like the document itself: parties, dates, lines and sums."""

from collections.abc import Iterable, Sequence

from retainer.billing.credit_notes.types import CreditNote, CreditNoteLine
from retainer.billing.invoices.types import Invoice, InvoiceLine
from retainer.billing.quotes.types import Quote, QuoteLine
from retainer.console import words
from retainer.console.labels import in_words
from retainer.console.records.page import AnyPage
from retainer.console.values import NOTHING, NUMBERS, Block, Column, Fact, TableBlock, Value, Values, percent_text
from retainer.console.words import money, short_day
from retainer.documents.einvoice import missing_facts
from retainer.documents.facts import Customer, Issuer
from retainer.documents.warnings import warnings_of
from retainer.documents.wording import country_name, unit_text
from retainer.schema import metadata

Printable = Invoice | Quote | CreditNote
Sums = Sequence[tuple[str, str]]
RELATED = ("invoices", "projects", "credit-notes")


def warnings(page: AnyPage) -> list[str]:
    is_draft = isinstance(page.own, Invoice | Quote) and page.own.status == "draft"
    return [warning.message for warning in warnings_of(page.document, page.tx.today)] if is_draft else []


def has_einvoice(page: AnyPage) -> bool:
    return isinstance(page.own, Invoice | CreditNote) and not missing_facts(page.document)


def document_block(page: AnyPage, own_facts: Iterable[Fact], own_sums: Sums) -> Block:
    """Return the document: after its number and date, and below its total, with what only its kind has."""
    record, document = page.record, page.document
    page.seen |= {"client_snapshot", "issue_date", "contact_id", "number", "tax_total"}
    parties = [
        Fact("From", Value("text", document.issuer.name), note=address(document.issuer)),
        Fact("To", page.value("client_id")._replace(text=document.customer.name), note=address(document.customer)),
    ]
    is_issued = isinstance(page.own, Invoice | CreditNote) and not document.is_draft
    lacking = missing_facts(document) if is_issued else []
    issued = "Issue date" if not document.is_draft or page.own.issue_date else "Issue date (if issued today)"
    facts = [
        Fact("Number", Value("text", document.number or "set when issued")),
        day(issued, document.issue_date),
        *own_facts,
        text("Order number", document.purchase_order),
        text("Subject", document.subject),
        text("No e-invoice", in_words(" ".join(each.message for each in lacking), ())),
    ]
    facts = [fact for fact in facts if fact.value != NOTHING]
    return Block("document", parties=parties, facts=facts, lines=line_table(page), sums=[*sums(record), *own_sums])


def line_table(page: AnyPage) -> TableBlock:
    """Return the lines of a document; discounts only if there are any, and what each line bills."""
    lines = page.record.lines
    discount = ["discount_percent"] if any(each.discount_percent for each in lines) else []
    has_work = bool(lines) and isinstance(lines[0], InvoiceLine)
    has_unit = bool(lines) and not isinstance(lines[0], CreditNoteLine)
    columns: list[str | Column] = [
        Column("description", "project_id" if has_unit else ""),
        *([Column("work", load=work)] if has_work else []),
        Column("quantity", load=quantities if has_unit else None),
        *("unit_price", *discount, "tax_rate", "amount"),
    ]
    table = metadata.tables.get(f"{page.kind.table.name.removesuffix('s')}_lines")
    block = page.table("Lines", lines, table, columns)
    return block.without_empty() if lines else block


def quantities(_: Values, lines: Sequence[QuoteLine | InvoiceLine]) -> dict[int, Value]:
    """Return quantities with their units: `1 month`."""
    units = {each.id: unit_text(each.unit, each.quantity, "en") if each.unit else "" for each in lines}
    return {each.id: Value("number", f"{NUMBERS['number'](each.quantity)} {units[each.id]}".rstrip()) for each in lines}


def work(_: Values, lines: Sequence[InvoiceLine]) -> dict[int, Value]:
    found = {}
    for each in lines:
        parts = [(len(each.time_entry_ids), "time entry", "time entries"), (len(each.expense_ids), "expense", "")]
        parts.append((int(each.milestone_id is not None), "milestone", ""))
        texts = [words.count(*part) for part in parts if part[0]]
        found[each.id] = Value("text", ", ".join(texts)) if texts else NOTHING
    return found


def texts(**named: str | None) -> list[Block]:
    return [Block("text", title=title.capitalize(), text=text) for title, text in named.items() if text]


def day(label: str, value: str | None) -> Fact:
    return Fact(label, Value("day", short_day(value)) if value else NOTHING)


def text(label: str, value: str | None) -> Fact:
    return Fact(label, Value("text", value) if value else NOTHING)


def address(party: Issuer | Customer) -> str:
    place = " ".join(filter(None, (party.postal_code, party.city)))
    country = country_name(party.country, "en") if party.country else ""
    vat = f"VAT number {party.vat_number}" if party.vat_number else ""
    lines = (party.address_line1, party.address_line2, place, party.region, country, vat)
    return "\n".join(each for each in lines if each)


def sums(record: Printable) -> list[tuple[str, str]]:
    taxes = [
        (f"Tax {percent_text(tax.tax_rate)}% on {tax.taxable_amount:,f}", money(tax.tax_amount, record.currency))
        for tax in record.tax_breakdown
    ]
    return [
        ("Subtotal", money(record.subtotal, record.currency)),
        *taxes,
        ("Total", money(record.total, record.currency)),
    ]
