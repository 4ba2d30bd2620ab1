"""PostgreSQL: statements are sent together and waited for only when their result is needed."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from psycopg import conninfo, errors
from psycopg.adapt import Loader
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import TextLoader
from sqlalchemy import Dialect, NullPool, create_engine
from sqlalchemy import Engine as SchemaEngine
from sqlalchemy.dialects.postgresql import psycopg as dialects

from retainer.store.engines.base import Engine, OutcomeUnknown, TransientConflict, Unavailable

REPLY_SECONDS = 4.5
"""The longest that a reply of the server is waited for; then the connection is closed."""
CONNECT_SECONDS = 2
"""The least that the driver waits for a connection."""
OPTIONS = {
    "TimeZone": "UTC",
    "statement_timeout": "4000",
    "lock_timeout": "4000",
    "idle_in_transaction_session_timeout": "15000",
}
WRITES, SCHEMA = 1382377, 1382378
"""The first halves of our advisory locks: one for the writes of each account, one for migrations."""
LOCK = "SELECT pg_advisory_xact_lock($1::INTEGER, $2::INTEGER)"


class InstantLoader(Loader):
    """A moment as text, RFC 3339 with microseconds and `Z`."""

    def load(self, data: Any) -> str:
        """`2026-03-10 09:00:00.12+00` becomes `2026-03-10T09:00:00.120000Z`."""
        text = bytes(data).decode()
        return f"{text[:10]}T{text[11:19]}.{text[20:-3]:0<6}Z"


class Cursor(psycopg.RawCursor[tuple[Any, ...]]):
    """A cursor whose results may still be on their way; what goes wrong with them is an error of ours."""

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row, once it has arrived."""
        with translated():
            return super().fetchone()

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows, once they have arrived."""
        with translated():
            return super().fetchall()


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that waits for no reply for ever, and that holds the pipeline of its transaction."""

    generation = 0
    pipeline_block: Any = None
    pipeline_sent: psycopg.Pipeline

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Wait for a reply. Raises OperationalError when it takes too long."""
        return super().wait(gen, interval, timeout or REPLY_SECONDS)

    def enter_pipeline(self) -> None:
        """Let statements be sent together from here on."""
        self.pipeline_block = self.pipeline()
        self.pipeline_sent = self.pipeline_block.__enter__()

    def exit_pipeline(self) -> None:
        """Wait for all that was sent. Raises the first error."""
        block, self.pipeline_block = self.pipeline_block, None
        block.__exit__(None, None, None)


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """A block whose errors of the driver become ours."""
    try:
        yield
    except psycopg.Error as error:
        raise translate_error(error) from error


def translate_error(error: psycopg.Error) -> Exception:
    """What a driver's error means to callers: another transaction, out of reach, or the error that it is."""
    if isinstance(error, (errors.SerializationFailure, errors.DeadlockDetected)):
        return TransientConflict(str(error))
    if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        return Unavailable(str(error))
    return error


