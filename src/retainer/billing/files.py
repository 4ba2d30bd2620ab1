"""Files: the PDF and the e-invoice of quotes, invoices and credit notes, drawn from their facts at each read."""

import re
import unicodedata
from functools import partial
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta
from sqlalchemy import bindparam, select

from retainer.billing import papers
from retainer.billing.facts import Printable, load_facts
from retainer.billing.quotes.types import Quote
from retainer.documents.einvoice import build_einvoice, missing_facts
from retainer.documents.facts import Document, Standing
from retainer.documents.pdf import MAX_SECONDS, TEMPLATE, render
from retainer.errors import Refusal, invalid
from retainer.identity import logos
from retainer.kernel import etag
from retainer.kernel.query import Query
from retainer.kernel.representations import JobFailed, RenderedFile, Representation, RunApart
from retainer.schema.billing import issued_documents
from retainer.store.tx import Tx
from retainer.values.decoding import json_text

UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
PDF, XML = "application/pdf", "application/xml"
TOO_BIG = "needs too much memory"
SHORTEN = "Shorten its texts."
ISSUE_AGAIN = "It is issued, so its texts are fixed: credit the invoice, and issue it again with shorter ones."
ISSUED_WITHOUT = "The document was issued without it: correct this, credit the invoice, and issue it again."
IMPORTED_XML = "An imported document has no e-invoice here. Take the one that its old program has issued."
IMPORTED_PDF = "This document was imported without its PDF. Take the one that its old program has issued."
VOID = "A void invoice has no e-invoice: nobody should book it. Send ?version=1 for the original."
STORED = {
    name: select(*issued_documents.c["pdf", "xml"]).where(issued_documents.c[name] == bindparam("id"))
    for name in ("invoice_id", "credit_note_id")
}
"""The stored files by the column that names their record."""


class DocumentQuery(Query):
    for_files = ("version",)

    version: Annotated[
        int | None,
        Meta(ge=1, le=1_000_000),
        "Of a PDF or XML: the version to read, as it was issued; omitted: the newest, with what became of it since.",
    ] = None


class Files(NamedTuple):
    """The files of a document; without XML, its e-invoice lacks something."""

    pdf: bytes
    xml: bytes | None


class PaperFile(NamedTuple):
    """A file of a record: the facts from which it is drawn, or the files that were stored when it was issued."""

    suffix: str
    document: Document
    stored: Files | None
    tag: str
    """The entity tag: of the facts and the template, so that it changes with the file alone."""
    lacks: str = ""
    """Why there is no such file of an imported document; empty if there is."""

    def finish(self, account_id: int, run_apart: RunApart) -> RenderedFile:
        """Return the file. Raises `validation_failed` with what an e-invoice lacks.

        Raises `not_acceptable` for that of a void invoice, and for what did not come with an imported one.
        """
        is_xml, standing = self.suffix == "xml", self.document.standing
        if self.lacks:
            raise Refusal("not_acceptable", self.lacks)
        if is_xml and standing and standing.kind == "void":
            raise Refusal("not_acceptable", VOID)
        reasons = [missing.message for missing in missing_facts(self.document)] if is_xml else []
        content = self.stored and (self.stored.xml if is_xml else self.stored.pdf)
        if reasons or (self.stored is not None and content is None):
            reasons += [] if self.document.is_draft else [ISSUED_WITHOUT]
            message = f"There is no e-invoice. {' '.join(reasons)}"
            raise Refusal("validation_failed", message, errors={"Accept": reasons})
        try:
            draw = build_einvoice if is_xml else render
            content = content or run_apart(account_id, MAX_SECONDS, draw, self.document)
        except JobFailed as failed:
            raise self.refusal_for(failed) from None
        return RenderedFile(content, file_name(self.document, self.suffix))

    def refusal_for(self, failed: JobFailed) -> Refusal:
        """Return the refusal for a document that could not be made: only an accident is worth a second try."""
        if failed.reason == "end":
            message = "The document could not be made. Try again in 5 seconds."
            return Refusal("unavailable", message, headers={"Retry-After": "5"})
        what = f"takes more than {MAX_SECONDS} seconds of processor time" if failed.reason == "time" else TOO_BIG
        message = f"This document {what}. {SHORTEN if self.document.is_draft else ISSUE_AGAIN}"
        return Refusal("validation_failed", message, errors={"Accept": [message]})


def file_name(document: Document, suffix: str) -> str:
    """Return a file name like `INV-2026-0001.pdf`, of characters that every system and header accepts."""
    text = unicodedata.normalize("NFKD", document.number or f"{document.kind}-draft")
    name = UNSAFE.sub("-", text.encode("ascii", "ignore").decode()).strip("-.") or document.kind
    return f"{name}.{suffix}"


def prepare(suffix: str, tx: Tx, record: Printable, query: Query | None = None) -> PaperFile:
    """Return the file of a record that was read. Raises `validation_failed` for a version that it does not have."""
    wanted = query.version if isinstance(query, DocumentQuery) else None
    standing = papers.standing_of(record) if papers.is_issued(record) and wanted is None else None
    return prepare_version(suffix, tx, record, wanted, standing)


def prepare_version(suffix: str, tx: Tx, record: Printable, wanted: int | None, standing: Standing | None) -> PaperFile:
    """Return the file of a version, by default the newest, that says what has become of the document.

    Raises `validation_failed` for a version that it does not have.
    """
    is_issued = papers.is_issued(record)
    version = papers.load_version(tx, record, wanted) if is_issued else None
    if version is None and wanted not in {None, 1 if is_issued else None}:
        raise invalid({"version": ["Is no version of this document. Its document_version is the newest."]})
    document = load_facts(tx, record) if version is None else version.facts
    document = msgspec.structs.replace(document, standing=standing)
    of_import = is_imported(record)
    is_first = is_issued and document.version == 1 and papers.is_as_issued(document)
    stored = load_stored(tx, record) if is_first or of_import else None
    lacks = lacking(suffix, stored) if of_import else ""
    logo = logos.find_logo(tx, document.issuer.logo_id)
    facts = json_text(document).encode() if stored is None else stored.pdf
    tag = etag.compute(b"%b %b %b" % (TEMPLATE, suffix.encode(), facts))
    return PaperFile(suffix, msgspec.structs.replace(document, logo=logo and bytes(logo.content)), stored, tag, lacks)


def is_imported(record: Printable) -> bool:
    return not isinstance(record, Quote) and bool(record.is_imported)


def lacking(suffix: str, stored: Files | None) -> str:
    """Return why an imported document lacks a file, which Retainer does not draw itself; empty if it has the file."""
    return IMPORTED_XML if suffix == "xml" else "" if stored else IMPORTED_PDF


def load_stored(tx: Tx, record: Printable) -> Files | None:
    """Return the files of an invoice or credit note that were stored before facts were, or came with an import."""
    row = None if isinstance(record, Quote) else tx.one(STORED[papers.OWNERS[type(record)]], id=record.id)
    if row is None:
        return None
    pdf, xml = row
    return Files(bytes(pdf), None if xml is None else bytes(xml))


PRINTED_AS = (Representation(PDF, "pdf", partial(prepare, "pdf")),)
"""The representations of a quote, which has no e-invoice."""
ISSUED_AS = (*PRINTED_AS, Representation(XML, "xml", partial(prepare, "xml")))
