"""PostgreSQL: send statements together, and wait only when the result of one is needed."""

import contextlib
import functools
import itertools
import math
from collections.abc import Iterable, Iterator
from pathlib import Path

import psycopg
from msgspec.json import encode
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.string import TextLoader
from sqlalchemy import Connection as SchemaConnection
from sqlalchemy import Dialect, NullPool, Table, cast, create_engine, func, select
from sqlalchemy import Engine as SchemaEngine
from sqlalchemy.dialects.postgresql import REGCLASS
from sqlalchemy.dialects.postgresql import psycopg as dialects
from sqlalchemy.exc import DBAPIError

from retainer.settings import SettingsError
from retainer.store.engines.base import (
    TRANSACTION_SECONDS,
    CommitTooSlow,
    OutcomeUnknown,
    PartlyUnavailable,
    Row,
    Rows,
    TransientConflict,
    Unavailable,
    Values,
    refused,
)
from retainer.store.engines.citus import HAS_CITUS, LOST_WORKERS
from retainer.store.engines.postgresql_connection import (
    CONFLICTS_NAMED,
    TRANSLATED,
    InstantLoader,
    PostgresqlConnection,
    PostgresqlCursor,
    set_session,
    translate_error,
)
from retainer.store.engines.postgresql_damage import known_damage
from retainer.store.engines.postgresql_pool import STANDBYS, ConnectionPool
from retainer.store.engines.postgresql_writers import AccountWriters

CONNECT_SECONDS = 2  # timeout of connecting to one server; the driver accepts no less
ALIVE = {"keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3"}
"""A commit may wait on a lost connection."""
UNLIMITED = {"TimeZone": "UTC", "statement_timeout": "0", "idle_in_transaction_session_timeout": "0"}
SHARED_SESSIONS = (
    "A pooler between Retainer and PostgreSQL gives transactions of one connection to several sessions. "
    "So it loses time limits and prepared statements. Set pool_mode = session for this database (PgBouncer), or use "
    "the address of PostgreSQL itself: Retainer keeps its own connections open."
)
SCHEMA = 1382378
"""The first key of our advisory lock for changes of the schema."""
HAS_TABLES = "SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = current_schema())"
SCHEMA_LOCK_SECONDS = 3
"""Maximum wait of a change of the schema for a table. Requests for the table queue behind it, so this is less than
their own lock_timeout."""
SCHEMA_LOCKED = (
    "{}: another transaction has used a table that must be changed for more than "
    f"{SCHEMA_LOCK_SECONDS} seconds. Nothing was changed. "
    "End that transaction (see pg_stat_activity) or wait for its end, then run the command again."
)


