"""An upgrade happens as a whole or not at all, and the way back leads to what was there before."""

import contextlib
import gzip
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine as SchemaEngine
from sqlalchemy import event
from testing.process import command, contents, tell

from retainer.schema import fingerprint
from retainer.schema.migrations import migrate
from retainer.store.engines import connect
from tests.length import only_full
from tests.skips import require
from tests.upgrades.former import FORMER, Former, each_engine, each_former, write_sqlite

KILLED = """
import itertools, os, sys
from sqlalchemy import Engine, event
from retainer.schema.migrations import migrate
from retainer.store.engines import connect
numbers = itertools.count(1)
def strike(*_):
    if next(numbers) == int(sys.argv[2]):
        os.kill(os.getpid(), 9)
event.listen(Engine, "before_cursor_execute", strike)
event.listen(Engine, "commit", strike)
migrate(connect(sys.argv[1]))
"""
"""An upgrade that is killed before a statement, or before the commit."""
MOMENTS = 4
oldest = pytest.mark.parametrize("former", FORMER[:1], ids=str)
"""The former database whose upgrade takes longest."""


def steps_of(url: str) -> int:
    """Upgrade a database; return how many statements and commits this took."""
    numbers = itertools.count(1)

    def note(*_: Any) -> None:
        next(numbers)

    names = ("before_cursor_execute", "commit")
    for name in names:
        event.listen(SchemaEngine, name, note)
    try:
        with contextlib.closing(connect(url)) as engine:
            migrate(engine)
            assert fingerprint.revision(engine) == fingerprint.head()
    finally:
        for name in names:
            event.remove(SchemaEngine, name, note)
    return next(numbers) - 1


@only_full
@oldest
@each_engine
def test_an_upgrade_that_is_killed_has_changed_nothing(former: Former, kind: str, url: str, request: Any):
    twin = copied(url, kind, request)
    steps = steps_of(twin)
    assert steps > 50
    for moment in [1, *(steps * part // MOMENTS for part in range(1, MOMENTS)), steps]:
        done = subprocess.run([sys.executable, "-c", KILLED, url, str(moment)], check=False, timeout=120)
        assert done.returncode == -9, moment
        with contextlib.closing(connect(url)) as engine:
            assert fingerprint.revision(engine) == former.revision, moment
    assert steps_of(url) == steps


def copied(url: str, kind: str, request: Any) -> str:
    if kind == "postgresql":
        return str(request.getfixturevalue("postgresql_databases").copy(url))
    file = Path(url.removeprefix("sqlite:///"))
    return f"sqlite:///{shutil.copy(file, file.with_name('twin.db'))}"


@pytest.fixture
def small_disk(former: Former, tmp_path: Path) -> Iterator[Path]:
    """A folder with a former database, on a disk that has room for a tenth more."""
    disk = tmp_path / "disk"
    disk.mkdir()
    size = write_sqlite(former, tmp_path / "made.db").stat().st_size
    options = f"size={size * 11 // 10}"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", disk], check=False, capture_output=True)
    require("root", mounted.returncode == 0, "Mounts take root.")
    try:
        write_sqlite(former, disk / "data" / "retainer.db")
        yield disk
    finally:
        subprocess.run(["umount", disk], check=True)


@oldest
def test_a_full_disk_ends_an_upgrade_with_what_it_needs(former: Former, small_disk: Path):
    file = small_disk / "data" / "retainer.db"
    size = file.stat().st_size
    for arguments in (("migrate",), ("serve", "--port", "1")):
        result = command(small_disk, *arguments)
        assert (result.status, result.out) == (1, ""), arguments
        *told, last = result.err.splitlines()
        assert all('"warning"' in line or " locks " in line for line in told), told
        needed = f"The work needs up to {-(-size * 2 // 1_000_000)} MB. Nothing was changed: free space"
        assert f"The disk of {file} is full. {needed}" in last
        with contextlib.closing(connect(f"sqlite:///{file}")) as engine:
            assert fingerprint.revision(engine) == former.revision
    subprocess.run(["mount", "-o", f"remount,size={size * 4}", small_disk], check=True)
    assert tell_upgraded(small_disk)


def tell_upgraded(folder: Path) -> bool:
    result = command(folder, "migrate", "--json")
    assert result.status == 0, result
    return bool(result.json["after"] == fingerprint.head())


def former_program(former: Former, folder: Path) -> dict[str, str]:
    """Unpack the program of a former delivery from the history; return the environment in which it runs."""
    root = Path(__file__).parents[2]
    packed = subprocess.run(["git", "archive", former.commit, "src"], cwd=root, check=False, capture_output=True)
    require("former", packed.returncode == 0, f"The history has no commit {former.commit}.")
    subprocess.run(["tar", "-x", "-C", folder], input=packed.stdout, check=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RETAINER_")}
    return kept | {"PYTHONPATH": str(folder / "src")}


@only_full
@pytest.mark.parametrize("former", [each for each in FORMER if each.runs_here], ids=str)
def test_the_documented_way_back_leads_to_the_former_database(former: Former, tmp_path: Path):
    program, database = tmp_path / "former", write_sqlite(former, tmp_path / "data" / "retainer.db")
    program.mkdir()
    environment = former_program(former, program)

    def formerly(*arguments: object) -> str:
        words = [sys.executable, "-m", "retainer", *map(str, arguments)]
        done = subprocess.run(words, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done
        return done.stdout

    before = contents(database)
    formerly("backup", "before.db.gz")
    assert tell_upgraded(tmp_path)
    tell(tmp_path, "account", "set", 1, "--name", "Written by the new version")
    formerly("restore", "--force", "before.db.gz")
    ended = {"pauses", "sessions", "password_links", "sqlite_sequence"}
    after = contents(database)
    assert {name: rows for name, rows in after.items() if name not in ended} == {
        name: rows for name, rows in before.items() if name not in ended
    }
    for work in ("monitor", "deliver"):
        formerly(work, "--resume")
    assert "drifted_summaries: none" in formerly("doctor")
    assert len([*(tmp_path / "data").glob("retainer.before-restore-*.db")]) == 1


@only_full
@each_former
def test_a_backup_before_the_upgrade_is_the_former_database(former: Former, tmp_path: Path):
    database = write_sqlite(former, tmp_path / "data" / "retainer.db")
    before = contents(database)
    said = tell(tmp_path, "backup", "before.db.gz")
    assert said["schema"] == former.revision[:4]
    unpacked = tmp_path / "unpacked.db"
    unpacked.write_bytes(gzip.decompress((tmp_path / "before.db.gz").read_bytes()))
    assert contents(unpacked) == before
