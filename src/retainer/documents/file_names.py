"""File names of documents."""

import re
import unicodedata

from retainer.documents.facts import Document

UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def file_name(document: Document, suffix: str) -> str:
    """Return a file name like `INV-2026-0001.pdf`, of characters that every system and header accepts."""
    text = unicodedata.normalize("NFKD", document.number or f"{document.kind}-draft")
    name = UNSAFE.sub("-", text.encode("ascii", "ignore").decode()).strip("-.") or document.kind
    return f"{name}.{suffix}"