class Postgresql(Engine):
    """A PostgreSQL database. Writes of one account wait for each other, those of different accounts do not."""

    name = "PostgreSQL"
    dialect: Dialect = dialects.PGDialect_psycopg(paramstyle="numeric_dollar")  # type: ignore[no-untyped-call]
    marker = "$"
    returns_ids = True
    has_history = False
    conflict = psycopg.IntegrityError

    def __init__(self, url: str) -> None:
        self.url = url
        self._idle: list[Connection] = []
        self._generation = 0  # of connections: those of an earlier one are closed when they are given back
        self._lock = threading.Lock()
        options = " ".join(f"-c {name}={value}" for name, value in OPTIONS.items())
        self._conninfo = conninfo.make_conninfo(url, options=options, connect_timeout=CONNECT_SECONDS)

    @property
    def version(self) -> str:
        """The version of the server."""
        connection = self.connection()
        try:
            return str(connection.info.parameter_status("server_version"))
        finally:
            self.give_back(connection)

    @property
    def location(self) -> str:
        """Its address, without the password."""
        parts = conninfo.conninfo_to_dict(self.url)
        user = f"{parts['user']}@" if "user" in parts else ""
        port = f":{parts['port']}" if "port" in parts else ""
        return f"postgresql://{user}{parts.get('host', '')}{port}/{parts.get('dbname', '')}"

    def connect(self) -> Connection:
        """A new connection, whose statements are transactions of their own unless one was begun."""
        with translated():
            connection = Connection.connect(self._conninfo, autocommit=True, cursor_factory=Cursor)
        connection.prepare_threshold = 2
        connection.prepared_max = 1000
        connection.adapters.register_dumper(int, Int8Dumper)
        connection.adapters.register_loader("date", TextLoader)
        connection.adapters.register_loader("timestamptz", InstantLoader)
        connection.generation = self._generation
        return connection

    def connection(self) -> Connection:
        """Lend a connection that nobody uses; its user gives it back."""
        try:
            return self._idle.pop()
        except IndexError:  # all are lent
            return self.connect()

    def give_back(self, connection: Connection) -> None:
        """Take back what was lent: for the next user, if its last transaction ended in order."""
        idle = connection.info.transaction_status == TransactionStatus.IDLE and connection.pipeline_block is None
        if idle and connection.generation == self._generation:
            self._idle.append(connection)
        else:
            connection.close()

    def discard(self, connection: Connection) -> None:
        """Close a connection, and all that are idle when it was lost, for they are lost too."""
        if connection.closed:
            self.close()
        connection.close()

    def close(self) -> None:
        """Close what is idle, and later what is lent: none may be open when a process forks."""
        with self._lock:
            idle, self._idle = self._idle, []
            self._generation += 1
        for connection in idle:
            connection.close()

    def run(self, connection: Connection, text: str, values: list[Any]) -> Cursor:
        """Run a statement with the values of its numbered places; in a transaction it is only sent."""
        with translated():
            cursor: Any = connection.execute(text, values)
        return cursor  # type: ignore[no-any-return]  # what cursor_factory makes

    def one(self, text: str, values: list[Any]) -> tuple[Any, ...] | None:
        """Return the first row of a statement outside any transaction; tried again when its connection was lost."""
        connection = self.connection()
        try:
            row = self.run(connection, text, values).fetchone()
        except Unavailable:
            if not connection.closed:
                raise
            self.discard(connection)
            connection = self.connect()
            row = self.run(connection, text, values).fetchone()
        finally:
            self.give_back(connection)
        return row

    def begin_write(self, account_id: int | None) -> Connection:
        """Lend a connection on which a writing transaction has begun, alone in its account; of all without one."""
        connection = self._begin("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
        if account_id is not None:
            self.run(connection, LOCK, [WRITES, account_id])
        return connection

    def end_write(self, connection: Connection, *, commit: bool) -> None:
        """Make a writing transaction durable, or undo it, and take its connection back."""
        try:
            if not commit:
                self._undo(connection)
                return
            cursor = connection.execute("COMMIT")
            connection.exit_pipeline()
            if cursor.statusmessage != "COMMIT":
                raise Unavailable(f"The transaction was not committed but answered {cursor.statusmessage}.")
        except psycopg.Error as error:
            connection.close()
            failure = translate_error(error)
            raise OutcomeUnknown(str(error)) if type(failure) is Unavailable else failure from error
        finally:
            self.give_back(connection)

    def begin_snapshot(self, connection: Connection) -> None:
        """Let all statements that follow on a connection see one state of the database."""
        with translated():
            connection.enter_pipeline()
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def end_snapshot(self, connection: Connection) -> None:
        """End a reading transaction, and take its connection back."""
        try:
            self._undo(connection)
        finally:
            self.give_back(connection)

    @contextlib.contextmanager
    def attempt(self, connection: Connection) -> Iterator[None]:
        """A block whose statements are undone when one of them raises `conflict`; the transaction goes on.

        The block itself has to ask for the result of its last statement.
        """
        self.run(connection, "SAVEPOINT attempt", [])
        try:
            yield
        except psycopg.IntegrityError:
            with translated():
                connection.pipeline_sent.sync()
            self.run(connection, "ROLLBACK TO attempt", [])
            raise
        self.run(connection, "RELEASE attempt", [])

    def count_changed(self, connection: Connection, cursor: Any) -> int:
        """How many rows a statement has changed; waits for it."""
        if connection.pipeline_block is not None:
            with translated():
                connection.pipeline_sent.sync()
        return int(cursor.rowcount)

    def new_id(self, cursor: Any) -> int:
        """The id of the row that a statement has just inserted."""
        return int(cursor.fetchone()[0])

    def schema_engine(self) -> SchemaEngine:
        """Return a SQLAlchemy engine for migrations, with connections of its own and without limits of time."""
        url = conninfo.make_conninfo(self.url, options="-c TimeZone=UTC", connect_timeout=CONNECT_SECONDS)
        return create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url), poolclass=NullPool)

    @contextlib.contextmanager
    def schema_lock(self) -> Iterator[None]:
        """A block that one process at a time is in, on any machine."""
        with translated(), psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("SELECT pg_advisory_lock(%s::INTEGER, 0)", [SCHEMA])
            yield

    def has_table(self, name: str) -> bool:
        """Whether the database has a table, where its search path finds it."""
        row = self.one("SELECT to_regclass($1) IS NOT NULL", [name])
        return bool(row and row[0])

    def exists(self) -> bool:
        """Whether there is a database; without one, connecting says so itself."""
        return True

    def prepare_place(self) -> None:
        """The database is the operator's to make."""

    def serve_alone(self) -> contextlib.AbstractContextManager[None]:
        """Any number of processes may serve."""
        return contextlib.nullcontext()

    def exposed(self) -> list[Path]:
        """There are no files of ours."""
        return []

    def is_full(self, error: Exception) -> bool:
        """Whether the server's disk has no room."""
        return isinstance(error.__cause__, errors.DiskFull)

    def _begin(self, statement: str) -> Connection:
        connection = self.connection()
        try:
            with translated():
                connection.enter_pipeline()
                connection.execute(statement)
        except BaseException:
            connection.close()
            raise
        return connection

    def _undo(self, connection: Connection) -> None:
        """Roll back; a connection on which that fails is closed, and the server rolls back."""
        try:
            if connection.pipeline_sent.status == PipelineStatus.ABORTED:
                connection.pipeline_sent.sync()
            connection.execute("ROLLBACK")
            connection.exit_pipeline()
        except psycopg.Error:
            self.discard(connection)
