"""The engines: the only place that knows a dialect, a driver, and what its errors mean."""

import contextlib
import os
from pathlib import Path
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Engine,
    Insert,
    NullPool,
    Select,
    Table,
    bindparam,
    create_engine,
    event,
    func,
    select,
    true,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.types import TIMESTAMP, BigInteger, Boolean, Date, Integer, Text

try:
    from pysqlite3 import dbapi2 as driver
except ImportError:  # the wheel exists for Linux only; elsewhere the standard module must be new enough
    import sqlite3 as driver

# The driver looks for an adapter of every value but numbers and texts: without one, at five times the cost of a text.
driver.register_adapter(type(None), lambda null: null)
driver.register_adapter(bool, int)

OLDEST_SAFE = (3, 51, 3)  # before it, two connections that write or checkpoint at once can corrupt a WAL database
WAIT_SECONDS = 5.0
PRAGMAS = (
    *("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "trusted_schema=OFF"),
    *("journal_size_limit=67108864", "cache_size=-16384", "mmap_size=268435456"),
)
STALE = {"IOERR", "CANTOPEN", "READONLY", "NOTADB", "CORRUPT"}  # no connection that was open then is used again
OUT_OF_REACH = {"BUSY", "LOCKED", "FULL", "PROTOCOL", *STALE}

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


def json_row(columns: list[ColumnElement[Any]]) -> ColumnElement[str]:
    """Columns as one, a JSON array: describing, fetching and converting each of them takes the driver far longer."""
    return func.json_array(*columns, type_=Text)


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


class OutcomeUnknown(Unavailable):
    """A commit failed otherwise than for want of room: what it was to make durable may be there or not."""


class Sqlite:
    """One SQLite file, and connections that are lent to one user at a time."""

    dialect = sqlite.dialect(paramstyle="numeric_dollar")  # SQLite writes $1 as ?1
    driver: Any = driver
    version = driver.sqlite_version
    conflict: type[Exception] = driver.IntegrityError

    def __init__(self, path: Path) -> None:
        if driver.sqlite_version_info < OLDEST_SAFE:
            oldest = ".".join(map(str, OLDEST_SAFE))
            raise Unavailable(f"SQLite {driver.sqlite_version} is too old: install {oldest} or newer.")
        self.path = path
        self._idle: list[Any] = []
        self._open: set[Any] = set()  # what is lent and not in here is closed when it is given back

    def translate_error(self, error: Exception) -> Exception:
        """What a driver's error means to callers: out of reach, or the programming error that it is."""
        _, name, *_ = *str(getattr(error, "sqlite_errorname", "")).split("_"), ""
        if name in STALE:
            self.close()
        return Unavailable(str(error)) if name in OUT_OF_REACH else error

    def connect(self) -> Any:
        """A new connection with every promise switched on: durable commits, foreign keys, no trusted schema."""
        if not self.path.exists():  # it would be made anew, and empty; a URI that forbids that makes every read slower
            raise Unavailable(f"The database {self.path} is not there. Check that its disk is.")
        connection = driver.connect(
            str(self.path), timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=1024
        )
        for pragma in PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        return connection

    def one(self, text: str, values: list[Any]) -> tuple[Any, ...] | None:
        """Return the first row of a statement outside any transaction."""
        connection = self.connection()
        try:
            row: tuple[Any, ...] | None = self.run(connection, text, values).fetchone()
        finally:
            self.give_back(connection)
        return row

    def run(self, connection: Any, text: str, values: list[Any]) -> Any:
        """Run a statement with the values of ?1, ?2 and so on; return the driver's cursor."""
        try:
            return connection.execute(text, values)
        except driver.DatabaseError as error:
            raise self.translate_error(error) from error

    def begin(self, *, write: bool) -> Any:
        """Lend a connection on which a transaction has begun."""
        connection = self.connection()
        try:
            self.run(connection, "BEGIN IMMEDIATE" if write else "BEGIN", [])
        except BaseException:
            self.give_back(connection)
            raise
        return connection

    def end(self, connection: Any, *, commit: bool) -> None:
        """Make a transaction durable, or undo it, which SQLite may have done itself, on a full disk for one."""
        try:
            if commit or connection.in_transaction:
                connection.execute("COMMIT" if commit else "ROLLBACK")
        except driver.Error as error:
            self._open.discard(connection)
            if commit:
                kind = Unavailable if error.sqlite_errorname == "SQLITE_FULL" else OutcomeUnknown
                raise kind(str(error)) from error
        finally:
            self.give_back(connection)

    def connection(self) -> Any:
        """Lend a connection that nobody uses; its user gives it back."""
        try:
            return self._idle.pop()
        except IndexError:  # all are lent
            pass
        try:
            connection = self.connect()
        except driver.DatabaseError as error:
            raise self.translate_error(error) from error
        if os.access(self.path, os.W_OK):  # or it reads only, for as long as it is open
            self._open.add(connection)
        return connection

    def give_back(self, connection: Any) -> None:
        """Take back what was lent: for the next user, or to be closed when it went stale meanwhile."""
        if connection in self._open:
            self._idle.append(connection)
        else:
            with contextlib.suppress(driver.Error):
                connection.close()

    def schema_engine(self) -> Engine:
        """Return a SQLAlchemy engine for migrations: connections of their own, whose transactions begin as writes."""
        engine = create_engine("sqlite://", creator=self.connect, module=driver, poolclass=NullPool)
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
        return engine

    def close(self) -> None:
        """Close what is idle, and later what is lent: none may be open when a process forks."""
        idle, self._idle, self._open = self._idle, [], set()
        for connection in idle:
            self.give_back(connection)
