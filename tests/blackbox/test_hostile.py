import base64
import contextlib
import http.client
import itertools
import json
import os
import re
import socket
import threading
import time

import pytest
from testing.process import (
    PATIENCE,
    Client,
    at_once,
    checked,
    contents,
    drained,
    parsed,
    raw,
    resident,
    status_of,
    unsound,
)

from retainer.identity.keys.keys import new_key
from retainer.server.http.bodies import BODY_SECONDS
from retainer.server.http.connections import IDLE_SECONDS
from retainer.settings import BASE_PATH
from tests.blackbox.corpus import (
    BAD_QUERIES,
    GOOD_QUERIES,
    RESOURCES,
    SURVIVED,
    WHOLE,
    hostile_ids,
    many_members,
    member,
    refused_bodies,
)
from tests.length import length, only_full, sampled

MAX_BODY_BYTES = 1024 * 1024
MEGABYTE = 1_000_000
LONGEST = IDLE_SECONDS + 10
"""After how many seconds a request that never ends is closed, on a busy machine."""
NUMBERS = itertools.count(1)
TARGETS = [("clients", "GET"), ("external-contacts", "GET")] + [
    (collection, method) for collection in RESOURCES for method in ("PUT", "PATCH", "DELETE")
]


@pytest.fixture(scope="module")
def agency(server):
    """The agency of this file; each test has a key of its own, with 3,000 requests a minute."""
    return server.agency("Hostile", "enterprise")


class RetryingClient(Client):
    """A client that sends once more when the server has closed the kept connection meanwhile."""

    def send(self, *arguments, **headers):
        try:
            return super().send(*arguments, **headers)
        except (BrokenPipeError, ConnectionResetError, http.client.RemoteDisconnected):
            return super().send(*arguments, **headers)


@pytest.fixture
def client(server, agency):
    with RetryingClient(server.port, server.new_key(agency)) as opened:
        yield opened


@pytest.fixture
def records(client):
    """One record of each kind, by collection."""
    name = f"Real {next(NUMBERS)}"
    client_id = client.post("/clients", {"name": name}).data["id"]
    contact = client.post("/external-contacts", {"client_id": client_id, "last_name": name}).data["id"]
    return {"clients": client_id, "external-contacts": contact, "tags": client.post("/tags", {"name": name}).data["id"]}


@pytest.fixture(scope="module")
def unfinished(server):
    """A connection whose headers never end, begun before all other tests of this file; and when."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as link:
        link.sendall(f"GET {BASE_PATH}/me HTTP/1.1\r\nHost: x\r\nX-Slow: ".encode())
        yield link, time.monotonic()


@pytest.fixture(autouse=True)
def healthy(server, unfinished):
    """After every test here the server answers, is the same process, and its database is sound."""
    family = server.processes()
    yield
    assert server.processes() == family, "no process of the server has died"
    with server.client(address="127.0.0.98") as client:
        assert client.get("/me").status in {401, 429}


def written(server):
    """All rows of the database but those of jobs: the server starts one for each account, at any moment."""
    found = contents(server.database)
    del found["jobs"]
    found["totals"] = [row for row in found["totals"] if "jobs" not in row]
    return found | {"sqlite_sequence": [row for row in found["sqlite_sequence"] if row[0] != "jobs"]}


@pytest.mark.parametrize("collection", RESOURCES)
def test_hostile_bodies_are_refused_and_change_nothing(server, agency, client, records, collection):
    bodies = sampled(refused_bodies(collection))
    assert len(bodies) >= length(100)
    path, one = f"/{collection}", f"/{collection}/{records[collection]}"
    before = written(server)
    wrong = []
    for body in bodies:
        for method, target in (("POST", path), ("PUT", one), ("PATCH", one), ("DELETE", f"{path}/999999999")):
            answer = client.call(method, target, body)
            wanted = {404, 400, 415, 422} if method == "DELETE" else {400, 422}
            if answer.status not in wanted:
                wrong.append((method, target, body[:100], answer))
    assert wrong == []
    assert written(server) == before
    assert unsound(server.database) == []


@pytest.mark.parametrize("collection", WHOLE)
def test_numbers_that_may_be_read_either_way_are_never_our_error(client, records, collection):
    for literal in SURVIVED:
        for method, target in (("POST", f"/{collection}"), ("PATCH", f"/{collection}/{records[collection]}")):
            assert client.call(method, target, member(collection, WHOLE[collection], literal)).status in {200, 201, 422}


def cost(server, client, body):
    """The seconds that the processors spent on a request, however long they were busy with others."""
    before = used(server)
    answer = client.post("/tags", body)
    assert answer.status in {400, 422}
    return used(server) - before


def used(server):
    """The processor time of the server's processes, in seconds."""
    ticks = (sum(map(int, status_of(pid)[11:13])) for pid in server.processes())
    return sum(ticks) / os.sysconf("SC_CLK_TCK")


