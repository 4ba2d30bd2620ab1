"""Bodies that arrive slowly or never: only their own account waits for them."""

import contextlib
import select
import socket
import time

import pytest
from testing.process import Client, at_once, checked, drained, parsed, query, statuses

from retainer.server.http.bodies import ANONYMOUS_BODIES, BODY_SECONDS
from retainer.settings import BASE_PATH
from tests.length import only_full

LONGEST = 2 * BODY_SECONDS + 10
FORM = "application/x-www-form-urlencoded"
HEAD = f"POST {BASE_PATH}/tags HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


def head(key, *lines):
    return "".join(line + "\r\n" for line in (f"{HEAD}Authorization: Bearer {key}", *lines, "")).encode()


def unfinished(key):
    """A request whose body has only begun."""
    return head(key, "Content-Length: 1000") + b"{"


@contextlib.contextmanager
def connections(server, requests, addresses=1):
    """Connections from some addresses that have sent these bytes and stay as they are until the block ends."""
    with contextlib.ExitStack() as stack:
        links = []
        for number, sent in enumerate(requests):
            source = (f"127.0.0.{1 + number % addresses}", 0)
            link = socket.create_connection(("127.0.0.1", server.port), timeout=10, source_address=source)
            links.append(stack.enter_context(link))
            links[-1].sendall(sent)
        time.sleep(0.3)  # the server has read their headers
        yield links


def answered(links):
    """Those of the connections on which something has come back."""
    return select.select(links, [], [], 0)[0]


@pytest.fixture(scope="module")
def overdue(server):
    """A body of which nothing comes and one that drips, begun before all other tests of this file; and when."""
    key = server.agency("Overdue", "enterprise")["key"]
    with connections(server, [unfinished(key), unfinished(key)]) as links:
        yield (*links, time.monotonic())


@pytest.fixture(autouse=True)
def dripping(overdue):
    """Each test is a drop."""
    with contextlib.suppress(OSError):
        overdue[1].sendall(b" ")


@pytest.mark.parametrize(("count", "keys"), [(12, 2), (60, 1), (60, 3)])
def test_slow_bodies_of_one_account_refuse_and_delay_no_other(server, open_agency, count, keys):
    slow, other = open_agency("enterprise"), open_agency("enterprise")["key"]
    senders = [server.new_key(slow) for _ in range(keys)]
    began = time.monotonic()
    with connections(server, [unfinished(senders[number % keys]) for number in range(count)]) as links:
        with server.client(other) as client:
            written = [client.post("/tags", {"name": f"Tag {number}"}) for number in range(20)]
            read = [client.get("/tags") for _ in range(20)]
        is_ended = time.monotonic() - began > BODY_SECONDS
        assert answered(links) == [] or is_ended, "none of them has waited for the end of a slow body"
    assert (statuses(written), statuses(read)) == ({201: 20}, {200: 20})


@only_full
def test_an_account_without_room_for_bodies_is_refused_in_time_and_can_still_read(server, open_agency, agency):
    slow = open_agency("enterprise")
    with connections(server, [unfinished(slow["key"]) for _ in range(150)]) as links:
        links[0].sendall(b'"name":"Late"}'.ljust(999))
        (answer,) = parsed(drained(links[0])[0])
        assert checked(answer).status == 201, "a body that has a place may take its time"
        with server.client(server.new_key(slow)) as client:
            assert client.get("/tags").status == 200
        with server.client(agency["key"]) as other:
            assert other.post("/tags", {"name": "Mine"}).status == 201
        for link in links[1:]:
            link.settimeout(0.01)
            (answer,) = parsed(drained(link, patience=LONGEST)[0])
            assert (answer.status, answer.code) in {(400, "bad_request"), (503, "unavailable")}
            assert answer.headers["connection"] == "close"
    with server.client(slow["key"]) as client:
        assert client.post("/tags", {"name": "Free again"}).status == 201


@only_full
def test_bodies_of_unknown_keys_that_never_arrive_delay_no_response(server, agency, address):
    """More than may be awaited without an account.

    The client has an address of its own: beside its idle connection, a slow body may keep its place 30 seconds longer.
    """
    senders = connections(server, [unfinished("unknown")] * 150, 20)
    with senders as links, server.client(agency["key"], address) as client:
        assert client.get("/tags").status == 200
        assert client.post("/tags", {"name": "Mine"}).status == 201
        for link in links:
            link.settimeout(0.01)
            (answer,) = parsed(drained(link, patience=LONGEST)[0])
            assert answer.status in {400, 503}


UNFINISHED_FORM = (
    f"POST /console/sign-in HTTP/1.1\r\nHost: x\r\nSec-Fetch-Site: same-origin\r\nContent-Type: {FORM}\r\n"
    "Content-Length: 1000\r\n\r\nemail="
).encode()


