"""Files: the PDF and the e-invoice of quotes, invoices and credit notes, and the facts that they print.

Facts are snapshots of what was issued, else what applies now. The files of an issued invoice or credit note are stored
when they are first asked for, and stay the same to the byte.
"""

import re
import unicodedata
from decimal import Decimal
from functools import partial
from typing import NamedTuple, TypeVar

import msgspec
from sqlalchemy import Table, bindparam, case, func, select

from retainer.billing.credit_notes.types import CreditNote
from retainer.billing.invoices.types import ClientSnapshot, Invoice
from retainer.billing.quotes.types import Quote
from retainer.documents.einvoice import missing_facts
from retainer.documents.facts import Credited, Customer, Document, Issuer, Language, Line
from retainer.documents.pdf import render_files
from retainer.documents.warnings import DocumentWarning, warnings_of
from retainer.errors import Refusal
from retainer.identity import logos
from retainer.kernel.representations import File, Representation, RunApart
from retainer.schema.billing import allocations, credit_notes, expenses, invoice_lines, invoices, issued_documents
from retainer.schema.crm import clients, external_contacts
from retainer.schema.expressions import DOCUMENT_LANGUAGE, in_document_language
from retainer.schema.identity import accounts
from retainer.schema.work import time_entries
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Actor, Store, Tx
from retainer.values.common import EARLY_PAYMENT
from retainer.values.decoding import decoder, json_text
from retainer.values.exact import day_after
from retainer.values.kinds import last_day

T = TypeVar("T", bound=msgspec.Struct)
Printable = Quote | Invoice | CreditNote


class Parties(NamedTuple):
    """The sides of a document as they are now, with the language and the payment terms of the client."""

    language: Language
    payment_terms_days: int
    customer: Customer
    issuer: Issuer


CUSTOMER_COLUMNS = {
    "contact_name": external_contacts.c.name,
    "email": func.coalesce(clients.c.invoice_email, clients.c.email),
}
HAS_OWN_DISCOUNT = clients.c.early_payment_discount_percent.is_not(None)
ISSUER_COLUMNS = {
    "name": func.coalesce(accounts.c.legal_name, accounts.c.name),
    "color": accounts.c.document_color,
    "footer": in_document_language("document_footer"),
    "language": DOCUMENT_LANGUAGE,
    "tax_exemption_reason": in_document_language("tax_exemption_reason"),
    **{name: case((HAS_OWN_DISCOUNT, clients.c[name]), else_=accounts.c[name]) for name in EARLY_PAYMENT},
}
"""The columns of an issuer whose names differ from its fields, or that depend on the client."""
read_client_snapshot, read_issuer = decoder(ClientSnapshot), decoder(Issuer)
PARTIES = (
    select(
        DOCUMENT_LANGUAGE,
        clients.c.payment_terms_days,
        *(CUSTOMER_COLUMNS.get(name, clients.c.get(name)) for name in Customer.__struct_fields__),
        *(ISSUER_COLUMNS.get(name, accounts.c.get(name)) for name in Issuer.__struct_fields__),
    )
    .select_from(
        clients.join(accounts, accounts.c.id == ACCOUNT).outerjoin(
            external_contacts, external_contacts.c.id == bindparam("contact")
        )
    )
    .where(clients.c.id == bindparam("id"))
)
TAX_FACTS = ("is_small_business", "tax_outside_eu", "tax_exemption_reason")
"""What the issuer of a credit note has in common with that of its invoice, whose tax it takes back."""
INVOICE = select(
    *invoices.c["number", "issue_date", "contact_id", "purchase_order", "tax_exemption_reason"],
    *invoices.c["client_snapshot", "issuer_snapshot"],
).where(invoices.c.id == bindparam("id"))
DAY = func.coalesce(time_entries.c.date, expenses.c.date)
PERIOD = (
    select(func.min(DAY), func.max(DAY))
    .select_from(
        invoice_lines.join(allocations, allocations.c.invoice_line_id == invoice_lines.c.id)
        .outerjoin(time_entries, time_entries.c.id == allocations.c.time_entry_id)
        .outerjoin(expenses, expenses.c.id == allocations.c.expense_id)
    )
    .where(invoice_lines.c.invoice_id == bindparam("id"))
)
"""The first and the last day of the time and the expenses on an invoice."""


