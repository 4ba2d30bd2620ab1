"""What every engine does: it lends connections, and runs statements and transactions on them."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection as SchemaConnection
from sqlalchemy import Dialect, Table

WAIT_SECONDS = 5
"""The longest that a writer waits for its turn."""
TRANSACTION_SECONDS = 10
"""The longest that a transaction takes, once it has its turn. With all that a request waits for before and after, that
is less than half a minute, after which the server ends connections."""
DriverConnection = Any
"""A connection of the driver's kind; only its engine knows more of it."""
DriverCursor = Any
"""What the driver returns for a statement: its rows can be fetched."""
Values = list[Any]
"""The values of a statement's numbered places."""
Row = tuple[Any, ...]


class Unavailable(Exception):
    """The database is out of reach, busy for too long, or full; what was asked did not happen or is unknown."""

    reason = "The database is out of reach."
    """What callers are told."""


class OutcomeUnknown(Unavailable):
    """A commit failed otherwise than for want of room: what it was to make durable may be there or not."""


class Busy(Unavailable):
    """Other transactions were in the way for too long. The database is there, and answers others."""

    reason = "Others are writing the same."


class TransientConflict(Busy):
    """The database undid the transaction because of another one; the same again may succeed."""


class DeadlineExceeded(Busy):
    """A statement or a transaction took longer than it may, and was undone."""

    reason = "This took too long, and nothing of it was done. If it asks for much, ask for less at once."


class CommitTooSlow(OutcomeUnknown, DeadlineExceeded):
    """A commit took longer than it may: what it was to make durable may be there or not."""

    reason = "This took too long, and whether it was done is not known."


