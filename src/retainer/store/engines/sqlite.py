"""SQLite: one file, one serving process, and one writer at a time."""

import contextlib
import fcntl
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from sqlalchemy import Connection as SchemaConnection
from sqlalchemy import Table
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql import quoted_name

from retainer.store.engines.base import (
    OPERATOR_WAIT_SECONDS,
    TRANSACTION_SECONDS,
    WAIT_SECONDS,
    Busy,
    DeadlineExceeded,
    DiskFull,
    DriverConnection,
    DriverCursor,
    OutcomeUnknown,
    Row,
    Rows,
    Unavailable,
    Values,
    refused,
)
from retainer.store.engines.files import accessible_files, free_bytes, make_local_folder, private, served_alone
from retainer.store.engines.sqlite_catalogue import raise_last_id
from retainer.store.engines.sqlite_changes import change, sqlalchemy
from retainer.store.engines.turns import Turns

try:
    from pysqlite3 import dbapi2 as driver
except ImportError:  # the wheel exists for Linux only; elsewhere the standard module must be new enough
    import sqlite3 as driver

# The driver looks for an adapter of every value but numbers and texts; without one, it costs five times as much.
driver.register_adapter(type(None), {None: None}.get)  # a C function is faster than a lambda
driver.register_adapter(bool, int)
driver.register_adapter(quoted_name, str)  # the name of a table, which `totals` counts by

