"""CSV files (RFC 4180): the one writer of downloads that spreadsheets open.

Spreadsheets run text that begins like a formula (OWASP: CSV injection). Such text gets an apostrophe in front, which
spreadsheets read as "this is text". Numbers stay numbers.
"""

import csv
import io
import unicodedata
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import TextIO

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""The first characters of formulas, also in full width; control characters hide one that follows."""
INVISIBLE = {"Cc", "Cf", "Zs", "Zl", "Zp"}
"""The categories of characters that a spreadsheet may drop in front of a formula: controls, formats, spaces."""
BYTE_ORDER_MARK = "\ufeff"
"""Without it, Excel does not read the file as UTF-8."""

Cell = str | int | Decimal | None


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Return rows as CSV; text is quoted, numbers are not, an empty cell is None."""
    written = io.StringIO()
    written.write(BYTE_ORDER_MARK)
    for row in (header, *rows):
        write_row(written, row)
    return written.getvalue()


def write_row(file: TextIO, row: Iterable[Cell]) -> None:
    csv.writer(file, quoting=csv.QUOTE_NONNUMERIC).writerow(map(safe, row))


def safe(cell: Cell) -> str | int | Decimal:
    if cell is None:
        return ""
    if isinstance(cell, str):
        visible = next((character for character in cell if unicodedata.category(character) not in INVISIBLE), "")
        if cell.startswith(FORMULA_STARTS) or visible in FORMULA_STARTS:
            return f"'{cell}"
    return cell
