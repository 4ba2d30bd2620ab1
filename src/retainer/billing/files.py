"""Files: the PDF and the e-invoice of quotes, invoices and credit notes, rendered from their facts.

The files of an issued invoice or credit note are stored when they are first asked for, and stay the same to the byte.
"""

import re
import unicodedata
from functools import partial
from typing import NamedTuple

import msgspec
from sqlalchemy import bindparam, select

from retainer.billing.credit_notes.types import CreditNote
from retainer.billing.facts import Printable, load_facts
from retainer.billing.invoices.types import Invoice
from retainer.documents.einvoice import missing_facts
from retainer.documents.facts import Document
from retainer.documents.pdf import MAX_SECONDS, render_files
from retainer.errors import Refusal
from retainer.identity import logos
from retainer.kernel.representations import File, JobFailed, Representation, RunApart
from retainer.schema.billing import issued_documents
from retainer.store.tx import Actor, Store, Tx

UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
PDF, XML = "application/pdf", "application/xml"
TOO_BIG = "needs too much memory"
SHORTEN = "Shorten its texts."
ISSUE_AGAIN = "It is issued, so its texts are fixed: credit the invoice, and issue it again with shorter ones."
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
        try:
            files = Files(*run_apart(actor.account_id, MAX_SECONDS, render_files, self.document))
        except JobFailed as failed:
            raise self.refusal_for(failed) from None
        if self.owner is None:
            return files
        with store.begin(actor, write=True) as tx:
            stored = load_stored(tx, self.owner, self.record_id)
            if stored is None:
                tx.insert_counted(issued_documents, {self.owner: self.record_id, **files._asdict()})
            return stored or files

    def refusal_for(self, failed: JobFailed) -> Refusal:
        """Return what a client is told whose document could not be made: only an accident is worth a second try."""
        if failed.reason == "end":
            message = "The document could not be made. Try again in 5 seconds."
            return Refusal("unavailable", message, headers={"Retry-After": "5"})
        what = f"takes more than {MAX_SECONDS} seconds of processor time" if failed.reason == "time" else TOO_BIG
        message = f"This document {what}. {SHORTEN if self.owner is None else ISSUE_AGAIN}"
        return Refusal("validation_failed", message, errors={"Accept": [message]})


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
    document = load_facts(tx, record)
    logo = logos.find_logo(tx, document.issuer.logo_id)
    document = msgspec.structs.replace(document, logo=logo and bytes(logo.content))
    return Pending(suffix, record.id, document, stored, owner)


PRINTED_AS = (Representation(PDF, "pdf", partial(prepare, "pdf")),)
"""The representations of a quote, which has no e-invoice."""
ISSUED_AS = (*PRINTED_AS, Representation(XML, "xml", partial(prepare, "xml")))
