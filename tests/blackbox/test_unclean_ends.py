"""What a killed server leaves: the next one checks the database before it serves it."""

import re

import pytest
from testing.ports import free_port
from testing.process import command, query, running, tell

from tests.blackbox.backups import database, with_agency
from tests.blackbox.test_monitoring import change

DOWN = ("serve", "--port", free_port())


@pytest.fixture
def folder(tmp_path):
    """A folder with the database of an agency, of which there is a backup."""
    kept = with_agency(tmp_path) / "kept"
    kept.mkdir()
    tell(tmp_path, "backup", kept / "retainer-20260131T020000Z.db.gz")
    return tmp_path


def damage(folder):
    """Overwrite a page of a table that no start reads."""
    ((page,),) = query(database(folder), "SELECT rootpage FROM sqlite_master WHERE name = 'tickets'")
    with database(folder).open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\x0d\xff\xff\xff\xff\xff\xff\xff")


def test_a_clean_end_leaves_no_marker_and_a_kill_does(folder):
    marker = database(folder).with_suffix(".serving")
    with running(folder) as server:
        assert marker.exists()
        assert server.stop() == 0
    assert not marker.exists()
    with running(folder) as server:
        server.kill()
    assert marker.exists()
    with running(folder) as server:
        assert server.stop() == 0, "a sound database is served again"
    assert not marker.exists()


def test_a_damaged_database_is_not_served_after_a_kill(folder):
    with running(folder) as server:
        server.kill()
    damage(folder)
    before = database(folder).read_bytes()
    for _ in range(2):  # a refusal is no clean end
        result = command(folder, *DOWN, RETAINER_BACKUP_DIR=str(folder / "kept"))
        assert (result.status, result.out) == (1, ""), result
        (line,) = result.err.splitlines()
        assert "did not end cleanly" in line
        assert f"{database(folder)} " in line
        backup = folder / "kept" / "retainer-20260131T020000Z.db.gz"
        assert f"retainer restore --force {backup}" in line
    assert database(folder).read_bytes() == before
    assert "retainer restore --force FILE" in command(folder, *DOWN).err, "without scheduled backups"
    tell(folder, "restore", "--force", backup)
    with running(folder) as server:
        assert server.stop() == 0


def test_a_damaged_database_is_named_by_the_doctor_without_a_kill(folder):
    assert tell(folder, "doctor")["result"] == "ok"
    damage(folder)
    result = command(folder, "doctor")
    assert result.status == 1
    assert re.search(r"^integrity +wrong +\S", result.out, re.MULTILINE), result.out


def test_a_server_whose_clock_is_behind_warns_at_its_start(folder):
    change(folder, "UPDATE events SET at = '2999-01-01T00:00:00.000000Z'")
    change(folder, "INSERT INTO events (account_id, id, at, type, record_id, fields) SELECT id, 1000, "
           "'2999-01-01T00:00:00.000000Z', 'tag.deleted', 1, '[]' FROM accounts")  # fmt: skip
    with running(folder) as server:
        warnings = [line for line in server.log().splitlines() if "before the newest event (2999-01-01" in line]
        assert len(warnings) == 1
        assert server.stop() == 0
    assert command(folder, "doctor").status == 1