OLDEST_SAFE = (3, 51, 3)  # older versions can corrupt a WAL database when two connections write or checkpoint together
PRAGMAS = (
    *("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "trusted_schema=OFF"),
    *("journal_size_limit=67108864", "cache_size=-16384", "mmap_size=268435456"),
)
MIN_FREE_BYTES = 1024 * 1024  # for the files that SQLite keeps next to a database
CACHED_STATEMENTS = 64
"""Compiled statements that a connection caches, of about 13 KB each; there may be a connection for each thread."""
FATAL_ERRORS = {"IOERR", "CANTOPEN", "READONLY", "NOTADB", "CORRUPT"}  # after these, no open connection is used again
OUT_OF_REACH = {"BUSY", "LOCKED", "FULL", "PROTOCOL", *FATAL_ERRORS}
NO_SAVEPOINT = contextlib.nullcontext()
ROWS_TOGETHER = 50
"""Rows that one statement inserts: the thread that writes the request log lets requests run after each statement."""
DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
DEADLINE_STEPS = 1_000_000  # of SQLite's machine, about 10 ms, between checks of the deadline


class SqliteConnection(driver.Connection):  # type: ignore[misc]  # its driver has no types
    """A connection that interrupts its statements at the deadline of their transaction."""

    deadline: list[float]  # a list, so that SQLite's handler does not keep the connection alive


class Sqlite:
    """One SQLite file and its connections, which are lent to one user at a time."""

    name = "SQLite"
    version: str = driver.sqlite_version
    dialect = sqlite.dialect(paramstyle="numeric_dollar")
    marker = "?"  # the first character of a placeholder: `?1`
    is_cluster = False  # the tables are not on several servers
    returns_ids = False  # an INSERT needs no RETURNING, which would make it 25 % slower
    has_one_writer = True  # all accounts wait for the only transaction that writes
    waits_for_schema = "All writes wait until it ends."  # while a migration locks the table {}
    hint = "the file and its disk"  # what an operator should check when the database is unavailable
    driver: Any = driver
    conflict: type[Exception] = driver.IntegrityError  # for a broken reference or a duplicate value
    # The driver's own functions, as each step in Python would be one more for every statement.
    run: Callable[[DriverConnection, str, Values], DriverCursor] = staticmethod(driver.Connection.execute)
    all: Callable[[DriverCursor], list[Row]] = staticmethod(driver.Cursor.fetchall)
    first: Callable[[DriverCursor], Row | None] = staticmethod(driver.Cursor.fetchone)

    def __init__(self, path: Path, *, is_limited: bool = True) -> None:
        if driver.sqlite_version_info < OLDEST_SAFE:
            oldest = ".".join(map(str, OLDEST_SAFE))
            raise Unavailable(f"SQLite {driver.sqlite_version} is too old: install {oldest} or newer.")
        self.path, self.location = path, str(path.absolute())
        self.seconds = TRANSACTION_SECONDS if is_limited else math.inf
        self._wait_seconds = WAIT_SECONDS if is_limited else OPERATOR_WAIT_SECONDS
        self.turns = Turns()
        self._inode: int | None = None  # of the file, once it was opened
        self._idle: list[DriverConnection] = []
        self._open: set[DriverConnection] = set()  # a lent connection that is not in it is closed when it returns

    @property
    def connections(self) -> tuple[int, int]:
        return len(self._open), len(self._idle)

    def translate_error(self, error: BaseException) -> BaseException:
        """Return our error for an error of the driver; the error itself if a statement is wrong."""
        _, name, *_ = *str(getattr(error, "sqlite_errorname", "")).split("_"), ""
        if name in FATAL_ERRORS:
            self.close()
        if name == "INTERRUPT":
            return DeadlineExceeded("A statement was interrupted at the deadline of its transaction.")
        if name not in OUT_OF_REACH:
            return error
        folder = self.path.parent
        if name in {"CANTOPEN", "READONLY"} and folder.is_dir() and not os.access(folder, os.W_OK):
            return Unavailable(f"Its folder is read-only for this user ({error}).")
        if name == "BUSY":
            return Busy(str(error))
        is_full = name == "FULL" or not self.has_room()  # without room, SQLite has errors of many names
        return DiskFull(str(error)) if is_full else Unavailable(str(error))

    def connect(self) -> DriverConnection:
        self._check_file()
        options = {"timeout": self._wait_seconds, "isolation_level": None, "check_same_thread": False}
        connection = driver.connect(self.path, **options, cached_statements=CACHED_STATEMENTS, factory=SqliteConnection)
        connection.deadline = deadline = [math.inf]
        connection.set_progress_handler(lambda: time.monotonic() > deadline[0], DEADLINE_STEPS)
        for pragma in PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        return connection

    def _check_file(self) -> None:
        """Close all connections to a file that was moved or replaced: what they write would be lost with it.

        Raises Unavailable then, and without a file, which SQLite would create: mode=rw makes every read slower.
        """
        try:
            inode = os.stat(self.path).st_ino  # noqa: PTH116  # each write needs it
        except OSError:
            inode = None
        if inode is None or self._inode not in {None, inode}:
            self.close()
            if inode is None:
                raise Unavailable(f"The database {self.path} does not exist. Check that its disk is mounted.")
            message = f"The database {self.path} was replaced while it was open. Stop the server, and restore a backup."
            raise Unavailable(message)
        self._inode = inode

    def one(self, text: str, values: Values) -> Row | None:
        connection = self.connection()
        try:
            row: Row | None = connection.execute(text, values).fetchone()
        except driver.DatabaseError as error:
            raise self.translate_error(error) from error
        finally:
            self.give_back(connection)
        return row

    def rows_returned(self, cursor: DriverCursor) -> Rows:
        """Return a function that returns the rows of a statement, once they have arrived; nothing else reads them."""
        rows: list[Row] = cursor.fetchall()
        return lambda: rows

    def _translated(self, call: Callable[..., Any], *arguments: object) -> Any:
        try:
            return call(*arguments)
        except driver.DatabaseError as error:
            raise self.translate_error(error) from error

    def limit(self, connection: DriverConnection, deadline: float) -> None:
        """Interrupt a statement at the deadline: SQLite rolls a transaction back when it interrupts a write."""
        connection.deadline[0] = deadline

    def insert_rows(self, connection: DriverConnection, table: Table, rows: list[Row]) -> None:
        """Insert many rows, each with the values of a table's columns as declared, in few statements."""
        names, row = ", ".join(column.name for column in table.c), f"({', '.join('?' * len(table.c))})"
        insertion, rest = f"INSERT INTO {table.name} ({names}) VALUES {row}", len(rows) % ROWS_TOGETHER
        connection.executemany(insertion, rows[:rest])
        together = insertion + f", {row}" * (ROWS_TOGETHER - 1)
        for first in range(rest, len(rows), ROWS_TOGETHER):
            connection.execute(together, [*chain.from_iterable(rows[first : first + ROWS_TOGETHER])])

    def begin_write(self, account_id: int | None, *, is_patient: bool = True) -> DriverConnection:
        (self.turns.take if is_patient else self.turns.take_now)(account_id)
        try:
            self._check_file()
            connection = self.connection()
            try:
                if not is_patient:  # another process may write, too; a connection that does not wait is used once
                    self._open.discard(connection)
                    connection.execute("PRAGMA busy_timeout=0")
                self._translated(connection.execute, "BEGIN IMMEDIATE")
            except BaseException:
                self.give_back(connection)
                raise
        except BaseException:
            self.turns.hand_on()
            raise
        return connection

    def end_write(self, connection: DriverConnection, *, commit: bool) -> None:
        try:
            self._end(connection, commit=commit)
        finally:
            self.turns.hand_on()

    def _end(self, connection: DriverConnection, *, commit: bool) -> None:
        """Commit a transaction or roll it back, unless SQLite has done so itself, as on a full disk."""
        connection.deadline[0] = math.inf  # a commit must not be interrupted
        try:
            if commit or connection.in_transaction:
                connection.execute("COMMIT" if commit else "ROLLBACK")
        except driver.Error as error:
            self._open.discard(connection)
            if commit:
                is_full = getattr(error, "sqlite_errorname", "") == "SQLITE_FULL"  # a closed connection has no name
                raise (DiskFull if is_full else OutcomeUnknown)(str(error)) from error
        finally:
            self.give_back(connection)

    def begin_snapshot(self, connection: DriverConnection) -> None:
        self.run(connection, "BEGIN", [])

    def end_snapshot(self, connection: DriverConnection) -> None:
        self._end(connection, commit=False)

    def savepoint(self, connection: DriverConnection, *, may_repeat: bool) -> contextlib.AbstractContextManager[None]:  # noqa: ARG002
        """Do nothing: a statement that fails has changed nothing."""
        return NO_SAVEPOINT

    def count_changed(self, connection: DriverConnection, cursor: DriverCursor) -> int:
        if cursor.description is not None:  # the driver counts too early if the statement has returned rows
            return int(connection.execute("SELECT changes()").fetchone()[0])
        return int(cursor.rowcount)

    def new_id(self, cursor: DriverCursor) -> int:
        return int(cursor.lastrowid)

    def connection(self) -> DriverConnection:
        """Lend an idle or new connection; the caller returns it with `give_back`."""
        try:
            return self._idle.pop()
        except IndexError:  # all are lent
            pass
        connection = self._translated(self.connect)
        if os.access(self.path, os.W_OK):  # or SQLite opened it read-only, for good
            self._open.add(connection)
        return connection

    def give_back(self, connection: DriverConnection) -> None:
        connection.deadline[0] = math.inf
        if connection in self._open:
            self._idle.append(connection)
        else:
            with contextlib.suppress(driver.Error):
                connection.close()

    @contextlib.contextmanager
    def schema_change(self) -> Iterator[SchemaConnection]:
        """Begin the only transaction that changes tables. Raises Unavailable for all its failures."""
        with open(self.path.with_suffix(".lock"), "w", opener=private) as file:  # Path.open takes no opener
            fcntl.flock(file, fcntl.LOCK_EX)
            self.close()
            try:
                with change(self.connect, driver, self.location) as connection:
                    yield connection
            except DBAPIError as error:
                raise refused(self.translate_error(error.orig or error)) from error
            except driver.Error as error:
                raise refused(self.translate_error(error)) from error

    @contextlib.contextmanager
    def read_snapshot(self) -> Iterator[SchemaConnection]:
        with sqlalchemy(self.connect, driver, "BEGIN") as connection, connection.begin():
            yield connection

    def lock_table(self, connection: SchemaConnection, table: Table) -> None:
        """Lock a table until a change of the schema ends; with one writer, it needs none."""

    def last_id(self, connection: SchemaConnection, table: Table) -> int:
        row = connection.exec_driver_sql("SELECT seq FROM sqlite_sequence WHERE name = ?", (table.name,)).first()
        return row.seq if row else 0

    def set_sequence(self, connection: SchemaConnection, table: Table, last_id: int) -> None:
        raise_last_id(connection.connection.driver_connection, table.name, last_id)

    def vacuum(self, tables: Iterable[Table]) -> None:
        """Update what the planner knows of tables. The statistics of SQLite are fixed: its plans stay the same."""

    def has_table(self, name: str) -> bool:
        return self.one("SELECT name FROM sqlite_master WHERE name = ?1", [name]) is not None

    def estimate_rows(self, name: str) -> int:
        row = self.one(f'SELECT count(*) FROM "{name}"', []) if self.has_table(name) else None
        return int(row[0]) if row else 0

    def size(self) -> int:
        """Return the size of the database in bytes."""
        return self.path.stat().st_size

    def check(self) -> None:
        """Read the database. Raises Unavailable, PartlyUnavailable if a node of a cluster does not answer."""
        self.has_table("alembic_version")  # SELECT 1 would not read the file

    def check_sessions(self) -> None:
        """Raise SettingsError if a connection does not keep its session of the database."""

    def exists(self) -> bool:
        """Return whether there is a database: a file that is not empty."""
        return self.path.exists() and self.path.stat().st_size > 0

    def create_storage(self) -> None:
        """Create the folder and the file of the database. Raises Unavailable for a network share."""
        make_local_folder(self.path.parent)
        if not self.path.exists():  # SQLite creates -wal and -shm with the same mode
            self.path.touch(mode=0o600)

    def serve_alone(self) -> contextlib.AbstractContextManager[bool]:
        return served_alone(self.path)

    def damage(self, *, thorough: bool) -> list[str]:
        """Return the first errors in the structure of the file; `thorough` also compares every index with its table."""
        check = "integrity_check" if thorough else "quick_check"
        try:
            with contextlib.closing(self.connect()) as connection:
                rows = connection.execute(f"PRAGMA {check}(10)").fetchall()
        except driver.DatabaseError as error:
            if getattr(error, "sqlite_errorname", "").startswith(DAMAGED):
                return [str(error)]
            raise self.translate_error(error) from error
        return [text for (text,) in rows if text != "ok"]

    def world_readable(self) -> list[Path]:
        """Return the folder and files that other users of this machine may access."""
        return accessible_files(self.path)

    def has_room(self) -> bool:
        free = free_bytes(self.path.parent)
        return free is None or free >= MIN_FREE_BYTES

    def close(self) -> None:
        """Close idle connections, and lent ones when they return: none may be open when a process forks."""
        idle, self._idle, self._open = self._idle, [], set()
        for connection in idle:
            self.give_back(connection)
