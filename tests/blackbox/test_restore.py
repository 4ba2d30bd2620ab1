"""Restoring: refusals, kept files, and copies of production that do not check sites."""

import contextlib
import gzip
import hashlib
import io
import json
import os
import random
import signal
import subprocess
import tarfile
import time

import pytest
from sqlalchemy import text
from testing.agencies import open_agency
from testing.process import (
    COMMAND,
    PATIENCE,
    START_PATIENCE,
    contents,
    environment,
    opened,
    query,
    running,
    tell,
    until,
    with_database,
)

from retainer.backup import BackupError, restore
from retainer.identity.actors import operator_of
from retainer.jobs import jobs
from retainer.schema import migrations
from retainer.store.engines import Sqlite
from retainer.store.engines.files import exclusive
from retainer.values.exact import utcnow
from tests.blackbox.backups import bulky, database, refused, with_agency
from tests.blackbox.test_monitoring import ALLOW, change, checked_sites, sites
from tests.length import first, length, only_full, sampled
from tests.monitor.test_probe import FakeSite
from tests.skips import require


@pytest.fixture
def folder(tmp_path):
    """A folder with the database of an agency."""
    return with_agency(tmp_path)


@pytest.fixture
def fake_site():
    site = FakeSite()
    yield site
    site.close()


@pytest.fixture
def elsewhere(tmp_path):
    """A folder without a database."""
    (tmp_path / "elsewhere").mkdir()
    return tmp_path / "elsewhere"


@pytest.fixture
def file(folder):
    """A backup of the agency's database."""
    tell(folder, "backup", "b.db.gz")
    return folder / "b.db.gz"


def packed(database, file):
    """Compress a database as it is."""
    file.write_bytes(gzip.compress(database.read_bytes()))
    return file


def files(folder):
    """Return the file names in the data folder, without locks."""
    if not (folder / "data").exists():
        return []
    return sorted(each.name for each in (folder / "data").iterdir() if each.suffix not in {".lock", ".serving"})


def test_a_restored_database_equals_the_one_that_was_backed_up(folder, elsewhere, file):
    said = tell(elsewhere, "restore", file)
    assert said["works_again"].startswith("keys that were revoked, people who were deactivated, and accounts")
    assert (said["database"], said["former_database"], said["migrated_to"]) == (str(database(elsewhere)), None, None)
    expected, found = contents(database(folder)), contents(database(elsewhere))
    assert [row[0] for row in found.pop("pauses")] == ["mail", "monitor", "webhooks"]
    assert expected.pop("pauses") == []
    assert found == expected
    assert files(elsewhere) == ["retainer.db"]
    with running(elsewhere) as server, server.client() as client:
        assert client.get("/me").status == 401


@only_full
def test_jobs_that_ran_at_the_time_of_a_backup_wait_for_a_person_after_a_restore(folder, elsewhere):
    with opened(folder / "data" / "retainer.db") as store, store.begin(operator_of(store, 1), write=True) as tx:
        jobs.start(tx, "bulk", "Issue: 300 invoices", {}, total=300)
        jobs.start(tx, jobs.DAILY, "Daily job", {})
    tell(folder, "backup", "b.db.gz")
    tell(elsewhere, "restore", folder / "b.db.gz")
    found = "SELECT kind, status, next_step_at IS NULL, message LIKE '%restored%' FROM jobs ORDER BY id"
    assert query(elsewhere / "data" / "retainer.db", found) == [
        ("bulk", "stopped", 1, 1),
        ("daily", "waiting", 0, None),
    ]


def test_password_links_of_a_backup_are_void_after_a_restore(folder, elsewhere):
    (admin, *_) = tell(folder, "user", "list", 1)["users"]
    tell(folder, "user", "link", admin["id"])
    tell(folder, "backup", "with-link.db.gz")
    tell(elsewhere, "restore", folder / "with-link.db.gz")
    assert len(contents(database(folder))["password_links"]) == 1
    assert contents(database(elsewhere))["password_links"] == []


@only_full
def test_a_check_reads_everything_and_writes_nothing(folder, elsewhere, file):
    said = tell(elsewhere, "restore", file, "--check")
    assert (said["schema"], said["migrated_to"], said["wrong"]) == (migrations.head(), None, [])
    assert said["database_bytes"] == len(gzip.decompress(file.read_bytes()))
    assert list(elsewhere.iterdir()) == []
    before = contents(database(folder))
    tell(folder, "restore", file, "--check")
    assert contents(database(folder)) == before
    assert files(folder) == ["retainer.db"]


