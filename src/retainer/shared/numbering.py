"""Numbers that people read: the series of an account, and the patterns that format them."""

import json
from functools import cache
from typing import NamedTuple

from sqlalchemy import Integer, Select, Table, Update, bindparam, insert, select, update

from retainer.schema.identity import accounts, series
from retainer.store.constraints import singular
from retainer.store.engines.sql import INTEGER, TEXT, is_listed, listed, zero_padded
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values.kinds import ZEROS

NEXT = (
    update(series).where(series.c.name == bindparam("series")).values(last=series.c.last + 1).returning(series.c.last)
)
FIRST = insert(series).values(account_id=ACCOUNT, name=bindparam("series"), last=bindparam("first", type_=INTEGER))
LAST = select(series.c.last).where(series.c.name == bindparam("series"))
PREVIEWED = 100
"""Number of candidates that a preview looks at."""


class Candidate(NamedTuple):
    """The next number of a series, and whether a row has it already."""

    number: int
    is_taken: bool


class Form(NamedTuple):
    """How the numbers of a series are written."""

    series: str
    prefix: str
    width: int
    suffix: str

    def write(self, number: int) -> str:
        """Return a number as people read it."""
        return f"{self.prefix}{number:0{self.width}}{self.suffix}"


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
    form = read_form(table, pattern, day or tx.today)
    written = {"series": form.series, "prefix": form.prefix, "width": form.width, "suffix": form.suffix}
    statement = _next_number(table)
    while True:
        row = tx.one(statement, **written)
        if row is None:
            tx.run(FIRST, series=form.series, first=0)
        elif not (candidate := Candidate(*row)).is_taken:
            return form.write(candidate.number)


def preview_document_number(tx: Tx, table: Table, day: str) -> str:
    """Return the number that the next quote, invoice or credit note of a day would get; nothing is written."""
    return preview_number(tx, table, tx.value(_select_pattern(table)), day)


def preview_number(tx: Tx, table: Table, pattern: str, day: str = "") -> str:
    """Return the number that the next record of a day, by default today, would get with a pattern; nothing is written.

    After many numbers that people have entered, it may be one of theirs.
    """
    form = read_form(table, pattern, day or tx.today)
    first: int = (tx.value(LAST, series=form.series) or 0) + 1
    numbers = [form.write(number) for number in range(first, first + PREVIEWED)]
    taken = {number for (number,) in tx.all(_numbers(table), numbers=json.dumps(numbers))}
    return next((number for number in numbers if number not in taken), numbers[-1])


def read_form(table: Table, pattern: str, day: str) -> Form:
    """Return the series of a pattern on a day, and how its numbers are written."""
    name = table.name
    if "{YYYY}" in pattern:
        name, pattern = f"{name}:{day[:4]}", pattern.replace("{YYYY}", day[:4])
    prefix, zeros, suffix = ZEROS.split(pattern)
    return Form(name, prefix, len(zeros), suffix)


def next_document_number(tx: Tx, table: Table, day: str) -> str:
    """Return the next number of a quote, invoice or credit note, by the account's pattern."""
    return next_number(tx, table, tx.value(_select_pattern(table)), day)


@cache
def _select_pattern(table: Table) -> Select[str]:
    return select(accounts.c[f"{singular(table).replace(' ', '_')}_number_pattern"]).where(accounts.c.id == ACCOUNT)


@cache
def _numbers(table: Table) -> Select[str]:
    return select(table.c.number).where(is_listed(table.c.number, listed("numbers").scalar_subquery()))


@cache
def _next_number(table: Table) -> Update:
    """Return the statement that increments a series, with the columns of a Candidate."""
    number = bindparam("prefix", type_=TEXT) + zero_padded(series.c.last, bindparam("width", type_=Integer))
    written = number + bindparam("suffix", type_=TEXT)
    taken = select(table.c.number).where(table.c.number == written).correlate(series).exists()
    return NEXT.returning(taken)