def build_facts(tx: Tx, record: Printable) -> Document:
    """Return the facts of a document, without its logo."""
    if isinstance(record, CreditNote):
        return _credit_note(tx, record)
    days = tx.one(PERIOD, id=record.id) if isinstance(record, Invoice) else None
    return _offer_or_bill(tx, record, [day for day in days or () if day])


def load_warnings(tx: Tx, record: Quote | Invoice, former: str = "draft") -> list[DocumentWarning]:
    """Return the warnings about a draft, or about one that this request sent; none about others."""
    is_sent_later = former == "draft" and record.status not in {"accepted", "declined", "cancelled"}
    return warnings_of(_offer_or_bill(tx, record, []), tx.today) if is_sent_later else []


def load_parties(tx: Tx, client_id: int, contact_id: int | None = None) -> Parties:
    """Return the client with a contact, and the issuer in the client's language."""
    # Citus cannot plan joins with a bound null
    language, terms, *columns = tx.one(PARTIES, id=client_id, contact=contact_id or 0) or ()
    customer = dict(zip(Customer.__struct_fields__, columns, strict=False))
    issuer = dict(zip(Issuer.__struct_fields__, columns[len(customer) :], strict=True))
    percent = issuer[EARLY_PAYMENT[0]]
    issuer |= {EARLY_PAYMENT[0]: None if percent is None else Decimal(percent)}
    issuer |= {"is_small_business": bool(issuer["is_small_business"])}
    return Parties(language, terms, Customer(**customer), Issuer(**issuer))


def save_issuer(tx: Tx, table: Table, document_id: int, client_id: int) -> None:
    """Save the issuer with an invoice or credit note that is now issued: its document keeps it."""
    tx.update_columns(table, document_id, {"issuer_snapshot": json_text(load_parties(tx, client_id).issuer)})


def _offer_or_bill(tx: Tx, record: Quote | Invoice, days: list[str]) -> Document:
    """Return the facts of a quote or an invoice; `days` are the first and the last of the time and expenses on it."""
    parties = load_parties(tx, record.client_id, record.contact_id)
    if isinstance(record, Quote):
        return _document(record, parties, kind="quote", is_draft=record.status == "draft", subject=record.title)
    if record.client_snapshot:
        client = msgspec.structs.asdict(record.client_snapshot)
        parties = parties._replace(customer=msgspec.structs.replace(parties.customer, **client))
    if record.sent_at and (snapshot := tx.field(invoices.c.issuer_snapshot, record.id)):
        parties = parties._replace(issuer=read_issuer(snapshot))
    issue_date = record.issue_date or tx.today
    months = [line.fee_month for line in record.lines if line.fee_month]
    days = [*days, *(f"{month}-01" for month in months), *map(last_day, months)]
    return _document(
        record,
        parties,
        kind="invoice",
        is_draft=record.sent_at is None,
        issue_date=issue_date,
        due_date=record.due_date or day_after(issue_date, parties.payment_terms_days),
        service_from=min(days, default=None),
        service_to=max(days, default=None),
    )


def _credit_note(tx: Tx, note: CreditNote) -> Document:
    ((number, issue_date, contact_id, order, reason, client, issued_by),) = tx.all(INVOICE, id=note.invoice_id)
    parties = load_parties(tx, note.client_id, contact_id)
    issuer = read_issuer(text) if (text := tx.field(credit_notes.c.issuer_snapshot, note.id)) else parties.issuer
    if issued_by:
        invoiced = read_issuer(issued_by)
        issuer = msgspec.structs.replace(issuer, **{name: getattr(invoiced, name) for name in TAX_FACTS})
    issued_to = msgspec.structs.asdict(read_client_snapshot(client))
    customer = msgspec.structs.replace(parties.customer, **issued_to)
    return _document(
        note,
        parties._replace(customer=customer, issuer=issuer),
        kind="credit_note",
        issue_date=note.issue_date,
        purchase_order=order,
        notes=note.description,
        tax_exemption_reason=reason,
        credited=Credited(number, issue_date),
    )


