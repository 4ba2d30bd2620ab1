"""Scheduled backups of a server: when they are due, which are kept, and failures."""

import json
import os
import re
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from testing.process import children, running, start, tell, until, with_database
from testing.writing import writing

from retainer.backup.schedule import Schedule, backups_until
from tests.blackbox.backups import bulky, database, with_agency
from tests.length import only_full

OFTEN = "0.0003"  # a bit more than a second


@pytest.fixture
def folder(tmp_path):
    return with_agency(tmp_path, "South")


@pytest.fixture
def kept(tmp_path):
    """The folder of backups, which the server makes."""
    return tmp_path / "kept"


def scheduled(folder, kept, every="24", keep="14"):
    settings = {"RETAINER_BACKUP_DIR": str(kept), "RETAINER_BACKUP_EVERY": every, "RETAINER_BACKUP_KEEP": keep}
    return running(folder, "--no-monitor", **settings)


def names(kept):
    """The files that the schedule has named, or could have, in their order."""
    return sorted(each.name for each in kept.glob("*") if re.fullmatch(r"retainer-\d{8}T\d{6}Z\.db\.gz", each.name))


def lines(server, event):
    whole = server.log().rpartition("\n")[0]
    return [line for line in map(json.loads, whole.splitlines()) if line["event"] == event]


def made_at_once(folder, kept, keep):
    """Return the backups that a schedule of each day makes at its start."""
    made = []
    schedule = Schedule(database(folder), kept, timedelta(days=1), keep, lambda file, _: made.append(file), pytest.fail)
    with ThreadPoolExecutor(1) as thread:  # which it gives a low priority
        for chore in schedule.chores:
            thread.submit(chore.work).result()
    return made


def named(moment):
    return f"retainer-{moment:%Y%m%dT%H%M%SZ}.db.gz"


def test_a_backup_that_a_wrong_clock_has_dated_in_the_future_is_not_counted(tmp_path):
    now = datetime.now(UTC).replace(microsecond=0)
    for hours in (-1000, 0, 25):
        (tmp_path / named(now - timedelta(hours=hours))).touch()
    assert backups_until(now, tmp_path / "retainer.db", tmp_path).keys() == {now, now - timedelta(hours=25)}


def test_a_new_backup_pushes_out_the_oldest_of_the_schedule_alone(folder, kept):
    kept.mkdir()
    now, made = datetime.now(UTC).replace(microsecond=0), threading.Event()
    old = [named(now - timedelta(hours=hours)) for hours in (6, 4, 2)]
    for name in (*old, "by-hand.db.gz"):
        (kept / name).touch()
    keep = Schedule(database(folder), kept, timedelta(hours=1), 2, lambda *_: made.set(), pytest.fail)
    keep.start()
    assert made.wait(60)
    keep.stop()
    assert [name in names(kept) for name in old] == [False, False, True]
    assert (len(names(kept)), (kept / "by-hand.db.gz").exists()) == (2, True)


@only_full
def test_backups_are_made_and_the_newest_are_kept_while_requests_are_answered(folder, kept):
    others = ["by-hand.db.gz", "demo-20200101T000000Z.db.gz", "retainer-2020.db.gz"]
    kept.mkdir()
    for name in others:
        (kept / name).write_text("not of the schedule")
    with scheduled(folder, kept, OFTEN, "2") as server:
        with writing(server, 4) as acknowledged:
            until(lambda: len(lines(server, "backup")) >= 5, "backups are made")
            before = len(acknowledged.records)
            until(lambda: len(acknowledged.records) > before, "writes are acknowledged all the while")
        assert server.stop() == 0
    made = [line["file"] for line in lines(server, "backup")]
    assert {line["level"] for line in lines(server, "backup")} == {"info"}
    assert [str(kept / name) for name in names(kept)] == made[-2:]
    assert sorted(each.name for each in kept.iterdir()) == sorted([*others, *names(kept)]), "nothing partial is left"
    assert lines(server, "failure") == []
    assert tell(folder, "restore", kept / names(kept)[-1], "--check")["wrong"] == []


def test_a_missed_backup_is_made_at_the_start_and_none_before_it_is_due(folder, kept):
    kept.mkdir()
    now = datetime.now(UTC)
    missed, recent, future = (named(now - timedelta(hours=hours)) for hours in (25, 23, -1000))
    (kept / missed).write_text("old")
    (kept / future).write_text("of a wrong clock")
    (made,) = made_at_once(folder, kept, keep=14)
    assert names(kept) == [missed, made.name, future]
    made.rename(kept / recent)
    assert made_at_once(folder, kept, keep=1) == []
    assert names(kept) == [missed, recent, future]


def test_a_database_without_accounts_is_not_backed_up_and_pushes_no_backup_out(tmp_path, kept):
    """It may be a new one, made where a disk is not mounted."""
    kept.mkdir()
    good = [named(datetime.now(UTC) - timedelta(hours=hours)) for hours in (49, 25)]
    for name in good:
        (kept / name).write_text("of many accounts")
    assert made_at_once(with_database(tmp_path), kept, keep=2) == []
    assert names(kept) == good
    with scheduled(tmp_path, kept) as server:
        (said,) = [line["message"] for line in lines(server, "warning") if "account" in line["message"]]
        assert "has no account. Create one with retainer account create. If there should be accounts, check" in said
        with_agency(tmp_path)
    assert len(made_at_once(tmp_path, kept, keep=2)) == 1


def test_a_failure_is_a_line_of_the_log_and_the_server_goes_on(folder, kept):
    kept.write_text("no folder")
    with scheduled(folder, kept) as server:
        (said,) = until(lambda: lines(server, "failure"), "it is logged")
        assert (said["level"], said["during"]) == ("error", "backing up the database")
        assert str(kept) in said["error"]
        with writing(server, 1) as acknowledged:
            until(lambda: len(acknowledged.records) > 5, "the server works")
        assert server.stop() == 0
    assert kept.read_text() == "no folder"


@only_full
def test_leftovers_of_a_killed_server_are_deleted_at_the_next_start(folder, kept):
    bulky(with_agency(folder))
    settings = {"RETAINER_BACKUP_DIR": str(kept)}
    server = start(folder, "--no-monitor", **settings)
    try:
        until(lambda: list(kept.glob(".retainer-partial/*")), "it has begun")
        for pid in children(server.process.pid):
            os.kill(pid, signal.SIGSTOP)
    finally:
        server.kill()
    assert names(kept) == []
    assert list(kept.glob(".retainer-partial/*"))
    (kept / named(datetime.now(UTC))).write_text("so that none is due")
    with scheduled(folder, kept):
        until(lambda: not list(kept.glob(".*")), "it is cleared up")


def test_a_terminated_server_abandons_its_backup(folder, kept):
    bulky(with_agency(folder))
    with scheduled(folder, kept) as server:
        until(lambda: list(kept.glob(".retainer-partial/*")), "it has begun")
        assert server.stop() == 0
        assert lines(server, "failure") == []
    assert not list(kept.glob(".*"))
