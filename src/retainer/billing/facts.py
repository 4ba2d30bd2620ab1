"""Facts: what a document prints, from its record and both parties: as they are, or as they were when it was issued."""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import msgspec
from sqlalchemy import bindparam, func, select

from retainer.billing.credit_notes.types import CreditNote
from retainer.billing.invoices.types import ClientSnapshot, Invoice
from retainer.billing.quotes.types import Quote
from retainer.billing.reading import Parties, load_parties
from retainer.documents.facts import CreditedDocument, Document, Issuer, Line
from retainer.documents.tax_categories import with_reasons
from retainer.documents.warnings import DocumentWarning, PrecedingInvoice, warnings_of
from retainer.schema.billing import allocations, credit_notes, document_versions, expenses, invoice_lines, invoices
from retainer.schema.work import milestones, time_entries
from retainer.store.tx import Tx
from retainer.values.decoding import decoder
from retainer.values.exact import day_after, local_day
from retainer.values.kinds import last_day

T = TypeVar("T", bound=msgspec.Struct)
Printable = Quote | Invoice | CreditNote


class CreditedInvoice(NamedTuple):
    """What a credit note prints of its invoice; the snapshots are JSON."""

    number: str
    issue_date: str
    contact_id: int | None
    purchase_order: str | None
    tax_exemption_reason: str | None
    client_snapshot: str
    issuer_snapshot: str | None


read_client_snapshot, read_issuer = decoder(ClientSnapshot), decoder(Issuer)
TAX_FACTS = ("is_small_business", "tax_outside_eu", "tax_exemption_reason")
"""What the issuer of a credit note has in common with that of its invoice, whose tax it takes back."""
INVOICE = select(*invoices.c[CreditedInvoice._fields]).where(invoices.c.id == bindparam("id"))
PRECEDING = (
    select(*invoices.c["number", "issue_date"])
    .select_from(invoices.join(document_versions, document_versions.c.invoice_id == invoices.c.id))
    .where(document_versions.c.version == 1, invoices.c.id != bindparam("id"))
    .order_by(document_versions.c.id.desc())
    .limit(1)
)
"""Number and date of the invoice that was issued last, besides one; by the order in which papers were stored."""
DAY = func.coalesce(time_entries.c.date, expenses.c.date)
COMPLETED = milestones.c.completed_at
PERIOD = (
    select(*(bound(each) for each in (DAY, COMPLETED) for bound in (func.min, func.max)))
    .select_from(
        invoice_lines.join(allocations, allocations.c.invoice_line_id == invoice_lines.c.id)
        .outerjoin(time_entries, time_entries.c.id == allocations.c.time_entry_id)
        .outerjoin(expenses, expenses.c.id == allocations.c.expense_id)
        .outerjoin(milestones, milestones.c.id == allocations.c.milestone_id)
    )
    .where(invoice_lines.c.invoice_id == bindparam("id"))
)
"""The first and the last day of time and expenses on an invoice, and the first and last moment of its milestones."""


def load_facts(tx: Tx, record: Printable) -> Document:
    """Return the facts of a document, without its logo."""
    if isinstance(record, Quote):
        return of_quote(record, load_known_parties(tx, record.client_id, record.contact_id, Quote))
    if isinstance(record, CreditNote):
        invoice = load_credited(tx, record.invoice_id)
        parties = load_known_parties(tx, record.client_id, invoice.contact_id)
        snapshot = tx.field(credit_notes.c.issuer_snapshot, record.id)
        return of_credit_note(record, with_issuer(parties, snapshot), invoice)
    parties = load_known_parties(tx, record.client_id, record.contact_id)
    snapshot = tx.field(invoices.c.issuer_snapshot, record.id) if record.sent_at else None
    first, last, *moments = tx.one(PERIOD, id=record.id) or ()
    if record.sent_at:  # issued before facts were stored, when the period did not cover milestones
        moments = []
    days = [first, last, *(moment and local_day(moment, tx.actor.timezone) for moment in moments)]
    return of_invoice(record, with_issuer(parties, snapshot), tx.today, [day for day in days if day])


def load_credited(tx: Tx, invoice_id: int) -> CreditedInvoice:
    return CreditedInvoice._make(tx.one(INVOICE, id=invoice_id) or ())


