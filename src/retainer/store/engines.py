"""The engines: the only place that knows a dialect, a driver, and what its errors mean."""

import contextlib
import threading
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Insert, Select, Table, bindparam, func, select, true
from sqlalchemy.dialects import sqlite
from sqlalchemy.types import TIMESTAMP, BigInteger, Boolean, Date, Integer, Text

try:
    from pysqlite3 import dbapi2 as driver
except ImportError:  # the wheel exists for Linux only; elsewhere the standard module must be new enough
    import sqlite3 as driver

OLDEST_SAFE = (3, 51, 3)  # before it, two connections that write or checkpoint at once can corrupt a WAL database
WAIT_SECONDS = 5.0
PRAGMAS = (
    *("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "trusted_schema=OFF"),
    *("journal_size_limit=67108864", "cache_size=-16384", "mmap_size=268435456"),
)
OUT_OF_REACH = {"BUSY", "LOCKED", "IOERR", "FULL", "CANTOPEN", "READONLY", "PROTOCOL", "NOTADB", "CORRUPT"}

# The first type is what SQLite's STRICT tables take, the second what PostgreSQL has for it.
INTEGER = Integer().with_variant(BigInteger(), "postgresql")
FLAG = Boolean(create_constraint=False).with_variant(Integer(), "sqlite")
DAY = Text().with_variant(Date(), "postgresql")
INSTANT = Text().with_variant(TIMESTAMP(timezone=True), "postgresql")

NUMBERED: dict[str, Any] = {"sqlite_strict": True, "sqlite_autoincrement": True}  # an id is never handed out twice
KEYED: dict[str, Any] = {"sqlite_strict": True, "sqlite_with_rowid": False}  # found by its key alone


def comma_list(column: ColumnElement[Any]) -> ColumnElement[str]:
    """An aggregate: the values of a column as text, separated by commas, in no order."""
    return func.group_concat(column, type_=Text)


def listed(name: str) -> Select[Any]:
    """The texts of a list that is bound as JSON: one prepared statement for lists of any length."""
    return select(func.json_each(bindparam(name)).table_valued("value").c.value)


def next_day(day: ColumnElement[Any]) -> ColumnElement[Any]:
    """The day after a day; null after the calendar's last."""
    return func.date(day, "+1 day", type_=DAY)


def insert_or_add(table: Table, rows: Select[Any], sums: tuple[str, ...]) -> Insert:
    """To insert rows of a key and its sums; where there is one with that key, its sums grow by theirs."""
    key = [column.name for column in table.primary_key]
    statement = sqlite.insert(table).from_select([*key, *sums], rows.where(true()))  # or ON would be read as a join's
    grown = {name: table.c[name] + statement.excluded[name] for name in sums}
    return statement.on_conflict_do_update(index_elements=key, set_=grown)


class Unavailable(Exception):
    """The database is out of reach, busy for too long, or full; what was asked did not happen or is unknown."""


class Sqlite:
    """One SQLite file: a connection for each thread, and one write lock in the process."""

    dialect = sqlite.dialect(paramstyle="named")
    driver: Any = driver
    version = driver.sqlite_version
    failure: type[Exception] = driver.DatabaseError

    def __init__(self, path: Path) -> None:
        if driver.sqlite_version_info < OLDEST_SAFE:
            oldest = ".".join(map(str, OLDEST_SAFE))
            raise Unavailable(f"SQLite {driver.sqlite_version} is too old: install {oldest} or newer.")
        self.path = path
        self._writing = threading.Lock()
        self._local = threading.local()

    def judge(self, error: Exception) -> Exception:
        """What a driver's error means to callers: out of reach, or the programming error that it is."""
        _, name, *_ = *str(getattr(error, "sqlite_errorname", "")).split("_"), ""
        return Unavailable(str(error)) if name in OUT_OF_REACH else error

    def connect(self) -> Any:
        """A new connection with every promise switched on: durable commits, foreign keys, no trusted schema."""
        connection = driver.connect(
            str(self.path), timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=1024
        )
        for pragma in PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        return connection

    def one(self, text: str, values: dict[str, Any]) -> tuple[Any, ...] | None:
        """The first row of a statement outside any transaction."""
        try:
            row: tuple[Any, ...] | None = self.connection().execute(text, values).fetchone()
        except driver.DatabaseError as error:
            raise self.judge(error) from error
        return row

    def begin(self, *, write: bool) -> Any:
        """Begin a transaction on this thread's connection; a writing one holds the lock until it ends."""
        if write and not self._writing.acquire(timeout=WAIT_SECONDS):
            raise Unavailable("Other writes took too long.")
        try:
            connection = self.connection()
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        except driver.DatabaseError as error:
            if write:
                self._writing.release()
            raise self.judge(error) from error
        return connection

    def commit(self, connection: Any, *, write: bool) -> None:
        """Make it durable. A commit that fails has an unknown outcome: the connection is thrown away."""
        try:
            connection.execute("COMMIT")
        except driver.Error as error:
            self.close()
            raise Unavailable(str(error)) from error
        finally:
            if write:
                self._writing.release()

    def rollback(self, connection: Any, *, write: bool) -> None:
        """Undo everything; SQLite may have done so already, on a full disk for one."""
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except driver.Error:
            self.close()
        finally:
            if write:
                self._writing.release()

    def connection(self) -> Any:
        """This thread's connection."""
        connection = getattr(self._local, "connection", None)
        if connection is None:
            try:
                connection = self._local.connection = self.connect()
            except driver.DatabaseError as error:
                raise self.judge(error) from error
        return connection

    def close(self) -> None:
        """Close this thread's connection: it may be broken, and none may be open when a process forks."""
        connection = self._local.__dict__.pop("connection", None)
        if connection is not None:
            with contextlib.suppress(driver.Error):
                connection.close()