def test_slow_forms_from_many_addresses_hold_up_no_account(server, agency):
    with connections(server, [UNFINISHED_FORM] * 200, 20), server.client(agency["key"]) as client:
        assert statuses([client.post("/tags", {"name": f"Tag {number}"}) for number in range(5)]) == {201: 5}


@only_full
def test_half_a_request_beside_a_slow_body_does_not_keep_it_for_ever(server):
    """The bodies are as many as are awaited without an account; parts of heads come from each of their addresses."""
    addresses, parts = 4, []
    with connections(server, [UNFINISHED_FORM] * ANONYMOUS_BODIES, addresses) as links, contextlib.ExitStack() as stack:
        end = time.monotonic() + LONGEST
        while len(answered(links)) < ANONYMOUS_BODIES and time.monotonic() < end:
            if len(parts) < LONGEST:
                parts.append(
                    stack.enter_context(connections(server, [b"GET /console HTTP/1.1\r\nHo"] * addresses, addresses))
                )
            time.sleep(1)
        assert len(answered(links)) == ANONYMOUS_BODIES


def test_slow_forms_of_one_address_hold_up_no_sign_in_from_another(server):
    with connections(server, [UNFINISHED_FORM] * 150), Client(server.port, address="127.0.0.2") as elsewhere:
        headers = {"Content_Type": FORM, "Sec_Fetch_Site": "same-origin"}
        refused = elsewhere.send("POST", "/console/sign-in", b"email=a%40x.example&password=wrong", **headers)
    assert refused.status == 422, "no user has this email, but the form was read"


def test_many_writes_at_once_of_one_account_all_find_a_slot(server, agency):
    def post(number):
        with server.client(agency["key"]) as client:
            return [client.post("/tags", {"name": f"{number}-{turn}"}) for turn in range(5)]

    assert statuses([answer for part in at_once(40, post) for answer in part]) == {201: 200}


ENDED = {
    "an object and a length": head("{key}", "Content-Length: 1000") + b'{"name":"Short"}',
    "nothing of its length": head("{key}", "Content-Length: 1000"),
    "an object in chunks": head("{key}", "Transfer-Encoding: chunked") + b'10\r\n{"name":"Short"\r\n',
    "no chunk at all": head("{key}", "Transfer-Encoding: chunked"),
}
"""Requests whose connection ends before their body does."""


@pytest.mark.parametrize("sent", ENDED.values(), ids=ENDED)
def test_a_body_that_ends_before_its_end_is_not_executed(server, agency, sent):
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as link:
        link.sendall(sent.replace(b"{key}", agency["key"].encode()))
        time.sleep(0.1)
        link.shutdown(socket.SHUT_WR)
        (answer,) = parsed(drained(link)[0])
    assert (checked(answer).status, answer.code) in {(400, "bad_request"), (400, "malformed_json")}
    assert ("with a Content-Length" in answer.json["message"]) == (b"chunked" in sent)
    with server.client(agency["key"]) as client:
        assert client.get("/tags").json["data"] == []


@pytest.mark.parametrize("ends", ["Content-Length: 5", "Transfer-Encoding: chunked"])
def test_a_delete_whose_body_never_came_is_not_executed(server, agency, ends):
    with server.client(agency["key"]) as client:
        tag = client.post("/tags", {"name": "Kept"}).data["id"]
        cut = head(agency["key"], ends).replace(b"POST", b"DELETE").replace(b"/tags", b"/tags/%d" % tag)
        with socket.create_connection(("127.0.0.1", server.port), timeout=5) as link:
            link.sendall(cut)
            time.sleep(0.1)
            link.shutdown(socket.SHUT_WR)
            (answer,) = parsed(drained(link)[0])
        assert (checked(answer).status, answer.code) == (400, "bad_request")
        assert [row["id"] for row in client.get("/tags").json["data"]] == [tag]


@only_full
def test_a_whole_body_in_chunks_is_taken(server, agency):
    sent = head(agency["key"], "Transfer-Encoding: chunked") + b'7\r\n{"name"\r\n9\r\n:"Whole"}\r\n0\r\n\r\n'
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as link:
        link.sendall(sent)
        (answer,) = parsed(drained(link)[0])
    assert checked(answer).data["name"] == "Whole"


@only_full
def test_a_body_that_does_not_arrive_in_time_is_refused_and_its_connection_ends(server, overdue):
    silent, drips, began = overdue
    for link in (silent, drips):
        received, closed = b"", False
        while not received and not closed:
            in_time = time.monotonic() < began + LONGEST
            link.settimeout(0.5)
            with contextlib.suppress(OSError):
                drips.sendall(b" ")
            received, closed = drained(link, patience=0.5)
            if not in_time:  # what has come meanwhile was read once more: the tests before this one may take long
                break
        assert received, "an answer before the end"
        (answer,) = parsed(received)
        assert (checked(answer).status, answer.code) == (400, "bad_request")
        assert answer.headers["connection"] == "close"
    assert query(server.database, "SELECT count(*) FROM tags WHERE name = ''") == [(0,)]
