"""The databases of the yardstick: their connections and transactions, and the few words of SQL that differ."""

import re
import threading
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, TypeVar

import msgspec
import psycopg
from psycopg.types.numeric import Int8Dumper
from pysqlite3 import dbapi2

Result = TypeVar("Result")
Values = tuple[Any, ...] | list[Any]

PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",
    "foreign_keys=ON",
    "trusted_schema=OFF",
    "journal_size_limit=67108864",
    "cache_size=-16384",
    "mmap_size=268435456",
)
PLACE = re.compile(r"\?(\d*)")
INSTANT = """to_char({} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""
BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
LOCK = "SELECT pg_advisory_xact_lock(1382377::INTEGER, $1::INTEGER)"  # so that an account's writes wait for each other
EVENT = """
INSERT INTO events (account_id, id, at, type, record_id, fields, user_id, key_id, request_id)
VALUES (?1, coalesce((SELECT id FROM events WHERE account_id = ?1 ORDER BY id DESC LIMIT 1), 0) + 1, ?2, ?3, ?4, '[]',
        ?5, ?6, ?7)"""
decode = msgspec.json.decode


class Database:
    """What the databases have in common: places for values as SQLite wants them, and the event of each new record."""

    def __init__(self) -> None:
        self.event = self.statement(EVENT)

    def statement(self, text: str) -> str:
        """A statement with places for values as the driver wants them."""
        return text

    def announce(self, connection: Any, values: Values) -> None:
        """Write an event: its account, instant, type, record, user, key and request."""
        connection.execute(self.event, values)


class Sqlite(Database):
    """A file: a connection for each thread, one writer at a time."""

    refused = dbapi2.IntegrityError
    id_list = "group_concat(tag_id)"
    padded = "printf('%0*d', {}, {})"

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
        self.local = threading.local()
        self.writing = threading.Lock()

    def row(self, columns: Iterable[str]) -> str:
        """The columns of a statement whose rows are read by `one` and `all`."""
        return ", ".join(columns)

    def combined(self, *texts: str) -> list[str]:
        """Statements that write one after another."""
        return list(texts)

    def run(self, connection: Any, combined: Any, *values: Values) -> Any:
        """Run statements with the values of each; return the cursor of the first."""
        first, *_ = [connection.execute(text, each) for text, each in zip(combined, values, strict=True)]
        return first

    def first(self, cursor: Any) -> Any:
        """The first row, or None."""
        return cursor.fetchone()

    def lent(self, work: Callable[..., Result], *values: Any) -> Result:
        """Do this with the connection of the thread."""
        connection = getattr(self.local, "connection", None)
        if connection is None:
            connection = self.local.connection = self.connect()
        return work(connection, *values)

    def connect(self) -> Any:
        """A connection with the same promises as the product's."""
        connection = dbapi2.connect(
            self.path, timeout=5.0, isolation_level=None, check_same_thread=False, cached_statements=1024
        )
        for pragma in PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        return connection

    def one(self, connection: Any, statement: str, values: Values) -> Any:
        """The first row, or None."""
        return connection.execute(statement, values).fetchone()

    def all(self, connection: Any, statement: str, values: Values) -> list[Any]:
        """All rows."""
        rows: list[Any] = connection.execute(statement, values).fetchall()
        return rows

    def write(self, account: int, work: Callable[[Any], Result]) -> Result:  # noqa: ARG002
        """Do this in one durable transaction."""
        with self.writing:
            return self.lent(self.transact, work)

    def transact(self, connection: Any, work: Callable[[Any], Result]) -> Result:
        """Do this between BEGIN and COMMIT."""
        connection.execute("BEGIN IMMEDIATE")
        try:
            result = work(connection)
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        return result


class Postgresql(Database):
    """A server: connections that are lent, statements that are only sent until the result of one is needed."""

    refused = psycopg.IntegrityError
    id_list = "string_agg(CAST(tag_id AS TEXT), ',')"
    padded = "lpad(CAST({1} AS TEXT), greatest({0}::INTEGER, length(CAST({1} AS TEXT))), '0')"

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address = address
        self.idle: list[Any] = []
        self.turns: dict[int, threading.Lock] = {}

    def row(self, columns: Iterable[str]) -> str:
        """One JSON array, with which the driver is faster; instants with microseconds and `Z`."""
        array = ", ".join(INSTANT.format(name) if name.endswith("_at") else name for name in columns)
        return f"CAST(json_build_array({array}) AS TEXT)"

    def statement(self, text: str) -> str:
        """`?` and `?1` become `$1`."""
        numbers = count(1)
        return PLACE.sub(lambda place: f"${place[1] or next(numbers)}", text)

    def combined(self, *texts: str) -> str:
        """One statement that writes what several do; its values are those of each in turn."""
        parts, before = [], 0
        for text in texts:
            numbers = count(1)
            places = [int(place or next(numbers)) for place in PLACE.findall(text)]
            each = iter(places)
            parts.append(PLACE.sub(lambda _, each=each, before=before: f"${before + next(each)}", text))  # type: ignore[misc]
            before += max(places)
        main, *others = parts
        return f"WITH {', '.join(f'also_{n} AS ({text})' for n, text in enumerate(others, 1))} {main}"

    def run(self, connection: Any, combined: Any, *values: Values) -> Any:
        """Run such a statement with the values of each part; return its cursor."""
        return connection.execute(combined, [value for each in values for value in each])

    def first(self, cursor: Any) -> Any:
        """The first row, or None."""
        found = cursor.fetchone()
        return found and decode(found[0])

    def lent(self, work: Callable[..., Result], *values: Any) -> Result:
        """Do this with a connection of its own."""
        connection = self.idle.pop() if self.idle else self.connect()
        try:
            return work(connection, *values)
        finally:
            self.idle.append(connection)

    def connect(self) -> Any:
        """A connection set up like the product's."""
        connection = psycopg.connect(
            self.address, autocommit=True, cursor_factory=psycopg.RawCursor, prepare_threshold=2
        )
        connection.adapters.register_dumper(int, Int8Dumper)  # a statement is prepared for each type of its values
        return connection

    def one(self, connection: Any, statement: str, values: Values) -> Any:
        """The first row, or None."""
        return self.first(connection.execute(statement, values))

    def all(self, connection: Any, statement: str, values: Values) -> list[Any]:
        """All rows."""
        return [decode(row) for (row,) in connection.execute(statement, values).fetchall()]

    def write(self, account: int, work: Callable[[Any], Result]) -> Result:
        """Do this in one durable transaction; others of the account wait before they have a connection."""
        with self.turns.setdefault(account, threading.Lock()):
            return self.lent(self.transact, account, work)

    def transact(self, connection: Any, account: int, work: Callable[[Any], Result]) -> Result:
        """Do this between BEGIN and COMMIT, where only results are waited for."""
        with connection.pipeline() as pipeline:
            connection.execute(BEGIN)
            connection.execute(LOCK, [account])
            try:
                result = work(connection)
            except BaseException:
                pipeline.sync()
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
        return result


def database_of(address: str) -> Sqlite | Postgresql:
    """The database that an address names, as the product's setting does."""
    return Sqlite(address.removeprefix("sqlite:///")) if address.startswith("sqlite:") else Postgresql(address)
