"""Stored files: logos, files of records, and what issued documents say, can be read and agree with their records."""

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec
from sqlalchemy import Select, Table, bindparam, select

from retainer.doctor.findings import Finding
from retainer.documents.facts import Document, Issuer
from retainer.files.contents import PIECE, count_pieces, measure, read_pieces
from retainer.schema.billing import credit_notes, document_versions, invoices, issued_documents, quotes
from retainer.schema.files import OF_RECORDS, files
from retainer.schema.identity import accounts, logos
from retainer.store.constraints import singular
from retainer.store.streams import stream_rows
from retainer.store.tx import Tx
from retainer.values.decoding import decoder
from retainer.values.exact import minor_units

read_issuer, read_facts = decoder(Issuer), decoder(Document)
PAPERS = {"invoice_id": invoices, "credit_note_id": credit_notes, "quote_id": quotes}
"""The records of stored facts, by the columns that name them."""
PDF, PDF_END, XML, XML_END = b"%PDF-", b"%%EOF", b"<?xml", b">"
ENDING = 1024
"""Bytes at the end of a file in which its mark is looked for, as readers of PDFs do."""


def find(tx: Tx) -> Iterator[Finding]:
    known = set()
    for logo_id, content, digest in stream_rows(tx, logos, "content", "sha256", size=1):
        known.add(logo_id)
        if hashlib.sha256(content).hexdigest() != digest:
            yield Finding("Its picture is not the one that was uploaded: the digest differs.", f"logo {logo_id}")
    current = tx.field(accounts.c.logo_id, tx.account_id)
    if current is not None and current not in known:
        yield Finding(f"The account has logo {current}, which does not exist.")
    for table in (invoices, credit_notes):
        for record_id, snapshot in stream_rows(tx, table, "issuer_snapshot"):
            logo_id = read_issuer(snapshot).logo_id if snapshot else None
            if logo_id is not None and logo_id not in known:
                what = f"It prints logo {logo_id}, which does not exist."
                yield Finding(what, f"{singular(table)} {record_id}")
    yield from _files(tx)
    yield from _documents(tx)
    yield from _papers(tx)


def _files(tx: Tx) -> Iterator[Finding]:
    """Find files that do not belong to one record, and rows that do not follow from their pieces."""
    names = [f"{name}_id" for name in OF_RECORDS]
    for file_id, size, media_type, digest, *holders in stream_rows(tx, files, "size", "media_type", "sha256", *names):
        record = f"file {file_id}"
        if sum(holder is not None for holder in holders) != 1:
            yield Finding("It belongs to no record, or to several.", record)
        try:
            real_size, real_type, real_digest = measure(read_pieces(tx, file_id, size))
        except ValueError as error:
            yield Finding(str(error), record)
            continue
        if real_digest != digest:
            yield Finding("Its bytes are not those that were sent: the digest differs.", record)
        elif real_size != size or tx.value(PIECE, file_id=file_id, position=count_pieces(size)) is not None:
            yield Finding(f"Its size is {size}, and its pieces have another number of bytes.", record)
        elif real_type != media_type:
            yield Finding(f"Its type is {media_type}, and its first bytes are those of {real_type}.", record)


def _documents(tx: Tx) -> Iterator[Finding]:
    for stored_id, pdf, xml, invoice_id, note_id in stream_rows(
        tx, issued_documents, "pdf", "xml", "invoice_id", "credit_note_id", size=1
    ):
        record = f"invoice {invoice_id}" if invoice_id is not None else f"credit note {note_id}"
        if (invoice_id is None) == (note_id is None):
            yield Finding("It belongs to no document, or to two.", f"issued document {stored_id}")
        if not is_whole(bytes(pdf), PDF, PDF_END):
            yield Finding("Its stored PDF is damaged.", record)
        if xml is not None and not is_whole(bytes(xml), XML, XML_END):
            yield Finding("Its stored e-invoice is damaged.", record)


def _papers(tx: Tx) -> Iterator[Finding]:
    """Find facts that cannot be read or say another total or number than their record, and missing versions."""
    owners = [(name, table, _said_by(table)) for name, table in PAPERS.items()]
    newest: dict[tuple[str, int], int] = {}
    for version_id, number, text, *ids in stream_rows(tx, document_versions, "version", "facts", *PAPERS):
        named = [(owner, record_id) for owner, record_id in zip(owners, ids, strict=True) if record_id is not None]
        if len(named) != 1:
            yield Finding("It belongs to no document, or to two.", f"document version {version_id}")
            continue
        ((name, table, statement), record_id) = named[0]
        record = f"{singular(table)} {record_id}, version {number}"
        if number != newest.get((name, record_id), 0) + 1:
            yield Finding("An earlier version of it is missing.", record)
        newest[name, record_id] = number
        try:
            facts = read_facts(text)
        except msgspec.MsgspecError:
            yield Finding("What it says cannot be read.", record)
            continue
        row = tx.one(statement, id=record_id)  # a quote can change between its versions
        said = (facts.number, minor_units(facts.total, facts.currency))
        if row is not None and name != "quote_id" and tuple(row) != said:
            yield Finding("It says another number or total than the record.", record)


def _said_by(table: Table) -> Select[Any]:
    return select(table.c.number, table.c.total).where(table.c.id == bindparam("id"))


def is_whole(content: bytes, start: bytes, end: bytes) -> bool:
    return content.startswith(start) and end in content[-ENDING:]
