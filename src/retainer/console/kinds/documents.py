"""Documents: invoices, quotes and credit notes, whose pages look like them: parties, dates, lines and sums."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from sqlalchemy import literal

from retainer.billing.credit_notes.types import CreditNote, CreditNoteLine
from retainer.billing.facts import load_preceding
from retainer.billing.files import load_stored
from retainer.billing.invoices.draft import LOCKED_FIELDS
from retainer.billing.invoices.types import Invoice, InvoiceLine
from retainer.billing.payment_types import discounts_of
from retainer.billing.quotes import quotes
from retainer.billing.quotes.types import Quote, QuoteLine, effective_status
from retainer.console import words
from retainer.console.kinds.display import FREE, AnyPage, Display, FieldLock, RecordPage
from retainer.console.labels import in_words
from retainer.console.values import NOTHING, NUMBERS, AnyBlock, Block, Column, Fact, TableBlock, Value, Values, money
from retainer.documents.einvoice import missing_facts
from retainer.documents.facts import Customer, Issuer
from retainer.documents.warnings import warnings_of
from retainer.documents.wording import country_name, unit_text
from retainer.rollups.list_sums import Sum
from retainer.schema import metadata
from retainer.schema.billing import OPEN_INVOICES, credit_notes, invoices, is_issued
from retainer.schema.columns import in_literals
from retainer.values.reading import writable_fields

Printable = Invoice | Quote | CreditNote
Sums = Sequence[tuple[str, Decimal]]
Named = Mapping[str, Value | str | None]


def warnings(page: AnyPage) -> list[str]:
    if not isinstance(page.own, Invoice | Quote) or page.own.status != "draft":
        return []
    preceding = load_preceding(page.tx, page.own) if isinstance(page.own, Invoice) else None
    return [in_words(warning.message, ()) for warning in warnings_of(page.document, page.tx.today, preceding)]


def document_block(page: AnyPage, own_facts: Named, own_sums: Sums) -> Block:
    record, document = page.record, page.document
    page.seen |= {"client_snapshot", "issue_date", "contact_id", "number", "tax_total"}
    parties = [
        Fact("From", Value("text", document.issuer.name), note=address(document.issuer)),
        Fact("To", page.value("client_id")._replace(text=document.customer.name), note=address(document.customer)),
    ]
    is_imported = bool(getattr(page.own, "is_imported", False))
    is_issued = isinstance(page.own, Invoice | CreditNote) and not document.is_draft and not is_imported
    lacking = missing_facts(document) if is_issued else []
    issued = "Issue date" if not document.is_draft or page.own.issue_date else "Issue date (if issued today)"
    named: Named = {
        "Number": document.number or "set when issued",
        issued: document.issue_date and words.short_day(document.issue_date),
        **own_facts,
        "Order number": document.purchase_order,
        "Subject": document.subject,
        "No e-invoice": " ".join(in_words(each.message, ()) for each in lacking),
    }
    shown = {label: Value("text", each) if isinstance(each, str) else each for label, each in named.items() if each}
    facts = [Fact(label, value) for label, value in shown.items() if value != NOTHING]
    return Block("document", parties=parties, facts=facts, lines=line_table(page), sums=sums_of(record, own_sums))


def line_table(page: AnyPage) -> TableBlock:
    lines = page.record.lines
    discount = ["discount_percent"] if any(each.discount_percent for each in lines) else []
    has_work = bool(lines) and isinstance(lines[0], InvoiceLine)
    has_unit = bool(lines) and not isinstance(lines[0], CreditNoteLine)
    optional = ["is_optional"] if any(getattr(each, "is_optional", False) for each in lines) else []
    columns: list[str | Column] = [
        Column("description", "project_id" if has_unit else ""),
        *([Column("work", load=work)] if has_work else []),
        Column("quantity", load=quantities if has_unit else None),
        *("unit_price", *discount, "tax_rate", *optional, "amount"),
    ]
    table = metadata.tables.get(f"{page.kind.table.name.removesuffix('s')}_lines")
    block = page.table("Lines", lines, table, columns)
    return block.without_empty() if lines else block


def quantities(_: Values, lines: Sequence[QuoteLine | InvoiceLine]) -> dict[int, Value]:
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


def address(party: Issuer | Customer) -> str:
    place = " ".join(filter(None, (party.postal_code, party.city)))
    country = country_name(party.country, "en") if party.country else ""
    vat = f"VAT number {party.vat_number}" if party.vat_number else ""
    lines = (party.address_line1, party.address_line2, place, party.region, country, vat)
    return "\n".join(each for each in lines if each)


def sums_of(record: Printable, others: Sums) -> list[tuple[str, str]]:
    taxes = [
        (f"Tax {NUMBERS['percent'](tax.tax_rate)} on {words.number(tax.taxable_amount)}", tax.tax_amount)
        for tax in record.tax_breakdown
    ]
    sums = [("Subtotal", record.subtotal), *taxes, ("Total", record.total), *others]
    return [(label, words.money(amount, record.currency)) for label, amount in sums]


def balances(_: Values, found: Sequence[Invoice]) -> dict[int, Value]:
    """Return what is due; drafts and what was written off are not, and neither does the sum of the list count them."""
    is_due = (each for each in found if each.status not in {"draft", "written_off"})
    return {each.id: money(each.balance_due, each.currency) for each in is_due}


def due_label(invoice: Invoice) -> str:
    return "Written off" if invoice.status == "written_off" else "Balance due"


def facts_of_invoice(page: RecordPage[Invoice]) -> list[Fact]:
    invoice = page.record
    found, due = page.facts("client_id", "total"), page.value("balance_due")
    if invoice.status != "draft":
        found.append(Fact(due_label(invoice), due._replace(tone="bad" if invoice.is_overdue else "")))
    late = f"{words.count(invoice.days_overdue, 'day')} late" if invoice.is_overdue else ""
    return [*found, *page.facts("issue_date"), *(fact._replace(note=late) for fact in page.facts("due_date"))]


def blocks_of_invoice(page: RecordPage[Invoice]) -> Iterator[AnyBlock]:
    invoice, document = page.record, page.document
    page.seen |= {"subject", "purchase_order", "credit_notes", "payments", "service_from", "service_to", "is_imported"}
    page.seen |= {"document_version"} if invoice.document_version == 1 else set()
    service = [each for each in (document.service_from, document.service_to) if each]
    own_facts = {
        "Imported from": program_of(page) if invoice.is_imported else None,
        "Due": document.due_date and words.short_day(document.due_date),
        "Service date": words.days(service[0], service[-1]) if service else None,
        "Contact": page.value("contact_id"),
    }
    yield document_block(page, own_facts, payments_of(invoice))
    yield from texts(notes=invoice.notes, terms=invoice.terms)


def program_of(page: RecordPage[Invoice] | RecordPage[CreditNote]) -> str:
    """Return the program that has issued a document, and that it has the PDF if that did not come with the import."""
    table = invoices if isinstance(page.own, Invoice) else credit_notes
    program = str(page.tx.field(table.c.imported_from, page.own.id))
    return program if load_stored(page.tx, page.own) else f"{program}, which has its PDF"


def payments_of(invoice: Invoice) -> Sums:
    discounted = sum((each.amount for each in discounts_of(invoice.payments)), Decimal(0))
    credited = invoice.amount_credited - discounted
    less = (("Paid", -invoice.amount_paid), ("Discount", -discounted), ("Credited", -credited))
    due = [] if invoice.status == "draft" else [(due_label(invoice), invoice.balance_due)]
    refund = [("To refund", invoice.refund_due)] if invoice.refund_due else []
    return [*(each for each in less if each[1]), *due, *refund]


ISSUED = FieldLock(
    LOCKED_FIELDS,
    stays=True,
    reason="This invoice is issued, so its client, date, lines and terms are fixed. To correct it, credit it.",
)
VOID = ISSUED._replace(reason="This invoice is void, so only a few fields can change.")
RECORD_PAYMENTS = ("Record payments", "/records/payments/new")
INVOICES = Display(
    columns=(
        *(Column("number", "subject"), "client_id", "issue_date", "due_date", "total"),
        *(Column("balance_due", load=balances), "status"),
    ),
    filters=("client_id", "status", "issue_date_from", "issue_date_to"),
    sort="-issue_date",
    views=(
        ("All", "sort=-issue_date"),
        ("Open", "status=open&sort=due_date"),
        ("Overdue", "status=overdue&sort=due_date"),
        ("Draft", "status=draft"),
        ("Paid", "status=paid&sort=-issue_date"),
    ),
    sums=(
        Sum("total", is_issued, "Issued"),
        Sum("balance_due", lambda table: in_literals(table.c.status, OPEN_INVOICES), "Outstanding"),
    ),
    links=(RECORD_PAYMENTS,),
    facts=facts_of_invoice,
    blocks=blocks_of_invoice,
    forms=(("issue", "Issue this invoice", ()), ("payment", "Record payment", ())),
    lock=lambda invoice: {"draft": FREE, "void": VOID}.get(invoice.status, ISSUED),
    rare=("tax_exemption_reason", "reminders"),
    preset_only=("status", "quote_id"),
)


def blocks_of_quote(page: RecordPage[Quote]) -> Iterator[AnyBlock]:
    page.seen |= {"title"}
    own_facts = {"Valid until": page.value("valid_until"), "Contact": page.value("contact_id")}
    yield document_block(page, own_facts, [])
    yield from texts(notes=page.record.notes, terms=page.record.terms)


def lock_of_quote(quote: Quote) -> FieldLock:
    if quotes.is_in_use(quote):
        reason = "This quote has become a project or an invoice, so it is fixed."
        return FieldLock(writable_fields(Quote).keys() - {"external_id"}, stays=True, reason=reason)
    reason = "The lines and the client of a quote change only in a draft: set it back to draft first."
    locked = FieldLock(quotes.LOCKED_FIELDS, stays=quote.status == "accepted", reason=reason)
    return FREE if quote.status == "draft" else locked


QUOTES = Display(
    columns=(Column("number", "title"), "client_id", "issue_date", "valid_until", "total", "status"),
    filters=("client_id", "status", "issue_date_from", "issue_date_to"),
    sort="-issue_date",
    views=(
        ("All", "sort=-issue_date"),
        ("Draft", "status=draft"),
        ("Sent", "status=sent&sort=valid_until"),
        ("Accepted", "status=accepted&sort=-issue_date"),
        ("Expired", "status=expired&sort=-valid_until"),
    ),
    sums=(Sum("total", lambda table: effective_status(table) == literal("sent"), "Open"),),
    facts=("client_id", "total", "issue_date", "valid_until"),
    blocks=blocks_of_quote,
    forms=(("invoice", "Bill this quote", ()),),
    created_as=("sent", "Create and mark as sent"),
    lock=lock_of_quote,
    rare=("tax_exemption_reason",),
    preset_only=("status", "accepted_by", "decline_reason", "accepted_line_ids"),
)


def blocks_of_credit_note(page: RecordPage[CreditNote]) -> Iterator[AnyBlock]:
    note = page.record
    applied = (("Applied to the balance", note.applied_amount), ("To refund", note.refundable_amount))
    page.seen |= {"is_imported"}
    program = program_of(page) if note.is_imported else None
    own_facts = {"Imported from": program, "Invoice": page.value("invoice_id")}
    yield document_block(page, own_facts, [each for each in applied if each[1]])
    yield from texts(explanation=note.description)


CREDIT_NOTES = Display(
    columns=(Column("number", "description"), "client_id", "invoice_id", "issue_date", "reason", "total"),
    filters=("client_id", "reason", "issue_date_from", "issue_date_to"),
    sort="-issue_date",
    sums=(Sum("total"),),
    facts=("client_id", "invoice_id", "total", "issue_date", "reason"),
    blocks=blocks_of_credit_note,
)
