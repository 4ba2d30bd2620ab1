"""A connection to PostgreSQL: it waits for no reply for ever, and its values and errors are ours."""

import contextlib
import logging
import threading
from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg import errors
from psycopg.adapt import Loader
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import TextLoader

from retainer.store.engines.base import (
    TRANSACTION_SECONDS,
    Busy,
    DeadlineExceeded,
    Row,
    TransientConflict,
    Unavailable,
    Values,
)

logging.getLogger("psycopg").addHandler(logging.NullHandler())  # what it warns of is an error of ours as well
OUT_OF_REACH = (
    *(psycopg.OperationalError, psycopg.InterfaceError),
    *(errors.ReadOnlySqlTransaction, errors.InsufficientPrivilege),
)
"""Errors that are no fault of a statement's: the way there, a standby, rights that an operator has to grant."""
PROGRAM_LIMIT = "54"
"""The class of errors of what is too large, like a value for an index: the same again fails again."""
ENCODING = "UTF8"
REPLY_SECONDS = 4
"""The longest that a reply of the server is waited for; then the connection is closed."""

PREPARED = 128
"""Statements that a connection keeps prepared; the driver keeps their texts, the server their plans."""


MAX_UNDERWAY = 100
"""Statements of a transaction that are sent without waiting for any: what they take together is noticed after that."""
LIMIT_TRANSACTIONS = f"SET transaction_timeout = '{TRANSACTION_SECONDS + REPLY_SECONDS}s'"
"""The last resort, from PostgreSQL 17 on: a COMMIT that waits behind slow statements comes to nothing when it is so
late that its caller was told so. Transactions are stopped between statements long before."""


class InstantLoader(Loader):
    """A moment as text, RFC 3339 with microseconds and `Z`."""

    def load(self, data: Any) -> str:
        """`2026-03-10 09:00:00.12+00` becomes `2026-03-10T09:00:00.120000Z`."""
        text = bytes(data).decode()
        return f"{text[:10]}T{text[11:19]}.{text[20:-3]:0<6}Z"


class Cursor(psycopg.RawCursor[Row]):
    """A cursor whose results may still be on their way; what goes wrong with them is an error of ours."""

    def fetchone(self) -> Row | None:
        """Return the next row, once it has arrived."""
        try:
            return super().fetchone()
        except psycopg.Error as error:
            raise translate_error(error) from error

    def fetchall(self) -> list[Row]:
        """Return all rows, once they have arrived."""
        try:
            return super().fetchall()
        except psycopg.Error as error:
            raise translate_error(error) from error


