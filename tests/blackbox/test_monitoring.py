"""The monitor as its own process and in the server: its options, its results, and how it ends."""

import contextlib
import os
import signal
import subprocess
import threading
from collections import Counter

import pytest
from testing.agencies import open_agency, open_app
from testing.process import COMMAND, PATIENCE, command, environment, query, running, tell, unsound, until, with_database

from retainer.store.engines import Sqlite
from retainer.values.exact import utcnow
from tests.contract_checker import ContractChecker
from tests.factories import ApiClient
from tests.length import only_full
from tests.monitor.test_probe import UP, FakeSite

ALLOW = {"RETAINER_MONITOR_ALLOW": "127.0.0.0/8"}


@pytest.fixture
def fake_site():
    site = FakeSite()
    yield site
    site.close()


@pytest.fixture
def folder(tmp_path):
    return with_database(tmp_path)


def database(folder):
    return folder / "data" / "retainer.db"


def change(folder, statement):
    """Change the database file."""
    with contextlib.closing(
        Sqlite.driver.connect(str(database(folder)), timeout=10, isolation_level=None)
    ) as connection:
        connection.execute(statement)


def sites(folder, fake_site, count):
    """Open an agency whose sites are served by the fake site; return its key."""
    app = open_app(database(folder))
    api = ApiClient(app, ContractChecker(), open_agency(app.store, "North", "enterprise"))
    for number in range(count):
        api.make("/sites", url=f"{fake_site.url}{number}")
    app.store.engine.close()
    return api.key


def checked_sites(folder):
    ((count,),) = query(database(folder), "SELECT count(*) FROM sites WHERE last_checked_at IS NOT NULL")
    return count


def asked(fake_site):
    return Counter(int(head.split(" ")[1].strip("/")) for head in fake_site.asked)


@contextlib.contextmanager
def monitor(folder, *options):
    """A monitor process, which is killed at the end."""
    process = subprocess.Popen(
        [*COMMAND, "monitor", *options],
        cwd=folder,
        env=environment(folder, **ALLOW),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


def test_monitor_once_checks_the_due_sites_and_prints_their_number(folder, fake_site):
    sites(folder, fake_site, 3)
    done = command(folder, "monitor", "--once", "--json", **ALLOW)
    assert (done.status, done.json, done.err) == (0, {"checked": 3}, "")
    assert asked(fake_site) == {0: 1, 1: 1, 2: 1}
    assert tell(folder, "monitor", "--once") == {"checked": 0}, "nothing is due"
    rows = query(database(folder), "SELECT DISTINCT observed, last_status_code, updated_at = created_at FROM sites")
    assert rows == [("up", 200, 1)]


def test_without_the_setting_loopback_addresses_are_not_requested(folder, fake_site):
    sites(folder, fake_site, 2)
    assert tell(folder, "monitor", "--once") == {"checked": 2}
    assert fake_site.connections == 0
    rows = query(database(folder), "SELECT DISTINCT observed, failures, last_error FROM sites")
    assert rows == [("unknown", 1, "The site cannot be reached.")]


@only_full
def test_the_sites_of_a_killed_monitor_are_checked_after_the_lease(folder, fake_site):
    sites(folder, fake_site, 20)
    silent = threading.Event()
    fake_site.answer = lambda *_: silent.wait(10)
    with monitor(folder) as process:
        until(lambda: fake_site.connections == 20, "all sites are being checked")
        os.kill(process.pid, signal.SIGKILL)
        process.wait(timeout=PATIENCE)
    silent.set()
    fake_site.answer = UP
    assert checked_sites(folder) == 0
    assert tell(folder, "monitor", "--once") == {"checked": 0}, "the lease lasts"
    ((soon,),) = query(database(folder), "SELECT max(unixepoch(next_check_at)) - unixepoch() FROM sites")
    assert 0 < soon <= 60
    change(folder, "UPDATE sites SET next_check_at = '2020-01-01T00:00:00.000000Z'")
    done = command(folder, "monitor", "--once", "--json", **ALLOW)
    assert (done.json, checked_sites(folder)) == ({"checked": 20}, 20)
    assert unsound(database(folder)) == []


@only_full
def test_the_server_checks_sites_unless_started_with_no_monitor(folder, fake_site):
    key = sites(folder, fake_site, 3)
    with running(folder, "--no-monitor", **ALLOW) as server:
        assert server.stop() == 0
    began = utcnow()
    with running(folder, **ALLOW) as server, server.client(key) as client:
        until(lambda: checked_sites(folder) == 3, "what was due is checked")
        made = client.post("/sites", {"url": f"{fake_site.url}3"}).data["id"]
        until(lambda: client.get(f"/sites/{made}").data["status"] == "up", "a new site is checked at once")
    assert asked(fake_site) == {0: 1, 1: 1, 2: 1, 3: 1}
    assert query(database(folder), f"SELECT min(last_checked_at) > '{began}' FROM sites") == [(1,)]