def test_a_body_of_very_many_members_costs_by_its_length_and_not_by_its_square(server, client):
    """The work of the largest body is measured by smaller ones, each against a body of the same length."""
    plain = cost(server, client, many_members(20_000, twice=False))
    twice = cost(server, client, many_members(20_000, twice=True))
    assert twice < 10 * plain + 0.5, f"20,000 members: {plain:.2f} s, with the last one twice: {twice:.2f} s"


def test_other_media_are_refused(server, client):
    before = written(server)
    for media_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        assert client.post("/tags", b'{"name":"x"}', Content_Type=media_type).status == 415, media_type
    for coding in ("gzip", "br"):
        assert client.post("/tags", b'{"name":"x"}', Content_Encoding=coding).status == 415, coding
    assert written(server) == before


def test_hostile_ids_name_no_record(server, client, records):
    before = written(server)
    wrong = []
    for collection, method in TARGETS:
        body = None if method in {"GET", "DELETE"} else {}
        for hostile in hostile_ids(records[collection]):
            answer = client.call(method, f"/{collection}/{hostile}", body)
            if answer.status not in {404, 422} and not (hostile == "." and answer.status == 405):
                wrong.append((method, collection, hostile, answer))
    assert wrong == []
    assert written(server) == before


def test_hostile_queries_are_refused(client, records):
    wrong = []
    for collection in RESOURCES:
        for query in BAD_QUERIES:
            answer = client.get(f"/{collection}?{query}")
            if answer.status not in {400, 422}:
                wrong.append((collection, query[:100], answer))
    assert wrong == []


def test_strange_but_good_queries_are_answered(client, records):
    for collection in RESOURCES:
        for query in GOOD_QUERIES:
            answer = client.get(f"/{collection}?{query}")
            assert answer.status == 200, f"{query}: {answer}"
            assert len(answer.json["data"]) <= 100
    for query in ("q=%25", "q=_", "q=%5C", "q=/", f"page={10**9}"):
        assert client.get(f"/clients?{query}").json["data"] == [], f"{query} stands for itself"


def me(client, **headers):
    """Who the API says that these headers are: the key's id, or the code of the refusal."""
    answer = client.get("/me", **headers)
    return answer.data["key"]["id"] if answer.status == 200 else answer.code


def test_every_form_of_credential_is_taken_or_refused_as_documented(server, agency, address):
    good, key_id = agency["key"], agency["key_id"]
    other = server.new_key(agency)
    broken = good[:-1] + ("a" if good[-1] != "a" else "b")
    basic = base64.b64encode(f"{good}:".encode()).decode()
    with server.client(address=address) as client:
        taken = [
            {"Authorization": f"Bearer {good}"},
            {"Authorization": f"bearer {good}"},
            {"Authorization": f"BEARER   {good}"},
            {"Authorization": f"Bearer {good} "},
            {"X_Api_Key": good},
            {"X_Api_Key": f"{good} "},
            {"Authorization": f"Bearer {good}", "X_Api_Key": good},
            {"Authorization": f"Bearer {good}", "X_Api_Key": other},
            {"Authorization": f"Bearer {good}", "X_Api_Key": "nonsense"},
            {"Authorization": f"Basic {basic}", "X_Api_Key": good},
        ]
        for headers in taken:
            assert me(client, **headers) == key_id, headers
        refused = [
            ({}, "missing_key"),
            ({"Authorization": ""}, "missing_key"),
            ({"X_Api_Key": ""}, "missing_key"),
            ({"Authorization": "Bearer"}, "missing_key"),
            ({"Authorization": f"Basic {basic}"}, "missing_key"),
            ({"Authorization": f"Token {good}"}, "missing_key"),
            ({"Cookie": f"key={good}; Authorization=Bearer {good}"}, "missing_key"),
            ({"Authorization": f"Bearer {broken}"}, "invalid_key"),
            ({"Authorization": f"Bearer {new_key()}"}, "invalid_key"),
            ({"Authorization": "Bearer rtn_" + "a" * 10_000}, "invalid_key"),
            ({"Authorization": f"Bearer {good}, {other}"}, "invalid_key"),
            ({"Authorization": f"Bearer {good} {other}"}, "invalid_key"),
            ({"Authorization": f"Bearer {good.upper()}"}, "invalid_key"),
            ({"Authorization": f"Bearer {broken}", "X_Api_Key": good}, "invalid_key"),
            ({"X_Api_Key": f"Bearer {good}"}, "invalid_key"),
        ]
        for headers, code in refused:
            assert me(client, **headers) == code, headers
        for headers in ({"Authorization": "Bearer rtn_" + "é" * 38}, {"X_Api_Key": "ключ".encode().decode("latin-1")}):
            assert me(client, **headers) in {"missing_key", "invalid_key"}, "other than ASCII"
        for name in ("key", "api_key", "access_token", "X-Api-Key", "Authorization", "token"):
            assert client.get(f"/me?{name}={good}").code == "missing_key", "never from the query string"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["good first", "good last"])
