"""Responses as gzip: only on request, with the same content, and ETags that work in both forms."""

import gzip

import pytest
from testing.process import query

from retainer.settings import BASE_PATH


@pytest.fixture
def client(server, agency):
    with server.client(agency["key"]) as opened:
        yield opened


@pytest.fixture
def long(client):
    """The path of a record whose JSON is longer than a packet."""
    made = client.post("/clients", {"name": "Long", "notes": "Called about the relaunch. " * 80})
    return f"/clients/{made.data['id']}"


def encodings(answer):
    return answer.headers.get("content-encoding"), answer.headers["vary"]


VARY = "Authorization, X-Api-Key, Accept, Accept-Encoding"


@pytest.mark.parametrize(
    ("asked", "packed"),
    [
        ("gzip", True),
        ("GZIP", True),
        ("gzip, deflate, br, zstd", True),
        ("br;q=1.0, gzip;q=0.8, *;q=0.1", True),
        ("x-gzip", True),
        ("identity;q=0.5, gzip;q=0.5", True),
        ("gzip;q=0", False),
        ("gzip; q=0.000", False),
        ("identity;q=1, *;q=0", False),
        ("br", False),
        ("", False),
        ("gzip;q=nonsense", False),
    ],
)
def test_an_answer_is_compressed_if_gzip_is_accepted(client, long, asked, packed):
    plain = client.send("GET", BASE_PATH + long, Accept_Encoding="identity")
    answer = client.send("GET", BASE_PATH + long, Accept_Encoding=asked)
    assert encodings(plain) == (None, VARY)
    assert encodings(answer) == ("gzip" if packed else None, VARY)
    assert (gzip.decompress(answer.body) if packed else answer.body) == plain.body
    assert int(answer.headers["content-length"]) == len(answer.body)
    assert (len(answer.body) < len(plain.body) / 2) == packed


def test_small_answers_and_those_without_a_body_stay_as_they_are(client):
    small = client.post("/tags", {"name": "Small"}, Accept_Encoding="gzip")
    assert encodings(small) == (None, VARY)
    gone = client.call("DELETE", f"/tags/{small.data['id']}", Accept_Encoding="gzip")
    assert (gone.status, gone.body, *encodings(gone)) == (204, b"", None, VARY)


def test_lists_errors_and_creates_are_compressed_too(client, long):
    for answer in (
        client.send("GET", BASE_PATH + "/clients", Accept_Encoding="gzip"),
        client.send("POST", BASE_PATH + "/clients", {"name": "x" * 300, "notes": "y" * 2000}, Accept_Encoding="gzip"),
        client.send("POST", BASE_PATH + "/clients", {"name": "Good", "notes": "y" * 2000}, Accept_Encoding="gzip"),
    ):
        plain = gzip.decompress(answer.body) if encodings(answer)[0] else answer.body
        assert plain.startswith(b"{")
        assert (len(plain) > 1024) == (encodings(answer)[0] == "gzip")


def test_head_answers_the_headers_of_get(client, long):
    for asked in ("gzip", "identity"):
        got = client.send("GET", BASE_PATH + long, Accept_Encoding=asked)
        head = client.send("HEAD", BASE_PATH + long, Accept_Encoding=asked)
        assert head.body == b""
        same = ("content-length", "content-encoding", "etag", "content-type", "vary")
        assert [head.headers.get(name) for name in same] == [got.headers.get(name) for name in same]


def test_each_encoding_has_a_tag_of_its_own_and_preconditions_take_either(client, long):
    target = BASE_PATH + long
    plain = client.send("GET", target).headers["etag"]
    packed = client.send("GET", target, Accept_Encoding="gzip").headers["etag"]
    assert packed == plain[:-1] + '-gzip"'
    for tag in (plain, packed, f"W/{packed}", f'"other", {packed}'):
        for asked in ("gzip", "identity"):
            same = client.send("GET", target, If_None_Match=tag, Accept_Encoding=asked)
            assert (same.status, same.body, encodings(same)) == (304, b"", (None, VARY)), tag
    assert client.send("GET", target, If_None_Match=packed, Accept_Encoding="gzip").headers["etag"] == packed
    assert client.send("GET", target, If_None_Match=plain).headers["etag"] == plain
    changed = client.send("PATCH", target, {"city": "Lyon"}, If_Match=packed, Accept_Encoding="gzip")
    assert (changed.status, encodings(changed)[0]) == (200, "gzip")
    assert client.send("PATCH", target, {"city": "Porto"}, If_Match=packed).status == 412
    assert client.send("PATCH", target, {"city": "Porto"}, If_Match=changed.headers["etag"]).status == 200


def test_an_attempt_is_kept_uncompressed_and_told_as_each_caller_asks(server, client):
    body = {"name": "Once", "notes": "z" * 3000}
    first = client.send("POST", BASE_PATH + "/clients", body, Idempotency_Key="gzip-1", Accept_Encoding="gzip")
    plain = client.send("POST", BASE_PATH + "/clients", body, Idempotency_Key="gzip-1")
    again = client.send("POST", BASE_PATH + "/clients", body, Idempotency_Key="gzip-1", Accept_Encoding="gzip")
    assert gzip.decompress(first.body) == plain.body == gzip.decompress(again.body)
    assert plain.headers["etag"] != first.headers["etag"] == again.headers["etag"]
    assert plain.headers["idempotency-replayed"] == again.headers["idempotency-replayed"] == "true"
    ((kept, headers),) = query(server.database, "SELECT body, headers FROM idempotency_keys WHERE value = 'gzip-1'")
    assert kept == plain.body
    assert "gzip" not in headers


def test_the_document_is_compressed_tagged_and_answers_304(server, client):
    plain, packed = client.send("GET", "/openapi.json"), client.send("GET", "/openapi.json", Accept_Encoding="gzip")
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) < len(plain.body) / 8
    assert client.send("GET", "/openapi.json", If_None_Match=packed.headers["etag"]).status == 304
    assert plain.json["servers"][0]["url"] == f"http://127.0.0.1:{server.port}{BASE_PATH}"
    other = client.send("GET", "/openapi.json", Host="api.agency.example")
    assert other.json["servers"][0]["url"] == f"http://api.agency.example{BASE_PATH}"
    assert other.headers["etag"] != plain.headers["etag"]
