"""A migration that keeps others away from a table says so before it begins, and gives up rather than stop them long."""

import json
import shutil
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import text

from retainer.cli import operate
from retainer.schema import migrations
from retainer.store.engines import Unavailable, connect
from retainer.store.engines.postgresql import SCHEMA_LOCK_SECONDS
from retainer.store.tx import Store
from tests.factories import ApiClient

REVISION = "9001"
MIGRATION = f'''"""A note on every tag."""

from alembic import op

revision = "{REVISION}"
down_revision = "{migrations.head()}"
LOCKS = {{"tags": "rewrites every row"}}


def upgrade() -> None:
    op.execute("ALTER TABLE tags ADD COLUMN note VARCHAR(9)")
'''
SENTENCE = "Migration 9001 (A note on every tag) locks tags (about 3 rows): it rewrites every row. "
LOCKED = """
SELECT DISTINCT relname FROM pg_locks JOIN pg_class ON pg_class.oid = relation
WHERE pid = pg_backend_pid() AND relkind = 'r' AND relname <> 'alembic_version'
    AND relnamespace = 'public'::regnamespace AND mode NOT IN ('AccessShareLock', 'RowShareLock')"""
TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"


@pytest.fixture
def behind(api: ApiClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The address of a database with three tags that lacks the newest migration."""
    for name in ("web", "print", "shop"):
        api.post("/tags", {"name": name})
    with api.app.store.engine.schema_change() as connection:
        connection.execute(text("ANALYZE"))
    folder = tmp_path / "migrations"
    shutil.copytree(migrations.MIGRATIONS, folder)
    (folder / "versions" / f"{REVISION}_note.py").write_text(MIGRATION, encoding="utf-8")
    monkeypatch.setattr(migrations, "MIGRATIONS", folder)
    url = api.app.settings.database
    monkeypatch.setenv("RETAINER_DATABASE_URL", url)
    yield url
    if url.startswith("postgresql"):
        with psycopg.connect(url) as connection:
            connection.execute("ALTER TABLE tags DROP COLUMN IF EXISTS note")
            connection.execute("UPDATE alembic_version SET version_num = %s", [before_it()])


def before_it() -> str:
    return migrations.head()


def test_it_is_said_before_it_begins_and_once(behind, capsys):
    operate.migrate_database(json=True)
    printed = capsys.readouterr()
    assert printed.err.startswith(SENTENCE)
    assert printed.err.strip().removeprefix(SENTENCE).endswith(("meanwhile.", "3 seconds."))
    assert json.loads(printed.out) == {"before": before_it(), "after": REVISION}
    operate.migrate_database(json=True)
    printed = capsys.readouterr()
    assert (printed.err, json.loads(printed.out)) == ("", {"before": REVISION, "after": REVISION})


def test_a_plan_runs_nothing(behind, capsys):
    operate.migrate_database(only_plan=True, json=True)
    lock = {"table": "tags", "why": "rewrites every row", "rows": 3}
    step = {"revision": REVISION, "what": "A note on every tag", "locks": [lock]}
    assert json.loads(capsys.readouterr().out) == {"before": before_it(), "after": REVISION, "migrations": [step]}
    operate.migrate_database(only_plan=True)
    assert "tags (about 3 rows): it rewrites every row" in capsys.readouterr().out
    assert migrations.current(Store(connect(behind))) == before_it()


def test_a_migration_that_waits_for_a_transaction_gives_up_and_can_run_again(behind, postgresql_databases):
    if not behind.startswith("postgresql"):
        pytest.skip("on SQLite a reader keeps nobody away")
    engine = connect(behind)
    with psycopg.connect(behind) as other:
        other.execute("SELECT count(*) FROM tags")
        with pytest.raises(Unavailable, match=f"for {SCHEMA_LOCK_SECONDS} seconds .* Nothing was changed: .* again"):
            migrations.migrate(engine)
    assert migrations.migrate(engine) == (before_it(), REVISION)
    engine.close()


def test_every_migration_declares_what_it_locks(postgresql_databases):
    """From 0014 on; the earlier ones run on SQLite alone."""
    engine = connect(postgresql_databases.create())
    with engine.schema_change() as connection:
        connection.execute(text("CREATE TABLE sqlite_sequence (name TEXT, seq BIGINT)"))
        migrations.upgrade(connection, "0013")
    undeclared = {}
    for migration in migrations.pending(engine, migrations.MIGRATIONS, "0013"):
        with engine.schema_change() as connection:
            before = set(connection.execute(text(TABLES)).scalars())
            migrations.upgrade(connection, migration.revision)
            locked = before & set(connection.execute(text(LOCKED)).scalars())
        if locked != {lock.table for lock in migration.locks}:
            undeclared[migration.revision] = locked
    engine.close()
    assert undeclared == {}, "name in LOCKS of each what it locks, and why"