@pytest.mark.parametrize("name", ["Authorization", "X-Api-Key"])
def test_two_headers_with_different_keys_are_one_request_without_an_identity(server, agency, address, name, order):
    scheme = "Bearer " if name == "Authorization" else ""
    pair = [scheme + agency["key"], scheme + new_key()]
    lines = "".join(f"{name}: {pair[index]}\r\n" for index in order)
    found, _ = raw(
        server, f"GET {BASE_PATH}/me HTTP/1.1\r\nHost: x\r\n{lines}Connection: close\r\n\r\n".encode(), address
    )
    assert [checked(answer).status for answer in found] == [401]


def test_a_header_that_is_no_text_is_refused_and_never_read_as_left_out(client, records):
    """Bytes that are no UTF-8: a precondition or a retry key may not vanish on the way."""
    found = {}
    change = client.call("PATCH", f"/tags/{records['tags']}", {"name": "Lost"}, If_Match='"\xe9"')
    found["a precondition holds"] = change.status in {400, 412}
    found["a retry key is judged"] = (
        client.post("/tags", {"name": "Twice"}, Idempotency_Key="schl\xfcssel").status == 400
    )
    assert found == dict.fromkeys(found, True)


START = f"GET {BASE_PATH}/me HTTP/1.1\r\n".encode()
POST = f"POST {BASE_PATH}/tags HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n".encode()
SMUGGLED = f"GET {BASE_PATH}/me HTTP/1.1\r\nHost: x\r\nX-Request-Id: smuggled\r\n\r\n".encode()
MALFORMED = {
    "length and chunks": POST + b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "chunks and length": POST + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "two lengths": POST + b"Content-Length: 0\r\nContent-Length: 90\r\n\r\n" + SMUGGLED,
    "two lengths in one": POST + b"Content-Length: 0, 90\r\n\r\n" + SMUGGLED,
    "negative length": POST + b"Content-Length: -1\r\n\r\n" + SMUGGLED,
    "signed length": POST + b"Content-Length: +0\r\n\r\n" + SMUGGLED,
    "hexadecimal length": POST + b"Content-Length: 0x0\r\n\r\n" + SMUGGLED,
    "endless length": POST + b"Content-Length: 99999999999999999999\r\n\r\n" + SMUGGLED,
    "length with a space": POST + b"Content-Length : 0\r\n\r\n" + SMUGGLED,
    "unknown coding": POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "chunked is not last": POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "chunk size is no number": POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n" + SMUGGLED,
    "chunk size is negative": POST + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n" + SMUGGLED,
    "chunk size overflows": POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"F" * 17 + b"\r\n\r\n" + SMUGGLED,
    "chunk is longer than said": POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\nabcdef\r\n0\r\n\r\n" + SMUGGLED,
    "header folded": START + b"Host: x\r\nX-Long: a\r\n  b\r\n\r\n",
    "header without colon": START + b"Host: x\r\nnonsense\r\n\r\n",
    "header without name": START + b"Host: x\r\n: x\r\n\r\n",
    "header with NUL": START + b"Host: x\r\nX-Nul: a\x00b\r\n\r\n",
    "lone CR": START + b"Host: x\rX-Request-Id: smuggled\r\n\r\n",
    "header of 100 kB": START + b"Host: x\r\nX-Long: " + b"a" * 100_000 + b"\r\n\r\n",
    "header of 2 MB": START + b"Host: x\r\nX-Long: " + b"a" * 2_000_000 + b"\r\n\r\n",
    "10,000 headers": START + b"Host: x\r\n" + b"".join(b"X-%d: a\r\n" % number for number in range(10_000)) + b"\r\n",
    "path of 100 kB": b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    "path that is no URI": f"GET {BASE_PATH}/\xff\x01 HTTP/1.1\r\nHost: x\r\n\r\n".encode("latin-1"),
    "path with a space": f"GET {BASE_PATH}/me x HTTP/1.1\r\nHost: x\r\n\r\n".encode(),
    "no version": f"GET {BASE_PATH}/me\r\n\r\n".encode(),
    "unknown version": f"GET {BASE_PATH}/me HTTP/1.9\r\nHost: x\r\n\r\n".encode(),
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS greeting": bytes.fromhex("160301020001000001fc0303") + bytes(500),
    "noise": bytes(range(256)) * 8,
    "only line ends": b"\r\n" * 1000,
}
UNUSUAL = {
    "lines end with LF": START.replace(b"\r\n", b"\n") + b"Host: x\n\n",
    "absolute form": f"GET http://evil.example{BASE_PATH}/me HTTP/1.1\r\nHost: x\r\n\r\n".encode(),
    "no Host": START + b"\r\n",
    "two Hosts": START + b"Host: x\r\nHost: y\r\n\r\n",
    "HTTP/1.0": f"GET {BASE_PATH}/me HTTP/1.0\r\n\r\n".encode(),
    "hostile Host": START + b'Host: "><script>alert(1)</script>\r\n\r\n',
    "expectation": START + b"Host: x\r\nExpect: nonsense\r\n\r\n",
    "upgrade": START
    + b"Host: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n",
}


