"""Lists: the tables of a ZIP, which can have payments and credit notes in addition to invoices.

The name of the file says what the list has, since its headings can be those of invoices. How days and numbers are
written follows from the list itself, and else from what a person has answered.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple
from zoneinfo import ZoneInfo

from retainer.errors import Refusal, invalid
from retainer.exchange.columns import CellForm, Cells, ColumnMapping, ImportSource, SourceTable, find_table, read_rows
from retainer.exchange.documents import credit_notes
from retainer.exchange.documents.archives import Archive
from retainer.exchange.documents.credit_notes import CreditCandidate
from retainer.exchange.documents.sources import CREDIT_NOTES, FIELDS, PAYMENTS
from retainer.exchange.tables import FileTable, name_of

NAMES = {
    PAYMENTS.name: re.compile("payment|zahlung", re.IGNORECASE),
    CREDIT_NOTES.name: re.compile("credit|gutschrift|storno", re.IGNORECASE),
}
"""How the files of lists are called, by their sources."""


class FoundTable(NamedTuple):
    """A table, and the name of its file."""

    file: str
    table: FileTable


class PaymentList(NamedTuple):
    """A list of payments by the numbers of their invoices. An invoice that is not in it was not paid."""

    form: CellForm
    by_number: dict[str, list[Cells]]


def find(archive: Archive, source: ImportSource, mapping: ColumnMapping) -> FoundTable | None:
    """Return the table of a source among those of a file; None without one. Raises `validation_failed` for several."""
    found, reasons = list[FoundTable](), list[str]()
    for name, content in archive.tables.items():
        if _list_of(name) != (source.name if source.name in NAMES else ""):
            continue
        try:
            found.append(FoundTable(name, find_table(content, source, mapping)))
        except Refusal as refusal:
            if not name:
                raise
            reasons += [f"{name}: {message}" for message in refusal.members["errors"]["file"]]
    if len(found) > 1:
        raise invalid({"file": [f"Has {len(found)} tables of {source.title}. Leave one of them in the ZIP."]})
    if reasons and not found:
        raise invalid({"file": reasons})
    return found[0] if found else None


def _list_of(name: str) -> str:
    return next((source for source, pattern in NAMES.items() if pattern.search(name)), "")


def _read_list(archive: Archive, source: ImportSource, mapping: ColumnMapping, zone: ZoneInfo) -> SourceTable | None:
    found = find(archive, source, ColumnMapping()) if archive.packed else None
    if found is None:
        return None
    try:
        return read_rows(found.table, source, ColumnMapping(), zone, FIELDS)._replace(file=found.file)
    except Refusal:
        answers = ColumnMapping(day_order=mapping.day_order, decimal_mark=mapping.decimal_mark)
        return read_rows(found.table, source, answers, zone, FIELDS)._replace(file=found.file)


def read_payments(archive: Archive, mapping: ColumnMapping, zone: ZoneInfo) -> PaymentList | None:
    """Return the list of payments, if there is one. Raises `validation_failed` for what it leaves open."""
    table = _read_list(archive, PAYMENTS, mapping, zone)
    return None if table is None else PaymentList(table.form, by_number(table.rows))


def read_credit_notes(archive: Archive, mapping: ColumnMapping, zone: ZoneInfo) -> list[CreditCandidate]:
    """Return the credit notes of the list, if there is one. Raises `validation_failed` for what it leaves open."""
    table = _read_list(archive, CREDIT_NOTES, mapping, zone)
    return [] if table is None else credit_notes.read(table)


def by_number(rows: Iterable[Cells]) -> dict[str, list[Cells]]:
    """Return rows by the number of the invoice that they belong to."""
    found: dict[str, list[Cells]] = {}
    for cells in rows:
        found.setdefault(name_of(cells["number"]), []).append(cells)
    return found
