"""An upgrade happens as a whole or not at all."""

import contextlib
import itertools
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine as SchemaEngine
from sqlalchemy import event
from testing.process import command

from retainer.schema import fingerprint
from retainer.schema.migrations import migrate
from retainer.store.engines import connect
from tests.length import only_full
from tests.skips import require
from tests.upgrades.former import FORMER, Former, each_engine, write_sqlite

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


@oldest
def test_commands_refuse_a_database_that_is_to_be_upgraded(former: Former, tmp_path: Path):
    file = write_sqlite(former, tmp_path / "data" / "retainer.db")
    for arguments in (("account", "list"), ("key", "list", 1), ("export", 1, "all")):
        result = command(tmp_path, *arguments)
        assert (result.status, result.out) == (1, ""), arguments
        assert "Make a backup with the version that has served it, then run `retainer migrate`." in result.err
    with contextlib.closing(connect(f"sqlite:///{file}")) as engine:
        assert fingerprint.revision(engine) == former.revision


def tell_upgraded(folder: Path) -> bool:
    result = command(folder, "migrate", "--json")
    assert result.status == 0, result
    return bool(result.json["after"] == fingerprint.head())
