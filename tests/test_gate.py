"""The gate: bodies, turns and deadlines of requests."""

import threading
import time
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from testing.agencies import bare_request
from testing.process import until

from retainer.errors import Refusal
from retainer.kernel.http import Response
from retainer.kernel.waiting import Ending
from retainer.server.http import bodies as bodies_module
from retainer.server.http import gate as gates
from retainer.server.http import turns
from retainer.server.http.bodies import MAX_DISCARDED_BYTES
from retainer.server.http.exchange import Exchange
from retainer.server.http.gate import Gate
from retainer.settings import Settings
from retainer.store.engines.base import of_request

MIB = 1024 * 1024
CHUNKED = {"HTTP_TRANSFER_ENCODING": "chunked"}


class Coming:
    """Bytes that come when they are told to."""

    def __init__(self):
        self.call, self.data = None, None

    def add_done_callback(self, call):
        self.call = call
        if self.data is not None:
            call(self)

    def remove_done_callback(self, _):
        self.call = None

    def cancel(self):
        """Nobody looks at it any more."""

    def come(self, data):
        self.data = data
        if self.call is not None:
            self.call(self)

    def result(self):
        return self.data


class Client:
    """The HTTP server's side of a request."""

    def __init__(self, chunks=()):
        self.body, self.chunks, self.hung_up = Coming(), iter([*chunks, b""]), Coming()
        self.read = 0
        self.status = self.answer = None

    def __call__(self):
        return self.body

    def __aiter__(self):
        return self

    def __anext__(self):
        chunk = Coming()
        chunk.data = next(self.chunks)
        self.read += len(chunk.data or b"")
        return chunk

    def client_disconnect(self):
        return self.hung_up

    def response_bytes(self, status, _headers, body):
        assert self.status is None, "one response"
        self.status, self.answer = status, body


class Sent(NamedTuple):
    """A request that was let in, and its client."""

    request: Any
    client: Client
    exchange: Exchange


class Door:
    """A gate, and what it has answered."""

    def __init__(self, count=1, account_id=None, engine=None):
        self.failures = []
        self.gate = Gate(count, lambda *failure: self.failures.append(failure), Ending(), lambda _: account_id, engine)
        self.running, self.go_on, self.told, self.threads = [], threading.Event(), {}, {}
        self.go_on.set()

    def send(
        self,
        client=None,
        connection="127.0.0.1:9",
        *,
        account_id=None,
        answer=None,
        is_quick=True,
        writes=False,
        **environ,
    ):
        """Let a request in. With an account, it is one whose account is remembered."""
        key = {} if account_id is None else {"HTTP_AUTHORIZATION": f"Bearer {account_id}"}
        request = bare_request(Settings(), **(key | environ))
        if account_id is not None:
            request.account_id = account_id
            self.gate.learn(request)
        client = client or Client()
        exchange = Exchange(request, client, connection, answer or self.answer, is_quick=is_quick, writes=writes)
        self.gate.admit(exchange)
        return Sent(request, client, exchange)

    def hold(self, account_id, **options):
        """Let a request in that keeps its turn until the others may go on."""
        self.go_on.clear()
        before = len(self.running)
        held = self.send(account_id=account_id, is_quick=False, **options)
        until(lambda: len(self.running) == before + 1, "it runs")
        return held

    def answer(self, request):
        self.threads[request.id] = threading.get_ident()
        try:
            request.check()
        except Refusal as refusal:
            self.told[request.id] = refusal
            return Response(refusal.status, [])
        self.running.append(request.id)
        self.go_on.wait(60)
        return Response(200, [], request.body)

    def refusal(self, exchange):
        return self.told[exchange.request.id]

    def free_again(self):
        self.go_on.set()
        until(lambda: self.gate.turns.running.free == self.gate.turns.running.count, "no turn is held")


@pytest.fixture
def hasty(monkeypatch):
    """Nothing waits: the next look at what does ends it."""
    monkeypatch.setattr(turns, "TURN_SECONDS", 0)


