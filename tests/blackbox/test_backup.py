"""Backups: their content while the server writes, and files that are never left behind or overwritten."""

import gzip
import os
import signal
import stat
import subprocess
import time
from datetime import UTC, datetime

import pytest
from testing.process import (
    COMMAND,
    PATIENCE,
    START_PATIENCE,
    command,
    contents,
    environment,
    opened,
    query,
    running,
    start,
    tell,
    unsound,
    until,
    with_database,
)
from testing.writing import writing

from retainer.backup.create import create
from retainer.outbound import pause
from retainer.schema.migrations import head
from retainer.values.exact import as_instant
from tests.blackbox.backups import bulky, database, refused, with_agency
from tests.length import length, only_full
from tests.skips import require


@pytest.fixture
def folder(tmp_path):
    """A folder with the database of an agency."""
    return with_agency(tmp_path)


@only_full
def test_every_backup_under_load_holds_all_that_was_acknowledged_before_it(tmp_path):
    made = []
    with running(with_database(tmp_path / "live"), "--no-monitor") as server, writing(server) as acknowledged:
        for turn in range(length(10)):
            enough = len(acknowledged.records) + 100
            until(lambda enough=enough: len(acknowledged.records) >= enough, "writes are acknowledged")
            before = len(acknowledged.records)
            server.tell("backup", tmp_path / f"{turn}.db.gz")
            made.append((tmp_path / f"{turn}.db.gz", before))
        assert len(acknowledged.records) > made[-1][1], "writers went on while the last backup was made"
    for file, before in made:
        folder = tmp_path / f"of {file.name}"
        folder.mkdir()
        assert tell(folder, "restore", file)["wrong"] == []
        assert acknowledged.missing(database(folder), before) == []
        assert unsound(database(folder)) == []


@only_full
def test_a_backup_has_the_content_of_the_log_and_a_plain_copy_does_not(tmp_path):
    server = start(with_database(tmp_path), "--no-monitor")
    try:
        with writing(server, 2) as acknowledged:
            until(lambda: len(acknowledged.records) >= 50, "writes are acknowledged")
    finally:
        server.kill()  # so that it does not empty the log
    plain = tmp_path / "plain.db"
    plain.write_bytes(server.database.read_bytes())
    assert unsound(plain) == [], "it passes every check"
    assert acknowledged.missing(plain, 50), "and yet it lacks what was acknowledged"
    tell(tmp_path, "backup", "backup.db.gz")
    (tmp_path / "elsewhere").mkdir()
    tell(tmp_path / "elsewhere", "restore", tmp_path / "backup.db.gz")
    assert acknowledged.missing(database(tmp_path / "elsewhere"), len(acknowledged.records)) == []


@only_full
def test_a_copy_does_not_start_over_when_other_processes_write(folder):
    bulky(folder)
    copied = []

    def write(what, done, total):
        if what == "Copying" and len(copied) < 1000:
            copied.append(done)
            with opened(database(folder)) as store:
                pause.pause(store, pause.MONITOR, str(done))

    create(database(folder), folder / "b", write)
    assert len(copied) > 10
    assert copied == sorted(set(copied))
    tell(folder, "restore", "b", "--check")


def test_a_backup_says_what_it_is_and_opens_with_gzip(folder):
    said = tell(folder, "backup", "b.db.gz")
    file = folder / "b.db.gz"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(each.name for each in folder.iterdir()) == ["b.db.gz", "data"], "nothing else is left"
    with gzip.open(file) as packed:
        content, moment = packed.read(), packed.mtime
    assert (said["file"], said["bytes"], said["schema"]) == ("b.db.gz", file.stat().st_size, head())
    assert (said["database_bytes"], said["made_at"][:19]) == (
        len(content),
        as_instant(datetime.fromtimestamp(moment, UTC))[:19],
    )
    (folder / "by-hand.db").write_bytes(content)
    assert contents(folder / "by-hand.db") == contents(database(folder))


