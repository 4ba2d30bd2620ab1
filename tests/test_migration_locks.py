"""A migration that keeps others away from a table says so before it begins, and gives up rather than stop them long."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import inspect, text

from retainer.schema import fingerprint, migrations
from retainer.schema.migrations import Lock, Migration
from retainer.store.engines import Engine, connect
from retainer.store.engines.base import Unavailable
from retainer.store.engines.postgresql import SCHEMA_LOCK_SECONDS
from tests.databases import only_postgresql
from tests.factories import ApiClient

BEFORE, REVISION = migrations.head(), "9001"
MIGRATION = f'''"""A note on every tag."""

from alembic import op

revision = "{REVISION}"
down_revision = "{BEFORE}"
LOCKS = {{"tags": "rewrites every row"}}


def upgrade() -> None:
    op.execute("ALTER TABLE tags ADD COLUMN note TEXT")
'''
COLUMN = {"sqlite": "TEXT", "postgresql": "text"}
SENTENCE = "Migration 9001 (A note on every tag) locks tags (about 3 rows): it rewrites every row. "
LOCKED = """
SELECT DISTINCT relname FROM pg_locks JOIN pg_class ON pg_class.oid = relation
WHERE pid = pg_backend_pid() AND relkind = 'r' AND relname <> 'alembic_version'
    AND relnamespace = 'public'::regnamespace AND mode NOT IN ('AccessShareLock', 'RowShareLock')"""
TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"


@pytest.fixture
def behind(api: ApiClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Engine]:
    """A database with three tags that lacks the newest migration."""
    for name in ("web", "print", "shop"):
        api.post("/tags", {"name": name})
    engine = api.app.store.engine
    with engine.schema_change() as connection:
        connection.execute(text("ANALYZE"))
    folder = tmp_path / "migrations"
    shutil.copytree(fingerprint.MIGRATIONS, folder)
    (folder / "versions" / f"{REVISION}_note.py").write_text(MIGRATION, encoding="utf-8")
    for kind in ("sqlite", "postgresql"):
        with (folder / f"known.{kind}.tsv").open("a", encoding="utf-8") as known:
            known.write(f"{REVISION}\t-\ttags\tcolumn note\t{COLUMN[kind]}\n")
    monkeypatch.setattr(fingerprint, "MIGRATIONS", folder)
    yield engine
    with engine.schema_change() as connection:
        connection.execute(text(f"UPDATE alembic_version SET version_num = '{BEFORE}'"))
        if "note" in {column["name"] for column in inspect(connection).get_columns("tags")}:
            connection.execute(text("ALTER TABLE tags DROP COLUMN note"))


def test_a_migration_announces_its_locks_once_before_it_begins(behind):
    said = []
    assert migrations.migrate(behind, said.append) == (BEFORE, REVISION)
    assert said == [SENTENCE + behind.waits_for_schema.format("tags")]
    assert migrations.migrate(behind, said.append) == (REVISION, REVISION)
    assert len(said) == 1


def test_a_plan_runs_nothing(behind):
    lock = Lock("tags", "rewrites every row", 3)
    expected = (BEFORE, [Migration(REVISION, "A note on every tag", [lock])])
    assert migrations.plan(behind) == migrations.plan(behind) == expected


def test_a_plan_of_a_new_database_is_empty(postgresql_databases):
    engine = connect(postgresql_databases.create())
    assert migrations.plan(engine) == (None, [])
    engine.close()


@only_postgresql
def test_a_migration_that_waits_for_a_transaction_gives_up_and_can_run_again(behind, api):
    with psycopg.connect(api.app.settings.database) as other:
        other.execute("SELECT count(*) FROM tags")
        with pytest.raises(Unavailable, match=f"than {SCHEMA_LOCK_SECONDS} seconds. Nothing was changed.*again"):
            migrations.migrate(behind)
    assert migrations.migrate(behind) == (BEFORE, REVISION)


def test_every_migration_declares_what_it_locks(postgresql_databases):
    engine = connect(postgresql_databases.create())
    undeclared = {}
    with engine.schema_change() as connection:
        migrations.upgrade(connection, fingerprint.FIRST)
    for migration in migrations.pending(engine, fingerprint.MIGRATIONS, fingerprint.FIRST):
        with engine.schema_change() as connection:
            before = set(connection.execute(text(TABLES)).scalars())
            migrations.upgrade(connection, migration.revision)
            dropped = before - set(connection.execute(text(TABLES)).scalars())
            locked = dropped | before & set(connection.execute(text(LOCKED)).scalars())
        if locked != {lock.table for lock in migration.locks}:
            undeclared[migration.revision] = locked
    engine.close()
    assert undeclared == {}, "name in LOCKS of each what it locks, and why"