def test_a_database_with_accounts_is_replaced_only_by_force_and_then_kept(folder, file):
    with_agency(folder, "Later")
    before = contents(database(folder))
    assert "is not empty" in refused(folder, "restore", file)
    assert contents(database(folder)) == before
    former = folder / tell(folder, "restore", file, "--force")["former_database"]
    assert contents(former) == before
    assert [name for (name,) in query(database(folder), "SELECT name FROM accounts")] == ["North"]


@only_full
def test_a_database_restored_by_root_keeps_the_owner_of_the_former_or_the_folder(folder, elsewhere, file):
    require("root", os.geteuid() == 0, "Only root gives files away.")
    os.chown(database(folder), 65534, 65533)
    tell(folder, "restore", file, "--force")
    (elsewhere / "data").mkdir(mode=0o700)
    os.chown(elsewhere / "data", 65532, 65531)
    tell(elsewhere, "restore", file)
    owners = [(each.stat().st_uid, each.stat().st_gid) for each in (database(folder), database(elsewhere))]
    assert owners == [(65534, 65533), (65532, 65531)]


@only_full
def test_the_log_of_the_former_database_is_kept_with_it(folder, file):
    """A killed process leaves a log."""
    script = f"""
import os
from pathlib import Path
from testing.process import opened
from testing.agencies import open_agency
with opened(Path({str(database(folder))!r})) as store:
    open_agency(store, "Later", "agency")
    os.kill(os.getpid(), 9)
"""
    done = subprocess.run([COMMAND[0], "-c", script], check=False)
    assert done.returncode == -signal.SIGKILL
    assert (folder / "data" / "retainer.db-wal").stat().st_size
    former = folder / tell(folder, "restore", file, "--force")["former_database"]
    assert [name for (name,) in query(former, "SELECT name FROM accounts")] == ["North", "Later"]
    assert [name for (name,) in query(database(folder), "SELECT name FROM accounts")] == ["North"]
    assert files(folder) == sorted([former.name, "retainer.db"])


@only_full
def test_a_database_that_sqlite_cannot_open_is_kept_and_replaced(folder, file):
    content = b"no database at all" * 1000
    database(folder).write_bytes(content)
    assert "is not empty" in refused(folder, "restore", file)
    former = folder / tell(folder, "restore", file, "--force")["former_database"]
    assert former.read_bytes() == content
    assert [name for (name,) in query(database(folder), "SELECT name FROM accounts")] == ["North"]


@only_full
def test_a_log_without_its_database_does_not_get_into_the_restored_one(folder, file):
    with opened(database(folder)) as store:
        open_agency(store, "Later", "agency")
        log = (folder / "data" / "retainer.db-wal").read_bytes()
    database(folder).unlink()
    (folder / "data" / "retainer.db-wal").write_bytes(log)
    tell(folder, "restore", file)
    assert [name for (name,) in query(database(folder), "SELECT name FROM accounts")] == ["North"]


@only_full
def test_a_database_without_accounts_counts_as_empty(tmp_path, file):
    tell(with_database(tmp_path / "new"), "restore", file)
    assert [name for (name,) in query(database(tmp_path / "new"), "SELECT name FROM accounts")] == ["North"]


@only_full
def test_a_database_that_is_served_or_open_elsewhere_is_left_alone(folder, file):
    with running(folder, "--no-monitor"):
        until(lambda: query(database(folder), "SELECT id FROM jobs"), "the account has its daily job")
        assert "Stop it first" in refused(folder, "restore", file, "--force")
    before = contents(database(folder))
    with opened(database(folder)) as store, store.unscoped() as tx:
        tx.value(text("SELECT version_num FROM alembic_version"))
        assert "Another process uses" in refused(folder, "restore", file, "--force")
    assert contents(database(folder)) == before
    assert files(folder) == ["retainer.db"]


def test_no_process_creates_a_log_while_a_database_is_replaced(folder, file, tmp_path):
    unpacked(file, tmp_path / "new")
    with exclusive(database(folder), Sqlite.driver):
        late = Sqlite.driver.connect(str(database(folder)), timeout=0, isolation_level=None)
        with pytest.raises(Sqlite.driver.OperationalError, match="locked"):
            late.execute("PRAGMA journal_mode=WAL").fetchall()
        (tmp_path / "new").replace(database(folder))
    with contextlib.closing(late), pytest.raises(Sqlite.driver.OperationalError, match="readonly"):
        late.execute("PRAGMA journal_mode=WAL").fetchall()
    assert files(folder) == ["retainer.db"]


