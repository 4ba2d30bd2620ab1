"""Sums: stored totals and counts, which can be computed again from their rows; and what must not be."""

from collections.abc import Iterator

from retainer.doctor.findings import Finding
from retainer.rollups import doctor as recount
from retainer.store.announcements import is_announced
from retainer.store.tx import Tx


def find(tx: Tx) -> Iterator[Finding]:
    for name in recount.mismatched(tx):
        yield Finding(f"{name} does not match its rows.")


def missing_rows(tx: Tx) -> list[str]:
    """Return tables with fewer rows than were counted, whose deletions no event reports: rows may be lost."""
    found = []
    for table in recount.counted():
        lost = -recount.miscount(tx, table)
        if lost > 0 and not is_announced(table):
            found.append(f"{lost} rows of {table.name} are missing")
    return found
