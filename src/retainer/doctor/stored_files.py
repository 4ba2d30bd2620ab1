"""Stored files: logos and the documents that were issued can be read, and are where others expect them."""

import hashlib
from collections.abc import Iterator

from retainer.doctor.findings import Finding
from retainer.documents.facts import Issuer
from retainer.schema.billing import credit_notes, invoices, issued_documents
from retainer.schema.identity import accounts, logos
from retainer.store.constraints import singular
from retainer.store.streams import stream_rows
from retainer.store.tx import Tx
from retainer.values.decoding import decoder

read_issuer = decoder(Issuer)
PDF, PDF_END, XML, XML_END = b"%PDF-", b"%%EOF", b"<?xml", b">"
ENDING = 64
"""Bytes at the end of a file in which its mark is looked for."""


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
    yield from _documents(tx)


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


def is_whole(content: bytes, start: bytes, end: bytes) -> bool:
    return content.startswith(start) and end in content[-ENDING:]
