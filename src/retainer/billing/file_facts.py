"""Facts of documents, read from the database: snapshots of what was issued, else what applies now."""

from decimal import Decimal
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Table, bindparam, func, select, union_all

from retainer.billing.credit_notes.types import CreditNote, CreditNoteLine
from retainer.billing.invoices.types import ClientSnapshot, Invoice, InvoiceLine
from retainer.billing.quotes.types import Quote, QuoteLine
from retainer.documents.facts import Credited, Customer, Document, Issuer, Language, Line, Tax
from retainer.documents.warnings import DocumentWarning, warnings_of
from retainer.identity import logos
from retainer.schema.billing import allocations, credit_notes, expenses, invoice_lines, invoices
from retainer.schema.crm import clients, external_contacts
from retainer.schema.expressions import DOCUMENT_LANGUAGE, early_payment_term, in_document_language
from retainer.schema.identity import accounts
from retainer.schema.work import time_entries
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values import early_payment
from retainer.values.decoding import decoder
from retainer.values.exact import day_after
from retainer.values.months import last_day


class ClientNow(NamedTuple):
    """A client as it is now, with the language of its documents and the contact of one of them."""

    language: Language
    payment_terms_days: int
    email: str | None
    contact_name: str | None
    name: str
    address_line1: str | None
    address_line2: str | None
    city: str | None
    region: str | None
    postal_code: str | None
    country: str | None
    vat_number: str | None


class InvoiceRow(NamedTuple):
    """The columns of an invoice that its own document and those of its credit notes print."""

    number: str
    issue_date: str
    contact_id: int | None
    purchase_order: str | None
    tax_exemption_reason: str | None
    client_snapshot: str
    issuer_snapshot: str | None


ADDRESS = ClientSnapshot.__struct_fields__
ISSUER_COLUMNS = {
    "name": func.coalesce(accounts.c.legal_name, accounts.c.name),
    "color": accounts.c.document_color,
    "footer": in_document_language("document_footer"),
    "language": DOCUMENT_LANGUAGE,
    "tax_exemption_reason": in_document_language("tax_exemption_reason"),
    **{name: early_payment_term(name) for name in early_payment.FIELDS},
}
"""The columns of an issuer whose names differ from its fields, or that depend on the client."""
read_client_snapshot, read_issuer = decoder(ClientSnapshot), decoder(Issuer)
PARTIES = (
    select(
        DOCUMENT_LANGUAGE,
        clients.c.payment_terms_days,
        func.coalesce(clients.c.invoice_email, clients.c.email),
        external_contacts.c.name,
        *clients.c[ADDRESS],
        *(ISSUER_COLUMNS.get(name, accounts.c.get(name)) for name in Issuer.__struct_fields__),
    )
    .select_from(
        clients.join(accounts, accounts.c.id == ACCOUNT).outerjoin(
            external_contacts, external_contacts.c.id == bindparam("contact")
        )
    )
    .where(clients.c.id == bindparam("id"))
)
"""In the order of the fields of ClientNow and of Issuer."""
TAX_FACTS = ("is_small_business", "tax_outside_eu", "tax_exemption_reason")
"""What the issuer of a credit note has in common with that of its invoice, whose tax it takes back."""
INVOICE_ISSUER = select(invoices.c.issuer_snapshot).where(invoices.c.id == bindparam("id"))
INVOICE = select(*invoices.c[InvoiceRow._fields]).where(invoices.c.id == bindparam("id"))
NOTE_ISSUER = select(credit_notes.c.issuer_snapshot).where(credit_notes.c.id == bindparam("id"))
LINES_OF = allocations.join(invoice_lines, invoice_lines.c.id == allocations.c.invoice_line_id)
DAYS = union_all(
    select(time_entries.c.date.label("day"))
    .select_from(LINES_OF.join(time_entries, time_entries.c.id == allocations.c.time_entry_id))
    .where(invoice_lines.c.invoice_id == bindparam("id")),
    select(expenses.c.date.label("day"))
    .select_from(LINES_OF.join(expenses, expenses.c.id == allocations.c.expense_id))
    .where(invoice_lines.c.invoice_id == bindparam("id")),
).subquery()
PERIOD = select(func.min(DAYS.c.day), func.max(DAYS.c.day))


def build_facts(tx: Tx, record: Quote | Invoice | CreditNote) -> Document:
    """Return the facts of a document, without its logo."""
    if isinstance(record, Quote):
        return _quote(tx, record)
    if isinstance(record, Invoice):
        return _invoice(tx, record, [day for day in tx.one(PERIOD, id=record.id) or () if day])
    return _credit_note(tx, record)


def load_warnings(tx: Tx, record: Quote | Invoice, former: str = "draft") -> list[DocumentWarning]:
    """Return the warnings about a document that is a draft, or was one before this request; none about others."""
    if former != "draft":
        return []
    document = _quote(tx, record) if isinstance(record, Quote) else _invoice(tx, record, [])
    return warnings_of(document, tx.today)


def load_logo(tx: Tx, document: Document) -> Document:
    found = logos.find_logo(tx, document.issuer.logo_id)
    return msgspec.structs.replace(document, logo=found and bytes(found.content))


