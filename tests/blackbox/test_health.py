"""Health: whether a server is alive, and whether it should get requests."""

import json
import tempfile
import time
from pathlib import Path

import pytest
from testing.ports import free_port
from testing.process import query, running, until, with_database

from tests.length import only_full
from tests.postgresql_process import postgresql_process
from tests.valkey_process import ValkeyProcess

OK = {"status": "ready", "database": "ok", "migrations": "ok"}


def ask(server, page, method="GET"):
    """An answer without what all answers of the API have."""
    with server.client() as client:
        return client.send(method, page)


def found(server):
    answer = ask(server, "/readyz")
    return answer.status, answer.json


def events(server):
    lines = [line for line in server.log().splitlines() if line.startswith("{")]
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def place(fast_disk):
    """A server and its PostgreSQL, which a test may stop or hang."""
    with tempfile.TemporaryDirectory(dir=fast_disk) as folder, postgresql_process(Path(folder)) as database:
        home = Path(folder) / "home"
        home.mkdir()
        with running(home, "--no-monitor", RETAINER_DATABASE_URL=database.url) as server:
            yield server, database


def until_ready(server):
    until(lambda: found(server) == (200, OK), "the server is ready")


def test_health_pages_take_get_and_head_without_a_key_or_a_limit(server, address):
    with server.client(address=address) as client:
        for _ in range(700):
            assert client.send("GET", "/livez").json == {"status": "alive"}
        assert client.send("GET", "/readyz").json == OK
        head = client.send("HEAD", "/readyz")
        assert (head.status, head.body, head.headers["cache-control"]) == (200, b"", "no-store")
        refused = client.send("POST", "/livez", {})
        assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD")
    assert [line for line in events(server) if line.get("path") in {"/livez", "/readyz"}] == []


@only_full
def test_a_database_that_is_gone_makes_a_server_unready_and_the_log_says_so_twice(place):
    server, database = place
    until_ready(server)
    key = server.agency("North", "enterprise")["key"]
    before = len(events(server))
    database.stop("fast")
    until(lambda: found(server)[0] == 503, "the server is not ready")
    assert found(server) == (503, {"status": "unready", "database": "out of reach"})
    assert ask(server, "/livez").status == 200
    with server.client(key) as client:
        statuses = {client.send("GET", "/api/public/v1/clients").status for _ in range(50)}
    assert statuses == {503}
    database.start()
    until_ready(server)
    ended = until(lambda: [line for line in events(server) if line.get("state") == "ended"], "the log says so")
    lines = events(server)[before:]
    assert [line["state"] for line in lines if line["event"] == "outage"] == ["began", "ended"]
    assert [line for line in lines if line["event"] == "failure"] == []
    assert "Traceback" not in server.log()
    assert [line["status"] for line in lines if line["event"] == "request"].count(503) == 50
    assert "The database can be used again." in ended[-1]["message"]


def test_a_database_that_hangs_makes_a_server_unready_that_lives(place):
    server, database = place
    until_ready(server)
    time.sleep(1.1)  # what was found is no longer answered
    database.hang()
    try:
        for _ in range(3):
            assert found(server)[0] == 503
            assert found(server)[1]["database"] in {"no answer in time", "out of reach"}
            assert ask(server, "/livez").status == 200
    finally:
        database.go_on()
    until_ready(server)


@pytest.mark.parametrize(("revision", "status", "word"), [("0001", 503, "behind"), ("9999", 200, "ok")])
def test_a_schema_that_is_behind_makes_a_server_unready_and_a_newer_one_does_not(place, revision, status, word):
    server, database = place
    until_ready(server)
    ((newest,),) = query(database.url, "SELECT version_num FROM alembic_version")
    try:
        query(database.url, f"UPDATE alembic_version SET version_num = '{revision}' RETURNING 1")
        time.sleep(1.1)  # what was found is no longer answered
        assert (found(server)[0], found(server)[1]["migrations"]) == (status, word)
    finally:
        query(database.url, f"UPDATE alembic_version SET version_num = '{newest}' RETURNING 1")
    until_ready(server)


def test_without_valkey_a_server_is_ready_and_says_what_is_missing(tmp_path):
    valkey = ValkeyProcess(tmp_path)
    with running(with_database(tmp_path / "server"), "--no-monitor", RETAINER_VALKEY_URL=valkey.url) as server:
        until(lambda: found(server) == (200, {**OK, "valkey": "ok"}), "the server is ready")
        valkey.kill()
        key = server.agency("North", "enterprise")["key"]
        with server.client(key) as client:
            assert client.get("/me").status == 200
        assert found(server) == (200, {**OK, "status": "degraded", "valkey": "out of reach"})


def test_health_pages_can_have_an_address_of_their_own_or_none(tmp_path):
    port = free_port()
    with running(with_database(tmp_path), "--no-monitor", RETAINER_HEALTH=f"127.0.0.1:{port}") as server:
        assert ask(server, "/livez").status == 404
        server.port = port
        assert ask(server, "/livez").status == 200
        assert ask(server, "/readyz").json == OK
        assert ask(server, "/metrics").status == 404
        assert ask(server, "/api/public/v1/me").status == 404
