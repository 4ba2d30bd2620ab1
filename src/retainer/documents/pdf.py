"""PDF: renders a document as PDF/A-3a, with its e-invoice attached if it has one.

Texts reach the template as JSON strings, which are never markup. Fonts come from a package, not from the system, and
dates from the document, so the same facts and the same version of `typst` give the same bytes.
"""

import json
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import typst

from retainer.documents.einvoice import build_einvoice, missing_facts
from retainer.documents.facts import Document
from retainer.documents.fonts import FILES
from retainer.documents.layout import build_layout
from retainer.documents.metadata import declare_factur_x

TEMPLATES = Path(__file__).parent / "templates"


@cache
def _fonts() -> typst.Fonts:
    folders = [str(paths[0].parent) for paths in FILES.values()]
    return typst.Fonts(include_system_fonts=False, include_embedded_fonts=False, font_paths=folders)


@cache
def _template() -> bytes:
    return (TEMPLATES / "document.typ").read_bytes()


def render_files(document: Document) -> tuple[bytes, bytes | None]:
    """Return the PDF of a document and its e-invoice; None if that lacks something."""
    xml = None if missing_facts(document) else build_einvoice(document)
    return render_pdf(document, xml), xml


def render_pdf(document: Document, xml: bytes | None = None) -> bytes:
    """Return a document as PDF; `xml` is its e-invoice. A logo that typst cannot draw is left out."""
    data = build_layout(document) | {"xml": None if xml is None else xml.decode()}
    issued = datetime.fromisoformat(document.issue_date).replace(tzinfo=UTC)
    try:
        pdf = _compile(data, issued)
    except typst.TypstError:
        if document.logo is None:
            raise
        pdf = _compile(data | {"logo": None}, issued)
    return pdf if xml is None else declare_factur_x(pdf)


def _compile(data: dict[str, object], issued: datetime) -> bytes:
    compiler = typst.Compiler(
        _template(),
        root=str(TEMPLATES),
        font_paths=_fonts(),
        ignore_system_fonts=True,
        sys_inputs={"data": json.dumps(data)},
    )
    pdf = compiler.compile(format="pdf", pdf_standards=["a-3a"], timestamp=issued)
    if not isinstance(pdf, bytes):
        raise TypeError("typst wrote no PDF.")
    return pdf
