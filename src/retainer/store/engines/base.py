"""The interface of engines: they lend connections, and run statements and transactions on them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from sqlalchemy import Connection as SchemaConnection
from sqlalchemy import Dialect, Table

WAIT_SECONDS = 5
"""Maximum wait of a writer for its turn."""
TRANSACTION_SECONDS = 10
"""Maximum duration of a transaction, once it has its turn."""
DriverConnection = Any
"""A connection of the driver; SQLite's driver has no types."""
DriverCursor = Any
"""The cursor of the driver, from which rows are fetched."""
Values = list[object]
"""The values of a statement's numbered placeholders."""
Row = tuple[Any, ...]
Columns = dict[str, Any]
"""Values by the names of columns or binds."""
Rows = Callable[[], list[Row]]
"""Returns rows, once they have arrived."""


class Unavailable(Exception):
    """The database is unreachable, busy for too long, or full: the write did not happen, or its outcome is unknown."""

    reason = "The database is out of reach."
    """The sentence for clients."""
    subject = "The database"
    """What cannot be used, for operators."""


class PartlyUnavailable(Unavailable):
    """A node of a cluster is unreachable. Accounts on other nodes are not affected."""

    reason = "The part of the database with this account is out of reach."
    subject = "A part of the database"


class DiskFull(Unavailable):
    """The disk of the database has no room for a write, which was rolled back. Reads are still answered."""

    reason = "The disk of the database is full, and nothing was changed."


class OutcomeUnknown(Unavailable):
    """A commit failed, and not because the disk is full: its changes may be durable or not."""


class Busy(Unavailable):
    """A transaction timed out waiting for a lock. The database is reachable."""

    reason = "Other requests are writing the same records."


class TransientConflict(Busy):
    """The database rolled the transaction back because of another one; a retry may succeed."""


class DeadlineExceeded(Busy):
    """A statement or a transaction exceeded its time limit, and was rolled back."""

    reason = "The request took too long, and nothing was changed. Ask for less in one request."


class CommitsWait(Busy):
    """Too many commits wait to be confirmed, so that another would too. The transaction has not begun."""

    reason = "The database does not confirm writes now, and this one was not executed."


class CommitTooSlow(OutcomeUnknown, DeadlineExceeded):
    """A commit exceeded its time limit: its changes may be durable or not."""

    reason = "The request took too long, and its outcome is unknown."


