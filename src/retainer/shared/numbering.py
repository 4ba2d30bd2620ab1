"""Numbers that people read: the series of an account, and the patterns that format them."""

from functools import cache
from typing import NamedTuple

from sqlalchemy import Integer, Select, Table, Update, bindparam, insert, select, update

from retainer.schema.identity import accounts, series
from retainer.store.constraints import singular
from retainer.store.engines.sql import INTEGER, TEXT, zero_padded
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values.kinds import ZEROS

NEXT = (
    update(series).where(series.c.name == bindparam("series")).values(last=series.c.last + 1).returning(series.c.last)
)
FIRST = insert(series).values(account_id=ACCOUNT, name=bindparam("series"), last=bindparam("first", type_=INTEGER))


class Candidate(NamedTuple):
    """The next number of a series, and whether a row has it already."""

    number: int
    is_taken: bool


def increment_series(tx: Tx, name: str, first: int = 1) -> int:
    """Increment a series, which begins with the first number; return the new number."""
    last: int | None = tx.value(NEXT, series=name)
    if last is None:
        tx.run(FIRST, series=name, first=first)
        return first
    return last


def next_number(tx: Tx, table: Table, pattern: str, day: str | None = None) -> str:
    """Return the next free number of a table's series; numbers that people have entered may be taken.

    `{0000}` in the pattern is the number with at least as many digits, `{YYYY}` the year of the day, else of today. A
    pattern with the year has a series for each year.
    """
    name = table.name
    if "{YYYY}" in pattern:
        year = (day or tx.today)[:4]
        name, pattern = f"{name}:{year}", pattern.replace("{YYYY}", year)
    prefix, zeros, suffix = ZEROS.split(pattern)
    written = {"series": name, "prefix": prefix, "width": len(zeros), "suffix": suffix}
    statement = _next_number(table)
    while True:
        row = tx.one(statement, **written)
        if row is None:
            tx.run(FIRST, series=name, first=0)
        elif not (candidate := Candidate(*row)).is_taken:
            return f"{prefix}{candidate.number:0{len(zeros)}}{suffix}"


def next_document_number(tx: Tx, table: Table, day: str) -> str:
    """Return the next number of a quote, invoice or credit note, by the account's pattern."""
    return next_number(tx, table, tx.value(_select_pattern(table)), day)


@cache
def _select_pattern(table: Table) -> Select[str]:
    return select(accounts.c[f"{singular(table).replace(' ', '_')}_number_pattern"]).where(accounts.c.id == ACCOUNT)


@cache
def _next_number(table: Table) -> Update:
    """Return the statement that increments a series, with the columns of a Candidate."""
    number = bindparam("prefix", type_=TEXT) + zero_padded(series.c.last, bindparam("width", type_=Integer))
    written = number + bindparam("suffix", type_=TEXT)
    taken = select(table.c.number).where(table.c.number == written).correlate(series).exists()
    return NEXT.returning(taken)