@pytest.mark.parametrize("count", [1, 16])
def test_an_account_runs_two_requests_at_a_time_and_another_finds_a_turn(count, hasty):
    door = Door(count)
    share = min(2, count)
    for _ in range(share):
        door.hold(7)
    refused = door.send(account_id=7)
    door.gate.look()
    told = door.refusal(refused)
    assert (told.code, told.headers["Retry-After"], refused.client.status) == ("unavailable", "5", 503)
    if count > 1:
        door.hold(8)
    door.free_again()


def test_an_account_runs_one_request_at_a_time_until_it_is_alone(monkeypatch):
    door = Door(16)
    monkeypatch.setattr(turns, "SHARED_SECONDS", 60)
    for account_id in (8, 7):
        door.send(account_id=account_id)
    door.hold(7)
    waiting = door.send(account_id=7, is_quick=False)
    door.gate.look()
    assert (len(door.running), door.gate.turns.running.waiting) == (3, 1)
    monkeypatch.setattr(door.gate.turns, "is_shared", lambda: False)
    door.gate.look()
    until(lambda: waiting.request.id in door.running, "it has the second turn of an account that is alone")
    door.free_again()


def test_requests_without_credentials_are_no_other_account(monkeypatch):
    door = Door(16)
    monkeypatch.setattr(turns, "SHARED_SECONDS", 60)
    for account_id in (7, None, 7, None):
        door.send(account_id=account_id)
    door.hold(7)
    door.hold(7)
    door.free_again()


@pytest.mark.parametrize("others", [{"HTTP_COOKIE": "a=1"}, {"REMOTE_ADDR": "192.0.2.7"}])
def test_credentials_that_were_never_seen_have_the_turns_of_their_account(others, hasty):
    door = Door(16, account_id=7)
    door.hold(7)
    door.hold(7)
    refused = door.send(HTTP_AUTHORIZATION="Bearer new", **others)
    door.gate.look()
    assert door.refusal(refused).code == "unavailable"
    door.free_again()


def test_credentials_that_have_ended_no_longer_have_the_turns_of_their_account():
    door = Door(16)

    def end(request):
        request.account_id = None
        return Response(401, [])

    ended = door.send(account_id=7, answer=end)
    assert (ended.exchange.subject, door.gate.subject_of(ended.request)) == (7, "127.0.0.1")


def test_the_thread_that_ends_a_request_answers_the_next_ones_in_turn():
    door = Door(1)
    first = door.hold(7)
    waiting = [door.send(account_id=account_id) for account_id in (7, 7, 8)]
    door.free_again()
    order = [exchange.request.id for exchange in (first, waiting[0], waiting[2], waiting[1])]
    assert door.running == order, "the other account before the third one of the first"
    assert len({door.threads[each] for each in order}) == 1
    assert [exchange.client.status for exchange in waiting] == [200] * 3


def test_the_http_server_has_threads_left_while_others_answer():
    door = Door(16)
    door.go_on.clear()
    senders = [threading.Thread(target=door.send, kwargs={"account_id": number}) for number in range(3)]
    for thread in senders:
        thread.start()
    until(lambda: len(door.running) == 3, "all of them run")
    until(lambda: sum(thread.is_alive() for thread in senders) == 1, "the others have handed their requests over")
    door.free_again()
    for thread in senders:
        thread.join()


def test_what_may_wait_for_others_never_runs_in_a_thread_of_the_http_server():
    door = Door(1)
    exchange = door.send(is_quick=False)
    door.free_again()
    assert door.threads[exchange.request.id] != threading.get_ident()
    assert door.threads[door.send().request.id] == threading.get_ident()


def test_a_turn_that_is_left_is_for_others_and_taken_again_whatever_happens():
    door, seen = Door(1), []

    def fail(_):
        with door.gate.turns.left():
            seen.append(door.gate.turns.running.free)
            raise ValueError("broken")

    broken = door.send(answer=fail)
    assert (seen, broken.client.status, door.gate.turns.running.free) == ([1], 500, 1)
    assert [type(error) for _, error in door.failures] == [ValueError]


