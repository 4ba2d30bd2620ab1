"""Overload: what fails because of this process is no failure of a host. And hosts cannot keep this process busy."""

import asyncio
import resource
import socket
import threading
import time
from contextlib import ExitStack, contextmanager

import httpx2
import pytest
import time_machine
from testing.process import PATIENCE

from retainer.events.sender import loop as sender_loop
from retainer.outbound import client as outbound
from retainer.outbound import loop
from retainer.outbound.client import GuardedClient, Overloaded, RequestFailed, read_start
from retainer.sites.monitor.probe import Monitor
from tests.databases import any_database
from tests.monitor.test_probe import HEAD, KB, UP, FakeSite, endless
from tests.name_server import NameServer
from tests.webhooks.receiver import LOOPBACK, Hooked


@contextmanager
def no_files():
    """Let this process open no more files."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def request(url, during=None, seconds=20):
    """Send a request; `during` is called in the loop before it."""

    async def sent():
        async with GuardedClient(LOOPBACK, "site") as client, client.within(seconds):
            if during:
                during()
            response = await client.send("GET", httpx2.URL(url), {})
            body, _ = await read_start(response, 1024 * KB)
            await response.aclose()
            return response.status_code, body

    return asyncio.run(sent())


@pytest.fixture
def site():
    opened = FakeSite()
    yield opened
    opened.close()


def test_a_request_that_no_loop_had_time_for_is_not_the_fault_of_the_host(site, monkeypatch):
    answered = threading.Event()
    site.answer = lambda link, _: answered.wait(30) and link.sendall(UP)

    def stall():
        asyncio.get_running_loop().call_later(0.1, time.sleep, 3)

    with monkeypatch.context() as hasty:
        hasty.setattr(outbound, "STALL_SECONDS", 1)
        with pytest.raises(Overloaded):
            request(site.url, stall, seconds=1)
    with pytest.raises(RequestFailed, match="did not answer within 1 seconds"):
        request(site.url, seconds=1)
    answered.set()


@pytest.mark.parametrize("host", ["127.0.0.1", "shop.example"])
def test_a_request_without_files_for_it_is_not_the_fault_of_the_host(site, monkeypatch, host):
    server = NameServer(monkeypatch, lambda *_: ["127.0.0.1"])
    url = f"http://{host}:{site.port}/"

    async def sent():
        async with GuardedClient(LOOPBACK, "site") as client:
            with no_files(), pytest.raises(Overloaded):
                async with client.within(20):
                    await client.send("GET", httpx2.URL(url), {})

    asyncio.run(sent())
    assert request(url) == (200, b"ok")
    server.close()


@any_database
def test_a_webhook_that_this_process_cannot_send_is_not_failing_and_is_sent_soon(api, monkeypatch):
    hook = Hooked(api)
    clients = [api.make("/clients")["id"] for _ in range(2)]
    api.patch(f"/clients/{clients[0]}", {"name": "Renamed"})
    limits = []

    def answer(_):
        if not limits:
            limits.append(no_files())
            limits[0].__enter__()
        return 200

    hook.receiver.answer = answer
    monkeypatch.setattr(sender_loop, "REQUESTS", 1)
    with time_machine.travel("2026-03-02T12:00:00Z", tick=False) as clock:
        try:
            sent = hook.sender().run_once()
        finally:
            limits[0].__exit__(None, None, None)
        assert (sent, len(hook.receiver.got)) == (1, 1)
        assert {type(error) for _, error in hook.failures} == {Overloaded}
        assert len(hook.failures) == 1, "one line for the turn"
        waiting = hook.deliveries(status="pending")
        assert [(each["attempts"], each["error"]) for each in waiting] == [(0, None)] * len(waiting) != []
        hook.failures.clear()
        assert hook.send() == 0, "it rests"
        clock.shift(5)
        assert hook.send() == 2
        assert sorted(hook.receiver.events) == [1, 2, 3]
    hook.receiver.close()


@any_database
def test_a_site_that_this_process_cannot_check_is_not_down(api, site):
    reported, limits = [], ExitStack()
    both = threading.Barrier(2, lambda: limits.enter_context(no_files()))  # the fake site could accept no more, too

    def answer(link, _):
        both.wait(PATIENCE)
        link.sendall(b"HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n")

    site.answer = answer
    made, other = (api.make("/sites", url=f"{site.url}{path}")["id"] for path in ("a", "b"))
    monitor = Monitor(api.store, LOOPBACK, lambda what, error: reported.append((what, type(error))))
    with limits:
        monitor.run_once()
    assert not both.broken, "both were asked"
    for each in (made, other):
        found = api.get(f"/sites/{each}").data
        assert (found["last_checked_at"], found["last_error"]) == (None, None)
    assert reported == [("checking sites", Overloaded)], "once for all sites"


@any_database
def test_an_attempt_that_a_stop_cuts_off_is_no_failure(api, monkeypatch):
    monkeypatch.setattr(loop, "TICK_SECONDS", 0.05)
    monkeypatch.setattr(loop, "DRAIN_SECONDS", 0.2)
    hook, asked, released = Hooked(api), threading.Event(), threading.Event()
    hook.receiver.answer = lambda _: asked.set() or (released.wait(60) and 200)
    api.make("/tags")
    sender = hook.sender()
    sender.start()
    assert asked.wait(60)
    sender.stop()
    released.set()
    (waiting,) = hook.deliveries()
    assert (waiting["status"], waiting["attempts"], waiting["error"]) == ("pending", 0, None)
    assert hook.send() == 1, "it is due at once"
    hook.receiver.close()


class Flood:
    """Sends something again and again, and counts what the connection has taken."""

    def __init__(self, first, again):
        self.first, self.again, self.sent = first, again, 0

    def __call__(self, link, _):
        link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16 * KB)
        link.sendall(self.first)
        for _ in range(20_000_000 // len(self.again)):
            link.sendall(self.again)
            self.sent += len(self.again)


@pytest.mark.parametrize(
    "again", [b"HTTP/1.1 100 Continue\r\n\r\n" * 100, b"HTTP/1.1 102 Processing\r\nX: y\r\n\r\n" * 100]
)
def test_endless_interim_responses_end_long_before_the_time_limit(site, again):
    site.answer = flood = Flood(b"", again)
    with pytest.raises(RequestFailed, match="valid HTTP answer"):
        request(site.url, seconds=1000)
    assert flood.sent < 10_000_000, "the rest was still in the buffers of the sockets"


def test_a_few_interim_responses_may_precede_the_response(site):
    site.answer = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n" * 10 + UP
    assert request(site.url) == (200, b"ok")


def test_a_page_in_tiny_chunks_is_read_up_to_a_number_of_them(site, monkeypatch):
    monkeypatch.setattr(outbound, "MAX_PARTS", 100)
    site.answer = endless(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 1000)
    assert request(site.url) == (200, b"x" * 100)


def test_a_long_page_after_a_long_head_is_read(site):
    head = b"".join(b"X-%d: %s\r\n" % (number, b"y" * 1000) for number in range(40))
    site.answer = HEAD + head + b"\r\n" + b"z" * 300 * KB
    assert request(site.url) == (200, b"z" * 300 * KB)
