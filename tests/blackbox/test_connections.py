"""Connections: their maximum number, and the end of idle ones."""

import contextlib
import os
import re
import socket
import subprocess
import sys
import time
from ipaddress import ip_network
from pathlib import Path

import pytest
from testing import process
from testing.process import COMMAND, PATIENCE, drained, environment, opened, running, until, with_database

from retainer.identity.actors import operator_of
from retainer.identity.people import sessions
from retainer.server.http.bodies import BODY_SECONDS
from retainer.server.http.connections import (
    IDLE_SECONDS,
    MAX_CONNECTIONS,
    MAX_PER_ADDRESS,
    SHARE_OF_ADDRESS,
    ConnectionGuard,
)
from retainer.settings import BASE_PATH, Settings
from tests.deploy.programs import DEPLOY
from tests.length import length, only_full
from tests.skips import require

IDLE = MAX_PER_ADDRESS + length(1800)
A_TICK = 0.02
"""The kernel measures in ticks, of at most 10 ms."""


@contextlib.contextmanager
def idle(server, count, address, sent=b""):
    """Connections on which nothing more is sent."""
    with contextlib.ExitStack() as stack:
        links = [
            stack.enter_context(
                socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE, source_address=(address, 0))
            )
            for _ in range(count)
        ]
        for link in links:
            link.sendall(sent)
        yield links


def kept_by_proxies():
    """For how many seconds the samples of proxies keep an idle connection."""
    samples = {"nginx.conf": r"keepalive_timeout (\d+)s", "Caddyfile": r"keepalive (\d+)s"}
    (seconds,) = {
        int(re.findall(pattern, (DEPLOY / name).read_text(encoding="utf-8"))[0]) for name, pattern in samples.items()
    }
    return seconds


def is_closed(link):
    link.setblocking(False)
    try:
        return link.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def locks(server):
    """The number of locks that the worker has on the database."""
    worker, database = server.processes()[-1], server.database.stat().st_ino
    lines = Path("/proc/locks").read_text(encoding="utf-8")
    return len(re.findall(rf"POSIX .* {worker} [0-9a-f]+:[0-9a-f]+:{database} ", lines))


def test_idle_connections_are_cut_to_the_share_of_their_address_and_locks_are_kept(server, agency, address):
    """Closing any descriptor of the database ends the locks that the process has on it."""
    with server.client(agency["key"], address) as oldest:
        assert oldest.post("/tags", {"name": "Written"}).status == 201
        before = locks(server)
        assert before > 0, "an open WAL database is locked against being opened otherwise"
        kept = oldest.local_address
        with idle(server, IDLE, address) as links, server.client(agency["key"]) as other:

            def are_cut():
                assert (oldest.get("/me").status, other.get("/me").status) == (200, 200)
                return sum(map(is_closed, links)) > IDLE - MAX_PER_ADDRESS

            until(are_cut, "those over the share end")
            assert sum(map(is_closed, links)) == IDLE + 1 - MAX_PER_ADDRESS, "and no more"
        assert oldest.local_address == kept, "the oldest stay"
    assert locks(server) == before


def test_connections_with_half_a_request_are_cut_to_the_share_of_their_address(server, agency, address):
    surplus = 50
    with idle(server, MAX_PER_ADDRESS + surplus, address, b"GET /console HTTP/1.1\r\nHo") as links:
        with server.client(agency["key"]) as other:
            until(lambda: other.get("/me").status == 200 and sum(map(is_closed, links)) >= surplus, "they are cut")
        assert sum(map(is_closed, links)) == surplus


@only_full
def test_a_connection_that_a_proxy_keeps_goes_on_and_an_unused_one_ends(server, agency, address):
    with idle(server, 1, address) as (unused,), server.client(agency["key"]) as client:
        client.get("/me")
        before = client.local_address
        for _ in range(2):
            time.sleep(kept_by_proxies())
            assert client.get("/me").status == 200
        assert client.local_address == before, "the same connection all the while"
        assert drained(unused) == (b"", True), "it has done nothing for long"


