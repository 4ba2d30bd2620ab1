"""A whole database in one transaction: all rows out of it or into it, and what the rows of a table come to."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sqlalchemy import Boolean, Column, Integer, Table

from retainer.store.engines.base import DriverConnection, Engine, Row

DIGITS = 15
"""How many hexadecimal digits of the hash of a row count: their number fits into eight bytes."""


class Contents(NamedTuple):
    """What the rows of a table come to: the same in two databases, of whatever kind, that hold the same."""

    rows: int
    sums: dict[str, int]
    """Of each column of whole numbers and flags."""
    digest: int
    """The sum of a hash of each row, all of its values as text."""


class Bulk(ABC):
    """A transaction over all rows. Its methods raise Unavailable, with the place, for whatever the database refuses.

    Values are what the engine's connections answer: days and instants as text, flags as whole numbers or booleans.
    """

    block_rows = 2000
    """How many rows are read at once."""

    def __init__(self, engine: Engine, connection: DriverConnection) -> None:
        self.engine = engine
        self.connection = connection

    @abstractmethod
    def read(self, table: Table) -> Iterator[list[Row]]:
        """Return blocks of all rows of a table, in the order of its key, each with its columns as declared."""

    @abstractmethod
    def count(self, table: Table) -> int:
        """Return how many rows a table has."""

    @abstractmethod
    def last_id(self, table: Table) -> int:
        """Return the last id that a table with ids has ever assigned; 0 when it has assigned none."""

    @abstractmethod
    def contents(self, table: Table) -> Contents:
        """Return what the rows of a table come to, as the database itself reads them."""

    @abstractmethod
    def claim(self, table: Table) -> bool:
        """Keep all others away from a table; return whether it has rows."""

    @abstractmethod
    def load(self, table: Table, blocks: Iterable[list[Row]]) -> None:
        """Insert blocks of rows into a table that was made in this transaction."""

    @abstractmethod
    def continue_after(self, table: Table, last_id: int) -> None:
        """Let a table assign ids that are higher than this one."""

    @abstractmethod
    def analyze(self, table: Table) -> None:
        """Let the planner know what a table is like now, where it does not by itself."""

    @abstractmethod
    def text_of(self, column: Column[object]) -> str:
        """Return an expression for the text of a column's value, behind its length where that varies; null for null."""

    def quote(self, name: str) -> str:
        """Return a name as it stands in a statement."""
        return self.engine.dialect.identifier_preparer.quote(name)

    def columns(self, table: Table) -> str:
        """Return the columns of a table, as declared."""
        return ", ".join(self.quote(column.name) for column in table.c)

    def selection(self, table: Table) -> str:
        """Return the statement that reads all rows in the order of their key."""
        key = ", ".join(self.quote(column.name) for column in table.primary_key)
        return f"SELECT {self.columns(table)} FROM {self.quote(table.name)} ORDER BY {key}"

    def row_text(self, table: Table) -> str:
        """Return an expression for all values of a row as one text, different for different rows."""
        values = (f"coalesce({self.text_of(column)}, '-')" for column in table.c)
        return f"concat_ws(',', {', '.join(values)})"


def is_number(column: Column[object]) -> bool:
    """Whether the values of a column can be added up."""
    return isinstance(column.type, (Integer, Boolean))
