"""Archives: what a person sends of another program, either a CSV or a ZIP with CSVs and the PDFs of its documents.

All bounds are checked before anything is unpacked, from the directory of the ZIP; no file of it is written to a disk
by its name.
"""

import io
import re
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from retainer.errors import invalid
from retainer.exchange.tables import MAX_BYTES as MAX_TABLE
from retainer.exchange.tables import SIGNATURES, BadCell
from retainer.values.collation import printed_form
from retainer.values.texts import without_path

MIB = 1 << 20
MAX_BYTES = 100 * MIB
"""Of a file, and of all that a ZIP unpacks to: it is stored in the transaction that starts the job."""
MAX_PDF = 10 * MIB
MAX_ENTRIES = 5000
TOO_MANY = f"Has more than {MAX_ENTRIES} files. Import it in parts."
MAX_RATIO = 200
"""How many times an entry of more than 1 MiB may be larger than its packed bytes; CSVs shrink to a tenth."""
MAX_NAME = 120
"""Characters of a file name, in which numbers are searched."""
SIGNATURE, OF_DIRECTORY = b"PK\x03\x04", b"PK\x01\x02"
"""What a ZIP begins with, and each entry of its directory."""
WORKBOOKS = frozenset({"[Content_Types].xml", "META-INF/manifest.xml"})
"""What a ZIP has that is a workbook of a spreadsheet."""
LISTED = 5
"""How many names a sentence lists."""
PDF, PDF_END, ENDING = b"%PDF-", b"%%EOF", 1024
WORDS = re.compile(r"[^\W_]+")


class Archive(NamedTuple):
    """The tables of a file, by their names, and its PDFs: their places in the ZIP by file name."""

    tables: dict[str, bytes]
    pdfs: list[zipfile.ZipInfo]
    packed: zipfile.ZipFile | None
    ignored: list[str]
    """The names of its other files."""

    def read_pdf(self, entry: zipfile.ZipInfo) -> bytes:
        """Return the bytes of a PDF. Raises BadCell if it is damaged."""
        if self.packed is None:
            raise LookupError("A file without a ZIP has no PDFs.")
        if entry.file_size > MAX_PDF:
            raise BadCell(f"Its PDF has more than {MAX_PDF // MIB} MB.")
        content = _unpack(self.packed, entry)
        if not content.startswith(PDF) or PDF_END not in content[-ENDING:]:
            raise BadCell(f"{name_in(entry)} is no whole PDF.")
        return content


def open_archive(content: bytes) -> Archive:
    """Return what a file has. Raises `validation_failed` for one that is too large or damaged."""
    if len(content) > MAX_BYTES:
        raise invalid({"file": [f"Has more than {MAX_BYTES // MIB} MB. Import it in parts."]})
    if not content.startswith(SIGNATURE):
        return Archive({"": content}, [], None, [])
    if content.count(OF_DIRECTORY) > 2 * MAX_ENTRIES:  # reading half a million takes seconds
        raise invalid({"file": [TOO_MANY]})
    try:
        packed = zipfile.ZipFile(io.BytesIO(content))
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise invalid({"file": [f"Is a damaged ZIP: {error}. Make it again."]}) from None
    entries = [entry for entry in packed.infolist() if not entry.is_dir() and not _is_of_system(entry)]
    _check(entries)
    if any(entry.filename in WORKBOOKS for entry in entries):
        raise invalid({"file": [SIGNATURES[SIGNATURE]]})
    tables: dict[str, bytes] = {}
    for entry in entries:
        if _has_suffix(entry, ".csv"):
            if name_in(entry) in tables:
                raise invalid(
                    {"file": [f"Has two files with the name {name_in(entry)}. Leave one of them in the ZIP."]}
                )
            tables[name_in(entry)] = _unpack(packed, entry)
    pdfs = [entry for entry in entries if _has_suffix(entry, ".pdf")]
    ignored = [name_in(entry) for entry in entries if not _has_suffix(entry, ".csv") and not _has_suffix(entry, ".pdf")]
    return Archive(tables, pdfs, packed, ignored)


def listed(names: Sequence[str]) -> str:
    """Return the first of some names, as a sentence lists them."""
    more = len(names) - LISTED
    return ", ".join(name[:MAX_NAME] for name in names[:LISTED]) + (f" and {more} more" if more > 0 else "")


def _check(entries: list[zipfile.ZipInfo]) -> None:
    if len(entries) > MAX_ENTRIES:
        raise invalid({"file": [TOO_MANY]})
    if sum(entry.file_size for entry in entries) > MAX_BYTES:
        raise invalid({"file": [f"Unpacks to more than {MAX_BYTES // MIB} MB. Import it in parts."]})
    for entry in entries:
        name, message = name_in(entry), ""
        if entry.flag_bits & 1:
            message = "is encrypted. Send the ZIP without a password"
        elif len(name) > MAX_NAME:
            message = f"has a name of more than {MAX_NAME} characters. Rename it"
        elif entry.file_size > MIB and entry.file_size > MAX_RATIO * entry.compress_size:
            message = "is packed as no real file is. Leave it out"
        elif _has_suffix(entry, ".csv") and entry.file_size > MAX_TABLE:
            message = f"has more than {MAX_TABLE // MIB} MB. Divide it"
        if message:
            raise invalid({"file": [f"{name[:MAX_NAME]} {message}."]})


def _unpack(packed: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Return the bytes of an entry: not more than its directory says, which was checked."""
    try:
        with packed.open(entry) as file:
            content = file.read(entry.file_size + 1)
    except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError, OSError, zlib.error) as error:
        raise invalid({"file": [f"{name_in(entry)} cannot be unpacked: {error}. Make the ZIP again."]}) from None
    if len(content) != entry.file_size:
        raise invalid({"file": [f"{name_in(entry)} is not as large as the ZIP says. Make it again."]})
    return content


def name_in(entry: zipfile.ZipInfo) -> str:
    return without_path(entry.filename)


def _has_suffix(entry: zipfile.ZipInfo, suffix: str) -> bool:
    return name_in(entry).casefold().endswith(suffix)


def _is_of_system(entry: zipfile.ZipInfo) -> bool:
    return entry.filename.startswith("__MACOSX/") or name_in(entry).startswith(".")


def match_pdfs(pdfs: Iterable[zipfile.ZipInfo], numbers: Iterable[str]) -> dict[str, list[zipfile.ZipInfo]]:
    """Return the PDFs of each number: those whose names have it between other signs, and no longer number.

    `Invoice_2021-7.pdf` is that of 2021/7 and not of 7. A name that fits two numbers is that of neither.
    """
    by_words: dict[tuple[str, ...], list[str]] = {}
    for number in numbers:
        by_words.setdefault(_words(number), []).append(number)
    longest = max(map(len, by_words), default=0)
    found: dict[str, list[zipfile.ZipInfo]] = {}
    for entry in pdfs:
        words = _words(name_in(entry)[: -len(".pdf")])
        for length in range(min(longest, len(words)), 0, -1):
            parts = {words[start : start + length] for start in range(len(words) - length + 1)}
            fitting = [number for part in sorted(parts) for number in by_words.get(part, ())]
            if len(fitting) == 1:
                found.setdefault(fitting[0], []).append(entry)
            if fitting:
                break
    return {
        number: [entry for entry in entries if _words(name_in(entry)[: -len(".pdf")]) == _words(number)] or entries
        for number, entries in found.items()
    }


def _words(text: str) -> tuple[str, ...]:
    return tuple(WORDS.findall(printed_form(text)))
