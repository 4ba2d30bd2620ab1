"""All rows of a PostgreSQL database in one transaction."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import psycopg
from psycopg.types.string import TextLoader
from sqlalchemy import Column, LargeBinary, Table
from sqlalchemy.types import Boolean, Date, DateTime

from retainer.store.engines.base import DriverConnection, DriverCursor, Row, Unavailable
from retainer.store.engines.bulk import DIGITS, Bulk, Contents, is_number
from retainer.store.engines.postgresql_connection import InstantLoader

if TYPE_CHECKING:
    from retainer.store.engines.postgresql import Postgresql

UNLIMITED = ("statement_timeout", "idle_in_transaction_session_timeout")
INSTANT = """'27:' || to_char({} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""
DAY = "'10:' || to_char({}, 'YYYY-MM-DD')"
TEXT = "octet_length({0}) || ':' || {0}"


class PostgresqlBulk(Bulk):
    """A transaction over all rows of a database; nothing in it is limited in time."""

    def __init__(self, engine: "Postgresql", connection: DriverConnection) -> None:
        super().__init__(engine, connection)
        connection.adapters.register_loader("date", TextLoader)
        connection.adapters.register_loader("timestamptz", InstantLoader)
        for setting in UNLIMITED:
            self.run(f"SET LOCAL {setting} = 0")

    def read(self, table: Table) -> Iterator[list[Row]]:
        """Return blocks of all rows of a table, through a cursor of the server."""
        with self.translated(), self.connection.cursor("all_rows") as cursor:
            cursor.execute(self.selection(table))
            while block := cursor.fetchmany(self.block_rows):
                yield block

    def count(self, table: Table) -> int:
        """Return how many rows a table has."""
        return int(self.run(f"SELECT count(*) FROM {self.quote(table.name)}").fetchone()[0])

    def last_id(self, table: Table) -> int:
        """Return what the sequence has reached. Sequences know no snapshot: it may be later than the rows."""
        sequence = self.sequence(table)
        (last,) = self.run(f"SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {sequence}").fetchone()
        (highest,) = self.run(f"SELECT coalesce(max(id), 0) FROM {self.quote(table.name)}").fetchone()
        return int(max(last, highest))

    def contents(self, table: Table) -> Contents:
        """Return what the rows come to. Sums and hashes are the server's."""
        numbers = [column for column in table.c if is_number(column)]
        row_hash = f"left(encode(sha256(convert_to({self.row_text(table)}, 'UTF8')), 'hex'), {DIGITS})"
        digest = f"coalesce(sum(CAST(CAST('x' || {row_hash} AS BIT({4 * DIGITS})) AS BIGINT)), 0)"
        sums = [f"coalesce(sum({self.number(column)}), 0)" for column in numbers]
        statement = f"SELECT {', '.join(('count(*)', digest, *sums))} FROM {self.quote(table.name)}"
        rows, digest, *sums = self.run(statement).fetchone()
        return Contents(rows, {column.name: int(each) for column, each in zip(numbers, sums, strict=True)}, int(digest))

    def claim(self, table: Table) -> bool:
        """Lock a table against everything; return whether it has rows."""
        name = self.quote(table.name)
        self.run(f"LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE")
        return self.run(f"SELECT 1 FROM {name} LIMIT 1").fetchone() is not None

    def load(self, table: Table, blocks: Iterable[list[Row]]) -> None:
        """Send blocks of rows to COPY, as text; as the table is new, they count as seen by all from the start."""
        statement = f"COPY {self.quote(table.name)} ({self.columns(table)}) FROM STDIN (FREEZE)"
        with self.translated(table.name), self.connection.cursor() as cursor, cursor.copy(statement) as copy:
            for block in blocks:
                for row in block:
                    copy.write_row(row)

    def continue_after(self, table: Table, last_id: int) -> None:
        """Let the sequence continue there; it was made in this transaction, or this would stay when it is undone."""
        if last_id:
            self.run(f"SELECT setval('{self.sequence(table)}', {last_id})")

    def analyze(self, table: Table) -> None:
        """Gather statistics of a table."""
        self.run(f"ANALYZE {self.quote(table.name)}")

    def text_of(self, column: Column[object]) -> str:
        """Return an expression for the text of a value."""
        name = self.quote(column.name)
        kind = column.type.dialect_impl(self.engine.dialect)
        if is_number(column):
            return f"CAST({self.number(column)} AS TEXT)"
        if isinstance(kind, DateTime):
            return INSTANT.format(name)
        if isinstance(kind, Date):
            return DAY.format(name)
        return TEXT.format(f"upper(encode({name}, 'hex'))" if isinstance(kind, LargeBinary) else name)

    def number(self, column: Column[object]) -> str:
        """Return an expression for a whole number or a flag as a number."""
        name = self.quote(column.name)
        return f"CAST({name} AS INTEGER)" if isinstance(column.type, Boolean) else name

    def sequence(self, table: Table) -> str:
        """Return the name of the sequence of a table's ids."""
        return str(self.run(f"SELECT pg_get_serial_sequence('{self.quote(table.name)}', 'id')").fetchone()[0])

    def run(self, statement: str) -> DriverCursor:
        """Run a statement."""
        with self.translated():
            return self.connection.execute(statement)

    @contextlib.contextmanager
    def translated(self, what: str = "") -> Iterator[None]:
        """A block whose errors of the driver become ours."""
        try:
            yield
        except psycopg.Error as error:
            raise Unavailable(": ".join(filter(None, (self.engine.location, what, str(error))))) from None
