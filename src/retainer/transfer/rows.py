"""Rows of whole tables: stream them out of one database, insert them into another, and summarize them.

Both databases return the same values for the same rows: days and moments as text, flags as whole numbers.
"""

from collections.abc import Generator
from dataclasses import dataclass
from hashlib import sha256

from sqlalchemy import Boolean, Connection, Integer, Table, cast, func, insert, select

from retainer.store.engines.base import Row

BATCH_SIZE = 2000
"""Number of rows that are read and inserted at once."""


@dataclass
class Summary:
    """A summary of rows of a table, equal for equal rows in any order."""

    rows: int = 0
    digest: int = 0
    """The sum of a hash of each row."""

    def add(self, batch: list[Row]) -> None:
        self.rows += len(batch)
        self.digest += sum(int.from_bytes(sha256(repr(row).encode()).digest()[:8]) for row in batch)


def count_rows(connection: Connection, table: Table) -> int:
    return connection.execute(select(func.count()).select_from(table)).scalar_one()


def stream(connection: Connection, table: Table) -> Generator[list[Row], None, None]:
    columns = [cast(column, Integer) if isinstance(column.type, Boolean) else column for column in table.c]
    rows = select(*columns).order_by(*table.primary_key).execution_options(yield_per=BATCH_SIZE)
    with connection.execute(rows) as result:
        for batch in result.partitions():
            yield [*map(tuple, batch)]


def insert_batch(connection: Connection, table: Table, batch: list[Row]) -> None:
    names = [column.name for column in table.c]
    connection.execute(insert(table), [dict(zip(names, row, strict=True)) for row in batch])


def summarize(connection: Connection, table: Table) -> Summary:
    summary = Summary()
    for batch in stream(connection, table):
        summary.add(batch)
    return summary
