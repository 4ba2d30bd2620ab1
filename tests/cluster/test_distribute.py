"""`retainer distribute`: every table gets its place, at once or not at all, with its rows and its references."""

import shutil
from contextlib import closing

import psycopg
import pytest
from testing.agencies import open_app
from testing.process import tell
from tools.schemas import known_lines

from retainer.schema import distribution, fingerprint, migrations
from retainer.schema.distribution import DISTRIBUTED, ON_COORDINATOR, ON_EVERY_NODE
from retainer.store.engines import connect
from retainer.store.engines.base import Unavailable
from tests.contract_checker import NoChecks
from tests.databases import open_agencies
from tests.factories import ApiClient

PLACES = """
SELECT logicalrelid::TEXT, CASE WHEN partmethod = 'h' THEN 'by account' WHEN repmodel = 't' THEN 'on every node' END
FROM pg_dist_partition WHERE partmethod = 'h' OR repmodel = 't'
"""
COLOCATIONS = "SELECT count(DISTINCT colocationid) FROM pg_dist_partition WHERE partmethod = 'h'"
REFERENCES = "SELECT conname FROM pg_constraint WHERE contype = 'f' AND connamespace = 'public'::regnamespace"
NEW_TABLE = '''"""Notes on tags."""

import sqlalchemy as sa
from alembic import op

revision = "9001"
down_revision = "{before}"
LOCKS = {{"tags": "adds a column"}}


def upgrade() -> None:
    op.add_column("tags", sa.Column("note", sa.Text()))
    op.create_table(
        "tag_notes",
        sa.Column("id", sa.BigInteger(), autoincrement=True, nullable=False),
        sa.Column("account_id", sa.BigInteger(), nullable=False),
        sa.Column("tag_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("account_id", "id"),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name="of_account"),
        sa.ForeignKeyConstraint(["account_id", "tag_id"], ["tags.account_id", "tags.id"], name="of_tag"),
    )
    op.create_index("tag_notes_by_tag", "tag_notes", ["account_id", "tag_id"])
    op.create_table(
        "note_marks",
        sa.Column("account_id", sa.BigInteger(), nullable=False),
        sa.Column("note_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("account_id", "note_id"),
        sa.ForeignKeyConstraint(
            ["account_id", "note_id"], ["tag_notes.account_id", "tag_notes.id"], name="of_note"
        ),
    )
'''


@pytest.fixture
def empty(cluster):
    """The address of a database of the cluster without tables."""
    url = cluster.create()
    yield url
    cluster.drop(url)


def places(url):
    with psycopg.connect(url) as connection:
        return dict(connection.execute(PLACES).fetchall())


def references(url):
    with psycopg.connect(url) as connection:
        return {name for (name,) in connection.execute(REFERENCES)}


def test_the_command_distributes_an_installation_with_its_rows_and_can_be_run_again(empty, tmp_path):
    agency = open_agencies(empty)["north"]
    before = references(empty)
    app = open_app(empty)
    ApiClient(app, NoChecks(), agency).make("/time-entries")
    app.store.engine.close()
    moved = tell(tmp_path, "distribute", RETAINER_DATABASE_URL=empty)
    counts = {"distributed": len(DISTRIBUTED), "on_every_node": 2, "on_coordinator": len(ON_COORDINATOR)}
    assert moved == {"database": moved["database"], "moved": len(DISTRIBUTED) + 2, **counts}
    assert places(empty) == {
        **dict.fromkeys(map(str, DISTRIBUTED), "by account"),
        **dict.fromkeys(map(str, ON_EVERY_NODE), "on every node"),
    }
    with psycopg.connect(empty) as connection:
        assert connection.execute(COLOCATIONS).fetchone() == (1,), "rows of an account are on one node"
    unchecked = ("idempotency_keys", "requests", "request_hours", "operation_hours", "webhooks")
    assert before - references(empty) == {f"{table}_ref_account_id_key_id" for table in unchecked}
    assert tell(tmp_path, "distribute", RETAINER_DATABASE_URL=empty) == moved | {"moved": 0}
    app = open_app(empty)
    api = ApiClient(app, NoChecks(), agency)
    assert [entry["duration_minutes"] for entry in api.get("/time-entries").data] == [90]
    assert api.make("/time-entries")["id"] == 2
    app.store.engine.close()


def test_a_refusal_of_citus_changes_nothing(empty):
    engine = connect(empty)
    migrations.migrate(engine)
    before = references(empty)
    with psycopg.connect(empty) as connection:
        connection.execute("CREATE TABLE foreign_notes (id INT, account_id BIGINT, tag_id BIGINT)")
        connection.execute("ALTER TABLE tags ADD CONSTRAINT odd UNIQUE (id)")  # it is not unique within an account
    with pytest.raises(Unavailable, match=r"Citus refused, and nothing was changed: .*tags"):
        distribution.distribute(engine)
    engine.close()
    assert places(empty) == {}
    assert references(empty) == before


def test_a_migration_distributes_the_tables_that_it_adds(empty, cluster, monkeypatch, tmp_path):
    cluster.distribute(empty)
    folder = tmp_path / "migrations"
    shutil.copytree(fingerprint.MIGRATIONS, folder)
    text = NEW_TABLE.format(before=migrations.head())
    (folder / "versions" / "9001_notes.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(fingerprint, "MIGRATIONS", folder)
    undistributed = cluster.create()
    with closing(connect(undistributed)) as engine:
        lines = known_lines(engine)
    cluster.drop(undistributed)
    (folder / "known.postgresql.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.setattr(migrations, "DISTRIBUTED", (*DISTRIBUTED, "note_marks", "tag_notes"))
    engine = connect(empty)
    assert migrations.migrate(engine)[1] == "9001"
    engine.close()
    assert places(empty)["tag_notes"] == places(empty)["note_marks"] == "by account"
    assert {"of_account", "of_tag", "of_note"} < references(empty)
    with psycopg.connect(empty) as connection:
        assert connection.execute(COLOCATIONS).fetchone() == (1,)
        assert connection.execute("SELECT note FROM tags").fetchall() == []
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            connection.execute("INSERT INTO tag_notes (account_id, tag_id) VALUES (1, 1)")
