"""All rows of a SQLite file in one transaction."""

import contextlib
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import TYPE_CHECKING

from sqlalchemy import Column, LargeBinary, Table

from retainer.store.engines.base import DriverCursor, Row, Unavailable
from retainer.store.engines.bulk import DIGITS, Bulk, Contents, is_number

if TYPE_CHECKING:
    from retainer.store.engines.sqlite import Sqlite

HALF = 32
"""Bits: a sum of whole numbers may be larger than SQLite's largest, those of their halves are not."""


class SqliteBulk(Bulk):
    """A transaction over all rows of a file."""

    engine: "Sqlite"

    def read(self, table: Table) -> Iterator[list[Row]]:
        """Return blocks of all rows of a table."""
        with self.translated():
            cursor = self.connection.execute(self.selection(table))
            while block := cursor.fetchmany(self.block_rows):
                yield block

    def count(self, table: Table) -> int:
        """Return how many rows a table has."""
        return int(self.run(f"SELECT count(*) FROM {self.quote(table.name)}").fetchone()[0])

    def last_id(self, table: Table) -> int:
        """Return what AUTOINCREMENT has kept."""
        row = self.run("SELECT seq FROM sqlite_sequence WHERE name = ?", [table.name]).fetchone()
        return int(row[0]) if row else 0

    def contents(self, table: Table) -> Contents:
        """Return what the rows come to. The hash is Python's, of the texts that SQLite makes."""
        name, numbers = self.quote(table.name), [column.name for column in table.c if is_number(column)]
        halves = (f"sum({self.quote(n)} >> {HALF}), sum({self.quote(n)} & {(1 << HALF) - 1})" for n in numbers)
        rows, *sums = self.run(f"SELECT {', '.join(('count(*)', *halves))} FROM {name}").fetchone()
        added = [((high or 0) << HALF) + (low or 0) for high, low in zip(sums[::2], sums[1::2], strict=True)]
        with self.translated():
            texts = self.connection.execute(f"SELECT {self.row_text(table)} FROM {name}")
            digest = sum(int(sha256(text.encode()).hexdigest()[:DIGITS], 16) for (text,) in texts)
        return Contents(rows, dict(zip(numbers, added, strict=True)), digest)

    def claim(self, table: Table) -> bool:
        """Return whether a table has rows; the transaction already keeps others from writing."""
        return self.run(f"SELECT 1 FROM {self.quote(table.name)} LIMIT 1").fetchone() is not None

    def load(self, table: Table, blocks: Iterable[list[Row]]) -> None:
        """Insert blocks of rows."""
        places = ", ".join("?" * len(table.c))
        insert = f"INSERT INTO {self.quote(table.name)} ({self.columns(table)}) VALUES ({places})"
        for block in blocks:
            with self.translated(table.name):
                self.connection.executemany(insert, block)

    def continue_after(self, table: Table, last_id: int) -> None:
        """Let AUTOINCREMENT continue there, in an empty table too."""
        self.run("DELETE FROM sqlite_sequence WHERE name = ?", [table.name])
        self.run("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", [table.name, last_id])

    def analyze(self, table: Table) -> None:
        """SQLite plans by the indexes alone."""

    def text_of(self, column: Column[object]) -> str:
        """Return an expression for the text of a value."""
        name = self.quote(column.name)
        if is_number(column):
            return name
        text = f"hex({name})" if isinstance(column.type, LargeBinary) else name
        return f"octet_length({text}) || ':' || {text}"

    def run(self, statement: str, values: Iterable[object] = ()) -> DriverCursor:
        """Run a statement."""
        with self.translated():
            return self.connection.execute(statement, tuple(values))

    @contextlib.contextmanager
    def translated(self, what: str = "") -> Iterator[None]:
        """A block whose errors of the driver become ours."""
        try:
            yield
        except self.engine.driver.Error as error:
            raise Unavailable(": ".join(filter(None, (self.engine.location, what, str(error))))) from None