def load_known_parties(
    tx: Tx, client_id: int, contact_id: int | None, kind: type[Quote | Invoice] = Invoice
) -> Parties:
    """Return the parties of a document that is stored, so that its client exists."""
    parties = load_parties(tx, client_id, contact_id, kind)
    if parties is None:
        raise LookupError(f"There is no client {client_id}.")
    return parties


def with_issuer(parties: Parties, snapshot: str | None) -> Parties:
    return parties._replace(issuer=read_issuer(snapshot), bank_accounts=()) if snapshot else parties


def warnings(tx: Tx, record: Quote | Invoice, parties: Parties | None, former: str) -> list[DocumentWarning]:
    """Return the warnings about a draft, or about one that this request sent; none about others."""
    is_sent_later = former == "draft" and record.status not in {"accepted", "declined", "cancelled"}
    if parties is None or not is_sent_later:
        return []
    if isinstance(record, Quote):
        return warnings_of(of_quote(record, parties), tx.today)
    return warnings_of(of_invoice(record, parties, tx.today), tx.today, load_preceding(tx, record))


def load_preceding(tx: Tx, invoice: Invoice) -> PrecedingInvoice | None:
    """Return the invoice that was issued before this one; None if that has another year in its number.

    Only a day in the past can be before that of the other invoice, so nothing is read for a later one.
    """
    day = invoice.issue_date
    row = tx.one(PRECEDING, id=invoice.id) if day is not None and day < tx.today else None
    if row is None or day is None:
        return None
    found = PrecedingInvoice._make(row)
    year = found.issue_date[:4]
    return None if year != day[:4] and year in found.number else found


def of_quote(quote: Quote, parties: Parties) -> Document:
    return _document(quote, parties, kind="quote", is_draft=quote.status == "draft", subject=quote.title)


def of_invoice(invoice: Invoice, parties: Parties, today: str, days: Sequence[str] = ()) -> Document:
    """Return the facts of an invoice; `days` are those of the work on a draft, whose period is not set yet."""
    if invoice.client_snapshot:
        client = msgspec.structs.asdict(invoice.client_snapshot)
        parties = parties._replace(customer=msgspec.structs.replace(parties.customer, **client))
    issue_date = invoice.issue_date or today
    months = [line.fee_month for line in invoice.lines if line.fee_month]
    days = [*days, *(f"{month}-01" for month in months), *map(last_day, months)]
    is_derived = invoice.service_from is None is invoice.service_to
    return _document(
        invoice,
        parties,
        kind="invoice",
        is_draft=invoice.sent_at is None,
        issue_date=issue_date,
        due_date=invoice.due_date or day_after(issue_date, parties.client.payment_terms_days),
        service_from=min(days, default=None) if is_derived else invoice.service_from,
        service_to=max(days, default=None) if is_derived else invoice.service_to,
    )


def of_credit_note(note: CreditNote, parties: Parties, invoice: CreditedInvoice) -> Document:
    if invoice.issuer_snapshot:
        invoiced = read_issuer(invoice.issuer_snapshot)
        tax_facts = {name: getattr(invoiced, name) for name in TAX_FACTS}
        parties = parties._replace(issuer=msgspec.structs.replace(parties.issuer, **tax_facts))
    issued_to = msgspec.structs.asdict(read_client_snapshot(invoice.client_snapshot))
    return _document(
        note,
        parties._replace(customer=msgspec.structs.replace(parties.customer, **issued_to)),
        kind="credit_note",
        issue_date=note.issue_date,
        purchase_order=invoice.purchase_order,
        notes=note.description,
        tax_exemption_reason=invoice.tax_exemption_reason,
        credited=CreditedDocument(invoice.number, invoice.issue_date),
    )


def _document(record: Printable, parties: Parties, **different: object) -> Document:
    """Return the facts of a document: its fields of the same names, and those that its kind has in other ways."""
    language = parties.issuer.language or parties.language
    sides = {"customer": parties.customer, "issuer": parties.paid_in(record.currency), "language": language}
    return with_reasons(_same(Document, record, lines=lines_of(record), **sides, **different))


def lines_of(record: Printable) -> tuple[Line, ...]:
    return tuple(_same(Line, line, is_time=getattr(line, "kind", "") == "time") for line in record.lines)


def _same(model: type[T], record: msgspec.Struct, **different: object) -> T:
    fields = {name: getattr(record, name) for name in model.__struct_fields__ if hasattr(record, name)}
    return model(**fields | different)