def misread(server, name, data, address):
    """What is wrong with the answer to such bytes; at most one request may have been read."""
    found, closed = raw(server, data, address, wait=1.0, **({"patience": 1.0} if name == "only line ends" else {}))
    try:
        for answer in found:
            if answer.body or not closed or answer.status not in {400, 414, 431}:
                checked(answer)
            assert answer.headers.get("x-request-id") != "smuggled", f"the body was read as a request: {found}"
        assert len(found) <= 1, found
        assert found or closed or name == "only line ends", "no answer, and the connection is left open"
    except AssertionError as wrong:
        return [f"{name}: {wrong}"]
    return []


def test_malformed_http_is_answered_in_json_or_closed_and_never_read_as_two(server, address):
    """An empty 400 or 431 before the connection is closed is what a server says of bytes that are no HTTP."""
    cases = list((MALFORMED | UNUSUAL).items())
    found = at_once(16, lambda number: misread(server, *cases[number], address), len(cases))
    assert [wrong for part in found for wrong in part] == []


CHUNKS = b'Connection: close\r\n\r\n11\r\n{"name":"Coded"}\n\r\n0\r\n\r\n'
CODINGS = {
    "chunked": 201,
    " Chunked\t": 422,
    "gzip, chunked": 501,
    "gzip,chunked": 501,
    "identity, chunked": 501,
    "gzip\r\nTransfer-Encoding: chunked": 501,
    "chunked, chunked": 400,
    "chunked\r\nTransfer-Encoding: chunked": 400,
    "chunked, gzip": 400,
    "chunked\r\nTransfer-Encoding: gzip": 400,
    "gzip": 400,
    "identity": 400,
    "": 400,
}
"""The status of a body in chunks with such a Transfer-Encoding; 422, since the name is taken then."""


