"""Transactions: what is written in one becomes durable as a whole, or not at all."""

import math
import sys
import time
from abc import ABC, abstractmethod
from typing import Any, Self

from sqlalchemy import Table

from retainer.store.engines.base import DeadlineExceeded, DriverConnection, DriverCursor, Engine, Row, Values
from retainer.store.statements import Statement, Statements
from retainer.values.exact import utcnow


class Transaction(ABC):
    """A transaction on a connection that it has lent; how a statement is run, a subclass says.

    It may take so many `seconds` from when it has its turn. After that it is undone, and raises DeadlineExceeded.
    """

    def __init__(
        self, engine: Engine, statements: Statements, account_id: int | None, *, write: bool, seconds: float
    ) -> None:
        self.engine = engine
        self.statements = statements
        self.account_id = account_id
        self.writes = write
        self.connection: DriverConnection = None
        self.seconds = seconds
        self.deadline = math.inf
        self._now = ""
        self.is_snapshot = False

    @property
    def now(self) -> str:
        """The moment of the transaction; the same for all that it writes."""
        self._now = self._now or utcnow()
        return self._now

    @now.setter
    def now(self, moment: str) -> None:  # the demo writes about the past
        self._now = moment

    def __enter__(self) -> Self:
        if self.writes:
            self.connection = self.engine.begin_write(self.account_id)
        else:
            self.connection = self.engine.connection()
        self.deadline = time.monotonic() + self.seconds
        self.engine.limit(self.connection, self.deadline)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.engine.lift_limit(self.connection)
        if self.writes:
            is_late = kind is None and self.is_late()
            self.engine.end_write(self.connection, commit=kind is None and not is_late)
            if is_late:
                raise DeadlineExceeded(self._too_long())
        elif self.is_snapshot:
            self.engine.end_snapshot(self.connection)
        else:
            self.engine.give_back(self.connection)

    def snapshot(self) -> None:
        """Let all statements that follow see one state of the database."""
        if not self.writes and not self.is_snapshot:
            self.engine.begin_snapshot(self.connection)
            self.engine.limit(self.connection, self.deadline)
            self.is_snapshot = True

    def is_late(self) -> bool:
        """Whether the time of the transaction is up."""
        return time.monotonic() > self.deadline

    def run_text(self, text: str, values: Values) -> DriverCursor:
        """Run a statement that was prepared; return the driver's cursor. Raises DeadlineExceeded."""
        if self.is_late():
            raise DeadlineExceeded(self._too_long())
        return self.engine.run(self.connection, text, values)

    def _too_long(self) -> str:
        return f"The transaction took longer than {self.seconds} seconds."

    @abstractmethod
    def execute(self, statement: Statement, values: dict[str, Any]) -> DriverCursor:
        """Run a statement and return the driver's cursor."""

    def all(self, statement: Statement, **values: Any) -> list[Row]:
        """Return every row of a statement."""
        return self.engine.all(self.execute(statement, values))

    def one(self, statement: Statement, **values: Any) -> Row | None:
        """Return the first row of a statement, if it has any."""
        return self.engine.first(self.execute(statement, values))

    def value(self, statement: Statement, **values: Any) -> Any:
        """Return the first column of the first row, or None."""
        row = self.one(statement, **values)
        return row[0] if row else None

    def run(self, statement: Statement, **values: Any) -> None:
        """Change rows; nobody waits for how many, so a database across a network is told with what comes next."""
        self.execute(statement, values)

    def insert_rows(self, table: Table, rows: list[Row]) -> None:
        """Insert many rows, each with the values of a table's columns as declared."""
        self.engine.insert_rows(self.connection, table, rows)

    def change(self, statement: Statement, **values: Any) -> int:
        """Change rows; return how many."""
        return self.engine.count_changed(self.connection, self.execute(statement, values))


class UnscopedTx(Transaction):
    """A transaction that is not limited to an account."""

    def __enter__(self) -> Self:
        super().__enter__()
        try:
            self.snapshot()
        except BaseException:  # the block is not entered, so nothing else gives the connection back
            self.__exit__(*sys.exc_info())
            raise
        return self

    def execute(self, statement: Statement, values: dict[str, Any]) -> DriverCursor:
        """Run a statement over all accounts and return the driver's cursor."""
        text, names, constants = self.statements.of_all(statement)
        values = constants | values
        return self.run_text(text, [values[name] for name in names])
