"""The migrations lead to the tables that a new database is created with."""

from pathlib import Path
from typing import Any

import psycopg
import pytest
import time_machine
from sqlalchemy import Connection, select, text
from tools.schemas import known_lines

from retainer.schema import fingerprint, metadata, migrations
from retainer.schema.identity import users
from retainer.store.engines import Engine, Sqlite, connect
from retainer.store.engines.base import Unavailable
from retainer.store.tx import Store
from tests.databases import PostgresqlDatabases, SqliteDatabases

COLUMNS = """
SELECT table_name, column_name, data_type, collation_name, is_nullable, column_default
FROM information_schema.columns WHERE table_schema = 'public'"""
CONSTRAINTS = """
SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid <> 0"""
INDEXES = "SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'public'"


def migrated(engine: Engine) -> Engine:
    """A database that all migrations have run on, one after another."""
    engine.create_storage()
    with engine.schema_change() as connection:
        migrations.upgrade(connection, migrations.head())
    return engine


def created(engine: Engine) -> Engine:
    """A database that was created from the tables."""
    migrations.migrate(engine)
    return engine


def statements(connection: Connection) -> dict[str, list[str]]:
    """What the statement of each table and index of SQLite says, in no order: columns are also added at the end."""
    rows = connection.execute(text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")).all()
    return {name: sorted(parts_of(sql)) for name, sql in rows}


def parts_of(sql: str) -> list[str]:
    """A CREATE statement, cut at the commas between its columns and constraints."""
    head, _, rest = " ".join(sql.split()).replace('"', "").partition("(")
    body, _, tail = rest.rpartition(")")
    parts, depth = [""], 0
    for letter in body:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [head.strip(), tail.strip(), *(part.strip() for part in parts)]


def test_migrations_lead_to_the_tables_on_sqlite(tmp_path: Path):
    found = []
    for engine in (migrated(Sqlite(tmp_path / "migrated.db")), created(Sqlite(tmp_path / "created.db"))):
        with engine.read_snapshot() as connection:
            found.append(statements(connection))
    assert found[0] == found[1]
    assert len(found[0]) > len(metadata.tables)


def test_migrations_lead_to_the_tables_on_postgresql(postgresql_databases: PostgresqlDatabases):
    def described(url: str) -> list[set[tuple[Any, ...]]]:
        with psycopg.connect(url) as connection:
            return [set(connection.execute(statement).fetchall()) for statement in (COLUMNS, CONSTRAINTS, INDEXES)]

    url = postgresql_databases.create()
    migrated(connect(url)).close()
    found, expected = described(url), described(postgresql_databases.prototype)
    assert found == expected
    assert all(found)


def test_the_parts_of_each_revision_are_written_down(tmp_path: Path, postgresql_databases: PostgresqlDatabases):
    for url in (f"sqlite:///{tmp_path / 'now.db'}", postgresql_databases.create()):
        engine = connect(url)
        written = fingerprint.known_file(engine.dialect.name).read_text(encoding="utf-8")
        assert known_lines(engine) == written.splitlines(), "make schemas writes them anew"
        engine.close()


@pytest.mark.parametrize(
    ("revision", "advice"), [("0017", "from before the first release"), ("9001", "run the newer version")]
)
def test_a_database_of_another_version_is_left_alone(revision: str, advice: str, tmp_path: Path):
    engine = created(Sqlite(tmp_path / "retainer.db"))
    connection = engine.connection()
    connection.execute("UPDATE alembic_version SET version_num = ?", [revision])
    engine.give_back(connection)
    with pytest.raises(Unavailable, match=f"revision {revision}, .*{advice}"):
        migrations.migrate(engine)
    with pytest.raises(Unavailable, match=f"revision {revision}, .*{advice}"):
        migrations.plan(engine)
    assert migrations.current(Store(engine)) == revision


def test_the_agencies_of_tests_are_opened_today_whenever_tests_travel(fast_path: Path):
    with time_machine.travel("2001-02-03T04:05:06Z"):
        agencies = SqliteDatabases(fast_path)
        app = agencies.open(agencies.prototype)
        with app.store.unscoped() as tx:
            created = {moment for (moment,) in tx.all(select(users.c.created_at))}
        agencies.close()
    assert min(created) > "2026"
