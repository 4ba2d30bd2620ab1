"""Files: for their owner alone; what is open to others is told, and a full disk too."""

import contextlib
import json
import os
import re
import shutil
import stat
import subprocess
from collections import Counter

import pytest
from testing.agencies import open_agency
from testing.ports import free_port
from testing.process import at_once, command, opened, running, tell, until, with_database

from retainer.kernel.uploads import MAX_FILE_BYTES
from retainer.settings import BASE_PATH
from retainer.store.engines import Sqlite
from retainer.store.engines.base import Busy, DeadlineExceeded, DiskFull
from tests.blackbox.backups import with_agency
from tests.length import length
from tests.skips import require


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def modes(folder):
    return {path.name: oct(mode(path)) for path in folder.rglob("*")}


@pytest.fixture
def wide():
    """A mask that lets everybody read what is made, as on most machines."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.parametrize("does", ["serve", "demo"][: length(2)])
def test_what_a_server_makes_is_for_its_owner_alone(tmp_path, wide, does):
    data = tmp_path / "deep" / "data"
    with running(tmp_path, does=does, RETAINER_DATA_DIR=str(data)) as server:
        with server.client("rtn_" + "0" * 38) as client:
            client.get("/me")
        with contextlib.closing(
            Sqlite.driver.connect(data / ("demo.db" if does == "demo" else "retainer.db"))
        ) as beside:
            beside.execute("SELECT count(*) FROM accounts").fetchall()
            found = modes(tmp_path / "deep")
    name = "retainer" if does == "serve" else "demo"
    assert {f"{name}.db", f"{name}.db-wal", f"{name}.db-shm", f"{name}.lock", f"{name}.serving"} <= set(found)
    assert found.pop("data") == "0o700"
    assert set(found.values()) == {"0o600"}, found
    assert mode(tmp_path / "deep") == 0o700


def test_what_a_command_makes_is_for_its_owner_alone(tmp_path, wide):
    (tmp_path / "data").mkdir(mode=0o750)
    tell(tmp_path, "migrate")
    assert mode(tmp_path / "data") == 0o750
    assert set(modes(tmp_path / "data").values()) == {"0o600"}


def logged(server, status):
    lines = [json.loads(line) for line in server.log().splitlines() if line.endswith("}")]
    return sum(line["event"] == "request" and line["status"] == status for line in lines)


def warnings(folder):
    lines = [json.loads(line) for line in (folder / "err.txt").read_text().splitlines()]
    return [line["message"] for line in lines if line["event"] == "warning"]


def test_a_server_says_in_its_log_what_others_could_read_and_that_it_runs_as_root(tmp_path):
    with running(with_agency(tmp_path)):
        before = warnings(tmp_path)
    assert any("runs as root" in line for line in before) == (os.geteuid() == 0)
    assert not any("chmod" in line or "RETAINER_CONTACT" in line for line in before)
    (tmp_path / "data" / "retainer.db").chmod(0o644)
    with running(tmp_path, RETAINER_BASE_URL="https://api.north.example"):
        (warning,) = [line for line in warnings(tmp_path) if "chmod" in line]
        (advice,) = [line for line in warnings(tmp_path) if "RETAINER_CONTACT" in line]
    assert "retainer.db" in warning
    assert advice == "Pages refer people to the operator of this server without naming one. Set RETAINER_CONTACT."


def test_the_doctor_says_what_others_could_read_and_answers_nonetheless(tmp_path):
    with_database(tmp_path)
    assert command(tmp_path, "doctor", "--json").err == ""
    (tmp_path / "data").chmod(0o755)
    result = command(tmp_path, "doctor", "--json")
    assert result.status == 0
    assert result.json["database"].endswith("retainer.db")
    assert len(result.err.splitlines()) == 1
    assert "chmod" in result.err


FORM = "multipart/form-data; boundary=limit"
CREATE = ("--name", "B", "--plan", "agency", "--admin-name", "B", "--admin-email", "b@b.example")


def fill_up(disk):
    """Take all the room that a disk still has."""
    with (disk / "rest").open("wb", buffering=0) as rest, contextlib.suppress(OSError):
        while True:
            rest.write(b"x" * 4096)


@pytest.fixture
def full_disk(tmp_path):
    """A folder on a disk of its own, whose last byte is taken."""
    folder = with_database(tmp_path / "made")
    with opened(folder / "data" / "retainer.db") as store:
        agency = open_agency(store, "Full", "agency")
    with Sqlite.driver.connect(folder / "data" / "retainer.db") as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk], check=False, capture_output=True)
    require("root", mounted.returncode == 0, "Mounts take root.")
    try:
        shutil.copytree(folder / "data", disk / "data", dirs_exist_ok=True)
        fill_up(disk)
        yield disk, agency
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_command_on_a_full_disk_says_so_and_that_nothing_changed(full_disk):
    disk, agency = full_disk
    for arguments in (
        ("api", "off", agency["account_id"]),
        ("account", "create", *CREATE),
        ("key", "revoke", agency["key_id"]),
        ("user", "deactivate", agency["member_id"]),
    ):
        result = command(disk, *arguments, "--json")
        assert (result.status, result.out) == (1, ""), result
        assert len(result.err.splitlines()) == 1, result
        assert "disk" in result.err.lower(), result
        assert "nothing was changed" in result.err.lower(), result
    (disk / "rest").unlink()
    assert tell(disk, "account", "show", agency["account_id"])["api_enabled"] is True


def test_a_restore_without_room_says_how_much_it_needs(full_disk):
    disk, _ = full_disk
    backup = disk.parent / "made.db.gz"
    tell(disk.parent / "made", "backup", backup)
    for more in ((), ("--check",)):
        result = command(disk, "restore", "--force", backup, *more)
        assert (result.status, result.out) == (1, ""), result
        (line,) = result.err.splitlines()
        assert re.search(rf"^{backup} unpacks to 2 MB, and its disk has 0 MB free\. Nothing was changed", line), line


@pytest.mark.parametrize("is_new", [False, True])
def test_a_read_only_folder_ends_the_start_with_a_sentence(full_disk, is_new):
    disk, _ = full_disk
    if is_new:
        shutil.rmtree(disk / "data")
        (disk / "data").mkdir()
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    result = command(disk, "serve", "--port", free_port())
    assert (result.status, result.out) == (1, ""), result
    (line,) = result.err.splitlines()
    assert (str(disk / "data" / "retainer.db") in line, "read-only" in line) == (True, True)
    assert (line[0] != "[", line.endswith(".")) == (True, True)


def test_a_restore_on_a_full_disk_leaves_nothing_in_the_new_folder(full_disk, tmp_path):
    disk, _ = full_disk
    tell(tmp_path / "made", "backup", tmp_path / "b")
    (disk / "new").mkdir()
    result = command(disk, "restore", tmp_path / "b", RETAINER_DATA_DIR=str(disk / "new"))
    assert result.status == 1, result
    assert [*(disk / "new").iterdir()] == []


def test_a_server_that_starts_on_a_full_disk_says_so_before_a_write_fails(full_disk):
    disk, _ = full_disk
    (disk / "rest").unlink()  # a server needs some room to start
    with running(disk, "--no-monitor") as server, server.client() as client:
        assert client.send("GET", "/readyz").json == {"status": "ready", "database": "ok", "migrations": "ok"}
        fill_up(disk)
        full = {"status": "degraded", "database": "ok", "migrations": "ok", "disk": "full"}
        until(lambda: client.send("GET", "/readyz").json == full, "the check sees it")
        assert client.send("GET", "/readyz").status == 200


def test_a_file_that_the_disk_has_no_room_for_is_refused_at_once(full_disk):
    disk, agency = full_disk
    (disk / "rest").unlink()  # a server needs some room to start
    with running(disk, "--no-monitor") as server, server.client(agency["key"]) as client:
        record = client.post("/clients", {"name": "Bergmann Optik"}).data["id"]
        fill_up(disk)
        for size in (2_000_000, MAX_FILE_BYTES):
            answer = client.send("POST", f"{BASE_PATH}/files", form_with_file(record, size), Content_Type=FORM)
            assert (answer.status, answer.code) == (503, "unavailable")
            assert "no room for this file" in answer.json["message"]
        assert client.get("/files").json["meta"]["total"] == 0


def form_with_file(record, size):
    """Return the body of a form with a file."""
    fields = (
        '--limit\r\nContent-Disposition: form-data; name="record"\r\n\r\nclient\r\n'
        f'--limit\r\nContent-Disposition: form-data; name="record_id"\r\n\r\n{record}\r\n'
        '--limit\r\nContent-Disposition: form-data; name="content"; filename="scan.bin"\r\n\r\n'
    )
    return fields.encode() + bytes(size) + b"\r\n--limit--\r\n"


def test_writers_together_on_a_full_disk_are_told_what_became_of_them(full_disk):
    disk, agency = full_disk
    (disk / "rest").unlink()  # a server needs some room to start
    with running(disk, "--no-monitor") as server:

        def write(name):
            with server.client(agency["key"]) as client:
                return client.send("POST", f"{BASE_PATH}/clients", {"name": f"Client {name}"})

        def stored():
            with server.client(agency["key"]) as client:
                rows = client.get("/clients?per_page=100&sort=number").json["data"]
            assert [row["number"] for row in rows] == [f"C-{number:04}" for number in range(1, len(rows) + 1)]
            return {row["name"] for row in rows}

        acknowledged = {answer.data["name"] for answer in at_once(16, write)}
        fill_up(disk)
        found = at_once(16, lambda number: write(f"{number} on a full disk"), 64)
        refused = [answer for answer in found if answer.status == 503]
        assert {(answer.code, answer.headers["retry-after"]) for answer in refused} == {("unavailable", "2")}
        said = Counter(answer.json["message"].partition(" Try again")[0] for answer in refused)
        assert said.keys() <= {DiskFull.reason, Busy.reason, DeadlineExceeded.reason}, "a slow machine lets them wait"
        with server.client() as client:
            ready = client.send("GET", "/readyz")
            assert (ready.status, ready.json["status"], ready.json["disk"]) == (200, "degraded", "full")
        acknowledged |= {answer.data["name"] for answer in found if answer.status != 503}  # whose few pages fit in
        assert said[DiskFull.reason] > 16
        (disk / "rest").unlink()
        assert stored() == acknowledged
        with server.client() as client:
            until(lambda: client.send("GET", "/readyz").json["status"] == "ready", "the outage has ended")
        assert "The disk of the database is full (" in server.log()
        until(lambda: logged(server, 503) == len(refused), "the log says what it had no room for")
        acknowledged |= {answer.data["name"] for answer in at_once(16, lambda number: write(f"{number} again"))}
        assert stored() == acknowledged