def test_an_existing_file_is_replaced_only_by_force_and_the_database_never(folder):
    (folder / "b").write_text("precious")
    assert "--force" in refused(folder, "backup", "b")
    assert (folder / "b").read_text() == "precious"
    assert tell(folder, "backup", "b", "--force")["bytes"] == (folder / "b").stat().st_size
    tell(folder, "restore", "b", "--check")
    before = contents(database(folder))
    for end in ("", "-wal"):
        assert "is the database itself" in refused(folder, "backup", f"data/../data/retainer.db{end}", "--force")
    assert contents(database(folder)) == before


def test_a_refused_backup_says_why(folder, tmp_path):
    assert "There is no database at" in refused(with_database(tmp_path / "other") / "data", "backup", "b")
    assert "name a file in an existing folder" in refused(folder, "backup", "nowhere/b")
    assert "name a file in an existing folder" in refused(folder, "backup", "data")
    content = bytearray(database(folder).read_bytes())
    content[100:108] = b"\xff" * 8  # the head of the first page
    database(folder).write_bytes(content)
    assert "retainer.db" in refused(folder, "backup", "b")
    assert not (folder / "b").exists(), "a corrupt database makes no backup"


def test_a_corrupt_page_makes_no_backup(folder):
    ((page,),) = query(database(folder), "SELECT rootpage FROM sqlite_master WHERE name = 'users'")
    with database(folder).open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\x0d\xff\xff\xff\xff\xff\xff\xff")
    assert "No backup was made" in refused(folder, "backup", "b")
    assert sorted(each.name for each in folder.iterdir()) == ["data"]


@only_full
def test_standard_output_gets_the_backup_and_no_messages(folder):
    with (folder / "b").open("wb") as out:
        done = subprocess.run(
            [*COMMAND, "backup", "-"],
            cwd=folder,
            env=environment(folder),
            stdout=out,
            stderr=subprocess.PIPE,
            check=True,
        )
    assert done.stderr == b""
    tell(folder, "restore", "b", "--check")
    assert command(folder, "backup", "-", "--json").status == 2


def begun(folder, *arguments):
    """Start a backup; return its process once it writes. It lets this process run first."""
    words = ["nice", "-n", "5", *COMMAND, "backup", *arguments]
    process = subprocess.Popen(words, cwd=folder, env=environment(folder))
    has_begun = lambda: list(folder.glob(".retainer-partial/*")) or process.poll() is not None  # noqa: E731
    until(has_begun, "it has begun", START_PATIENCE)
    return process


@only_full
def test_a_killed_backup_leaves_nothing_and_the_next_one_clears_up(folder):
    bulky(folder)
    killed = 0
    for turn in range(length(20)):
        process = begun(folder, "b")
        time.sleep(turn * 0.05)
        process.kill()
        status = process.wait(timeout=PATIENCE)
        if (folder / "b").exists():  # it had done its work
            tell(folder, "restore", "b", "--check")
            (folder / "b").unlink()
        else:
            killed += 1
            assert status == -signal.SIGKILL
            assert (folder / ".retainer-partial").is_dir(), "it was in the middle of its work"
    assert killed
    tell(folder, "backup", "b")
    assert sorted(each.name for each in folder.iterdir()) == ["b", "data"]
    tell(folder, "restore", "b", "--check")


def test_a_terminated_backup_clears_up(folder):
    bulky(folder)
    process = begun(folder, "b")
    process.terminate()
    assert process.wait(timeout=PATIENCE) == 128 + signal.SIGTERM
    assert sorted(each.name for each in folder.iterdir()) == ["data"]


@only_full
def test_two_backups_into_one_folder_exclude_each_other(folder):
    bulky(folder)
    process = begun(folder, "b")
    os.kill(process.pid, signal.SIGSTOP)
    try:
        assert "Another backup" in refused(folder, "backup", "c")
    finally:
        os.kill(process.pid, signal.SIGCONT)
    assert process.wait(timeout=START_PATIENCE) == 0
    assert sorted(each.name for each in folder.iterdir()) == ["b", "data"]


def test_a_full_disk_is_reported_and_leaves_nothing(folder, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], check=False, capture_output=True)
    require("root", mounted.returncode == 0, "Mounts take root.")
    try:
        bulky(folder)
        assert "disk" in refused(folder, "backup", disk / "b")
        assert list(disk.iterdir()) == []
    finally:
        subprocess.run(["umount", disk], check=True)
