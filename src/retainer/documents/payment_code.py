"""Payment codes: the QR code of EPC069-12 that banking apps read, for credit transfers in euros."""

import io
from decimal import Decimal

from retainer.documents.facts import Document

MAX_NAME, MAX_TEXT = 70, 140
SMALLEST, LARGEST = Decimal("0.01"), Decimal("999999999.99")


def payment_code(document: Document) -> str | None:
    """Return the code as SVG; None unless an issued invoice is due in euros to a bank account.

    None also for what the code cannot hold, such as an IBAN of 40 characters: no code is better than a wrong one.
    """
    issuer = document.issuer
    if document.kind != "invoice" or document.is_draft or document.currency != "EUR" or not issuer.iban:
        return None
    if not SMALLEST <= document.total <= LARGEST:
        return None
    from segno import helpers  # noqa: PLC0415  # only documents and second factors need it

    iban, bic = ("".join(text.split()).upper() for text in (issuer.iban, issuer.bic or ""))
    try:
        code = helpers.make_epc_qr(
            name=_one_line(issuer.name, MAX_NAME),
            iban=iban,
            amount=document.total,
            text=_one_line(document.number or "", MAX_TEXT),
            bic=bic or None,
            encoding="UTF-8",
        )
    except ValueError:
        return None
    out = io.BytesIO()
    code.save(out, kind="svg", border=0, xmldecl=False, svgclass=None, lineclass=None, omitsize=True)
    return out.getvalue().decode()


def _one_line(text: str, longest: int) -> str:
    """Return a text without line breaks, at most so long: a line break would begin the next field of the code."""
    return " ".join("".join(ch if ch.isprintable() else " " for ch in text).split())[:longest]