class Postgresql:
    """A PostgreSQL database. Writes of one account wait for each other; those of different accounts do not."""

    name = "PostgreSQL"
    dialect: Dialect = dialects.PGDialect_psycopg(paramstyle="numeric_dollar")  # type: ignore[no-untyped-call]
    marker = "$"
    returns_ids = True
    has_one_writer = False
    waits_for_schema = "Requests that use {} wait until it ends, and get a 503 after 3 seconds."
    hint = "the address, whether the server runs, and the rights of its user"
    conflict: type[Exception] = psycopg.IntegrityError
    translate_error = staticmethod(translate_error)

    def __init__(self, url: str, *, is_limited: bool = True) -> None:
        self.url = url
        self.seconds = TRANSACTION_SECONDS if is_limited else math.inf
        try:
            parts = conninfo_to_dict(url)
        except psycopg.ProgrammingError as error:
            reason = str(error).strip()
            raise SettingsError(f"The address of the PostgreSQL database cannot be understood: {reason}.") from None
        limited = {**parts, **ALIVE, "connect_timeout": CONNECT_SECONDS}
        if "," in str(parts.get("host", "")):  # of several servers, the one that takes writes
            limited.setdefault("target_session_attrs", "read-write")
        self._address = make_conninfo("", **{name: str(part) for name, part in limited.items()})
        self._pool = pool = ConnectionPool(self._address, is_limited=is_limited)
        self.connection, self.give_back, self.close = pool.lend, pool.give_back, pool.close
        self.writers = AccountWriters(pool)

    @property
    def version(self) -> str:
        row = self.one("SHOW server_version", [])
        return str(row and row[0])

    @property
    def location(self) -> str:
        """The address without the password and options."""
        parts = conninfo_to_dict(self.url)
        user = f"{parts['user']}@" if "user" in parts else ""
        hosts, ports = (str(parts.get(name, "")).split(",") for name in ("host", "port"))
        servers = (":".join(filter(None, each)) for each in itertools.zip_longest(hosts, ports, fillvalue=ports[0]))
        return f"postgresql://{user}{','.join(servers)}/{parts.get('dbname', '')}"

    @functools.cached_property
    def is_cluster(self) -> bool:
        return self.one(HAS_CITUS, []) == (True,)

    @property
    def connections(self) -> tuple[int, int]:
        return len(self._pool.open), len(self._pool.idle)

    def run(self, connection: PostgresqlConnection, text: str, values: Values) -> PostgresqlCursor:
        """Run a statement with the values of $1, $2 and so on; in a transaction it is only sent."""
        return connection.run(text, values)

    def all(self, cursor: PostgresqlCursor) -> list[Row]:
        return cursor.fetchall()

    def first(self, cursor: PostgresqlCursor) -> Row | None:
        return cursor.fetchone()

    def rows_returned(self, cursor: PostgresqlCursor) -> Rows:
        return cursor.fetchall

    def limit(self, connection: PostgresqlConnection, deadline: float) -> None:
        """Lift the time limit of the session for a transaction without a deadline."""
        if deadline == math.inf and connection.sent is not None and connection.limits_transactions:
            connection.send("SET LOCAL transaction_timeout = 0", [])

    def insert_rows(self, connection: PostgresqlConnection, table: Table, rows: list[Row]) -> None:
        names = [column.name for column in table.c]
        objects = encode([dict(zip(names, row, strict=True)) for row in rows]).decode()
        source = f"json_populate_recordset(NULL::{table.name}, CAST($1 AS JSON))"
        insertion = f"INSERT INTO {table.name} ({', '.join(names)}) SELECT {', '.join(names)} FROM {source}"
        self.run(connection, insertion, [objects])

    def one(self, text: str, values: Values) -> Row | None:
        """Return the first row of a statement outside any transaction; retry once if the connection was lost."""
        for is_last in (False, True):
            connection = self.connection()
            try:
                with TRANSLATED:
                    return self.run(connection, text, values).fetchone()
            except Unavailable:
                if is_last or not connection.closed or connection.has_timed_out:
                    raise
            finally:
                self.give_back(connection)
        return None

    def begin_write(self, account_id: int | None, *, is_patient: bool = True) -> PostgresqlConnection:
        self._pool.check_commits()
        return self.writers.begin_any() if account_id is None else self.writers.begin(account_id, is_patient=is_patient)

    def end_write(self, connection: PostgresqlConnection, *, commit: bool) -> None:
        account_id, connection.account_id = connection.account_id, None
        try:
            self._end_write(connection, commit=commit)
        finally:
            if account_id is not None:
                self.writers.hand_on(account_id)

    def _end_write(self, connection: PostgresqlConnection, *, commit: bool) -> None:
        try:
            if not commit:
                connection.end("ROLLBACK")
                return
            connection.commits = True
            cursor = connection.execute("COMMIT")
            connection.exit_pipeline()
            if cursor.statusmessage != "COMMIT":
                raise Unavailable(f"The transaction was not committed: PostgreSQL answered {cursor.statusmessage}.")
        except psycopg.Error as error:
            if connection.unconfirmed is not None:
                raise CommitTooSlow(f"A commit waits. {STANDBYS}") from error
            failure = translate_error(error)
            is_unknown = type(failure) in {Unavailable, PartlyUnavailable}
            raise OutcomeUnknown(str(error)) if is_unknown else failure from error
        finally:
            connection.commits = False
            self.give_back(connection)

    def begin_snapshot(self, connection: PostgresqlConnection) -> None:
        connection.begin("REPEATABLE READ READ ONLY")

    def end_snapshot(self, connection: PostgresqlConnection) -> None:
        connection.end("COMMIT")  # after a ROLLBACK the driver forgets its prepared statements
        self.give_back(connection)

    @contextlib.contextmanager
    def savepoint(self, connection: PostgresqlConnection, *, may_repeat: bool) -> Iterator[None]:
        """Roll back the statements of a block if one of them raises `conflict`; the transaction goes on.

        The block must wait for the result of its last statement. The savepoint stays until the next one or the end of
        the transaction, which saves a statement. With `may_repeat` there is none: hardly any write conflicts.
        """
        if may_repeat:
            try:
                with CONFLICTS_NAMED:
                    yield
            except self.conflict as error:
                raise TransientConflict(str(error)) from error
            return
        if connection.has_savepoint:
            connection.send("RELEASE checked", [])
        connection.send("SAVEPOINT checked", [])
        connection.has_savepoint = True
        try:
            with CONFLICTS_NAMED:
                yield
        except self.conflict:
            with contextlib.suppress(psycopg.Error):  # of the statements that followed
                connection.sync()
            connection.forget_prepared()
            connection.send("ROLLBACK TO checked", [])
            raise

    def count_changed(self, connection: PostgresqlConnection, cursor: PostgresqlCursor) -> int:
        connection.sync()
        return int(cursor.rowcount)

    def new_id(self, cursor: PostgresqlCursor) -> int:
        ((row_id,),) = cursor.fetchall()
        return int(row_id)

    @contextlib.contextmanager
    def schema_change(self) -> Iterator[SchemaConnection]:
        """Begin a transaction that changes tables; one process at a time may do so, on any machine."""
        with TRANSLATED, self._unlimited() as (_, engine):
            try:
                with engine.begin() as connection:  # the first connection rolls back, so not earlier
                    connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%s::INTEGER, 0)", (SCHEMA,))
                    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{SCHEMA_LOCK_SECONDS}s'")
                    yield connection
            except DBAPIError as error:
                if isinstance(error.orig, errors.LockNotAvailable):
                    raise Unavailable(SCHEMA_LOCKED.format(self.location)) from None
                raise refused(translate_error(error.orig or error)) from error

    @contextlib.contextmanager
    def read_snapshot(self) -> Iterator[SchemaConnection]:
        with TRANSLATED, self._unlimited() as (driver, engine):
            driver.isolation_level, driver.read_only = psycopg.IsolationLevel.REPEATABLE_READ, True
            with engine.begin() as connection:
                yield connection

    @contextlib.contextmanager
    def _unlimited(self) -> Iterator[tuple[psycopg.Connection[Row], SchemaEngine]]:
        """Lend a new connection without time limits, which returns days and moments as text, and its engine."""
        with psycopg.connect(self._address) as driver:
            set_session(driver, UNLIMITED)
            driver.commit()
            driver.adapters.register_loader("date", TextLoader)
            driver.adapters.register_loader("timestamptz", InstantLoader)
            yield driver, create_engine("postgresql+psycopg://", creator=lambda: driver, poolclass=NullPool)

    def lock_table(self, connection: SchemaConnection, table: Table) -> None:
        connection.exec_driver_sql(f"LOCK TABLE {table.name} IN ACCESS EXCLUSIVE MODE")

    def last_id(self, connection: SchemaConnection, table: Table) -> int:
        sequence = cast(func.pg_get_serial_sequence(table.name, "id"), REGCLASS)
        last, highest = func.pg_sequence_last_value(sequence), select(func.max(table.c.id)).scalar_subquery()
        return int(connection.execute(select(func.coalesce(func.greatest(last, highest), 0))).scalar_one())

    def set_sequence(self, connection: SchemaConnection, table: Table, last_id: int) -> None:
        if last_id:
            connection.execute(select(func.setval(func.pg_get_serial_sequence(table.name, "id"), last_id)))

    def vacuum(self, tables: Iterable[Table]) -> None:
        """Update the statistics of tables and the maps of their visible rows, which the server would do only later.

        Without the maps, reports read the rows of all invoices instead of an index. Raises Unavailable.
        """
        with TRANSLATED, self._unlimited() as (driver, _):
            driver.autocommit = True
            driver.execute(f"VACUUM ANALYZE {', '.join(table.name for table in tables)}".encode())

    def size(self) -> int:
        row = self.one("SELECT pg_database_size(current_database())", [])
        return int(row[0]) if row else 0

    def check(self) -> None:
        """Read the database, and ask each worker of a cluster for an answer."""
        self.has_table("alembic_version")
        row = self.one(LOST_WORKERS, []) if self.is_cluster else None
        if row and row[0]:
            raise PartlyUnavailable(f"no connection to {row[0]}")

    def check_sessions(self) -> None:
        """Raise SettingsError if a pooler gives the transactions of a connection to several sessions.

        While another connection has a transaction, the first one gets another session than before, or the other has
        just got that one.
        """
        session = "SELECT pg_backend_pid()"
        first, other = self.connection(), self.connection()
        try:
            with TRANSLATED:
                before = self.run(first, session, []).fetchone()
                other.begin("READ COMMITTED READ ONLY")
                borrowed = self.run(other, session, []).fetchone()
                after = self.run(first, session, []).fetchone()
            if before in {borrowed, None} or after != before:
                raise SettingsError(SHARED_SESSIONS)
        finally:
            other.end("ROLLBACK")
            self.give_back(other)
            self.give_back(first)

    def has_table(self, name: str) -> bool:
        row = self.one("SELECT to_regclass($1) IS NOT NULL", [name])
        return bool(row and row[0])

    def exists(self) -> bool:
        row = self.one(HAS_TABLES, [])
        return bool(row and row[0])

    def create_storage(self) -> None: ...

    def serve_alone(self) -> contextlib.AbstractContextManager[bool]:
        return contextlib.nullcontext(enter_result=True)

    def damage(self, *, thorough: bool) -> list[str]:
        with TRANSLATED, self._unlimited() as (driver, _):
            return known_damage(driver, thorough=thorough)

    def world_readable(self) -> list[Path]:
        return []

    def has_room(self) -> bool:
        return True

    def estimate_rows(self, name: str) -> int:
        row = self.one("SELECT greatest(reltuples, 0)::BIGINT FROM pg_class WHERE oid = to_regclass($1)", [name])
        return int(row[0]) if row else 0
