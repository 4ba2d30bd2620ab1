"""Servers that count requests in Valkey; callers notice nothing when it is gone."""

import contextlib
import itertools
import re
import threading
import time

import pytest
from testing.process import Servers, at_once, command, running, running_together, until, with_database

from retainer.kernel.limits import WINDOW_SECONDS
from tests.length import first, length, only_full
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
def one_server(tmp_path_factory, process):
    """A server of the embedded database with a Valkey."""
    folder = with_database(tmp_path_factory.mktemp("server"))
    with running(folder, "--no-monitor", RETAINER_VALKEY_URL=process.url) as server:
        yield Servers(server)


@pytest.fixture(scope="module")
def two_servers(tmp_path_factory, process, postgresql_databases):
    """Two servers of two workers each with one PostgreSQL and the Valkey."""
    url = postgresql_databases.copy(postgresql_databases.prototype)
    addresses = {"RETAINER_DATABASE_URL": url, "RETAINER_VALKEY_URL": process.url}
    with running_together(tmp_path_factory.mktemp("servers"), 2, **addresses) as servers:
        yield servers
    postgresql_databases.discard(url)


@pytest.fixture(autouse=True)
def nothing_counted(process):
    """The ids of keys are the same in both databases: what was counted for one must not count for the other."""
    process.client.flushall()


@pytest.fixture(params=first(["one_server", "two_servers"]))
def servers(request):
    """The one server, and the two."""
    return request.getfixturevalue(request.param)


def changes(servers):
    """What the log of each server says of Valkey, in its order."""
    return [re.findall(rf'"message":"({LOST}|{BACK})', server.log()) for server in servers.each]


def until_shared(servers):
    """Send requests, each of which may be an attempt, until each process has said of each outage that it is over."""

    def is_shared():
        with servers.client("no key") as client:
            client.get("/me")
        return all(said.count(LOST) == said.count(BACK) for said in changes(servers))

    until(is_shared, "limits are shared")


@contextlib.contextmanager
def load(servers, open_agency):
    """Callers that send requests during the block, below their limit; yields their answers, none of which is a 5xx."""
    answers, ended = [], threading.Event()

    def calling(key):
        with servers.client(key) as client:
            while not ended.wait(0.01):
                began = time.monotonic()
                try:
                    answers.append(client.get("/me"))
                except OSError as error:
                    error.add_note(f"{time.monotonic() - began:.1f} seconds after the request")
                    raise

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


def admitted(servers, agency):
    """Send requests until one is refused; return how many were admitted."""
    count = 0
    with servers.client(agency["key"]) as client:
        while (answer := client.get("/me")).status == 200:
            count += 1
    assert answer.status == 429
    assert 1 <= int(answer.headers["retry-after"]) <= 61
    return count


def is_counted(servers, process, agency):
    with servers.client(agency["key"]) as client:
        assert client.get("/me").status == 200
    return f"key:{agency['key_id']}" in process.windows()


def killed(process):
    process.kill()
    try:
        yield
    finally:
        process.start()


def hung(process):
    process.hang()
    try:
        yield
    finally:
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


@pytest.mark.parametrize("outage", first([killed, hung, restarted, flushed]))
def test_an_outage_fails_no_request_and_lifts_no_limit(servers, process, open_agency, outage):
    until_shared(servers)
    agency, later = open_agency("agency"), open_agency("agency")
    began = time.monotonic()
    with load(servers, open_agency) as answers:
        until_more(answers)
        with contextlib.contextmanager(outage)(process):
            until_more(answers)
            count = admitted(servers, agency)
        until_shared(servers)
        until(lambda: is_counted(servers, process, later), "requests are counted together")
        with servers.client(agency["key"]) as client:
            count += client.get("/me").status == 200
        windows = 1 + (time.monotonic() - began) // 60
    until_shared(servers)  # on a busy machine Valkey may have been too slow once more
    assert count <= 600 * windows * servers.workers, "during the outage each worker limits for itself"
    assert {answer.status for answer in answers} <= {200, 429}
    for said in changes(servers):
        alternate = [LOST, BACK] * (len(said) // 2)
        assert sorted(said) == sorted(alternate), "each change is said once"
        assert servers.workers > 1 or said == alternate


def send_at_once(servers, key):
    """Send requests over many connections, to each server in turn; return their answers."""

    def call(_):
        with servers.client(key) as client:
            return [client.get("/me") for _ in range(REQUESTS)]

    return list(itertools.chain(*at_once(CONNECTIONS, call)))


@only_full
def test_of_a_thousand_requests_at_once_two_servers_admit_exactly_six_hundred(two_servers):
    undisturbed = 0
    for turn in range(length(8)):
        until_shared(two_servers)
        agency = two_servers.agency(f"Agency{turn}", "agency")
        before, began = changes(two_servers), time.monotonic()
        answers = send_at_once(two_servers, agency["key"])
        assert {answer.status for answer in answers} <= {200, 429}
        if changes(two_servers) == before and time.monotonic() - began < WINDOW_SECONDS:
            remaining = sorted(answer.remaining for answer in answers if answer.status == 200)
            assert remaining == list(range(600)), "each is handed out once"
            undisturbed += 1
    assert undisturbed, "Valkey was lost in every turn"


def test_addresses_of_refused_callers_are_counted_in_valkey_too(servers, process, address):
    with servers.client("rtn_wrong", address) as client:
        until(
            lambda: client.get("/me").status == 401 and f"address:{address}" in process.windows(),
            "the address is counted",
        )


@only_full
def test_a_server_starts_without_valkey_says_so_and_shows_no_password(tmp_path):
    with running(with_database(tmp_path), "--no-monitor", RETAINER_VALKEY_URL=NOBODY) as server:
        began = time.monotonic()
        assert admitted(server, server.agency("North", "agency")) <= 600 * (1 + (time.monotonic() - began) // 60)
        until(lambda: changes(Servers(server)) == [[LOST]], "the log says so")
        assert "s3cret" not in server.log()
    result = command(tmp_path, "doctor", RETAINER_VALKEY_URL=NOBODY)
    assert "valkey_url" in result.out.lower()
    assert "valkey://office:***@127.0.0.1:9 (from environment)" in result.out
    assert "s3cret" not in result.out + result.err