@pytest.mark.parametrize("path", [f"{BASE_PATH}/tags", "/console/sign-in", "/docs"])
def test_a_body_in_another_transfer_coding_than_chunked_is_refused(server, agency, path):
    """What is not chunked in the end has no length: HTTP servers close such a connection with an empty 400."""
    found = {}
    credential = f"Authorization: Bearer {agency['key']}\r\n".encode()
    for coding in CODINGS:
        head = POST.replace(f"{BASE_PATH}/tags".encode(), path.encode()) + credential
        (answer,), _ = raw(server, head + f"Transfer-Encoding: {coding}\r\n".encode() + CHUNKS, wait=PATIENCE)
        found[coding] = answer.status
        if answer.status == 501:
            assert b"no transfer coding but chunked" in answer.body, "a page of the console, else JSON"
    if path == f"{BASE_PATH}/tags":
        assert found == CODINGS
    else:
        refused = {coding: status for coding, status in CODINGS.items() if status in {400, 501}}
        assert {coding: found[coding] for coding in refused} == refused


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["length first", "chunks first"])
def test_of_a_length_beside_chunks_the_chunks_count_and_nothing_is_read_after_them(server, agency, order):
    """As RFC 9112, 6.1 says; a proxy that takes the length has read another request after it."""
    lines = [b"Content-Length: 4\r\n", b"Transfer-Encoding: chunked\r\n"]
    head = POST + f"Authorization: Bearer {agency['key']}\r\n".encode() + b"".join(lines[place] for place in order)
    found, closed = raw(server, head + b"\r\n2\r\n{}\r\n0\r\n\r\n" + SMUGGLED, wait=PATIENCE)
    assert ([answer.status for answer in found], closed) == ([422], True)


def requests(key, count, **more):
    """Several requests in one go, each with an id of its own."""
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in more.items())
    head = f"GET {BASE_PATH}/tags HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n{lines}"
    return "".join(f"{head}X-Request-Id: p-{number}\r\n\r\n" for number in range(count)).encode()


def test_pipelined_requests_are_answered_in_their_order(server, agency):
    sent = requests(agency["key"], 50).removesuffix(b"\r\n") + b"Connection: close\r\n\r\n"
    found, _ = raw(server, sent, wait=PATIENCE)
    assert [checked(answer).headers["x-request-id"] for answer in found] == [f"p-{number}" for number in range(50)]
    assert {answer.status for answer in found} == {200}


