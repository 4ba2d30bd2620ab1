"""Transactions: all writes of one become durable, or none."""

import math
import time
from functools import cache, cached_property
from typing import Any, Self

from sqlalchemy import Column, Select, Table, bindparam, select

from retainer.store.announcements import CREATED, is_announced
from retainer.store.engines import Engine
from retainer.store.engines.base import Columns, DeadlineExceeded, DriverConnection, DriverCursor, Row, of_request
from retainer.store.outbox import Outbox
from retainer.store.statements import Statement, Statements
from retainer.values.exact import utcnow

COMMIT_SECONDS = 4  # what a write keeps of its request's time for its last statement, the commit, and the response
READ_SECONDS = 1  # what a read keeps of it for the response
TOO_LONG = "The transaction took longer than its deadline."


class Transaction:
    """A transaction on a connection that it borrows, limited to an account if it has one.

    It may take `seconds` once it has its turn, and no longer than until the deadline of its request. After that it is
    rolled back and raises DeadlineExceeded.

    A transaction of an account that reads is one statement, which needs no BEGIN; a caller that needs more asks for a
    `snapshot` first. Once the block is left, its connection serves others, so every statement is refused.
    """

    connection: DriverConnection = None
    deadline = math.inf
    is_snapshot = False
    is_committed = False
    outbox: Outbox | None = None  # the changes of records; a transaction without one cannot change any
    is_patient = True  # whether it waits for its turn to write; else Busy is raised if another writes now
    _is_used = False

    def __init__(
        self, engine: Engine, statements: Statements, account_id: int | None, *, write: bool, seconds: float
    ) -> None:
        self.engine, self.account_id, self.writes, self.seconds = engine, account_id, write, seconds
        self._compile = statements.of_all if account_id is None else statements.of_account

    @cached_property
    def now(self) -> str:
        """The moment of the transaction; the same for all that it writes. The demo sets it, to write about the past."""
        return utcnow()

    def __enter__(self) -> Self:
        engine = self.engine
        if self.writes:
            self.connection = engine.begin_write(self.account_id, is_patient=self.is_patient)
        else:
            self.connection = engine.connection()
        kept = COMMIT_SECONDS if self.writes else READ_SECONDS
        self.deadline = min(time.monotonic() + self.seconds, of_request.at - kept)
        try:
            engine.limit(self.connection, self.deadline)
            if self.account_id is None:
                self.snapshot()
            elif self.writes:
                self._start_check()
        except BaseException as error:  # the block is not entered, so nothing else returns the connection
            self.__exit__(type(error), error)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None = None, _: object = None) -> None:
        try:
            if self.writes:
                self._end_write(kind)
            elif self.is_snapshot:
                self.engine.end_snapshot(self.connection)
            else:
                self.engine.give_back(self.connection)
        finally:
            self.connection = None
        if error is not None:
            self._raise_ours(error)

    def _raise_ours(self, error: BaseException) -> None:
        """Raise our error for one of the driver: at the end of a block, for all of its statements."""
        ours = self.engine.translate_error(error)
        if ours is not error:
            raise ours from error

    def _start_check(self) -> None: ...

    def _end_write(self, kind: type[BaseException] | None) -> None:
        is_late = kind is None and time.monotonic() > self.deadline
        self.engine.end_write(self.connection, commit=kind is None and not is_late)
        if is_late:
            raise DeadlineExceeded(TOO_LONG)
        self.is_committed = kind is None

    def is_seen_in(self, other: "Transaction") -> bool:
        """Return whether another transaction finds what this one has written: itself, or any after its commit.

        After a rollback, the ids of its records may be those of others.
        """
        return self is other or self.is_committed

    def snapshot(self) -> None:
        """Let all statements that follow see one state of the database."""
        if not self.writes and not self.is_snapshot:
            self.engine.begin_snapshot(self.connection)
            self.engine.limit(self.connection, self.deadline)
            self.is_snapshot = True

    def execute(self, statement: Statement, values: Columns) -> DriverCursor:
        """Run a statement and return the driver's cursor. Raises DeadlineExceeded."""
        if time.monotonic() > self.deadline:
            raise DeadlineExceeded(TOO_LONG)
        if self.connection is None:
            raise RuntimeError("The transaction has ended: another may have its connection now.")
        if not self.writes and not self.is_snapshot:
            if self._is_used:
                raise RuntimeError("A second statement would see another state of the database: tx.snapshot() first.")
            self._is_used = True
        text, names, constants, supplied, change = self._compile(statement)
        values = constants | values
        for name, supply in supplied.items():
            values[name] = supply(self)
        if change is not None and self.outbox is None:
            message = f"Records of {change.table} change only in a transaction of their account: they become events."
            raise RuntimeError(message)
        cursor = self.engine.run(self.connection, text, list(map(values.__getitem__, names)))
        if change is not None and self.outbox is not None and change.kind != CREATED:  # `Tx` knows the id of a new one
            self.outbox.note(change, self.now, self.engine.rows_returned(cursor), values)
        return cursor

    def all(self, statement: Statement, **values: object) -> list[Row]:
        return self.engine.all(self.execute(statement, values))

    def one(self, statement: Statement, **values: object) -> Row | None:
        return self.engine.first(self.execute(statement, values))

    def value(self, statement: Statement, **values: object) -> Any:
        row = self.one(statement, **values)
        return row[0] if row else None

    def field(self, column: Column[Any], row_id: int | None) -> Any:
        """Return a column of the row with an id; None if there is no such row."""
        return self.value(select_field(column), id=row_id)

    def run(self, statement: Statement, **values: object) -> None:
        """Change rows. Does not wait for the result, so PostgreSQL receives the statement with the next one."""
        self.execute(statement, values)

    def insert_rows(self, table: Table, rows: list[Row]) -> None:
        if is_announced(table):
            raise TypeError(f"Insert records of {table} one by one with Tx.insert, so that their ids are known.")
        self.engine.insert_rows(self.connection, table, rows)

    def change(self, statement: Statement, **values: object) -> int:
        return self.engine.count_changed(self.connection, self.execute(statement, values))


@cache
def select_field(column: Column[Any]) -> Select[Any]:
    return select(column).where(column.table.c.id == bindparam("id"))