def unpacked(path, into):
    restore.unpack(path, into, lambda *_: None)


def is_refused(path, into):
    try:
        unpacked(path, into)
    except BackupError:
        return True
    return False


@only_full
def test_a_flipped_bit_is_detected_unless_the_content_is_the_same(file, tmp_path):
    """Gzip's own header and codes that no byte uses may differ: they say nothing."""
    good, damaged = file.read_bytes(), tmp_path / "damaged"
    rng = random.Random(6)
    places = [*range(length(1000)), *(rng.randrange(len(good)) for _ in range(length(1000)))]
    flips = [(at, 1 << rng.randrange(8)) for at in places]
    flips += sampled((len(good) - each, 1 << bit) for each in range(1, 120) for bit in range(8))
    detected = 0
    for at, bit in flips:
        flipped = bytearray(good)
        flipped[at] ^= bit
        damaged.write_bytes(flipped)
        is_detected = is_refused(damaged, tmp_path / "unpacked")
        assert is_detected or gzip.decompress(flipped) == gzip.decompress(good)
        detected += is_detected
        (tmp_path / "unpacked").unlink(missing_ok=True)
    assert detected > len(flips) * 0.9
    unpacked(file, tmp_path / "unpacked")


def test_a_truncated_file_is_detected(file, tmp_path):
    good, damaged = file.read_bytes(), tmp_path / "damaged"
    for size in [*range(7, 400, 7), *range(400, len(good), len(good) // length(50)), len(good) - 1]:
        damaged.write_bytes(good[:size])
        with pytest.raises(BackupError, match="is damaged"):
            unpacked(damaged, tmp_path / "unpacked")
        (tmp_path / "unpacked").unlink(missing_ok=True)


def test_a_damaged_or_foreign_file_is_refused_with_the_reason(folder, elsewhere, file, tmp_path):
    flipped = bytearray(file.read_bytes())
    flipped[len(flipped) // 2] ^= 1
    cases = {
        bytes(flipped): "is damaged, ",
        file.read_bytes()[:-1]: "is damaged, ",
        file.read_bytes() + b"!": "is damaged, ",
        gzip.compress(b"no database"): "holds no sound database",
        b"": "holds no database of Retainer",
        b"PGDMP and more": "or no backup of Retainer",
        database(folder).read_bytes(): "or no backup of Retainer",
    }
    for number, (content, expected) in enumerate(cases.items()):
        (tmp_path / "bad").write_bytes(content)
        assert expected in refused(elsewhere, "restore", tmp_path / "bad", *([] if number % 2 else ["--check"]))
    assert "There is no file" in refused(elsewhere, "restore", tmp_path / "none")
    assert files(elsewhere) == []


@pytest.mark.parametrize(
    ("schema", "reason"), first([("9999", "9999, newer than"), ("0012", "0012, from before the first release")])
)
def test_a_backup_of_another_version_that_cannot_be_migrated_is_refused(folder, elsewhere, schema, reason):
    change(folder, f"UPDATE alembic_version SET version_num = '{schema}'")
    assert tell(folder, "backup", "b")["schema"] == schema
    for more in (("--check",), ()):
        assert f"revision {reason}" in refused(elsewhere, "restore", folder / "b", *more)
    assert files(elsewhere) == []


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_backup_as_first_delivered_is_restored(folder, elsewhere, tmp_path, is_damaged):
    content, moment = database(folder).read_bytes(), "2026-11-27T10:00:00.000000Z"
    digest = hashlib.sha256(content[1:] if is_damaged else content).hexdigest()
    manifest = json.dumps({"format": 1, "made_at": moment, "sha256": digest}).encode()
    file = tmp_path / "former.db.gz"
    with tarfile.open(file, "w:gz") as tar:
        for name, part in (("manifest.json", manifest), ("retainer.db", content)):
            entry = tarfile.TarInfo(name)
            entry.size = len(part)
            tar.addfile(entry, io.BytesIO(part))
    if is_damaged:
        assert "its database does not match its manifest" in refused(elsewhere, "restore", file)
        assert files(elsewhere) == []
    else:
        assert tell(elsewhere, "restore", file)["made_at"] == moment
        assert contents(database(elsewhere))["users"] == contents(database(folder))["users"]


DAMAGES = {
    "PRAGMA foreign_keys=OFF; UPDATE users SET account_id = 999": "belong to account 999, which does not exist",
    "PRAGMA writable_schema=ON; DELETE FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL": "it is corrupt",
}


@pytest.mark.parametrize(("statements", "expected"), first(DAMAGES.items()))
def test_a_whole_file_with_a_broken_database_is_refused(folder, elsewhere, tmp_path, statements, expected):
    with contextlib.closing(Sqlite.driver.connect(str(database(folder)), isolation_level=None)) as connection:
        for statement in statements.split("; "):
            connection.execute(statement)
    broken = packed(database(folder), tmp_path / "broken")
    for more in ((), ("--check",)):
        assert expected in refused(elsewhere, "restore", broken, *more)
    assert files(elsewhere) == []


@only_full
def test_wrong_sums_fail_a_check_and_are_reported_by_a_restore(folder, elsewhere):
    change(folder, "UPDATE totals SET count = count - 1")
    change(folder, "INSERT OR REPLACE INTO totals SELECT id, 'clients', 7 FROM accounts")
    tell(folder, "backup", "b")
    assert "count of clients" in refused(elsewhere, "restore", folder / "b", "--check")
    done = subprocess.run(
        [*COMMAND, "restore", folder / "b", "--json"],
        cwd=elsewhere, env=environment(elsewhere), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout)["wrong"]
    assert "retainer doctor --repair" in done.stderr
    tell(elsewhere, "monitor", "--resume")
    tell(elsewhere, "deliver", "--resume")
    tell(elsewhere, "mail", "--resume")
    assert tell(elsewhere, "doctor", "--repair")["result"] == "ok"
    assert tell(elsewhere, "doctor")["result"] == "ok"


@only_full
def test_a_killed_restore_leaves_the_former_database_as_it_was(folder):
    bulky(folder)
    tell(folder, "backup", "b")
    before = contents(database(folder))
    for turn in range(length(10)):
        words = ["nice", "-n", "5", *COMMAND, "restore", "b", "--force"]  # so that the kill comes first
        process = subprocess.Popen(words, cwd=folder, env=environment(folder))
        until((folder / "data" / ".retainer-partial").exists, "it has begun", START_PATIENCE)
        time.sleep(turn * 0.02)
        process.kill()
        assert process.wait(timeout=PATIENCE) == -signal.SIGKILL
        assert contents(database(folder)) == before
    former = folder / tell(folder, "restore", "b", "--force")["former_database"]
    assert contents(former) == before
    assert files(folder) == sorted([former.name, "retainer.db"]), "leftovers of killed commands are deleted"


@only_full
def test_a_restored_copy_checks_no_site_until_it_is_resumed(folder, fake_site, tmp_path):
    sites(folder, fake_site, 3)
    tell(folder, "backup", "b")
    copy = tmp_path / "copy"
    copy.mkdir()
    said = tell(copy, "restore", folder / "b")
    assert "retainer monitor --resume" in said["monitor"]
    assert "retainer deliver --resume" in said["webhooks"]
    once = subprocess.run([*COMMAND, "monitor", "--once", "--json"], cwd=copy, env=environment(copy, **ALLOW),
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert json.loads(once.stdout) == {"checked": 0}
    assert "retainer monitor --resume" in json.loads(once.stderr)["message"]
    with running(copy, **ALLOW) as server:
        until(lambda: server.log().count("paused") == 3, "it has looked")
        said = [line for line in server.log().splitlines() if '"warning"' in line and "paused" in line]
        assert ["restored from a backup of" in line for line in said] == [True, True, True]
        assert ["retainer monitor --resume" in line for line in said] == [True, False, False]
        assert tell(copy, "deliver", "--resume") == {"webhooks": "on"}
        assert tell(copy, "mail", "--resume") == {"mail": "on"}
        resumed = utcnow()
        assert tell(copy, "monitor", "--resume") == {"monitor": "on"}
        until(lambda: checked_sites(copy) == 3, "they are checked without a new start")
        assert query(database(copy), f"SELECT min(last_checked_at) > '{resumed}' FROM sites") == [(1,)]
    with running(copy, **ALLOW) as server:
        assert server.log().count("paused") == 3, "it is not logged again"


@only_full
def test_a_monitor_is_paused_while_it_runs(folder, fake_site):
    key = sites(folder, fake_site, 1)
    with running(folder, **ALLOW) as server, server.client(key) as client:
        until(lambda: fake_site.connections == 1, "a site is checked")
        tell(folder, "monitor", "--pause")
        made = client.post("/sites", {"url": f"{fake_site.url}1"}).data["id"]
        resumed = utcnow()
        tell(folder, "monitor", "--resume")
        checked = until(lambda: client.get(f"/sites/{made}").data["last_checked_at"], "it is checked")
        assert checked > resumed
