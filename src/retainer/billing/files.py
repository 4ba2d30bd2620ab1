"""Files: the PDF and the e-invoice of quotes, invoices and credit notes, as representations of their records.

The files of an issued invoice or credit note are stored when they are first asked for, and stay the same to the byte.
"""

import re
import unicodedata
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from sqlalchemy import bindparam, select

from retainer.billing.credit_notes.types import CreditNote
from retainer.billing.file_facts import Printable, build_facts, load_logo
from retainer.billing.invoices.types import Invoice
from retainer.documents.einvoice import missing_facts
from retainer.documents.facts import Document
from retainer.documents.pdf import render_files
from retainer.errors import Refusal
from retainer.kernel.representations import File, Representation, RunApart, run_here
from retainer.schema.billing import issued_documents
from retainer.store.tx import Actor, Store, Tx

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
        if reasons and self.stored is None:
            raise without_einvoice(reasons)
        files = self.stored or self.render(store, actor, run_apart)
        content = files.pdf if self.suffix == "pdf" else files.xml
        if content is None:
            raise without_einvoice([*reasons, ISSUED_WITHOUT])
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


def without_einvoice(reasons: list[str]) -> Refusal:
    message = f"There is no e-invoice. {' '.join(reasons)}"
    return Refusal("validation_failed", message, errors={"Accept": reasons})


def prepare(suffix: str, tx: Tx, record: Printable) -> Pending:
    owner = owner_of(record)
    stored = load_stored(tx, owner, record.id) if owner else None
    return Pending(suffix, record.id, load_logo(tx, build_facts(tx, record)), stored, owner)


def load_file(store: Store, actor: Actor, suffix: str, load: Callable[[Tx], Printable]) -> File:
    """Return a file of the record that `load` reads, for the command line. Raises Refusal."""
    with store.begin(actor, write=False) as tx:
        tx.snapshot()
        pending = prepare(suffix, tx, load(tx))
    return pending.finish(store, actor, run_here)


def owner_of(record: Printable) -> str | None:
    """Return the column that names a record whose files are stored: an issued invoice or a credit note."""
    if isinstance(record, CreditNote):
        return "credit_note_id"
    return "invoice_id" if isinstance(record, Invoice) and record.sent_at else None


PRINTED_AS = (Representation(PDF, "pdf", partial(prepare, "pdf")),)
"""The representations of a quote, which has no e-invoice."""
ISSUED_AS = (*PRINTED_AS, Representation(XML, "xml", partial(prepare, "xml")))
"""The representations of an invoice or credit note."""
