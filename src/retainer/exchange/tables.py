"""Tables: the rows of a file of another program, whatever its encoding, its delimiter and the form of its numbers."""

import csv
import io
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, time
from decimal import Decimal
from itertools import islice
from typing import Literal, NamedTuple

from retainer.errors import Refusal, invalid
from retainer.values.texts import MAX_MARKS, has_many_marks

DELIMITERS = ",;\t|"
MAX_BYTES = 50 << 20
"""Of one table; its text takes up to eight times as much memory while it is read."""
SIGNATURES = {
    b"PK\x03\x04": "Is a workbook or another ZIP. Save the sheet as CSV in UTF-8, or unpack the ZIP.",
    b"\xd0\xcf\x11\xe0": "Is a workbook of Excel. Save the sheet as CSV in UTF-8.",
    b"%PDF-": "Is a PDF. Export the data as CSV.",
    b"\x1f\x8b": "Is packed. Unpack it first.",
}
"""What begins so is no text, whatever its name says."""
MAX_ROWS = 250_000
"""Rows of one file, so that it can be planned in memory."""
MAX_LINES = 2_000_000
"""Lines of one file, since empty ones are no rows."""
MAX_COLUMNS, MAX_HEADING = 500, 191
"""Columns of a file, and characters of their headings: forms offer each of them for each field."""
HEADING_ROWS = 5
"""How many rows are searched for the headings: some files begin with a title."""
CURRENCY = re.compile(r"\(([A-Z]{3})?\)$")
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
FIGURES = re.compile(r"(-?)[^-0-9.,]*(-?[0-9.,]+(?:[\s'\u2019][0-9]{3}(?![0-9])[0-9.,]*)*)[^-0-9.,]*")
"""The figures of a number, with what may stand around them; spaces only before thousands."""
MAX_FIGURES = 20
ISO_DAY = re.compile(r"([0-9]{4})[-/.]([0-9]{1,2})[-/.]([0-9]{1,2})(?![0-9])")
DAY = re.compile(r"([0-9]{1,2})([-/.])([0-9]{1,2})[-/.]([0-9]{4})")
TIME = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?(?: *([ap])\.?m\.?)?", re.IGNORECASE)
DURATION = re.compile(r"([0-9]{1,4}):([0-5][0-9])(?::([0-5][0-9]))?")
WITH_UNITS = re.compile(r"(?:([0-9]{1,4}) *(?:h|std)[a-z.]*)? *(?:([0-9]{1,5}) *m[a-z.]*)?", re.IGNORECASE)
HOURS = re.compile(r"([^a-z]*[^a-z ]) *(?:(?:h|std)[a-z.]*)?", re.IGNORECASE)
YEARS = range(1900, 2201)
"""Of moments: the zones of all others are a guess, and the calendar of computers ends."""
YES = frozenset({"yes", "true", "1", "y", "ja", "oui", "si", "sí", "sim", "tak"})
NO = frozenset({"no", "false", "0", "n", "nein", "non", "nee", "não", "nie", ""})
DayOrder = Literal["day_first", "month_first"]
DecimalMark = Literal[".", ","]
NOON = 12


TOO_LONG = "Has more cells than the file has headings: put quotes around a text with a separator, or add a heading."


class BadCell(ValueError):
    """A cell does not have the form of its column; the text says so to people."""


class FileRow(NamedTuple):
    """A row with as many cells as the table has headings, and the line of the file on which it begins."""

    line: int
    cells: list[str]
    is_too_long: bool = False


class FileTable(NamedTuple):
    headings: list[str]
    rows: list[FileRow]


def decode(content: bytes) -> str:
    """Return the text of a file: by its mark, as UTF-8, else as Windows-1252. Raises `validation_failed`."""
    message = next((message for start, message in SIGNATURES.items() if content.startswith(start)), "")
    if len(content) > MAX_BYTES:
        message = f"Has more than {MAX_BYTES >> 20} MB. Divide it, and import the parts."
    if message:
        raise invalid({"file": [message]})
    text = _decoded(content)
    if not text.strip():
        raise invalid({"file": ["Is empty. Export the data again."]})
    if (place := text.find("\0")) >= 0:
        raise _unreadable(f"Line {_line(text[:place])} has a zero byte, as UTF-16 without its mark does")
    return text


def _decoded(content: bytes) -> str:
    encoding = "utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    if encoding == "utf-8-sig" and not _is_utf8(content):
        encoding = "cp1252"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = _line(content[: error.start].decode(encoding, "ignore"))
    raise _unreadable(f"Line {line} has a byte that is no character")


def _is_utf8(content: bytes) -> bool:
    """Return whether a text is meant as UTF-8, even if some of its bytes are damaged."""
    text = content.decode("utf-8-sig", "replace")
    damaged = text.count("\ufffd")
    return not damaged or len(text) - len(text.encode("ascii", "ignore")) > 2 * damaged


