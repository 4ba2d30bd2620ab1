"""Rows of whole tables: streamed out of one database, inserted into another, and summed up to be compared.

Both databases answer the same values for the same rows: days and moments as text, flags as whole numbers.
"""

from collections.abc import Generator, Iterable
from hashlib import sha256

from sqlalchemy import Boolean, Column, Connection, Integer, Table, cast, func, insert, select

from retainer.store.engines.base import Row

BATCH_SIZE = 2000
"""Rows that are read and inserted at once."""


class Summary:
    """A summary of rows of a table, equal for equal rows in whatever order: their number, sums and hash."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.rows = 0
        self.sums = {column.name: 0 for column in table.c if is_number(column)}
        """The sum of each column of whole numbers or flags."""
        self.digest = 0
        """The sum of a hash of each row, of all its values."""
        self._positions = {name: position for position, name in enumerate(table.c.keys()) if name in self.sums}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Summary):
            return NotImplemented
        return (self.rows, self.sums, self.digest) == (other.rows, other.sums, other.digest)

    __hash__ = None  # type: ignore[assignment]  # it grows

    def add(self, batch: list[Row]) -> None:
        """Add a batch of rows."""
        self.rows += len(batch)
        for name, position in self._positions.items():
            self.sums[name] += sum(row[position] or 0 for row in batch)
        self.digest += sum(int.from_bytes(sha256(repr(row).encode()).digest()[:8]) for row in batch)


def is_number(column: Column[object]) -> bool:
    """Whether the values of a column can be added up."""
    return isinstance(column.type, (Integer, Boolean))


def count_rows(connection: Connection, table: Table) -> int:
    """Return the number of rows of a table, as the database counts them."""
    return connection.execute(select(func.count()).select_from(table)).scalar_one()


def has_rows(connection: Connection, table: Table) -> bool:
    """Whether a table has rows."""
    return connection.execute(select(1).select_from(table).limit(1)).first() is not None


def stream(connection: Connection, table: Table) -> Generator[list[Row], None, None]:
    """Yield batches of all rows of a table, in the order of its key; a row has the columns as declared."""
    columns = [cast(column, Integer) if isinstance(column.type, Boolean) else column for column in table.c]
    rows = select(*columns).order_by(*table.primary_key).execution_options(yield_per=BATCH_SIZE)
    with connection.execute(rows) as result:
        for batch in result.partitions():
            yield [*map(tuple, batch)]


def load(connection: Connection, table: Table, batches: Iterable[list[Row]]) -> None:
    """Insert batches of rows into a table."""
    names = [column.name for column in table.c]
    for batch in batches:
        connection.execute(insert(table), [dict(zip(names, row, strict=True)) for row in batch])


def summarize(connection: Connection, table: Table) -> Summary:
    """Return the summary of all rows of a table."""
    summary = Summary(table)
    for batch in stream(connection, table):
        summary.add(batch)
    return summary
