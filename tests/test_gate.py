"""The gate: bodies, turns and deadlines of requests."""

import io
import threading
import time
from contextlib import contextmanager

import pytest
from testing.agencies import bare_request
from testing.process import until

from retainer.errors import Refusal
from retainer.server.http import gate as gates
from retainer.server.http.gate import Gate
from retainer.settings import Settings
from retainer.store.engines.base import of_request


class SlowBody:
    """A body that arrives when it is told to."""

    def __init__(self):
        self.arrives = threading.Event()

    def read(self, _size):
        assert self.arrives.wait(60)
        return b"{}"


def request(body=None, **environ):
    sent = {"REQUEST_METHOD": "POST", "CONTENT_LENGTH": "2", "wsgi.input": body} if body else {}
    return bare_request(Settings(), **(sent | environ))


@contextmanager
def admitted(gate, sent):
    gate.admit(sent)
    try:
        yield
    finally:
        gate.end(sent)


def known(gate, account_id, **environ):
    """A request of an account that has sent one before."""
    sent = request(HTTP_AUTHORIZATION=f"Bearer {account_id}", **environ)
    sent.account_id = account_id
    gate.learn(sent)
    return sent


@pytest.mark.parametrize("count", [1, 16])
def test_an_account_runs_two_requests_at_a_time_and_another_finds_a_turn(count, monkeypatch):
    monkeypatch.setattr(gates, "TURN_SECONDS", 0)
    gate = Gate(count)
    share = min(2, count)
    assert [gate.running.acquire(7, 0) for _ in range(share)] == [True] * share
    with admitted(gate, refused := known(gate, 7)), pytest.raises(Refusal) as told:
        refused.check()
    assert (told.value.code, told.value.headers["Retry-After"]) == ("unavailable", "5")
    if count > 1:
        with admitted(gate, other := known(gate, 8)):
            other.check()
    assert gate.running.free == count - share


@pytest.mark.parametrize("others", [{"HTTP_COOKIE": "a=1"}, {"REMOTE_ADDR": "192.0.2.7"}])
def test_credentials_that_were_never_seen_have_the_turns_of_their_account(others, monkeypatch):
    monkeypatch.setattr(gates, "TURN_SECONDS", 0)
    gate = Gate(16, lambda _: 7)
    assert [gate.running.acquire(7, 0) for _ in range(gate.running.share)] == [True, True]
    with admitted(gate, refused := request(HTTP_AUTHORIZATION="Bearer new", **others)), pytest.raises(Refusal) as told:
        refused.check()
    assert told.value.code == "unavailable"


def test_credentials_that_have_ended_no_longer_have_the_turns_of_their_account():
    gate = Gate(16)
    with admitted(gate, ended := known(gate, 7)):
        ended.account_id = None
    assert gate.subject_of(ended) == "127.0.0.1"


def be_refused(gate):
    with admitted(gate, sent := request()):
        assert sent.refusal


def test_a_request_that_is_told_nothing_but_its_refusal_holds_no_turn(monkeypatch):
    monkeypatch.setattr(gates, "TURN_SECONDS", 0)
    gate = Gate(1)
    with admitted(gate, request()):
        thread = threading.Thread(target=be_refused, args=(gate,))
        thread.start()
        thread.join()
        assert gate.running.free == 0
    assert gate.running.free == 1


def test_a_turn_that_is_left_is_for_others_and_taken_again_whatever_happens():
    gate = Gate(1)

    def fail():
        with gate.left():
            assert gate.running.free == 1
            raise ValueError("broken")

    with admitted(gate, request()):
        with pytest.raises(ValueError, match="broken"):
            fail()
        assert gate.running.free == 0
    assert gate.running.free == 1


def test_while_a_body_is_awaited_others_run():
    gate, body = Gate(1), SlowBody()
    slow = request(body)

    def receive():
        with admitted(gate, slow):
            slow.check()

    thread = threading.Thread(target=receive)
    thread.start()
    until(lambda: gate.anonymous_bodies.free < gate.anonymous_bodies.count, "it waits for its body")
    with admitted(gate, request()):
        assert gate.running.free == 0
    body.arrives.set()
    thread.join()
    assert (slow.body, slow.has_body, gate.running.free) == (b"{}", False, 1)
    assert gate.anonymous_bodies.free == gate.anonymous_bodies.count


@pytest.mark.parametrize(
    ("body", "headers", "told"),
    [
        (b"{", {}, "incomplete"),
        (b"{", {"HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": None}, "Content-Length"),
        (b"x" * (1024 * 1024 + 1), {"CONTENT_LENGTH": str(1024 * 1024 + 1)}, "larger than 1 MiB"),
        (b"x" * (1024 * 1024 + 1), {"HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": None}, "larger than 1 MiB"),
    ],
)
def test_a_body_that_is_cut_or_too_large_is_refused_and_its_rest_is_read(body, headers, told):
    gate, stream = Gate(1), io.BytesIO(body)
    sent = request(stream, **headers)
    if headers.get("CONTENT_LENGTH", "") is None:
        del sent.environ["CONTENT_LENGTH"]
    with admitted(gate, sent), pytest.raises(Refusal, match=told):
        sent.check()
    assert stream.read() == b"", "a client that still sends gets to see the response"


def test_a_client_that_asks_before_it_sends_a_large_body_need_not_send_it():
    stream = io.BytesIO(b"x" * 1024)
    sent = request(stream, CONTENT_LENGTH=str(2**21), HTTP_EXPECT="100-continue")
    with admitted(Gate(1), sent), pytest.raises(Refusal, match="larger than 1 MiB"):
        sent.check()
    assert stream.tell() == 0


def test_everything_that_a_request_does_ends_with_its_deadline():
    with admitted(Gate(1), request()):
        assert 0 < of_request.remaining() <= gates.REQUEST_SECONDS
        assert of_request.at <= time.monotonic() + gates.REQUEST_SECONDS
    assert of_request.remaining() == float("inf")


def test_requests_queue_by_account_and_until_it_is_known_by_network():
    gate = Gate(1)
    first = request(HTTP_AUTHORIZATION="Bearer a", REMOTE_ADDR="2001:db8::1")
    assert gate.subject_of(first) == "2001:db8::/48"
    first.account_id = 7
    gate.learn(first)
    assert gate.subject_of(request(HTTP_AUTHORIZATION="Bearer a", REMOTE_ADDR="192.0.2.1")) == 7
    assert gate.subject_of(request(HTTP_AUTHORIZATION="Bearer b", REMOTE_ADDR="192.0.2.1")) == "192.0.2.1"


def test_a_number_of_senders_is_remembered(monkeypatch):
    monkeypatch.setattr(gates, "MAX_KNOWN", 2)
    gate = Gate(1)
    for account_id in (1, 2, 3):
        known(gate, account_id)
    found = [gate.subject_of(request(HTTP_AUTHORIZATION=f"Bearer {number}")) for number in (1, 2, 3)]
    assert found == ["127.0.0.1", 2, 3]


def test_a_new_key_waits_for_its_body_as_its_account():
    gate = Gate(1, lambda _: 7)
    sent = request(io.BytesIO(b"{}"), HTTP_AUTHORIZATION="Bearer new")
    assert all(gate.anonymous_bodies.acquire("127.0.0.1", 0) for _ in range(gate.anonymous_bodies.share))
    with admitted(gate, sent):
        sent.check()
    assert sent.body == b"{}"
