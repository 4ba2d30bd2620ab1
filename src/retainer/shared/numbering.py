"""Numbers that people read: the series of an account, the patterns that format them, and how a series goes on."""

import json
from collections.abc import Iterable
from functools import cache
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta
from sqlalchemy import ClauseElement, Integer, Select, Table, Update, bindparam, insert, select, update

from retainer.identity import audit
from retainer.identity.accounts import get_account
from retainer.schema.billing import credit_notes, invoices, quotes
from retainer.schema.crm import clients
from retainer.schema.identity import accounts, series
from retainer.schema.support import tickets
from retainer.store.constraints import singular
from retainer.store.engines.sql import INTEGER, TEXT, is_listed, zero_padded
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values.collation import printed_form
from retainer.values.kinds import ZEROS

NEXT = (
    update(series).where(series.c.name == bindparam("series")).values(last=series.c.last + 1).returning(series.c.last)
)
FIRST = insert(series).values(account_id=ACCOUNT, name=bindparam("series"), last=bindparam("first", type_=INTEGER))
SKIP = update(series).where(series.c.name == bindparam("series")).values(last=bindparam("first", type_=INTEGER))
LOCKED = update(series).where(series.c.name == bindparam("series")).values(last=series.c.last).returning(series.c.last)
"""The last number of a series; its row is locked until the transaction ends."""
LAST = select(series.c.last).where(series.c.name == bindparam("series"))
NextNumber = Annotated[int, Meta(ge=1, le=999_999_999), "Numbers only go up."]
NextOfYear = Annotated[
    int,
    Meta(ge=1, le=999_999_999),
    "Numbers only go up. With {YYYY} in the pattern, this is the next one of this year.",
]
FIRST_TICKET = 1001
NUMBERED: dict[str, Table] = {
    f"next_{singular(table).replace(' ', '_')}_number": table
    for table in (clients, quotes, invoices, credit_notes, tickets)
}
"""The tables whose next number can be set, by the fields of NextNumbers."""
MAX_DIGITS = 9  # of a next number that can be set
PREVIEWED = 100  # number of candidates that a preview looks at


class NextNumbers(msgspec.Struct, kw_only=True):
    """The numbers with which the series of an account go on; those of patterns with {YYYY} are those of this year."""

    next_client_number: NextNumber | None = None
    next_quote_number: NextOfYear | None = None
    next_invoice_number: NextOfYear | None = None
    next_credit_note_number: NextOfYear | None = None
    next_ticket_number: NextNumber | None = None


class NumberFormat(NamedTuple):
    """A series, and how its numbers are written."""

    series: str
    prefix: str
    width: int
    suffix: str

    def write(self, number: int) -> str:
        return f"{self.prefix}{number:0{self.width}}{self.suffix}"

    def read(self, text: str) -> str:
        """Return the part of a whole number, like `124` of `2026-124`, that the series counts; other text as it is."""
        inner = text.removeprefix(self.prefix).removesuffix(self.suffix)
        return inner if inner.isdecimal() and text == f"{self.prefix}{inner}{self.suffix}" else text


def next_number(tx: Tx, table: Table, pattern: str, day: str | None = None) -> str:
    """Return the next free number of a table's series; numbers that people have entered may be taken.

    `{0000}` in the pattern is the number with at least as many digits, `{YYYY}` the year of the day, else of today. A
    pattern with the year has a series for each year.
    """
    number_format = read_format(table, pattern, day or tx.today)
    prefix, suffix = printed_form(f"{number_format.prefix}0")[:-1], printed_form(f"0{number_format.suffix}")[1:]
    written = {"series": number_format.series, "width": number_format.width, "prefix": prefix, "suffix": suffix}
    statement = _next_number(table)
    while True:
        row = tx.one(statement, **written)
        if row is None:
            tx.run(FIRST, series=number_format.series, first=0)
            continue
        number, is_taken = row
        if not is_taken:
            return number_format.write(number)


def preview_number(tx: Tx, table: Table, pattern: str, day: str = "", *, at_least: int = 1) -> str:
    """Return the number that the next record of a day, by default today, would get with a pattern; nothing is written.

    `at_least` is a next number that is not saved yet. After many numbers that people have entered, the result may be
    one of theirs.
    """
    number_format = read_format(table, pattern, day or tx.today)
    first: int = max((tx.value(LAST, series=number_format.series) or 0) + 1, at_least)
    numbers = [number_format.write(number) for number in range(first, first + PREVIEWED)]
    taken = {number for (number,) in tx.all(_numbers(table), numbers=json.dumps([*map(printed_form, numbers)]))}
    return next((number for number in numbers if printed_form(number) not in taken), numbers[-1])