def test_while_a_request_has_left_its_turn_the_next_one_runs():
    door, is_over = Door(1), threading.Event()

    def wait(_):
        with door.gate.turns.left():
            is_over.wait(60)
        return Response(200, [])

    waiting = door.send(account_id=7, answer=wait, is_quick=False)
    assert door.send(account_id=8).client.status in {None, 200}
    until(lambda: len(door.running) == 1, "the other one ran")
    assert waiting.client.status is None
    is_over.set()
    until(lambda: waiting.client.status == 200, "it goes on")
    door.free_again()


def test_a_turn_that_has_been_left_cannot_be_left_again():
    door = Door(1)

    def wait(_):
        with door.gate.turns.left():
            with door.gate.turns.left():
                assert door.gate.turns.running.free == 1
            assert door.gate.turns.running.free == 1
        assert door.gate.turns.running.free == 0
        return Response(200, [])

    assert door.send(answer=wait).client.status == 200
    assert door.gate.counts() == (1, 0, 0)


def test_while_a_body_is_awaited_others_run():
    door = Door(1)
    slow = door.send(REQUEST_METHOD="POST", CONTENT_LENGTH="2")
    assert door.gate.bodies.anonymous.free == door.gate.bodies.anonymous.count - 1
    assert door.send().client.status == 200
    slow.client.body.come(b"{}")
    assert (slow.client.status, slow.client.answer, slow.request.has_body) == (200, b"{}", False)
    assert door.gate.bodies.anonymous.free == door.gate.bodies.anonymous.count


def test_a_body_that_comes_too_late_is_refused_and_not_executed(monkeypatch):
    monkeypatch.setattr(bodies_module, "BODY_SECONDS", 0)
    door = Door(1)
    late = door.send(REQUEST_METHOD="POST", CONTENT_LENGTH="2")
    door.gate.look()
    assert (late.client.status, door.refusal(late).headers["connection"]) == (400, "close")
    assert late.exchange.client is None, "or the server would keep the connection"
    late.client.body.come(b"{}")
    assert (door.running, door.gate.underway()) == ([], set())
    assert door.gate.bodies.anonymous.free == door.gate.bodies.anonymous.count


def test_a_body_without_an_end_is_not_answered_by_the_thread_that_looks(monkeypatch):
    """While that one answers, and what it would have next, nobody's wait ends."""
    monkeypatch.setattr(bodies_module, "BODY_SECONDS", 0)
    door = Door(1)
    late = door.send(Client([b"{}", None]), **CHUNKED)
    door.gate.look()
    until(lambda: late.client.status == 200, "it is answered")
    assert door.threads[late.request.id] != threading.get_ident()


def test_a_body_waits_for_a_place_that_others_have():
    door = Door(1)
    share = door.gate.bodies.anonymous.share
    awaited = [door.send(REQUEST_METHOD="POST", CONTENT_LENGTH="2") for _ in range(share + 1)]
    awaited[-1].client.body.come(b"{}")
    assert awaited[-1].client.status is None, "nobody reads it yet"
    awaited[0].client.body.come(b"{}")
    assert (awaited[0].client.status, awaited[-1].client.status) == (200, 200)


def test_a_request_is_underway_when_its_body_has_come():
    door = Door(1)
    door.hold(7)
    slow = door.send(None, "127.0.0.1:8", account_id=8, REQUEST_METHOD="POST", CONTENT_LENGTH="2")
    assert door.gate.underway() == {"127.0.0.1:9"}, "the server waits for its client"
    slow.client.body.come(b"{}")
    assert door.gate.underway() == {"127.0.0.1:8", "127.0.0.1:9"}, "now the client waits for its turn"
    door.free_again()
    assert door.gate.underway() == set()


@pytest.mark.parametrize("has_place", [True, False])
def test_a_body_whose_connection_was_ended_gives_its_place_back_and_is_not_executed(has_place):
    door = Door(1)
    awaited = [
        door.send(Client(), f"127.0.0.1:{number}", REQUEST_METHOD="POST", CONTENT_LENGTH="2")
        for number in range(door.gate.bodies.anonymous.share + 1)
    ]
    ended = awaited[0 if has_place else -1]
    door.gate.pending.end_those_of({ended.exchange.connection})
    assert ended.client.status == (400 if has_place else 503)
    for each in awaited:
        each.client.body.come(b"{}")
    assert [each.client.status for each in awaited if each is not ended] == [200] * (len(awaited) - 1)
    assert door.gate.bodies.anonymous.free == door.gate.bodies.anonymous.count
    assert ended.request.id not in door.running