def load_parties(tx: Tx, client_id: int, contact_id: int | None = None) -> tuple[ClientNow, Issuer]:
    """Return a client with a contact, and the issuer in the client's language, as the account's settings are now."""
    # Citus cannot plan joins with a bound null
    row = tx.one(PARTIES, id=client_id, contact=contact_id or 0) or ()
    client, columns = row[: len(ClientNow._fields)], row[len(ClientNow._fields) :]
    fields = dict(zip(Issuer.__struct_fields__, columns, strict=True))
    percent = fields[early_payment.PERCENT]
    fields |= {"is_small_business": bool(fields["is_small_business"])}
    return ClientNow._make(client), Issuer(
        **fields | {early_payment.PERCENT: None if percent is None else Decimal(percent)}
    )


def save_issuer(tx: Tx, table: Table, document_id: int, client_id: int) -> None:
    """Save the issuer with an invoice or credit note that is now issued: its document keeps it."""
    _, issuer = load_parties(tx, client_id)
    tx.update_columns(table, document_id, {"issuer_snapshot": msgspec.json.encode(issuer).decode()})


def _quote(tx: Tx, quote: Quote) -> Document:
    client, issuer = load_parties(tx, quote.client_id, quote.contact_id)
    return _document(
        quote,
        client,
        None,
        issuer,
        kind="quote",
        is_draft=quote.status == "draft",
        issue_date=quote.issue_date,
        valid_until=quote.valid_until,
        subject=quote.title,
        notes=quote.notes,
        terms=quote.terms,
        tax_exemption_reason=quote.tax_exemption_reason,
    )


def _invoice(tx: Tx, invoice: Invoice, days: list[str]) -> Document:
    """Return the facts of an invoice; `days` are the first and the last day of the time and expenses on it."""
    client, issuer = load_parties(tx, invoice.client_id, invoice.contact_id)
    if invoice.sent_at and (snapshot := tx.value(INVOICE_ISSUER, id=invoice.id)):
        issuer = read_issuer(snapshot)
    issue_date = invoice.issue_date or tx.today
    months = [line.fee_month for line in invoice.lines if line.fee_month]
    days = [*days, *(f"{month}-01" for month in months), *map(last_day, months)]
    return _document(
        invoice,
        client,
        invoice.client_snapshot,
        issuer,
        kind="invoice",
        is_draft=invoice.sent_at is None,
        issue_date=issue_date,
        due_date=invoice.due_date or day_after(issue_date, client.payment_terms_days),
        service_from=min(days, default=None),
        service_to=max(days, default=None),
        purchase_order=invoice.purchase_order,
        subject=invoice.subject,
        notes=invoice.notes,
        terms=invoice.terms,
        tax_exemption_reason=invoice.tax_exemption_reason,
    )


def _credit_note(tx: Tx, note: CreditNote) -> Document:
    credited = InvoiceRow._make(tx.one(INVOICE, id=note.invoice_id) or ())
    client, issuer = load_parties(tx, note.client_id, credited.contact_id)
    snapshot = read_client_snapshot(credited.client_snapshot)
    if text := tx.value(NOTE_ISSUER, id=note.id):
        issuer = read_issuer(text)
    if credited.issuer_snapshot:
        invoiced = read_issuer(credited.issuer_snapshot)
        issuer = msgspec.structs.replace(issuer, **{name: getattr(invoiced, name) for name in TAX_FACTS})
    return _document(
        note,
        client,
        snapshot,
        issuer,
        kind="credit_note",
        issue_date=note.issue_date,
        purchase_order=credited.purchase_order,
        notes=note.description,
        tax_exemption_reason=credited.tax_exemption_reason,
        credited=Credited(credited.number, credited.issue_date),
    )


def _document(
    record: Quote | Invoice | CreditNote,
    client: ClientNow,
    snapshot: ClientSnapshot | None,
    issuer: Issuer,
    **different: Any,
) -> Document:
    """Return the facts of a document, with its client as it was when it was issued, else as it is now."""
    address = {name: getattr(snapshot or client, name) for name in ADDRESS}
    return Document(
        customer=Customer(contact_name=client.contact_name, email=client.email, **address),
        number=record.number,
        issuer=issuer,
        language=issuer.language or client.language,
        currency=record.currency,
        lines=tuple(map(_line, record.lines)),
        taxes=tuple(Tax(share.tax_rate, share.taxable_amount, share.tax_amount) for share in record.tax_breakdown),
        subtotal=record.subtotal,
        tax_total=record.tax_total,
        total=record.total,
        **different,
    )


def _line(line: QuoteLine | InvoiceLine | CreditNoteLine) -> Line:
    return Line(
        description=line.description,
        quantity=line.quantity,
        unit_price=line.unit_price,
        tax_rate=line.tax_rate,
        amount=line.amount,
        discount_percent=line.discount_percent,
        unit=None if isinstance(line, CreditNoteLine) else line.unit,
        is_time=isinstance(line, InvoiceLine) and line.kind == "time",
    )