def next_ticket_number(tx: Tx) -> int:
    number: int | None = tx.value(NEXT, series=tickets.name)
    if number is None:
        tx.run(FIRST, series=tickets.name, first=FIRST_TICKET)
        return FIRST_TICKET
    return number


def upcoming_numbers(tx: Tx) -> audit.Fields:
    """Return the next number of each series, by the fields of NextNumbers; that of a pattern with a year for today."""
    return {field: _next_of(tx, table, LAST)[1] for field, table in NUMBERED.items()}


def set_next_numbers(tx: Tx, numbers: audit.Fields) -> None:
    """Set next numbers by the fields of NextNumbers; null leaves one. Raises `validation_failed` for a lower one."""
    before = audit.Fields()
    after = {field: number for field, number in numbers.items() if number is not None}
    for field, number in after.items():
        name, before[field], is_new = _next_of(tx, NUMBERED[field], LOCKED)
        if number < before[field]:
            tx.error(field, f"Must be at least {before[field]}, the next number now: numbers only go up.")
        else:
            tx.run(FIRST if is_new else SKIP, series=name, first=number - 1)
    tx.raise_errors()
    account = get_account(tx)
    target = audit.Target("account", account["id"], account["name"])
    audit.note_changes(tx, "account changed", target, before, after)


def read_numbers(table: Table, pattern: str, numbers: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Return the highest number of each series among numbers of documents, each with its day.

    Those that the pattern would not write are left out.
    """
    found: dict[str, int] = {}
    for text, day in numbers:
        number_format = read_format(table, pattern, day)
        inner = text[len(number_format.prefix) : len(text) - len(number_format.suffix)]
        if inner.isascii() and inner.isdecimal() and len(inner) <= MAX_DIGITS:
            number = int(inner)
            if number_format.write(number) == text:
                found[number_format.series] = max(number, found.get(number_format.series, 0))
    return found


def continue_after(tx: Tx, table: Table, numbers: dict[str, int]) -> None:
    """Let series go on after these numbers, by their names; one that is beyond stays. The account notes it."""
    field = next(field for field, numbered in NUMBERED.items() if numbered is table)
    before = {field: _next_of(tx, table, LAST)[1]}
    for name, number in sorted(numbers.items()):
        last: int | None = tx.value(LOCKED, series=name)
        if last is None or last < number:
            tx.run(FIRST if last is None else SKIP, series=name, first=number)
    account = get_account(tx)
    target = audit.Target("account", account["id"], account["name"])
    audit.note(tx, "account changed", target, before=before, after={field: _next_of(tx, table, LAST)[1]})


def _next_of(tx: Tx, table: Table, last_number: ClauseElement) -> tuple[str, int, bool]:
    """Return the name of a table's series on today's date, its next number, and whether it has none yet."""
    name, first = tickets.name, FIRST_TICKET
    if table is not tickets:
        name, first = read_format(table, _pattern(tx, table), tx.today).series, 1
    last: int | None = tx.value(last_number, series=name)
    return name, first if last is None else last + 1, last is None


def read_format(table: Table, pattern: str, day: str) -> NumberFormat:
    name = table.name
    if "{YYYY}" in pattern:
        name, pattern = f"{name}:{day[:4]}", pattern.replace("{YYYY}", day[:4])
    prefix, zeros, suffix = ZEROS.split(pattern)
    return NumberFormat(name, prefix, len(zeros), suffix)


def next_document_number(tx: Tx, table: Table, day: str) -> str:
    return next_number(tx, table, _pattern(tx, table), day)


def _pattern(tx: Tx, table: Table) -> str:
    return str(tx.field(accounts.c[f"{singular(table).replace(' ', '_')}_number_pattern"], tx.account_id))


@cache
def _numbers(table: Table) -> Select[str]:
    return select(table.c.number_folded).where(is_listed(table.c.number_folded, "numbers"))


@cache
def _next_number(table: Table) -> Update:
    """Return the statement that increments a series, and returns its number, and whether a row has it already."""
    number = bindparam("prefix", type_=TEXT) + zero_padded(series.c.last, bindparam("width", type_=Integer))
    written = number + bindparam("suffix", type_=TEXT)
    taken = select(table.c.number_folded).where(table.c.number_folded == written).correlate(series).exists()
    return NEXT.returning(taken)
