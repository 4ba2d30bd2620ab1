"""CSV files (RFC 4180): the one writer of downloads that spreadsheets open.

Spreadsheets run text that begins like a formula (OWASP: CSV injection). Such text gets an apostrophe in front, which
spreadsheets read as "this is text". Numbers stay numbers.
"""

import csv
import io
import unicodedata
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import NamedTuple, TextIO

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""The first characters of formulas, also in full width; control characters hide one that follows."""
INVISIBLE = {"Cc", "Cf", "Zs", "Zl", "Zp"}
"""The categories of characters that a spreadsheet may drop in front of a formula: controls, formats, spaces."""
BYTE_ORDER_MARK = "\ufeff"
"""Without it, Excel does not read the file as UTF-8."""

Cell = str | int | Decimal | None


class Dialect(NamedTuple):
    """What stands between cells, and in numbers before their decimals: spreadsheets expect those of their country."""

    separator: str = ","
    decimal_mark: str = "."


PROGRAMS = Dialect()
"""The dialect that programs read, and spreadsheets of countries with a decimal point."""


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Cell]], dialect: Dialect = PROGRAMS) -> str:
    """Return rows as CSV; text is quoted, numbers are not, an empty cell is None."""
    written = io.StringIO()
    written.write(BYTE_ORDER_MARK)
    for row in (header, *rows):
        write_row(written, row, dialect)
    return written.getvalue()


def write_row(file: TextIO, row: Iterable[Cell], dialect: Dialect = PROGRAMS) -> None:
    cells: Iterable[str | int | Decimal] = map(safe, row)
    if dialect.decimal_mark == ".":
        csv.writer(file, delimiter=dialect.separator, quoting=csv.QUOTE_NONNUMERIC).writerow(cells)
        return
    texts = (cell if isinstance(cell, str) else str(cell).replace(".", dialect.decimal_mark) for cell in cells)
    csv.writer(file, delimiter=dialect.separator, quoting=csv.QUOTE_MINIMAL).writerow(texts)  # or numbers were quoted


def safe(cell: Cell) -> str | int | Decimal:
    if cell is None:
        return ""
    if isinstance(cell, str):
        visible = next((character for character in cell if unicodedata.category(character) not in INVISIBLE), "")
        if cell.startswith(FORMULA_STARTS) or visible in FORMULA_STARTS:
            return f"'{cell}"
    return cell
