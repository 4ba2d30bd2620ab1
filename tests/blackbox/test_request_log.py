"""The request log of a server: what was requested is found by the command line, to the last request before its end."""

import pytest
from testing.process import command, query, running, tell, until


@pytest.fixture
def server(tmp_path):
    with running(tmp_path) as started:
        yield started


@pytest.fixture
def agency(server):
    return server.agency("North", "agency")


def paths(folder, agency, *options):
    listed = tell(folder, "requests", "list", agency["account_id"], *options)
    return [request["path"] for request in listed["requests"]]


def test_a_request_is_in_the_request_log_within_seconds(server, agency):
    folder = server.folder
    with server.client(agency["key"]) as client:
        made = client.post("/clients", {"name": "Bergmann"}).data["id"]
        until(lambda: query(server.database, "SELECT count(*) FROM requests") == [(1,)], "the request is logged")
        assert paths(folder, agency) == ["/clients"]
        client.get(f"/clients/{made}?colour=red", X_Request_Id="mine-1")
    assert server.stop() == 0
    listed = tell(folder, "requests", "list", agency["account_id"])
    last, first = listed["requests"]
    assert (listed["next"], listed["searched_to"]) == (None, None)
    assert (last["request_id"], last["status"], last["path"]) == ("mine-1", 422, f"/clients/{made}")
    assert (first["method"], first["record"], first["operation"]) == ("POST", f"/clients/{made}", "createClient")
    assert paths(folder, agency, "--status", "4xx") == [f"/clients/{made}"]
    assert paths(folder, agency, "--method", "post", "--path", "/cli") == ["/clients"]
    assert paths(folder, agency, "--record", f"/clients/{made}", "--address", "127.0.0.1") == ["/clients"]
    assert paths(folder, agency, "--address", "203.0.113.7") == []
    for_people = command(folder, "requests", "list", agency["account_id"], "--limit", "1")
    assert "mine-1" in for_people.out
    assert "duration_ms" in for_people.out
    assert last["duration_ms"] == last["duration_us"] // 1000
    assert f"next: {last['answered_at']}.{last['number']}" in for_people.out


def test_all_bad_filters_are_named_at_once(server, agency):
    options = ("--key-id", "0", "--status", "6xx", "--since", "yesterday")
    refused = command(server.folder, "requests", "list", agency["account_id"], *options)
    assert refused.status == 1
    assert [line.partition(":")[0] for line in refused.err.splitlines()] == ["--key-id", "--status", "--since"]
    refused = command(server.folder, "requests", "list", agency["account_id"], "--after", "x")
    assert refused.err.startswith("--after: ")
    assert "There is no account" in command(server.folder, "requests", "list", "99").err


def test_0_days_switch_the_log_off(tmp_path):
    with running(tmp_path, RETAINER_REQUEST_LOG_DAYS="0") as server:
        agency = server.agency("North", "agency")
        with server.client(agency["key"]) as client:
            client.get("/clients")
        server.stop()
        assert paths(tmp_path, agency) == []