def _unreadable(what: str) -> Refusal:
    return invalid({"file": [f"{what}. Export the data again, or save it as CSV in UTF-8."]})


def _line(before: str) -> int:
    return before.count("\n") + 1


def read_table(text: str, is_heading: Callable[[list[str]], bool]) -> FileTable | None:
    """Return the table of a text, from its row of headings on; None without one. Raises `validation_failed`."""
    rows: list[FileRow] = []
    headings: list[str] | None = None
    for number, (line, cells) in enumerate(_rows(text)):
        if headings is not None:
            more = cells[len(headings) :]
            padded = cells[: len(headings)] + [""] * (len(headings) - len(cells))
            rows.append(FileRow(line, padded, any(map(str.strip, more))))
        elif is_heading(told_apart := _told_apart(cells)):
            headings = told_apart
        elif number >= HEADING_ROWS:
            break
        if len(rows) > MAX_ROWS:
            raise invalid({"file": [f"Has more than {MAX_ROWS} rows. Divide it, and import the parts."]})
    return None if headings is None else FileTable(headings, rows)


def guess_headings(text: str) -> list[str]:
    """Return the one of the first rows that has most cells: probably the headings. Raises `validation_failed`."""
    first = (_told_apart(cells) for _, cells in islice(_rows(text), HEADING_ROWS))
    return max(first, key=lambda cells: sum(map(bool, cells)), default=[])