class Connection(psycopg.Connection[Row]):
    """A connection whose statements are transactions by themselves, until a pipeline is entered for one of several."""

    generation = 0
    """Of the connections of an engine: it closes those of a former generation."""
    has_timed_out = False
    sent: psycopg.Pipeline | None = None
    """The pipeline of the transaction that has begun: statements that were sent without waiting for their results."""
    has_savepoint = False
    """Whether the transaction has the savepoint of an attempt."""
    limits_transactions = False
    """Whether the server ends transactions that take too long."""
    underway = 0
    """How many statements were sent in the pipeline since the last that was waited for."""
    turn: "threading.Lock | None" = None
    """What other writes of its account wait for in this process, until it is given back."""
    single_cursor: psycopg.Cursor[Row]
    """Of statements of which no results are kept; made once the connection knows our types."""
    _block: Any = None

    def run(self, statement: str, values: Values) -> psycopg.Cursor[Row]:
        """Run a statement and return a cursor; outside a transaction always the same one, with the rows of the last.

        Making a cursor takes the driver a quarter of the time of a statement.
        """
        if self.sent is None:
            return self.single_cursor.execute(statement, values)
        self.underway += 1
        if self.underway > MAX_UNDERWAY:
            self.sync()
        return self.cursor().execute(statement, values)

    def send(self, statement: str, values: Values) -> None:
        """Run a statement whose result nobody reads. In a transaction it is only sent, and errors come later."""
        with translated():
            self.single_cursor.execute(statement, values)

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:  # noqa: ARG002
        """Wait for a reply. Raises OperationalError when it takes too long, and closes the connection."""
        try:
            return super().wait(gen, interval, REPLY_SECONDS)
        except errors._WaitTimeout as error:  # noqa: SLF001  # by this name it is documented
            self.has_timed_out = True
            self.close()
            raise psycopg.OperationalError(f"PostgreSQL has not answered for {REPLY_SECONDS} seconds.") from error

    def limit_transactions(self) -> None:
        """Let the server end transactions that take too long, if it can. Raises psycopg.Error, and is closed then."""
        if self.info.server_version >= 170000:
            try:
                self.execute(LIMIT_TRANSACTIONS)
            except psycopg.Error:
                self.close()
                raise
            self.limits_transactions = True

    def is_reusable(self) -> bool:
        """Whether its last transaction has ended in order."""
        return self.info.transaction_status == TransactionStatus.IDLE and self.sent is None

    def enter_pipeline(self) -> None:
        """Let statements be sent together from here on."""
        self._block = self.pipeline()
        self.sent = self._block.__enter__()

    def exit_pipeline(self) -> None:
        """Wait for all that was sent. Raises the first error."""
        block, self._block, self.sent, self.has_savepoint = self._block, None, None, False
        block.__exit__(None, None, None)

    def sync(self) -> None:
        """Wait for all that was sent in the pipeline; after an error it takes statements again. Raises the error."""
        if self.sent is not None:
            self.underway = 0
            self.sent.sync()

    def prepare_again(self) -> None:
        """Prepare all statements again, after one has failed in the pipeline.

        The server has not prepared those that followed it, though the driver believes so, and would name them for ever.
        """
        self._prepared.clear()

    def end(self, statement: str) -> None:
        """End a transaction of which nothing is to stay; a connection on which that fails is closed."""
        try:
            try:
                self.execute(statement)
            finally:
                self.exit_pipeline()
        except psycopg.Error:  # of a statement before, after which the server has run no other of the pipeline
            self.prepare_again()
            with contextlib.suppress(psycopg.Error):
                self.execute(statement)
        if not self.is_reusable():
            self.close()


def open_connection(conninfo: str) -> Connection:
    """Open a connection. Raises Unavailable, whatever the reason."""
    try:
        connection = Connection.connect(conninfo, autocommit=True, cursor_factory=Cursor, prepare_threshold=2)
        connection.limit_transactions()
    except psycopg.Error as error:
        error.__traceback__ = None  # which keeps an attempt that took too long open until garbage is collected
        raise Unavailable(str(error)) from error
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != ENCODING:
        connection.close()
        advice = f"Make one with createdb --encoding={ENCODING} --template=template0."
        raise Unavailable(f"The database has the encoding {encoding}, which cannot hold every name. {advice}")
    connection.prepared_max = PREPARED
    connection.adapters.register_dumper(int, Int8Dumper)
    connection.adapters.register_loader("date", TextLoader)
    connection.adapters.register_loader("timestamptz", InstantLoader)
    connection.single_cursor = connection.cursor()
    return connection


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """A block whose errors of the driver become ours."""
    try:
        yield
    except psycopg.Error as error:
        raise translate_error(error) from error


def translate_error(error: psycopg.Error) -> Exception:
    """What a driver's error means to callers: another transaction, too slow, out of reach, or the error that it is."""
    if isinstance(error, (errors.SerializationFailure, errors.DeadlockDetected)):
        return TransientConflict(str(error))
    if isinstance(error, errors.LockNotAvailable):
        return Busy(str(error))
    if isinstance(error, (errors.QueryCanceled, errors.TransactionTimeout)):
        return DeadlineExceeded(str(error))
    if isinstance(error, OUT_OF_REACH) and (error.sqlstate or "")[:2] != PROGRAM_LIMIT:
        return Unavailable(str(error))
    return error
