"""What lies outside the base path, and who is asked for."""

import itertools
import json

import pytest
from testing.process import LIMIT_HEADERS, checked, raw, running, with_database

from retainer.settings import BASE_PATH
from tests.length import first, sampled

METHODS = ("GET", "POST", "DELETE", "FOO")
OUTSIDE = ("/clients", "/api", "/openapi.json/", "/favicon.gif", "/.env")


@pytest.mark.parametrize(("method", "path"), sampled([*itertools.product(METHODS, OUTSIDE), ("POST", "/")], 4))
def test_paths_outside_are_404_in_the_shape_of_the_api(server, address, method, path):
    with server.client(address=address) as client:
        answer = checked(client.send(method, path), method)
    assert (answer.status, answer.code) == (404, "not_found")
    assert BASE_PATH in answer.json["message"]
    assert (answer.headers["x-ratelimit-limit"], answer.remaining) == ("600", 599)


def test_the_document_takes_get_and_head_which_count_for_the_address(server, address):
    with server.client(address=address) as client:
        for remaining, method in ((599, "GET"), (598, "HEAD")):
            answer = checked(client.send(method, "/openapi.json"), method)
            assert (answer.status, answer.remaining) == (200, remaining)
            assert answer.headers["content-type"] == "application/json; charset=utf-8"
        for method in ("POST", "PUT", "PATCH", "DELETE", "TRACE", "FOO"):
            answer = checked(client.send(method, "/openapi.json"), method)
            assert (answer.status, answer.code, answer.headers["allow"]) == (
                405,
                "method_not_allowed",
                "GET, HEAD, OPTIONS",
            )
        assert client.send("OPTIONS", "/openapi.json").headers["allow"] == "GET, HEAD, OPTIONS"


def test_an_address_that_only_errs_is_limited_outside_too(server, address):
    with server.client(address=address) as client:
        found = [client.send("GET", "/nothing").status for _ in range(610)]
    assert found == [404] * 600 + [429] * 10


@pytest.mark.parametrize("target", first([f"{BASE_PATH}/me", "/openapi.json", "/nothing"]))
@pytest.mark.parametrize(
    "hosts", [[], [""], ["x", "y"], ["x", "x"], ["a,b"], ['"><script>alert(1)</script>'], ["a b"], ["a/b"], ["a@b"]]
)
def test_a_request_names_one_host(server, address, target, hosts):
    lines = "".join(f"Host: {host}\r\n" for host in hosts)
    (answer,), _ = raw(server, f"GET {target} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n".encode(), address)
    assert (checked(answer).status, answer.code) == (400, "bad_request")
    assert "Host" in answer.json["message"]


@pytest.mark.parametrize("host", ["localhost", "a-b.example:8443", "10.0.0.1", "[::1]:8000", "my_service:80"])
def test_hosts_of_every_kind_are_taken(server, address, host):
    sent = f"GET /openapi.json HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
    (answer,), _ = raw(server, sent, address)
    assert answer.json["servers"][0]["url"] == f"http://{host}{BASE_PATH}"


def test_an_old_client_need_not_name_a_host(server, address):
    (answer,), _ = raw(server, b"GET /openapi.json HTTP/1.0\r\n\r\n", address)
    assert answer.status == 200


def addresses(server):
    server.stop()
    lines = [json.loads(line) for line in server.log().splitlines() if '"event":"request"' in line]
    return [line["address"] for line in lines if line["request_id"].startswith("mine")]


@pytest.mark.parametrize(
    ("settings", "headers", "seen"),
    [
        ({}, {"X_Forwarded_For": "203.0.113.9"}, "127.0.0.1"),
        ({"RETAINER_TRUSTED_PROXIES": "127.0.0.1/32"}, {"X_Forwarded_For": "1.1.1.1, 203.0.113.9"}, "203.0.113.9"),
    ],
    ids=["no proxy", "X-Forwarded-For"],
)
def test_the_log_names_the_client_behind_a_trusted_proxy(tmp_path, settings, headers, seen):
    with running(with_database(tmp_path), **settings) as server:
        with server.client() as client:
            for name in LIMIT_HEADERS:
                assert name in client.get("/me", X_Request_Id="mine", **headers).headers
        assert set(addresses(server)) == {seen}