@pytest.mark.parametrize(
    ("chunks", "headers", "told"),
    [
        ([b"{"], {"CONTENT_LENGTH": "2"}, "incomplete"),
        ([b"{"], CHUNKED, "Content-Length"),
        ([b"x" * MIB, b"x"], {"CONTENT_LENGTH": str(MIB + 1)}, "larger than 1 MiB"),
        ([b"x" * MIB, b"x"], CHUNKED, "larger than 1 MiB"),
    ],
)
def test_a_body_that_is_cut_or_too_large_is_refused_and_its_rest_is_read(chunks, headers, told):
    door, client = Door(1), Client(chunks)
    client.body.data = b"".join(chunks)
    sent = door.send(client, REQUEST_METHOD="POST", **headers)
    assert told in door.refusal(sent).message
    assert list(client.chunks) in ([], [*chunks, b""]), "a client that still sends gets to see the response"


def test_of_an_endless_body_so_much_is_read_and_no_more():
    client = Client([b"x" * MIB] * 20)
    Door(1).send(client, REQUEST_METHOD="POST", **CHUNKED)
    assert (client.status, client.read) == (413, MAX_DISCARDED_BYTES + MIB)


def test_a_client_that_asks_before_it_sends_a_large_body_need_not_send_it():
    sent = Door(1).send(REQUEST_METHOD="POST", CONTENT_LENGTH=str(2**21), HTTP_EXPECT="100-continue")
    assert (sent.client.status, sent.client.read, sent.client.body.call) == (413, 0, None)


def test_a_request_that_hung_up_gives_its_place_back_and_is_not_executed(monkeypatch):
    door = Door(1)
    door.hold(7)
    gone = door.send(account_id=8)
    monkeypatch.setattr(gone.exchange, "arrived", gone.exchange.arrived - 2)
    door.gate.look()
    assert door.gate.turns.running.waiting == 1
    gone.client.hung_up.come(None)
    assert (door.gate.turns.running.waiting, len(door.gate.underway())) == (0, 1)
    door.free_again()
    assert (len(door.running), gone.client.status) == (1, None)


def test_everything_that_a_request_does_ends_with_its_deadline():
    door, seen = Door(1), SimpleNamespace()

    def note(_):
        seen.at, seen.remaining = of_request.at, of_request.remaining()
        return Response(200, [])

    door.send(answer=note)
    assert 0 < seen.remaining <= gates.REQUEST_SECONDS
    assert seen.at <= time.monotonic() + gates.REQUEST_SECONDS
    assert of_request.remaining() == float("inf")


def test_requests_queue_by_account_and_until_it_is_known_by_network():
    gate = Door(1).gate
    first = bare_request(Settings(), HTTP_AUTHORIZATION="Bearer a", REMOTE_ADDR="2001:db8::1")
    assert gate.subject_of(first) == "2001:db8::/48"
    first.account_id = 7
    gate.learn(first)
    found = [
        gate.subject_of(bare_request(Settings(), HTTP_AUTHORIZATION=f"Bearer {key}", REMOTE_ADDR="192.0.2.1"))
        for key in "ab"
    ]
    assert found == [7, "192.0.2.1"]


def test_a_number_of_senders_is_remembered(monkeypatch):
    monkeypatch.setattr(gates, "MAX_KNOWN", 2)
    door = Door(1)
    sent = [door.send(account_id=account_id).request for account_id in (1, 2, 3)]
    assert [door.gate.subject_of(request) for request in sent] == ["127.0.0.1", 2, 3]


def test_a_new_key_waits_for_its_body_as_its_account():
    door = Door(1, account_id=7)
    anonymous = door.gate.bodies.anonymous
    assert all(anonymous.acquire("127.0.0.1", 0) for _ in range(anonymous.share))
    client = Client()
    client.body.data = b"{}"
    sent = door.send(client, HTTP_AUTHORIZATION="Bearer new", REQUEST_METHOD="POST", CONTENT_LENGTH="2")
    assert (sent.client.answer, sent.client.status) == (b"{}", 200)
