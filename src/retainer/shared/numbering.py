"""Numbers that people read: series of an account, and the patterns that write them."""

from sqlalchemy import Select, bindparam, insert, update

from retainer.schema.identity import series
from retainer.store.engines.sql import INTEGER
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


def next_number(tx: Tx, name: str, pattern: str, taken: Select[tuple[int]], day: str | None = None) -> str:
    """Return the next number of a series that no row has.

    `{0000}` in the pattern is the number with at least its digits, `{YYYY}` the year of the day, else of today; a
    pattern with the year begins anew each year. `taken` finds a row by the parameter `number`: people may have given
    a number of the series by hand, or changed the pattern.
    """
    if "{YYYY}" in pattern:
        year = (day or tx.today)[:4]
        name, pattern = f"{name}:{year}", pattern.replace("{YYYY}", year)
    while True:
        last = increment_series(tx, name)
        number = ZEROS.sub(lambda zeros: str(last).zfill(len(zeros[1])), pattern)  # noqa: B023
        if tx.one(taken, number=number) is None:
            return number
