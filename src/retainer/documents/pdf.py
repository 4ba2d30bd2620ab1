"""PDF: renders a document as PDF/A-3a, with its e-invoice attached if it has one."""

from datetime import UTC, datetime

from retainer.documents.einvoice import build_einvoice, missing_facts
from retainer.documents.facts import Document
from retainer.documents.layout import build_layout
from retainer.documents.metadata import declare_factur_x
from retainer.documents.typesetting import typeset


def render_files(document: Document) -> tuple[bytes, bytes | None]:
    """Return the PDF of a document and its e-invoice; None if that lacks something."""
    xml = None if missing_facts(document) else build_einvoice(document)
    return render_pdf(document, xml), xml


def render_pdf(document: Document, xml: bytes | None = None) -> bytes:
    """Return a document as PDF; `xml` is its e-invoice. Its dates are those of the document, not of the clock."""
    data = build_layout(document) | {"xml": None if xml is None else xml.decode()}
    issued = datetime.fromisoformat(document.issue_date).replace(tzinfo=UTC)
    pdf = typeset("document.typ", data, "pdf", issued)
    return pdf if xml is None else declare_factur_x(pdf)
