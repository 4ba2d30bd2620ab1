"""A connection to PostgreSQL, with a timeout for replies, our types of values and our errors."""

import contextlib
import logging
import os
import re
import socket
from collections.abc import Mapping
from typing import Any, cast

import psycopg
from psycopg import errors
from psycopg.abc import RV, Buffer, PQGen
from psycopg.adapt import Loader
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import TextLoader

from retainer.store.engines.base import (
    OPERATOR_WAIT_SECONDS,
    TRANSACTION_SECONDS,
    Busy,
    DeadlineExceeded,
    DiskFull,
    PartlyUnavailable,
    Row,
    TransientConflict,
    Unavailable,
    Values,
)

logging.getLogger("psycopg").addHandler(logging.NullHandler())  # its warnings are raised as our errors too
OUT_OF_REACH = (
    *(psycopg.OperationalError, psycopg.InterfaceError),
    *(errors.ReadOnlySqlTransaction, errors.InsufficientPrivilege),
)
"""Errors with a cause outside of the statement: the network, a standby, missing rights."""
PROGRAM_LIMIT = "54"
"""The SQLSTATE class of exceeded limits, like a value too large for an index: a retry fails again."""
OF_REFERENCE = re.compile(r"_ref_account_id_\w{1,63}_[0-9]{1,20}\W")
"""In the name of a reference between tables of an account, and that of a shard behind it."""
ENCODING = "UTF8"
REPLY_SECONDS = 4  # timeout of a reply of the server; then the connection is closed
MAX_PREPARED = 128
"""Statements that a connection keeps prepared; the driver keeps their texts, the server their plans."""
MAX_UNDERWAY = 100  # statements of a transaction that are sent without waiting for a result
SESSION = {
    "TimeZone": "UTC",
    "standard_conforming_strings": "on",  # as constants are quoted
    "statement_timeout": "3500",
    "lock_timeout": "3250",  # less than the statement's, so that a wait for a lock is not an outage
    "idle_in_transaction_session_timeout": "15000",
    "max_parallel_workers_per_gather": "0",  # starting a worker takes longer than our statements
    "jit": "off",  # compiling a statement takes longer than running ours
}
"""Settings of each session. They are sent after connecting, because poolers refuse them as startup parameters."""
TRANSACTION_TIMEOUT = {"transaction_timeout": f"{TRANSACTION_SECONDS + REPLY_SECONDS}s"}
"""From PostgreSQL 17 on, roll back a transaction whose COMMIT waits so long behind slow statements that its client has
been answered. Our own deadline usually stops transactions long before, between statements."""

UNHURRIED = {
    "statement_timeout": "0",
    "lock_timeout": f"{OPERATOR_WAIT_SECONDS}s",
    "idle_in_transaction_session_timeout": "0",
}
"""The limits of commands: no client waits for them, and a large account takes long."""


class ErrorTranslation:
    """Raises our errors for errors of the driver in a block; quicker than a generator."""

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, psycopg.Error):
            raise translate_error(error) from error


TRANSLATED = ErrorTranslation()


class ConflictsNamed:
    """Raises a broken reference as such where a cluster reports it as an internal error.

    Citus does so in an INSERT ... SELECT. It names the constraint of the shard, in the language of any server.
    """

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, errors.InternalError_) and OF_REFERENCE.search(str(error)):
            raise errors.ForeignKeyViolation(str(error)) from error


CONFLICTS_NAMED = ConflictsNamed()


class InstantLoader(Loader):
    """Loader of a moment as text, RFC 3339 with microseconds and `Z`."""

    def load(self, data: Buffer) -> str:
        """`2026-03-10 09:00:00.12+00` becomes `2026-03-10T09:00:00.120000Z`."""
        text = bytes(data).decode()
        return f"{text[:10]}T{text[11:19]}.{text[20:-3]:0<6}Z"


class PostgresqlCursor(psycopg.RawCursor[Row]):
    """A cursor whose results may not have arrived."""


