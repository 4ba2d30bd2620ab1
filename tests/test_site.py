import gzip
import io
import json

import pytest
from testing.wsgi import wsgi

from retainer.kernel.limits import hit_address
from retainer.server.http import compression
from retainer.web.pages import ADDRESSES

ADDRESS = "203.0.113.5"


def outside(api, path, **headers):
    """What lies outside the base path answers without a key."""
    status, _, body = answer(api, path, **headers)
    return status, json.loads(body)


def answer(api, path, **headers):
    """The status, the headers and the bytes that a client of the address gets."""
    seen = []
    environ = {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": path,
        "QUERY_STRING": headers.pop("query", ""),
        "REMOTE_ADDR": ADDRESS,
        "SERVER_NAME": "agency.example",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_HOST": "agency.example",
        "wsgi.url_scheme": "https",
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": io.StringIO(),
        **headers,
    }
    body = b"".join(wsgi(api.app)(environ, lambda *start: seen.extend(start)))
    return seen[0], {name.lower(): value for name, value in seen[1]}, body


def left(api):
    """How many requests the address has left."""
    return hit_address(api.app.limiter, ADDRESS, charge=False).remaining


@pytest.mark.parametrize(
    "path", ["/llms-full.txt", "/llms.txt", "/openapi.yaml", "/openapi.json", "/docs", "/docs/search"]
)
def test_pages_without_a_key_are_charged_to_the_address(api, path):
    before = left(api)
    status, headers, _ = answer(api, path, query="q=invoice")
    assert (status, headers["x-ratelimit-remaining"]) == ("200 OK", str(before - 1))
    for _ in range(left(api)):
        hit_address(api.app.limiter, ADDRESS, charge=True)
    status, headers, _ = answer(api, path)
    assert status.startswith("429")
    assert 1 <= int(headers["retry-after"]) <= 60


def test_assets_are_not_charged(api):
    before = left(api)
    for path in ADDRESSES.values():
        assert answer(api, path)[0] == "200 OK"
    assert left(api) == before


def test_a_document_is_compressed_once_for_each_address_of_the_server(unnamed):
    accepting = {"HTTP_ACCEPT_ENCODING": "gzip"}
    first = answer(unnamed, "/llms-full.txt", **accepting)
    elsewhere = answer(unnamed, "/llms-full.txt", HTTP_HOST="other.example", **accepting)
    for host, (_, headers, body) in (("agency", first), ("other", elsewhere)):
        assert headers["content-encoding"] == "gzip"
        assert f"https://{host}.example/api/public/v1".encode() in gzip.decompress(body)
    compressed = compression.compress_once.cache_info().misses
    assert answer(unnamed, "/llms-full.txt", **accepting)[2] == first[2]
    assert answer(unnamed, "/llms-full.txt", HTTP_HOST="other.example", **accepting)[2] == elsewhere[2]
    assert compression.compress_once.cache_info().misses == compressed


def test_the_document_names_the_address_that_it_was_asked_for_under(unnamed):
    status, document = outside(unnamed, "/openapi.json")
    assert status == "200 OK"
    assert document["servers"][0]["url"] == "https://agency.example/api/public/v1"
    assert "/clients/{client_id}" in document["paths"]


@pytest.mark.parametrize(
    "path",
    [
        *("//", "/nothing", "/api/public/v1x/clients", "//docs", "//openapi.json", "/openapi.json/"),
        *("/openapi.yaml/x", "/llms.txt/", "/llms-full.txt/x"),
    ],
)
def test_any_other_path_says_where_the_api_is(api, path):
    status, answer = outside(api, path)
    assert status.startswith("404")
    assert "/api/public/v1" in answer["message"]
