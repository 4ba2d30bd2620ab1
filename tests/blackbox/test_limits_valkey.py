"""Servers that count requests in Valkey, and what callers notice when that is gone: nothing."""

import contextlib
import itertools
import re
import threading
import time

import pytest

from retainer.limits import WINDOW_SECONDS
from retainer.store.engines import connect
from retainer.store.tx import Store
from tests import factories
from tests.blackbox.process import at_once, command, prepared, running, until
from tests.length import length
from tests.valkey_process import ValkeyProcess

LOST, BACK = "Valkey is out of reach", "Valkey is back"
CALLERS = 4
CONNECTIONS, REQUESTS = 100, 10
NOBODY = "valkey://office:s3cret@127.0.0.1:9"


@pytest.fixture(scope="module")
def process(tmp_path_factory):
    """The server's Valkey, whole again after each test."""
    process = ValkeyProcess(tmp_path_factory.mktemp("valkey"))
    yield process
    process.kill()


@pytest.fixture(scope="module")
def server(tmp_path_factory, process):
    """A server with a Valkey."""
    folder = prepared(tmp_path_factory.mktemp("server"))
    with running(folder, "--no-monitor", RETAINER_VALKEY_URL=process.url) as server:
        yield server


@pytest.fixture
def two_servers(tmp_path, process, postgresql_databases):
    """Two servers with one PostgreSQL and a number of the Valkey that no other has; and the store of the database."""
    url = postgresql_databases.copy(postgresql_databases.prototype)
    store = Store(connect(url))
    with contextlib.ExitStack() as stack:
        stack.callback(store.engine.close)
        servers = []
        for name in ("first", "second"):
            folder = tmp_path / name
            folder.mkdir()
            addresses = {"RETAINER_DATABASE_URL": url, "RETAINER_VALKEY_URL": process.url.replace("/0", "/1")}
            servers.append(stack.enter_context(running(folder, "--no-monitor", **addresses)))
        yield servers, store


def changes(server):
    """What the log says of Valkey, in its order."""
    return re.findall(rf'"message":"({LOST}|{BACK})', server.log())


def until_shared(server):
    until(lambda: changes(server)[-1:] != [LOST], "requests are limited together")


@contextlib.contextmanager
def load(server, open_agency):
    """Callers who go on and on during the block, with much room; yields their answers, none of which is a 5xx."""
    answers, ended = [], threading.Event()

    def calling(key):
        with server.client(key) as client:
            while not ended.wait(0.01):
                answers.append(client.get("/me"))

    threads = [threading.Thread(target=calling, args=(open_agency("enterprise")["key"],)) for _ in range(CALLERS)]
    for thread in threads:
        thread.start()
    try:
        yield answers
        assert all(thread.is_alive() for thread in threads), "every request was answered as it should be"
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def until_more(answers):
    before = len(answers)
    until(lambda: len(answers) > before + CALLERS * 20, "there is load")


def admitted(server, agency):
    """Send requests until one is refused; return how many were admitted."""
    with server.client(agency["key"]) as client:
        answers = list(itertools.takewhile(lambda answer: answer.status == 200, iter(lambda: client.get("/me"), None)))
        refused = client.get("/me")
    assert refused.status == 429
    assert 1 <= int(refused.headers["retry-after"]) <= 61
    return len(answers)


def is_counted(server, process, agency):
    with server.client(agency["key"]) as client:
        assert client.get("/me").status == 200
    return f"key:{agency['key_id']}" in process.windows()


def killed(process):
    process.kill()
    yield
    process.start()


def hung(process):
    process.hang()
    yield
    process.go_on()


def restarted(process):
    process.kill()
    process.start()
    yield


def flushed(process):
    for _ in range(20):
        process.client.flushall()
        time.sleep(0.02)
    yield


@pytest.mark.parametrize("outage", [killed, hung, restarted, flushed])
def test_an_outage_fails_no_request_and_lifts_no_limit(server, process, open_agency, outage):
    until_shared(server)
    agency, later = open_agency("agency"), open_agency("agency")
    began = time.monotonic()
    with load(server, open_agency) as answers:
        until_more(answers)
        course = outage(process)
        next(course)
        until_more(answers)
        count = admitted(server, agency)
        next(course, None)
        until_shared(server)
        until(lambda: is_counted(server, process, later), "requests are counted together")
        with server.client(agency["key"]) as client:
            count += client.get("/me").status == 200
        windows = 1 + (time.monotonic() - began) // 60
    assert count <= 600 * windows
    assert {answer.status for answer in answers} <= {200, 429}
    assert changes(server) == [LOST, BACK] * (len(changes(server)) // 2), "each change is said once"


def send_at_once(servers, key):
    """Send requests over many connections, to each server in turn; return their answers."""

    def call(number):
        with servers[number % len(servers)].client(key) as client:
            return [client.get("/me") for _ in range(REQUESTS)]

    return list(itertools.chain(*at_once(CONNECTIONS, call)))


def test_of_a_thousand_requests_at_once_two_servers_admit_exactly_six_hundred(two_servers):
    servers, store = two_servers
    undisturbed = 0
    for turn in range(length(50)):
        for server in servers:
            until_shared(server)
        agency = factories.open_agency(store, f"Agency{turn}", "agency")
        before, began = [changes(server) for server in servers], time.monotonic()
        answers = send_at_once(servers, agency["key"])
        assert {answer.status for answer in answers} <= {200, 429}
        if [changes(server) for server in servers] == before and time.monotonic() - began < WINDOW_SECONDS:
            remaining = sorted(answer.remaining for answer in answers if answer.status == 200)
            assert remaining == list(range(600)), "each is handed out once"
            undisturbed += 1
    assert undisturbed, "Valkey was lost in every turn"


def test_addresses_of_refused_callers_are_counted_in_valkey_too(server, process, address):
    with server.client("rtn_wrong", address) as client:
        until(
            lambda: client.get("/me").status == 401 and f"address:{address}" in process.windows(),
            "the address is counted",
        )


def test_a_server_starts_without_valkey_says_so_and_shows_no_password(tmp_path):
    with running(prepared(tmp_path), "--no-monitor", RETAINER_VALKEY_URL=NOBODY) as server:
        began = time.monotonic()
        assert admitted(server, server.agency("North", "agency")) <= 600 * (1 + (time.monotonic() - began) // 60)
        until(lambda: changes(server) == [LOST], "the log says so")
        assert "s3cret" not in server.log()
    result = command(tmp_path, "doctor", RETAINER_VALKEY_URL=NOBODY)
    assert "valkey_url" in result.out.lower()
    assert "valkey://office:***@127.0.0.1:9 (from environment)" in result.out
    assert "s3cret" not in result.out + result.err
