"""PDF: renders a document as PDF/A-3a, with its e-invoice attached if it has one, and sets templates with typst.

Texts reach a template as JSON strings, which are never markup. Fonts come from a package, not from the system, so the
same data and the same version of `typst` give the same bytes.

typst cannot write the metadata that declare a Factur-X invoice (Factur-X 1.0, 6.2). An incremental update (ISO 32000-1,
7.5.6) appends a new version of the metadata object; all other bytes stay as typst wrote them.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import typst

from retainer import __version__
from retainer.documents.einvoice import build_einvoice, missing_facts
from retainer.documents.facts import Document
from retainer.documents.layout import build_layout
from retainer.documents.printable import FILES

TEMPLATES = Path(__file__).parent / "templates"
"""The only folder that typst can read. It has no images, which an SVG could name."""
MAX_SECONDS = 10
"""Processor time for the files of a document. With the longest texts that the API accepts they take less than one, in
scripts that are slow to set up to six."""
TEMPLATE = hashlib.sha256(
    f"{__version__} {version('typst')}".encode() + (TEMPLATES / "document.typ").read_bytes()
).digest()
"""What a file is drawn by, besides the facts of its document: the template, the words, and the program."""
TRAILER = re.compile(rb"trailer\s*<<(?P<entries>.*?)>>\s*startxref\s*(?P<xref>\d+)\s*%%EOF\s*", re.DOTALL)
ROOT = re.compile(rb"/Root (\d+) 0 R")
METADATA = re.compile(rb"/Metadata (\d+) 0 R")
NAMESPACE = b"urn:factur-x:pdfa:CrossIndustryDocument:invoice:1p0#"
PROPERTIES = (
    (b"DocumentFileName", b"factur-x.xml", b"Name of the embedded XML invoice"),
    (b"DocumentType", b"INVOICE", b"Type of the document"),
    (b"Version", b"1.0", b"Version of the Factur-X data"),
    (b"ConformanceLevel", b"EN 16931", b"Profile of the Factur-X data"),
)
SCHEMA = (
    b'<rdf:li rdf:parseType="Resource"><pdfaSchema:schema>Factur-X PDFA Extension Schema</pdfaSchema:schema>'
    b"<pdfaSchema:namespaceURI>%b</pdfaSchema:namespaceURI><pdfaSchema:prefix>fx</pdfaSchema:prefix>"
    b"<pdfaSchema:property><rdf:Seq>%b</rdf:Seq></pdfaSchema:property></rdf:li>"
) % (
    NAMESPACE,
    b"".join(
        b'<rdf:li rdf:parseType="Resource"><pdfaProperty:name>%b</pdfaProperty:name>'
        b"<pdfaProperty:valueType>Text</pdfaProperty:valueType><pdfaProperty:category>external</pdfaProperty:category>"
        b"<pdfaProperty:description>%b</pdfaProperty:description></rdf:li>" % (name, description)
        for name, _, description in PROPERTIES
    ),
)
DESCRIPTION = b'<rdf:Description rdf:about="" xmlns:fx="%b">%b</rdf:Description>' % (
    NAMESPACE,
    b"".join(b"<fx:%b>%b</fx:%b>" % (name, value, name) for name, value, _ in PROPERTIES),
)
END_OF_SCHEMAS, END_OF_RDF = b"</rdf:Bag></pdfaExtension:schemas>", b"</rdf:RDF>"


def render(document: Document) -> bytes:
    """Return the PDF of a document, with its e-invoice unless that lacks something or the invoice is void."""
    is_void = document.standing is not None and document.standing.kind == "void"
    return render_pdf(document, None if is_void or missing_facts(document) else build_einvoice(document))


def render_pdf(document: Document, xml: bytes | None = None) -> bytes:
    """Return a document as PDF; `xml` is its e-invoice. Its dates are those of the document, not of the clock."""
    data = build_layout(document) | {"xml": None if xml is None else xml.decode()}
    issued = datetime.fromisoformat(document.issue_date).replace(tzinfo=UTC)
    pdf = typeset("document.typ", data, "pdf", issued)
    return pdf if xml is None else declare_factur_x(pdf)


def declare_factur_x(pdf: bytes) -> bytes:
    """Return a PDF of typst whose metadata declares its Factur-X invoice. Raises ValueError for any other PDF."""
    trailer = TRAILER.fullmatch(pdf, max(0, pdf.rfind(b"trailer")))
    root = ROOT.search(trailer["entries"]) if trailer else None
    catalog = _object(pdf, int(root[1])) if root else b""
    reference = METADATA.search(catalog)
    if trailer is None or reference is None:
        raise ValueError("This PDF has no classic trailer, or no metadata: another version of typst wrote it.")
    number = int(reference[1])
    xmp = _stream(_object(pdf, number))
    for end, added in ((END_OF_SCHEMAS, SCHEMA), (END_OF_RDF, DESCRIPTION)):
        if xmp.count(end) != 1:
            raise ValueError("The metadata of this PDF has another form: another version of typst wrote it.")
        xmp = xmp.replace(end, added + end)
    start = len(pdf)
    update = b"%d 0 obj\n<</Length %d/Type/Metadata/Subtype/XML>>\nstream\n%b\nendstream\nendobj\n" % (
        number,
        len(xmp),
        xmp,
    )
    xref = b"xref\n%d 1\n%010d 00000 n \ntrailer\n<<%b/Prev %b>>\nstartxref\n%d\n%%%%EOF\n" % (
        number,
        start + 1,
        trailer["entries"],
        trailer["xref"],
        start + 1 + len(update),
    )
    return pdf + b"\n" + update + xref


def _object(pdf: bytes, number: int) -> bytes:
    """Return an object by its number. Its position comes from the end: streams before it hold arbitrary bytes."""
    start = pdf.rfind(b"\n%d 0 obj\n" % number)
    return pdf[start : pdf.find(b"\nendobj", start)]


def _stream(content: bytes) -> bytes:
    start = content.find(b"stream\n") + len(b"stream\n")
    return content[start : content.rfind(b"\nendstream")]


def typeset(
    template: str, data: Mapping[str, object], form: Literal["pdf", "png"], issued: datetime | None = None
) -> bytes:
    """Return a template with its data as PDF/A-3a, or as PNG with a pixel for each point. Raises TypstError.

    `issued` is the date in the metadata of the PDF.
    """
    compiler = typst.Compiler(
        TEMPLATES.joinpath(template).read_bytes(),
        root=str(TEMPLATES),
        font_paths=_fonts(),
        ignore_system_fonts=True,
        sys_inputs={"data": json.dumps(data)},
    )
    made = compiler.compile(format=form, ppi=72, pdf_standards=["a-3a"], timestamp=issued)
    if not isinstance(made, bytes):
        raise TypeError("typst wrote no file, or several.")
    return made


@cache
def _fonts() -> typst.Fonts:
    folders = [str(paths[0].parent) for paths in FILES.values()]
    return typst.Fonts(include_system_fonts=False, include_embedded_fonts=False, font_paths=folders)