@pytest.mark.parametrize(
    ("key", "length", "status"),
    [
        (False, len(SMUGGLED), 401),
        (True, len(SMUGGLED), 400),
        (False, MAX_BODY_BYTES + 1, 413),
        (True, MAX_BODY_BYTES + 1, 413),
    ],
    ids=["no key", "no JSON", "too large without a key", "too large"],
)
def test_a_refused_body_is_never_read_as_the_next_request(server, agency, address, key, length, status):
    credential = f"Authorization: Bearer {agency['key']}\r\n".encode() if key else b""
    body = (SMUGGLED * (length // len(SMUGGLED) + 1))[:length]
    data = POST + credential + b"Content-Length: %d\r\n\r\n" % length + body + requests(agency["key"], 1)
    found, closed = raw(server, data, address, wait=1.0)
    assert not any(answer.headers.get("x-request-id") == "smuggled" for answer in found)
    assert checked(found[0]).status == status
    assert [answer.headers["x-request-id"] for answer in found[1:]] == ([] if closed else ["p-0"])


@pytest.mark.parametrize("key", [False, True], ids=["no key", "no such path"])
def test_a_connection_outlives_a_refusal(server, agency, address, key):
    """The small body comes a moment after its headers, as many clients send it."""
    credential = f"Authorization: Bearer {agency['key']}\r\n" if key else ""
    head = f"POST {BASE_PATH}/nothing HTTP/1.1\r\nHost: x\r\n{credential}Content-Length: 2\r\n\r\n".encode()
    for _ in range(30):
        with socket.create_connection(("127.0.0.1", server.port), timeout=5, source_address=(address, 0)) as link:
            link.sendall(head)
            time.sleep(0.01)
            link.sendall(b"{}" + START + b"Host: x\r\nConnection: close\r\n\r\n")
            assert len(parsed(drained(link)[0])) == 2


def head_of(key, *lines):
    return POST + f"Authorization: Bearer {key}\r\n".encode() + b"".join(line + b"\r\n" for line in lines) + b"\r\n"


def test_a_client_that_asks_before_it_sends_too_much_is_refused_at_once(server, agency):
    for size in (MAX_BODY_BYTES + 1, 10**9, 10**15):
        head = head_of(agency["key"], b"Content-Length: %d" % size, b"Expect: 100-continue")
        with socket.create_connection(("127.0.0.1", server.port), timeout=1.0) as link:
            link.sendall(head)
            (answer,) = parsed(drained(link)[0])
            assert (checked(answer).status, answer.code) == (413, "body_too_large")


def test_a_body_of_exactly_the_limit_is_read(client):
    assert client.post("/tags", json.dumps({"name": "x"}).encode().ljust(MAX_BODY_BYTES)).status == 201


def flood(server, head, megabytes):
    """Send chunks for as long as the server takes them; what it answered, and how many bytes it took."""
    chunk = b"%x\r\n" % MEGABYTE + b"a" * MEGABYTE + b"\r\n"
    sent = 0
    with socket.create_connection(("127.0.0.1", server.port), timeout=2.0) as link:
        link.sendall(head)
        with contextlib.suppress(OSError):
            for _ in range(megabytes):
                link.sendall(chunk)
                sent += len(chunk)
            link.sendall(b"0\r\n\r\n")
        try:
            return parsed(drained(link)[0]), sent
        except OSError:
            return [], sent


def test_endless_chunks_are_refused_and_take_no_memory(server, agency, address):
    chunked = b"Transfer-Encoding: chunked"
    heads = [head_of(agency["key"], chunked), POST + chunked + b"\r\n\r\n"]
    for head in heads:
        flood(server, head, 2)
    worker = server.processes()[-1]
    before = resident(worker)
    found = at_once(4, lambda number: flood(server, heads[number % 2], 40))
    assert resident(worker) - before < 20 * MEGABYTE
    for answers, _ in found:
        for answer in answers:
            assert checked(answer).status in {401, 413}


@only_full
def test_a_chunked_body_past_the_limit_is_refused_though_its_end_never_comes(server, agency):
    head = head_of(agency["key"], b"Transfer-Encoding: chunked")
    chunk = b"%x\r\n" % (MAX_BODY_BYTES + 65536) + b"a" * (MAX_BODY_BYTES + 65536) + b"\r\n"
    found, _ = raw(server, head + chunk, wait=2 * BODY_SECONDS)
    assert [checked(answer).status for answer in found] == [413]


@pytest.mark.parametrize("key", [False, True], ids=["no key", "too large"])
def test_a_client_that_sends_its_whole_body_first_gets_the_refusal(server, agency, address, key):
    credential = f"Authorization: Bearer {agency['key']}\r\n".encode() if key else b""
    for _ in range(10):
        source = (address, 0)
        with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE, source_address=source) as link:
            link.sendall(POST + credential + b"Content-Length: %d\r\n\r\n" % (8 * MEGABYTE) + b" " * (8 * MEGABYTE))
            link.settimeout(5)
            (answer,) = parsed(drained(link)[0])
        assert checked(answer).status == 413


@contextlib.contextmanager
def connections(server, count, start, then):
    """Connections that begin with some bytes, and trickle others until the block ends."""
    stopped = threading.Event()
    with contextlib.ExitStack() as stack:
        links = [
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=5)) for _ in range(count)
        ]
        for link in links:
            link.sendall(start)

        def trickle():
            while then and not stopped.wait(0.2):
                for link in links:
                    with contextlib.suppress(OSError):
                        link.sendall(then)

        thread = threading.Thread(target=trickle)
        thread.start()
        try:
            yield
        finally:
            stopped.set()
            thread.join(timeout=PATIENCE)


@pytest.mark.parametrize("kind", ["idle", "trickling headers", "trickling bodies", "answers not read"])
def test_slow_connections_do_not_stop_a_healthy_client(server, agency, kind):
    start, then = {
        "idle": (b"", b""),
        "trickling headers": (START + b"Host: x\r\nX-Slow: ", b"a"),
        "trickling bodies": (head_of(agency["key"], b"Content-Length: 1000"), b" "),
        "answers not read": (requests(agency["key"], 10), b""),
    }[kind]
    key = server.new_key(agency)
    with connections(server, 60, start, then), server.client(key, timeout=20) as healthy_client:
        for _ in range(20):
            assert healthy_client.get("/clients").status == 200
        assert healthy_client.post("/tags", {"name": f"Healthy {kind}"}).status == 201


def test_no_answer_names_what_is_inside(server, client):
    for path in ("/clients/x", "/clients?sort=x", "/nothing"):
        assert not re.search(rb"Traceback|sqlite|python|/src/|File \"", client.get(path).body, re.IGNORECASE)


def test_headers_that_are_never_finished_are_closed_in_time(unfinished):
    link, began = unfinished
    received, closed = drained(link, patience=max(0.5, began + LONGEST - time.monotonic()))
    assert closed, f"the connection is still open after {LONGEST} seconds"
    for answer in parsed(received):
        assert answer.status in {400, 408}


def test_the_server_has_logged_no_error_of_ours(server):
    failures = [line for line in server.log().splitlines() if '"event":"failure"' in line]
    assert failures == []
