"""Series: numbers of documents are used once, without gaps where that is promised, and the next one is beyond them.

Numbers are compared since the last change of their pattern or of the next number, since older ones may be written in
another way. Clients can have numbers that people have entered, which their series skips.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Any

from sqlalchemy import Select, Table, func, select

from retainer.doctor.findings import Finding
from retainer.schema.billing import credit_notes, invoices, quotes
from retainer.schema.identity import accounts, audit_entries, series
from retainer.schema.support import tickets
from retainer.store.constraints import singular
from retainer.store.engines.sql import is_listed
from retainer.store.streams import stream_rows
from retainer.store.tx import Tx
from retainer.values.collation import printed_form
from retainer.values.decoding import decoder
from retainer.values.kinds import ZEROS

NUMBERED_AT = {quotes: "created_at", invoices: "sent_at", credit_notes: "created_at"}
"""The tables whose numbers only a series gives, and when a record gets its number."""
GAPLESS = (invoices, credit_notes)
CHANGED = select(audit_entries.c.created_at, audit_entries.c.after).where(audit_entries.c.target == "account")
read_fields = decoder(dict[str, Any])
LAST = select(series.c.name, series.c.last)
HIGHEST_TICKET = select(func.max(tickets.c.number))


def find(tx: Tx) -> Iterator[Finding]:
    last: dict[str, int] = {str(name): number for name, number in tx.all(LAST)}
    changed = _last_changes(tx)
    for table, moment in NUMBERED_AT.items():
        kind = singular(table).replace(" ", "_")
        since = max(changed[f"{kind}_number_pattern"], changed[f"next_{kind}_number"])
        used = _used(tx, table, moment, since)
        for name, numbers in used.items():
            yield from _of_series(tx, table, name, numbers, last.get(name, 0), is_first=not since)
        for number, rows in tx.all(_twice(table)):
            yield Finding(f"{rows} {table.name.replace('_', ' ')} have the number {number}.")
    highest = tx.value(HIGHEST_TICKET)
    if highest is not None and last.get("tickets", 0) < highest:
        yield Finding(f"The series of tickets is at {last.get('tickets', 0)}, but ticket number {highest} exists.")


def _of_series(
    tx: Tx, table: Table, name: str, numbers: dict[int, str], last: int, *, is_first: bool
) -> Iterator[Finding]:
    highest = max(numbers)
    if last < highest:
        next_number = f"its next number would be {last + 1}"
        yield Finding(f"The series {name} is at {last}, so {next_number}, but {numbers[highest]} exists.")
    if table not in GAPLESS:
        return
    expected = range(1 if is_first else min(numbers), max(highest, last) + 1)
    missing = [number for number in expected if number not in numbers]
    if missing and (gaps := _not_taken(tx, table, missing, numbers[highest], highest)):
        shown = ", ".join(map(str, gaps[:5])) + ", ..." * (len(gaps) > 5)
        yield Finding(f"The series {name} lacks {shown}: {len(gaps)} {table.name.replace('_', ' ')} are missing.")


def _not_taken(tx: Tx, table: Table, missing: list[int], example: str, number: int) -> list[int]:
    """Return the numbers that no older document has either; a series skips those that are taken."""
    head, digits, tail = (
        example.rpartition(re.findall("[0-9]+", example)[-1]) if str(number) in example else ("", "", "")
    )
    written = {printed_form(f"{head}{each:0{len(digits)}}{tail}"): each for each in missing}
    taken = {text for (text,) in tx.all(_having(table), numbers=json.dumps([*written]))}
    return [each for text, each in written.items() if text not in taken]


def _last_changes(tx: Tx) -> dict[str, str]:
    """Return when each pattern and next number was last changed, by the fields of the account."""
    found: dict[str, str] = defaultdict(str)
    for moment, after in tx.all(CHANGED):
        for field in read_fields(after) if after else ():
            found[field] = max(found[field], moment)
    return found


def _used(tx: Tx, table: Table, moment: str, since: str) -> dict[str, dict[int, str]]:
    """Return the numbers that were given since a moment, by their series, each with its text."""
    column = accounts.c[f"{singular(table).replace(' ', '_')}_number_pattern"]
    pattern = str(tx.field(column, tx.account_id))
    prefix, zeros, suffix = ZEROS.split(pattern)
    form = re.compile(_expression(prefix) + f"(?P<number>[0-9]{{{len(zeros)},}})" + _expression(suffix))
    found: dict[str, dict[int, str]] = defaultdict(dict)
    for _, number, at in stream_rows(tx, table, "number", moment):
        if number is not None and at is not None and at > since and (match := form.fullmatch(number)):
            year = match.groupdict().get("year")
            found[f"{table.name}:{year}" if year else table.name][int(match["number"])] = number
    return found


def _expression(part: str) -> str:
    first, *others = part.split("{YYYY}")
    return re.escape(first) + "".join(f"(?P<year>[0-9]{{4}}){re.escape(other)}" for other in others)


@cache
def _twice(table: Table) -> Select[Any]:
    number = table.c.number_folded
    return select(number, func.count()).where(number.is_not(None)).group_by(number).having(func.count() > 1)


@cache
def _having(table: Table) -> Select[Any]:
    return select(table.c.number_folded).where(is_listed(table.c.number_folded, "numbers"))