class Engine(ABC):
    """A database, and connections that are lent to one user at a time."""

    name: str
    """The product name of the database."""
    dialect: Dialect
    marker: str
    """The first character of a placeholder: `?1` or `$1`."""
    returns_ids: bool
    """Whether an INSERT needs RETURNING to return the new id."""
    has_one_writer: bool
    """Whether one transaction at a time writes, so that all accounts wait for it."""
    waits_for_schema: str
    """The sentence about what blocks while a migration locks the table {}."""
    hint: str
    """What an operator should check when the database is unavailable."""
    conflict: type[Exception]
    """What the driver raises for a broken reference or a duplicate value."""

    @property
    def is_cluster(self) -> bool:
        """Whether the tables may be on several servers."""
        return False

    @property
    @abstractmethod
    def version(self) -> str:
        """The version of the database's software."""

    @property
    @abstractmethod
    def location(self) -> str:
        """The address or path of the database, without secrets."""

    @property
    @abstractmethod
    def connections(self) -> tuple[int, int]:
        """The number of open connections, and how many of them are idle."""

    @abstractmethod
    def connection(self) -> DriverConnection:
        """Lend an idle or new connection; the caller returns it with `give_back`."""

    @abstractmethod
    def give_back(self, connection: DriverConnection) -> None:
        """Take a lent connection back, and close it if it cannot be used again."""

    @abstractmethod
    def run(self, connection: DriverConnection, text: str, values: Values) -> DriverCursor:
        """Run a statement with the values of its placeholders; return the driver's cursor."""

    def all(self, cursor: DriverCursor) -> list[Row]:
        """Return all rows of a statement that was run."""
        rows: list[Row] = cursor.fetchall()
        return rows

    def first(self, cursor: DriverCursor) -> Row | None:
        """Return the first row of a statement that was run, if it has any."""
        row: Row | None = cursor.fetchone()
        return row

    @abstractmethod
    def limit(self, connection: DriverConnection, deadline: float) -> None:
        """End the statements of a transaction at a deadline of the monotonic clock, as far as possible.

        An infinite deadline is no limit.
        """

    @abstractmethod
    def insert_rows(self, connection: DriverConnection, table: Table, rows: list[Row]) -> None:
        """Insert many rows, each with the values of a table's columns as declared, in few statements."""

    @abstractmethod
    def begin_write(self, account_id: int | None) -> DriverConnection:
        """Begin a writing transaction, the only one of its account; lend its connection."""

    @abstractmethod
    def end_write(self, connection: DriverConnection, *, commit: bool) -> None:
        """Commit a writing transaction or roll it back, and take its connection back."""

    @abstractmethod
    def begin_snapshot(self, connection: DriverConnection) -> None:
        """Let all following statements of a connection see one state of the database."""

    @abstractmethod
    def end_snapshot(self, connection: DriverConnection) -> None:
        """End a reading transaction, and take its connection back."""

    @abstractmethod
    def savepoint(self, connection: DriverConnection, *, may_repeat: bool) -> AbstractContextManager[None]:
        """Roll back the statements of a block if one of them raises `conflict`; the transaction goes on.

        With `may_repeat`, raise TransientConflict instead, as the caller will run the transaction again.
        """

    @abstractmethod
    def count_changed(self, connection: DriverConnection, cursor: DriverCursor) -> int:
        """Return how many rows a statement has changed."""

    @abstractmethod
    def new_id(self, cursor: DriverCursor) -> int:
        """Return the id of the row that a statement has inserted."""

    def rows_returned(self, cursor: DriverCursor) -> Rows:
        """Return a function that returns the rows of a statement, once they have arrived; nothing else reads them."""
        rows = self.all(cursor)
        return lambda: rows

    @abstractmethod
    def schema_change(self) -> AbstractContextManager[SchemaConnection]:
        """Begin a transaction that changes tables, with SQLAlchemy; one process at a time may do so."""

    @abstractmethod
    def read_snapshot(self) -> AbstractContextManager[SchemaConnection]:
        """Lend a connection of SQLAlchemy that reads one state of the database, without a time limit."""

    def lock_table(self, connection: SchemaConnection, table: Table) -> None:  # noqa: B027  # one writer needs none
        """Lock a table until a change of the schema ends."""

    @abstractmethod
    def last_id(self, connection: SchemaConnection, table: Table) -> int:
        """Return the last id that a table has assigned; 0 if it has assigned none."""

    @abstractmethod
    def set_sequence(self, connection: SchemaConnection, table: Table, last_id: int) -> None:
        """Let a table that this change of the schema created assign higher ids than this one."""

    def vacuum(self, tables: Iterable[Table]) -> None:  # noqa: B027
        """Update what the planner knows of tables. The statistics of SQLite are fixed: its plans stay the same."""

    @abstractmethod
    def has_table(self, name: str) -> bool:
        """Return whether the database has a table."""

    def check(self) -> None:
        """Read the database. Raises Unavailable, PartlyUnavailable if a node of a cluster does not answer."""
        self.has_table("alembic_version")  # on SQLite, SELECT 1 would not read the database

    def check_sessions(self) -> None:  # noqa: B027  # an embedded database has none
        """Raise SettingsError if a connection does not keep its session of the database. Raises Unavailable."""

    def exists(self) -> bool:
        """Return whether the database exists, as far as can be known without connecting."""
        return True

    def create_storage(self) -> None:  # noqa: B027
        """Create the folder and the file of an embedded database. Raises Unavailable for a network share."""

    def serve_alone(self) -> AbstractContextManager[None]:
        """Keep other processes from serving an embedded database during a block. Raises SettingsError."""
        return nullcontext()

    def world_readable(self) -> list[Path]:
        """Return the folder and files of an embedded database that other users of this machine may access."""
        return []

    def has_room(self) -> bool:
        """Return whether the disk of an embedded database has room for writes."""
        return True

    @abstractmethod
    def close(self) -> None:
        """Close idle connections, and lent ones when they return: none may be open when a process forks."""

    def one(self, text: str, values: Values) -> Row | None:
        """Return the first row of a statement outside any transaction."""
        connection = self.connection()
        try:
            return self.first(self.run(connection, text, values))
        finally:
            self.give_back(connection)

    def estimate_rows(self, name: str) -> int:
        """Return about how many rows a table has; 0 if it does not exist."""
        row = self.one(f'SELECT count(*) FROM "{name}"', []) if self.has_table(name) else None
        return int(row[0]) if row else 0