class Engine(ABC):
    """A database, and connections that are lent to one user at a time."""

    name: str
    """What people call it."""
    dialect: Dialect
    marker: str
    """What stands before the number of a bound value in a statement: `?1` or `$1`."""
    returns_ids: bool
    """Whether an INSERT must say RETURNING to make the new id known."""
    combines_writes: bool
    """Whether one statement can write into several tables: across a network, fewer statements cost less."""
    waits_for_schema: str
    """What waits while a migration locks a table, of the name {}."""
    hint: str
    """What a person checks when it cannot be used."""
    conflict: type[Exception]
    """What the driver raises for a reference to nothing or a value that is taken."""

    @property
    @abstractmethod
    def version(self) -> str:
        """The version of the database's software."""

    @property
    @abstractmethod
    def location(self) -> str:
        """Where the database is, without any secret."""

    @property
    @abstractmethod
    def connections(self) -> tuple[int, int]:
        """How many connections are open, and how many of them nobody uses."""

    @abstractmethod
    def connection(self) -> DriverConnection:
        """Lend a connection that nobody uses; its user gives it back."""

    @abstractmethod
    def give_back(self, connection: DriverConnection) -> None:
        """Take back what was lent: for the next user, or to be closed when it can no longer be used."""

    @abstractmethod
    def run(self, connection: DriverConnection, text: str, values: Values) -> DriverCursor:
        """Run a statement with the values of its numbered places; return the driver's cursor."""

    def all(self, cursor: DriverCursor) -> list[Row]:
        """Return all rows of a statement that was run."""
        rows: list[Row] = cursor.fetchall()
        return rows

    def first(self, cursor: DriverCursor) -> Row | None:
        """Return the first row of a statement that was run, if it has any."""
        row: Row | None = cursor.fetchone()
        return row

    def first_row_of(self, cursor: DriverCursor) -> Callable[[], Row | None]:
        """Return what tells the first row of a statement that has just run; nobody waits for it before."""
        row = self.first(cursor)
        return lambda: row

    @abstractmethod
    def limit(self, connection: DriverConnection, deadline: float) -> None:
        """End what a transaction that has begun does after a moment of the monotonic clock, as far as can be.

        Without a deadline, which is infinity, it may take as long as it likes.
        """

    @abstractmethod
    def lift_limit(self, connection: DriverConnection) -> None:
        """Let a transaction end, however long that takes."""

    @abstractmethod
    def insert_rows(self, connection: DriverConnection, table: Table, rows: list[Row]) -> None:
        """Insert many rows, each with the values of a table's columns as declared, in as few steps as can be."""

    @abstractmethod
    def begin_write(self, account_id: int | None) -> DriverConnection:
        """Lend a connection on which a writing transaction has begun, alone in its account; of all without one."""

    @abstractmethod
    def end_write(self, connection: DriverConnection, *, commit: bool) -> None:
        """Make a writing transaction durable, or undo it, and take its connection back."""

    @abstractmethod
    def begin_snapshot(self, connection: DriverConnection) -> None:
        """Let all statements that follow on a connection see one state of the database."""

    @abstractmethod
    def end_snapshot(self, connection: DriverConnection) -> None:
        """End a reading transaction, and take its connection back."""

    @abstractmethod
    def savepoint(self, connection: DriverConnection, *, may_repeat: bool) -> AbstractContextManager[None]:
        """A block whose statements are undone when one of them raises `conflict`; the transaction goes on.

        With `may_repeat` it need not go on, as its user will run it again. May raise TransientConflict.
        """

    @abstractmethod
    def count_changed(self, connection: DriverConnection, cursor: DriverCursor) -> int:
        """How many rows a statement has changed."""

    @abstractmethod
    def new_id(self, cursor: DriverCursor) -> int:
        """The id of the row that a statement has just inserted."""

    @abstractmethod
    def schema_change(self) -> AbstractContextManager[SchemaConnection]:
        """A transaction in which tables are made and changed, with SQLAlchemy; one process at a time is in it."""

    @abstractmethod
    def read_snapshot(self) -> AbstractContextManager[SchemaConnection]:
        """Lend a connection of SQLAlchemy that reads one state of the database, without any limit of time."""

    def lock_table(self, connection: SchemaConnection, table: Table) -> None:  # noqa: B027  # one writer needs none
        """Keep other transactions away from a table until a change of the schema ends."""

    @abstractmethod
    def last_id(self, connection: SchemaConnection, table: Table) -> int:
        """Return the last id that a table has ever assigned; 0 if it has assigned none."""

    @abstractmethod
    def set_sequence(self, connection: SchemaConnection, table: Table, last_id: int) -> None:
        """Let a table, created in this change of the schema, assign ids that are higher than this one."""

    def analyze(self, connection: SchemaConnection, table: Table) -> None:  # noqa: B027
        """Update the planner's statistics of a table, if it uses any: SQLite plans by the indexes, and always alike."""

    @abstractmethod
    def has_table(self, name: str) -> bool:
        """Whether the database has a table."""

    @abstractmethod
    def exists(self) -> bool:
        """Whether there is a database to look at."""

    @abstractmethod
    def create_storage(self) -> None:
        """Make the place where the database is to be, if it is ours to make. Raises Unavailable for a bad one."""

    @abstractmethod
    def serve_alone(self) -> AbstractContextManager[None]:
        """A block in which no other process may serve, where the database is for one. Raises SettingsError."""

    @abstractmethod
    def world_readable(self) -> list[Path]:
        """Return the folder and files of the database that other users of this machine may access."""

    @abstractmethod
    def is_full(self, error: Exception) -> bool:
        """Whether there was no room for what failed."""

    @abstractmethod
    def close(self) -> None:
        """Close what is idle, and later what is lent: none may be open when a process forks."""

    def one(self, text: str, values: Values) -> Row | None:
        """Return the first row of a statement outside any transaction."""
        connection = self.connection()
        try:
            return self.first(self.run(connection, text, values))
        finally:
            self.give_back(connection)

    def estimate_rows(self, name: str) -> int:
        """About how many rows a table has; 0 when there is none. Counts them where that is quick."""
        row = self.one(f'SELECT count(*) FROM "{name}"', []) if self.has_table(name) else None
        return int(row[0]) if row else 0
