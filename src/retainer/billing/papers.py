"""Papers: the facts of issued documents, stored in the transaction that issues them; each later change is a version.

A change of what is printed and may still change (due date, order, notes, contact) stores the facts again, with the
next number; earlier versions stay. What becomes of a document later (paid, void) is no fact of it: it is printed as
it is now, unless a version is asked for.
"""

from decimal import Decimal
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Select, bindparam, select

from retainer.billing.credit_notes.types import CreditNote
from retainer.billing.facts import Printable, lines_of, load_facts, load_known_parties
from retainer.billing.invoices.types import Invoice
from retainer.billing.quotes.types import Quote
from retainer.billing.rules import is_credited
from retainer.documents.facts import Document, Standing, StandingKind
from retainer.schema.billing import document_versions, invoices, quotes
from retainer.store.tx import Tx
from retainer.values.decoding import decoder, json_text

OWNERS: dict[type[Printable], str] = {Invoice: "invoice_id", CreditNote: "credit_note_id", Quote: "quote_id"}
"""The column of document_versions that names the record, by its type."""
CHANGING = {
    Invoice: ("due_date", "purchase_order", "notes"),
    Quote: ("valid_until", "notes", "terms", "lines", "subtotal", "tax_total", "total", "tax_breakdown"),
}
"""The printed fields that can change after the issue, besides the contact and the title of a quote.

The lines of a quote change when optional ones are accepted.
"""
TABLES = {"invoice_id": invoices, "quote_id": quotes}
"""The records whose papers can have several versions."""
read_facts = decoder(Document)


class Version(NamedTuple):
    number: int
    facts: Document


def _select(owner: str) -> Select[Any]:
    columns = document_versions.c
    return select(columns.version, columns.facts).where(columns[owner] == bindparam("id"))


NEWEST = {owner: _select(owner).order_by(document_versions.c.version.desc()).limit(1) for owner in OWNERS.values()}
CHOSEN = {owner: _select(owner).where(document_versions.c.version == bindparam("version")) for owner in OWNERS.values()}


def is_issued(record: Printable) -> bool:
    return isinstance(record, CreditNote) or record.status != "draft"


def load_version(tx: Tx, record: Printable, number: int | None = None) -> Version | None:
    """Return a version of an issued document, by default the newest; None if there is none."""
    owner = OWNERS[type(record)]
    row = tx.one(NEWEST[owner], id=record.id) if number is None else tx.one(CHOSEN[owner], id=record.id, version=number)
    return None if row is None else Version(row[0], read_facts(row[1]))


def load_paper(tx: Tx, record: Printable) -> Document:
    """Return what the newest paper of a record says: of an issued one what is stored, of a draft what applies now."""
    version = load_version(tx, record) if is_issued(record) else None
    return load_facts(tx, record) if version is None else version.facts


def issue(tx: Tx, record: Printable, facts: Document) -> None:
    """Store the facts of a document that is now issued; one that was issued before, such as a quote, gets a version."""
    former = load_version(tx, record) if isinstance(record, Quote) else None
    _store(tx, record, facts, former)


def revise(tx: Tx, record: Invoice | Quote, before: Invoice | Quote) -> None:
    """Store a new version of an issued document if this change is printed."""
    names = CHANGING[type(record)]
    subject = record.title if isinstance(record, Quote) else record.subject
    former_subject = before.title if isinstance(before, Quote) else before.subject
    was = [*(getattr(before, name) for name in names), before.contact_id, former_subject]
    if was == [*(getattr(record, name) for name in names), record.contact_id, subject]:
        return
    former = load_version(tx, record)
    if former is None:  # issued by a version that did not store facts
        _store(tx, before, load_facts(tx, before), None)
        former = load_version(tx, record)
    if former is None:
        raise LookupError("The version that was just written cannot be read.")
    customer = former.facts.customer
    if record.contact_id != before.contact_id:
        name = load_known_parties(tx, record.client_id, record.contact_id).customer.contact_name
        customer = msgspec.structs.replace(customer, contact_name=name)
    printed = {name: lines_of(record) if name == "lines" else getattr(record, name) for name in names}
    _store(tx, record, msgspec.structs.replace(former.facts, customer=customer, subject=subject, **printed), former)


def _store(tx: Tx, record: Printable, facts: Document, former: Version | None) -> None:
    number, date = (1, None) if former is None else (former.number + 1, tx.today)
    if former is not None:
        same = msgspec.structs.replace(facts, version=former.number, version_date=former.facts.version_date)
        if same == former.facts:
            return
    facts = msgspec.structs.replace(facts, version=number, version_date=date, logo=None)
    owner = OWNERS[type(record)]
    values = {owner: record.id, "version": number, "facts": json_text(facts)}
    tx.insert_counted(document_versions, values)
    if former is not None:
        tx.touch(TABLES[owner], record.id, "document_version")


STANDINGS: dict[str, StandingKind] = {
    name: name for name in ("paid", "written_off", "void", "declined", "expired", "cancelled")
}
"""The statuses that a paper says; with others, it is open."""


def standing_of(record: Printable) -> Standing | None:
    """Return what has become of an issued document; None for a credit note, which is final."""
    if isinstance(record, CreditNote):
        return None
    kind: StandingKind = STANDINGS.get(record.status, "open")
    if isinstance(record, Quote):
        return Standing(kind)
    if is_credited(record):
        kind = "credited"
    return Standing(kind, record.balance_due if kind == "open" else Decimal(0))


def is_as_issued(document: Document) -> bool:
    """Return whether nothing has become of a document that its paper would say."""
    standing = document.standing
    is_due = standing is not None and (document.kind != "invoice" or standing.balance_due == document.total)
    return standing is None or (standing.kind == "open" and is_due)
