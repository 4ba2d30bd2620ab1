"""A database that is not what its revision says is refused by all commands and servers, with what is different."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, text
from testing.process import command, running, until

from retainer.cli import unavailable
from retainer.schema import fingerprint, migrations
from retainer.schema.fingerprint import UnknownSchema
from retainer.store.engines import Engine, Sqlite, connect
from retainer.store.engines.base import Unavailable, WrongStatement
from retainer.store.engines.catalogue import of_engine
from tests.databases import PostgresqlDatabases
from tests.length import sampled


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """A new database of this version."""
    if request.param == "sqlite":
        made: Engine = Sqlite(tmp_path / "data" / "retainer.db")
    else:
        made = connect(request.getfixturevalue("postgresql_databases").create())
    migrations.migrate(made)
    yield made
    made.close()


def change(engine: Engine, *statements: str) -> None:
    with engine.schema_change() as connection:
        for statement in statements:
            connection.execute(text(statement))


CHANGES = {
    "ALTER TABLE clients RENAME COLUMN number_folded TO number_plain": [
        "table clients lacks the column number_folded",
        "table clients has the unknown column number_plain",
    ],
    "DROP INDEX invoices_unsettled": ["index invoices_unsettled is missing"],
    "CREATE INDEX mine ON clients (name)": ["table clients has the unknown index mine"],
    "ALTER TABLE tags ADD COLUMN note TEXT": ["table tags has the unknown column note"],
    "DROP TABLE timers": ["table timers is missing"],
    "CREATE TABLE other (id INTEGER)": ["table other is unknown"],
    "UPDATE alembic_version SET version_num = '0012'": ["revision 0012, from before the first release"],
    "UPDATE alembic_version SET version_num = '9000'": ["revision 9000, newer than", "run the newer version"],
    "UPDATE alembic_version SET version_num = '0018x'": ["revision 0018x, which this version does not know"],
    "DELETE FROM alembic_version": ["has lost its revision", f"write {migrations.head()} into that table"],
    "DROP TABLE alembic_version": ["has lost its revision", f"write {migrations.head()} into that table"],
}


@pytest.mark.parametrize(("statement", "words"), CHANGES.items())
def test_a_database_that_is_not_what_it_says_is_refused_in_words(engine: Engine, statement: str, words: list[str]):
    assert fingerprint.revision(engine) == migrations.head()
    change(engine, statement)
    for look in (fingerprint.revision, migrations.migrate, migrations.plan):
        with pytest.raises(UnknownSchema) as refusal:
            look(engine)
        assert all(each in str(refusal.value) for each in words), refusal.value
        assert engine.location in str(refusal.value)
        assert "\n" not in str(refusal.value)


def test_a_part_that_differs_is_named_with_both_forms(engine: Engine):
    change(
        engine,
        "DROP INDEX invoices_unsettled",
        "CREATE UNIQUE INDEX invoices_unsettled ON invoices (account_id, id) WHERE total > 0",
    )
    with pytest.raises(
        UnknownSchema, match=r"index invoices_unsettled of table invoices is unique \(account_id, id\) WHERE"
    ):
        fingerprint.revision(engine)


def test_the_order_of_columns_is_no_difference(engine: Engine):
    former = of_engine(engine).parts
    change(engine, "ALTER TABLE tickets DROP COLUMN reopened_count")
    kind = {"sqlite": "INTEGER", "postgresql": "BIGINT"}[engine.dialect.name]
    change(engine, f"ALTER TABLE tickets ADD COLUMN reopened_count {kind} NOT NULL DEFAULT 0")
    (difference,) = fingerprint.differences(of_engine(engine), former)
    assert difference.startswith("column reopened_count of table tickets is")
    assert "default 0" in difference


def test_a_database_without_tables_has_no_revision(tmp_path: Path, postgresql_databases: PostgresqlDatabases):
    (tmp_path / "new.db").touch()
    for url in (f"sqlite:///{tmp_path / 'new.db'}", postgresql_databases.create()):
        engine = connect(url)
        assert fingerprint.revision(engine) is None
        engine.close()


def test_tables_of_another_program_stay_as_they_are(tmp_path: Path, postgresql_databases: PostgresqlDatabases):
    (tmp_path / "new.db").touch()
    for url in (f"sqlite:///{tmp_path / 'new.db'}", postgresql_databases.create()):
        engine = connect(url)
        change(engine, "CREATE TABLE users (name TEXT)")
        with pytest.raises(UnknownSchema, match=r"has tables of another program: users\. Name a database of Retainer"):
            migrations.migrate(engine)
        assert of_engine(engine).tables == {"users"}
        engine.close()


def test_a_migration_that_leads_elsewhere_changes_nothing(engine: Engine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(migrations, "upgrade", _elsewhere)
    monkeypatch.setattr(fingerprint, "revisions", lambda: [*REVISIONS, "9001"])
    with pytest.raises(UnknownSchema, match="table tags has the unknown column note"):
        migrations.migrate(engine)
    monkeypatch.undo()
    assert fingerprint.revision(engine) == migrations.head()


REVISIONS = fingerprint.revisions()


def _elsewhere(connection: Connection, _: str) -> None:
    connection.execute(text("ALTER TABLE tags ADD COLUMN note TEXT"))


def test_what_the_database_refuses_in_a_migration_is_one_sentence(engine: Engine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(migrations, "upgrade", _wrongly)
    monkeypatch.setattr(fingerprint, "revisions", lambda: [*REVISIONS, "9001"])
    with pytest.raises(WrongStatement) as refusal:
        migrations.migrate(engine)
    line = unavailable(refusal.value, engine)
    assert "no_such_table" in line
    assert line.startswith(f"The database {engine.location} refused a statement: ")
    assert line.endswith(" Nothing was changed: run retainer doctor, and report this as a defect.")
    monkeypatch.undo()
    assert fingerprint.revision(engine) == migrations.head()


def _wrongly(connection: Connection, _: str) -> None:
    connection.execute(text("ALTER TABLE tags ADD COLUMN note TEXT"))
    connection.execute(text("DELETE FROM no_such_table"))


def test_a_connection_that_is_lost_in_a_migration_is_one_sentence(
    postgresql_databases: PostgresqlDatabases, monkeypatch: pytest.MonkeyPatch
):
    engine = connect(postgresql_databases.create())
    migrations.migrate(engine)
    monkeypatch.setattr(migrations, "upgrade", _cut)
    monkeypatch.setattr(fingerprint, "revisions", lambda: [*REVISIONS, "9001"])
    with pytest.raises(Unavailable) as refusal:
        migrations.migrate(engine)
    line = unavailable(refusal.value, engine)
    assert line.startswith(f"The database {engine.location} cannot be used: ")
    assert line.endswith("Nothing was changed: check " + engine.hint + ", then run the command again.")
    assert "\n" not in line
    monkeypatch.undo()
    assert fingerprint.revision(engine) == migrations.head()
    engine.close()


def _cut(connection: Connection, _: str) -> None:
    connection.execute(text("ALTER TABLE tags ADD COLUMN note TEXT"))
    connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))


COMMANDS = [
    ("migrate",), ("migrate", "--plan"), ("serve", "--port", "1"), ("account", "list"),
    ("monitor", "--once"),
    ("copy", "--to", "sqlite:///copied.db"), ("restore", "--check", "made.db.gz"),
]  # fmt: skip


def test_every_command_refuses_an_unknown_schema_in_one_sentence(tmp_path: Path):
    engine = Sqlite(tmp_path / "data" / "retainer.db")
    migrations.migrate(engine)
    change(engine, "DROP TABLE timers")
    engine.close()
    assert command(tmp_path, "backup", "made.db.gz").status == 0
    for arguments in sampled(COMMANDS, 4):
        result = command(tmp_path, *arguments)
        assert (result.status, result.out) == (1, ""), arguments
        (line,) = result.err.splitlines()
        assert "table timers is missing. Nothing was changed: undo what" in line, arguments
    assert not (tmp_path / "copied.db").exists()


def test_a_database_without_its_revision_can_be_saved_but_not_restored(tmp_path: Path):
    engine = Sqlite(tmp_path / "data" / "retainer.db")
    migrations.migrate(engine)
    change(engine, "DELETE FROM alembic_version")
    engine.close()
    assert json.loads(command(tmp_path, "backup", "made.db.gz", "--json").out)["schema"] == "unknown"
    refused = command(tmp_path, "restore", "--check", "made.db.gz")
    assert (refused.status, refused.out) == (1, "")
    assert "made.db.gz has lost its revision" in refused.err


def test_a_server_whose_tables_change_is_not_ready(tmp_path: Path):
    def found() -> tuple[int, str]:
        with server.client() as client:
            answer = client.send("GET", "/readyz")
        return answer.status, answer.json["migrations"]

    with running(tmp_path, "--no-monitor") as server:
        until(lambda: found() == (200, "ok"), "the server is ready")
        engine = Sqlite(tmp_path / "data" / "retainer.db")
        change(engine, "DROP INDEX invoices_unsettled")
        until(lambda: found() == (503, "unknown"), "the server says that its tables are unknown")
        change(engine, MADE_AGAIN)
        until(lambda: found() == (200, "ok"), "the server is ready again")
        engine.close()


MADE_AGAIN = (
    "CREATE INDEX invoices_unsettled ON invoices (account_id, id, total, amount_paid, amount_credited) "
    "WHERE amount_paid + amount_credited != total"
)