def _document(record: Printable, parties: Parties, **different: object) -> Document:
    """Return the facts of a document: its fields of the same names, and those that its kind has in other ways."""
    lines = tuple(_same(Line, line, is_time=getattr(line, "kind", "") == "time") for line in record.lines)
    language = parties.issuer.language or parties.language
    sides = {"customer": parties.customer, "issuer": parties.issuer, "language": language}
    return _same(Document, record, lines=lines, **sides, **different)


def _same(model: type[T], record: msgspec.Struct, **different: object) -> T:
    fields = {name: getattr(record, name) for name in model.__struct_fields__ if hasattr(record, name)}
    return model(**fields | different)


UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
PDF, XML = "application/pdf", "application/xml"
ISSUED_WITHOUT = "The document was issued without it: correct this, credit the invoice, and issue it again."
STORED = {
    name: select(*issued_documents.c["pdf", "xml"]).where(issued_documents.c[name] == bindparam("id"))
    for name in ("invoice_id", "credit_note_id")
}
"""The stored files by the column that names their record."""


class Files(NamedTuple):
    """The files of a document; without XML, its e-invoice lacks something."""

    pdf: bytes
    xml: bytes | None


class Pending(NamedTuple):
    """The files of a record: stored ones, or the facts from which they are rendered.

    `owner` is the column of `issued_documents` that names an issued record; None for drafts and quotes.
    """

    suffix: str
    record_id: int
    document: Document
    stored: Files | None
    owner: str | None

    def finish(self, store: Store, actor: Actor, run_apart: RunApart) -> File:
        """Return the file of the chosen kind. Raises `validation_failed` with what an e-invoice lacks."""
        reasons = [missing.message for missing in missing_facts(self.document)] if self.suffix == "xml" else []
        files = self.stored
        if files is None and not reasons:
            files = self.render(store, actor, run_apart)
        content = files and (files.pdf if self.suffix == "pdf" else files.xml)
        if content is None:
            reasons += [ISSUED_WITHOUT] if files else []
            message = f"There is no e-invoice. {' '.join(reasons)}"
            raise Refusal("validation_failed", message, errors={"Accept": reasons})
        return File(content, file_name(self.document, self.suffix))

    def render(self, store: Store, actor: Actor, run_apart: RunApart) -> Files:
        """Render the files, and store those of an issued record; return the ones that are stored."""
        files = Files(*run_apart(actor.account_id, render_files, self.document))
        if self.owner is None:
            return files
        with store.begin(actor, write=True) as tx:
            stored = load_stored(tx, self.owner, self.record_id)
            if stored is None:
                tx.insert_counted(issued_documents, {self.owner: self.record_id, **files._asdict()})
            return stored or files


def file_name(document: Document, suffix: str) -> str:
    """Return a file name like `INV-2026-0001.pdf`, of characters that every system and header accepts."""
    text = unicodedata.normalize("NFKD", document.number or f"{document.kind}-draft")
    name = UNSAFE.sub("-", text.encode("ascii", "ignore").decode()).strip("-.") or document.kind
    return f"{name}.{suffix}"


def load_stored(tx: Tx, owner: str, record_id: int) -> Files | None:
    row = tx.one(STORED[owner], id=record_id)
    if row is None:
        return None
    pdf, xml = row
    return Files(bytes(pdf), None if xml is None else bytes(xml))


def prepare(suffix: str, tx: Tx, record: Printable) -> Pending:
    is_issued = isinstance(record, Invoice) and record.sent_at
    owner = "credit_note_id" if isinstance(record, CreditNote) else "invoice_id" if is_issued else None
    stored = load_stored(tx, owner, record.id) if owner else None
    document = build_facts(tx, record)
    logo = logos.find_logo(tx, document.issuer.logo_id)
    document = msgspec.structs.replace(document, logo=logo and bytes(logo.content))
    return Pending(suffix, record.id, document, stored, owner)


PRINTED_AS = (Representation(PDF, "pdf", partial(prepare, "pdf")),)
"""The representations of a quote, which has no e-invoice."""
ISSUED_AS = (*PRINTED_AS, Representation(XML, "xml", partial(prepare, "xml")))