@pytest.fixture(scope="module")
def small_server(tmp_path_factory):
    """A server that may open 256 files, and so has 128 connections."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "PRELOADED", None)
        patch.setattr(process, "COMMAND", ["sh", "-c", 'ulimit -n 256 && exec "$@"', "sh", *COMMAND])
        with running(with_database(tmp_path_factory.mktemp("small")), "--no-monitor") as server:
            yield server


FORM = "POST /console/sign-in HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"
TAG = f"POST {BASE_PATH}/tags HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {{key}}\r\n"
BEGUN = {
    "half a head": "GET /console HTTP/1.1\r\nHo",
    "a form without a session": f"{FORM}Sec-Fetch-Site: same-origin\r\nContent-Length: 1000\r\n\r\ne",
    "a body with a key": f"{TAG}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{{{",
    "a body in chunks": f"{TAG}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{{{{\r\n",
}


@pytest.mark.parametrize("begun", BEGUN.values(), ids=BEGUN)
def test_clients_of_one_address_that_stop_sending_take_no_descriptors_of_others(small_server, address, begun):
    slow, other = (small_server.agency(name, "enterprise") for name in ("Slow", "Other"))
    with opened(small_server.database) as store, store.begin(operator_of(store, other["account_id"]), write=True) as tx:
        cookie = f"retainer-session={sessions.start(tx, other['admin_id'], None, None)[1]}"
    before = time.monotonic()
    with idle(small_server, 200, address, begun.format(key=slow["key"]).encode()) as links:
        for number in range(10):
            with small_server.client(other["key"]) as api, small_server.client() as browser:
                assert api.post("/tags", {"name": f"Tag {number}"}).status == 201
                assert browser.send("GET", "/console", Cookie=cookie).status == 200
            if number == 0:
                is_up = time.monotonic() - before > BODY_SECONDS
                assert is_up or not any(map(has_answer, links)), "nobody has waited until the time of a slow one was up"


def has_answer(link):
    """Whether anything but the end of the connection has come."""
    link.setblocking(False)
    try:
        return link.recv(1, socket.MSG_PEEK) != b""
    except OSError:
        return False


def a_guard(*clients, settings=None, connections=MAX_CONNECTIONS):
    return ConnectionGuard(settings or Settings(), lambda: {*clients}, lambda _: None, connections, lambda *_: None)


@pytest.fixture
def guarded():
    """A guard, both ends of a connection, and the connection as the guard sees it."""
    guard = a_guard()
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as client,
        listener.accept()[0] as accepted,
    ):
        accepted.settimeout(PATIENCE)
        guard.scan()
        (found,) = [each for each in guard.scan()[0] if each.descriptor == accepted.fileno()]
        yield guard, client, accepted, found


def look(guard, connections):
    """Look at connections that stay as they are twice: those that were not so before are left alone."""
    for _ in range(2):
        guard.check(connections)


def is_received(guarded, **state):
    """Whether the connection still receives after a look at it in a state."""
    guard, client, accepted, found = guarded
    look(guard, [found._replace(**state)])
    client.sendall(b"x")
    return accepted.recv(1) == b"x"


def test_a_connection_that_is_answered_is_never_cut_however_long_it_takes(guarded):
    assert is_received(guarded, sent_ago=10 * IDLE_SECONDS, received_ago=IDLE_SECONDS)


def test_what_has_just_come_may_be_a_whole_request(guarded):
    _, client, accepted, found = guarded
    guard = a_guard(connections=0)
    guard.check([found._replace(**HALF_A_HEAD)])
    client.sendall(b"x")
    assert accepted.recv(1) == b"x"


HALF_A_HEAD = {"is_used": True, "sent_ago": 2, "received_ago": 2}
IDLE_STATE = {"is_used": True, "sent_ago": 2, "received_ago": 3}


@pytest.mark.parametrize("state", [HALF_A_HEAD, IDLE_STATE], ids=["half a head", "idle"])
def test_connections_without_a_request_are_cut_to_a_share_of_a_small_limit(guarded, state):
    _, client, accepted, found = guarded
    guard = a_guard(connections=4 * SHARE_OF_ADDRESS)
    others = [found._replace(**IDLE_STATE, inode=-1 - number) for number in range(4)]
    look(guard, [*others[1:], found._replace(**state)])
    client.sendall(b"x")
    assert accepted.recv(1) == b"x", "four are its share"
    guard = a_guard(connections=4 * SHARE_OF_ADDRESS)
    look(guard, [*others, found._replace(**state)])
    assert accepted.recv(1) == b""


def test_over_a_share_the_newest_end_first_and_half_a_request_before_them(guarded):
    _, client, accepted, found = guarded
    guard, oldest = a_guard(connections=2 * SHARE_OF_ADDRESS), found._replace(**IDLE_STATE)
    others = [found._replace(**IDLE_STATE, inode=-1 - number) for number in range(2)]
    look(guard, [oldest, others[0]])
    guard.check([others[1], others[0], oldest])
    client.sendall(b"x")
    assert accepted.recv(1) == b"x", "it was there before the last one"
    half, newer = found._replace(**HALF_A_HEAD), [each._replace(inode=each.inode - 2) for each in others]
    guard.check([half])
    guard.check([half, *newer])
    assert accepted.recv(1) == b""


def test_a_connection_that_is_answered_is_not_cut_for_the_share_of_its_address(guarded):
    _, client, accepted, found = guarded
    guard = a_guard(found.client, connections=SHARE_OF_ADDRESS)
    look(guard, [found._replace(**IDLE_STATE, inode=0), found._replace(**HALF_A_HEAD)])
    client.sendall(b"x")
    assert accepted.recv(1) == b"x"


@pytest.mark.parametrize(("proxies", "stays"), [("127.0.0.0/8", True), ("192.0.2.0/24", False)])
def test_of_a_trusted_proxy_no_connection_is_cut_for_its_share(guarded, proxies, stays):
    _, _, accepted, found = guarded
    guard = a_guard(settings=Settings(trusted_proxies=(ip_network(proxies),)), connections=SHARE_OF_ADDRESS)
    look(guard, [found._replace(**IDLE_STATE, inode=0), found._replace(**IDLE_STATE)])
    assert is_closed(accepted) != stays


def test_a_response_that_nobody_takes_ends_its_connection(guarded):
    guard, client, _, found = guarded
    look(guard, [found._replace(is_taken=False, sent_ago=IDLE_SECONDS + 1)])
    assert client.recv(1) == b""


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_look_finds_the_connections_that_were_accepted_and_no_others(tmp_path, host):
    if ":" in host:
        require("ipv6", Path("/proc/net/if_inet6").exists(), "There is no IPv6 here.")
    listener = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    guard = a_guard()
    guard.scan()
    began = time.monotonic()
    with listener, socket.create_connection(listener.getsockname()[:2]) as client, listener.accept()[0] as accepted:
        (tmp_path / "file").touch()
        with (tmp_path / "file").open("rb"):
            (found,) = [each for each in guard.scan()[0] if each.descriptor == accepted.fileno()]
            assert client.fileno() not in [each.descriptor for each in guard.scan()[0]]
        assert (found.peer, found.inode) == (host, os.fstat(accepted.fileno()).st_ino)
        time.sleep(0.1)
        (found,) = [each for each in guard.scan()[0] if each.descriptor == accepted.fileno()]
        assert 0.05 < found.sent_ago <= time.monotonic() - began + A_TICK
        began = time.monotonic()
        accepted.sendall(b"x")
        assert client.recv(1) == b"x"
        (found,) = [each for each in guard.scan()[0] if each.descriptor == accepted.fileno()]
        assert found.sent_ago <= time.monotonic() - began + A_TICK
        accepted.sendall(b"y")
        assert client.recv(1) == b"y", "the socket is still open"


DRAINS = """
import socket, sys, threading
from retainer.server.http.connections import ConnectionGuard
from retainer.settings import Settings

def scan():
    while True:
        guard.scan()

sys.setswitchinterval(1e-6)
guard = ConnectionGuard(Settings(), list, print, 8192, print)
threading.Thread(target=scan, daemon=True).start()
for _ in range(2000):
    listener = socket.create_server(("127.0.0.1", 0))
    guard.drain(0)
    assert socket.socket(fileno=listener.detach()).family == socket.AF_UNIX
"""


def test_a_worker_that_leaves_replaces_its_listener_while_another_thread_scans():
    subprocess.run([sys.executable, "-c", DRAINS], env=environment(Path.cwd()), check=True, timeout=PATIENCE)
