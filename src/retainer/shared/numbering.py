"""Numbers that people read: series of an account, and the patterns that write them."""

from functools import cache

from sqlalchemy import Integer, Table, Update, bindparam, insert, select, update

from retainer.schema.identity import series
from retainer.store.engines.sql import INTEGER, TEXT, zero_padded
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values.kinds import ZEROS

NEXT = (
    update(series).where(series.c.name == bindparam("series")).values(last=series.c.last + 1).returning(series.c.last)
)
FIRST = insert(series).values(account_id=ACCOUNT, name=bindparam("series"), last=bindparam("first", type_=INTEGER))


def increment_series(tx: Tx, name: str, first: int = 1) -> int:
    """Return the next number of a series, which begins with the first, and use it up."""
    last: int | None = tx.value(NEXT, series=name)
    if last is None:
        tx.run(FIRST, series=name, first=first)
        return first
    return last


def next_number(tx: Tx, table: Table, pattern: str, day: str | None = None) -> str:
    """Return the next number of a table's series that none of its rows has.

    `{0000}` in the pattern is the number with at least its digits, `{YYYY}` the year of the day, else of today; a
    pattern with the year starts again each year. A number may be taken: people may have given it by hand, or changed
    the pattern.
    """
    name = table.name
    if "{YYYY}" in pattern:
        year = (day or tx.today)[:4]
        name, pattern = f"{name}:{year}", pattern.replace("{YYYY}", year)
    prefix, zeros, suffix = ZEROS.split(pattern)
    written = {"series": name, "prefix": prefix, "width": len(zeros), "suffix": suffix}
    statement = _next_number(table)
    row = tx.one(statement, **written)
    if row is None:
        tx.run(FIRST, series=name, first=0)
    while row is None or row[1]:
        row = tx.one(statement, **written)
    return f"{prefix}{row[0]:0{len(zeros)}}{suffix}"


@cache
def _next_number(table: Table) -> Update:
    """Increment a series; return its last number, and whether a row has it as its number already."""
    number = bindparam("prefix", type_=TEXT) + zero_padded(series.c.last, bindparam("width", type_=Integer))
    written = number + bindparam("suffix", type_=TEXT)
    taken = select(table.c.number).where(table.c.number == written).correlate(series).exists()
    return NEXT.returning(taken)