def _told_apart(cells: list[str]) -> list[str]:
    """Return headings of which each is another: the second `Phone` is `Phone (2)`. Raises `validation_failed`."""
    if len(cells) > MAX_COLUMNS:
        raise invalid({"file": [f"Has more than {MAX_COLUMNS} columns. Leave out those that are not imported."]})
    seen = Counter[str]()
    found = []
    for cell in (each[:MAX_HEADING] for each in cells):
        seen[cell] += 1
        found.append(f"{cell} ({seen[cell]})" if cell and seen[cell] > 1 else cell)
    return found


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not empty, with their lines; a backslash is text. Raises `validation_failed`.

    The first line that has a delimiter decides which. A row with a quotation mark that is never closed would be all
    that follows it, so such a file is refused.
    """
    beginning = islice(io.StringIO(text), 4 * HEADING_ROWS)
    first = next((row for row in beginning if any(mark in row for mark in DELIMITERS)), "")
    delimiter = max(DELIMITERS, key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        for cells in reader:
            if any(map(has_many_marks, cells)):
                raise invalid(
                    {"file": [f"Line {line} has more than {MAX_MARKS} accents on a letter. Correct that row."]}
                )
            if any(map(str.strip, cells)):
                yield line, cells
            line = reader.line_num + 1
            if line > MAX_LINES:
                raise invalid({"file": [f"Has more than {MAX_LINES:,} lines. Leave out those that are empty."]})
    except csv.Error:
        message = (
            f"Line {line} cannot be divided into cells: one has a quotation mark that is not written twice or never "
            f"closed, or more than {csv.field_size_limit():,} characters. Correct that row."
        )
        raise invalid({"file": [message]}) from None


def heading_key(heading: str) -> str:
    """Return a heading as it is compared: without case, and without the currency in `Amount (EUR)`."""
    return CURRENCY.sub("", name_of(heading)).strip().casefold()


def name_of(cell: str) -> str:
    """Return a name in one form: composed letters, single spaces, none around it."""
    return " ".join(unicodedata.normalize("NFC", cell).replace("\ufeff", "").split())


def currency_in(heading: str) -> str | None:
    found = CURRENCY.search(name_of(heading))
    return found[1] if found else None


def decimal_mark(values: Iterable[str], field: str) -> DecimalMark:
    """Return the decimal mark of a column, which all of its values decide. Raises `validation_failed` if none does.

    `2.000,0` has both marks. In `1,5` and `0,125` the mark cannot separate thousands. `1.500` says nothing.
    """
    marks: set[DecimalMark] = set()
    is_open = False
    for value in values:
        dot, comma = value.rfind("."), value.rfind(",")
        if dot < 0 and comma < 0:
            continue
        mark: DecimalMark = "." if dot > comma else ","
        other: DecimalMark = "," if mark == "." else "."
        whole, _, part = value.rpartition(mark)
        if other in value:
            marks.add(mark)
        elif mark in whole:
            marks.add(other)
        elif len(part.strip()) != len("000") or whole.strip(" -") in {"", "0"}:
            marks.add(mark)
        else:
            is_open = True
    if len(marks) > 1:
        raise invalid({field: ["Has decimal points and decimal commas. Correct the file so that it has one of them."]})
    if not marks and is_open:
        raise invalid({"decimal_mark": ["The file does not tell whether 1.500 is 1500 or one and a half."]})
    return marks.pop() if marks else "."


def read_decimal(text: str, mark: DecimalMark) -> Decimal:
    """Return a number, without the sign of a currency around it. Raises BadCell, also for two numbers: `1 h 5`."""
    found = FIGURES.fullmatch(text.strip())
    figures = "" if found is None else found[1] + "".join(letter for letter in found[2] if letter in "-.,0123456789")
    plain = figures.replace("," if mark == "." else ".", "").replace(mark, ".")
    if not NUMBER.fullmatch(plain) or len(plain) > MAX_FIGURES:
        raise BadCell(f"“{text}” is not a number.")
    return Decimal(plain)


def day_order(values: Iterable[str], field: str) -> DayOrder:
    """Return the order of days such as 03/04/2024, which the whole file decides. Raises `validation_failed` if none."""
    orders: set[DayOrder] = set()
    is_open = False
    for value in values:
        found = DAY.match(value.strip())
        if found is None or ISO_DAY.match(value.strip()):
            continue
        first, separator, second = int(found[1]), found[2], int(found[3])
        if first > NOON or separator == ".":
            orders.add("day_first")
        elif second > NOON:
            orders.add("month_first")
        else:
            is_open = True
    if len(orders) > 1:
        raise invalid({field: ["Has days in two orders, such as 31/01/2026 and 01/31/2026. Correct the file."]})
    if not orders and is_open:
        raise invalid({"day_order": ["The file does not tell whether 03/04/2026 is 3 April or 4 March."]})
    return orders.pop() if orders else "day_first"


def read_day(text: str, order: DayOrder) -> date:
    """Return a day. Raises BadCell."""
    stripped = text.strip()
    try:
        if found := ISO_DAY.match(stripped):
            return date(int(found[1]), int(found[2]), int(found[3]))
        if found := DAY.match(stripped):
            first, second = int(found[1]), int(found[3])
            day, month = (first, second) if order == "day_first" else (second, first)
            return date(int(found[4]), month, day)
    except ValueError:
        pass
    raise BadCell(f"“{text}” is not a date.")


def read_time(text: str) -> time:
    """Return a time of day, with or without AM and PM. Raises BadCell."""
    found = TIME.fullmatch(text.strip())
    if found is not None:
        hour, half = int(found[1]), (found[4] or "").lower()
        if half:
            hour = hour % NOON + (NOON if half == "p" else 0) if hour <= NOON else 99
        try:
            return time(hour, int(found[2]), int(found[3] or 0))
        except ValueError:
            pass
    raise BadCell(f"“{text}” is not a time of day.")


def read_moment(text: str, order: DayOrder) -> datetime:
    """Return a moment like `2026-03-04T10:23:52Z` or `03/04/2026 10:23`, with its zone if any. Raises BadCell."""
    stripped = text.strip()
    try:
        moment = datetime.fromisoformat(stripped)
    except ValueError:
        day, _, clock = stripped.partition(" ")
        return moment_of(day, clock, order)
    return _in_range(moment)


def moment_of(day: str, clock: str, order: DayOrder) -> datetime:
    """Return the moment of a day and a time of day. Raises BadCell."""
    return _in_range(datetime.combine(read_day(day, order), read_time(clock)))


def _in_range(moment: datetime) -> datetime:
    if moment.year not in YEARS:
        raise BadCell(f"The year {moment.year} is not between {YEARS[0]} and {YEARS[-1]}.")
    return moment


def read_seconds(text: str, mark: DecimalMark) -> int:
    """Return a duration like `1:30`, `01:30:00`, `1h 30m` or `1.5` hours in seconds. Raises BadCell."""
    stripped = text.strip()
    if found := DURATION.fullmatch(stripped):
        return int(found[1]) * 3600 + int(found[2]) * 60 + int(found[3] or 0)
    if (found := WITH_UNITS.fullmatch(stripped)) and any(found.groups()):
        return int(found[1] or 0) * 3600 + int(found[2] or 0) * 60
    hours = HOURS.fullmatch(stripped)
    if hours is None:
        raise BadCell(f"“{text}” is not a duration.")
    seconds = read_decimal(hours[1], mark) * 3600
    return int(seconds.to_integral_value("ROUND_HALF_UP"))


def read_truth(text: str, field: str, yes: frozenset[str], no: frozenset[str]) -> bool:
    """Return whether a word says yes. Raises `validation_failed` for a word that is in neither set."""
    word = name_of(text).casefold()
    if word in yes or word in no:
        return word in yes
    raise invalid({field: [f"Say whether “{text}” means yes or no."]})