class PostgresqlConnection(psycopg.Connection[Row]):
    """A connection whose statements are single transactions, until a pipeline is entered for one of several."""

    is_limited = True
    account_id: int | None = None
    """The account whose turn to write the transaction has."""
    has_timed_out = False
    commits = False
    unconfirmed: socket.socket | None = None
    """After a commit without a reply in time: what remains of the connection, for the server goes on waiting."""
    sent: psycopg.Pipeline | None = None
    """The pipeline of the transaction that has begun: statements sent without waiting for their results."""
    has_savepoint = False
    underway = 0  # number of statements sent in the pipeline since the last wait
    single_cursor: PostgresqlCursor  # the cursor of statements whose results are not kept; it knows our types
    block: contextlib.ExitStack

    def begin(self, mode: str) -> None:
        """Begin a transaction, whose statements are only sent until a result is read."""
        self.block = contextlib.ExitStack()
        self.sent = self.block.enter_context(self.pipeline())
        self.send(f"BEGIN ISOLATION LEVEL {mode}", [])

    def run(self, statement: str, values: Values) -> PostgresqlCursor:
        """Run a statement; outside a transaction with one cursor for all, as a new one takes a quarter of its time."""
        if self.sent is None:
            return self.single_cursor.execute(statement, values)
        self.underway += 1
        if self.underway > MAX_UNDERWAY:
            self.sync()
        return cast("PostgresqlCursor", self.cursor()).execute(statement, values)

    def send(self, statement: str, values: Values) -> None:
        """Run a statement whose result is not read. In a transaction it is only sent, and errors come later."""
        self.single_cursor.execute(statement, values)

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:  # noqa: ARG002
        """Wait for a reply. On a timeout, close the connection and raise OperationalError."""
        try:
            return super().wait(gen, interval, REPLY_SECONDS if self.is_limited else None)
        except errors._WaitTimeout as error:  # noqa: SLF001  # documented under this name
            self.has_timed_out = True
            if self.commits:
                self.unconfirmed = socket.socket(fileno=os.dup(self.fileno()))
            self.close()
            raise psycopg.OperationalError(f"PostgreSQL has not answered for {REPLY_SECONDS} seconds.") from error

    @property
    def limits_transactions(self) -> bool:
        return self.info.server_version >= 170000

    def is_reusable(self) -> bool:
        return self.info.transaction_status == TransactionStatus.IDLE and self.sent is None

    def exit_pipeline(self) -> None:
        """Wait for all statements that were sent. Raises the first error."""
        self.sent, self.has_savepoint = None, False
        self.block.close()

    def sync(self) -> None:
        """Wait for all statements in the pipeline, which accepts statements again after an error. Raises it."""
        if self.sent is not None:
            self.underway = 0
            self.sent.sync()

    def forget_prepared(self) -> None:
        """Forget what is prepared, after an error in the pipeline: the server has not prepared what followed."""
        self._prepared.clear()

    def end(self, statement: str) -> None:
        """End a transaction that has changed nothing or is rolled back; close the connection if that fails."""
        try:
            try:
                self.execute(statement)
            finally:
                self.exit_pipeline()
        except psycopg.Error:  # of an earlier statement: the server has skipped the rest of the pipeline
            self.forget_prepared()
            with contextlib.suppress(psycopg.Error):
                self.execute(statement)
        if not self.is_reusable():
            self.close()


def open_connection(conninfo: str, *, is_limited: bool) -> PostgresqlConnection:
    """Open a connection, with the time limits of requests or without. Raises Unavailable for all errors."""
    try:
        connection = PostgresqlConnection.connect(
            conninfo, autocommit=True, cursor_factory=PostgresqlCursor, prepare_threshold=2
        )
        connection.is_limited = is_limited
        limits = TRANSACTION_TIMEOUT if connection.limits_transactions else {}
        set_session(connection, SESSION | (limits if is_limited else UNHURRIED))
    except psycopg.Error as error:
        error.__traceback__ = None  # which would keep a connection that timed out open until garbage collection
        raise Unavailable(str(error)) from error
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != ENCODING:
        connection.close()
        advice = f"Create one with createdb --encoding={ENCODING} --template=template0."
        raise Unavailable(f"The database has the encoding {encoding}, which cannot hold every name. {advice}")
    connection.prepared_max = MAX_PREPARED
    connection.adapters.register_dumper(int, Int8Dumper)
    connection.adapters.register_loader("date", TextLoader)
    connection.adapters.register_loader("timestamptz", InstantLoader)
    connection.single_cursor = cast("PostgresqlCursor", connection.cursor())
    return connection


def set_session(connection: psycopg.Connection[Any], settings: Mapping[str, str]) -> None:
    """Set settings of a session. On psycopg.Error, close the connection and raise it."""
    calls = ", ".join(f"set_config('{name}', '{value}', false)" for name, value in settings.items())
    try:
        connection.execute(f"SELECT {calls}".encode())
    except psycopg.Error:
        connection.close()
        raise


def translate_error(error: BaseException) -> BaseException:
    """Return our error for an error of the driver; the error itself if a statement is wrong."""
    if isinstance(error, (errors.SerializationFailure, errors.DeadlockDetected)):
        return TransientConflict(str(error))
    if isinstance(error, errors.LockNotAvailable):
        return Busy(str(error))
    if isinstance(error, errors.DiskFull):
        return DiskFull(str(error))
    if isinstance(error, (errors.QueryCanceled, errors.TransactionTimeout)):
        return DeadlineExceeded(str(error))
    if isinstance(error, errors.ConnectionFailure):  # from a server to its nodes: that of our own has no SQLSTATE
        return PartlyUnavailable(str(error))
    if isinstance(error, OUT_OF_REACH) and (error.sqlstate or "")[:2] != PROGRAM_LIMIT:
        return Unavailable(str(error))
    return error
