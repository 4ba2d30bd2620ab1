"""Connections: how many there may be, and what becomes of those that do nothing."""

import contextlib
import os
import re
import socket
import time
from pathlib import Path

import pytest
from testing.process import drained, until

from retainer.server.http.connections import MAX_OF_AN_ADDRESS, ConnectionGuard
from retainer.settings import Settings

IDLE = 2300
A_TICK = 0.02
"""The kernel measures in ticks, of at most 10 ms."""


@contextlib.contextmanager
def idle(server, count, address):
    """Connections on which nothing is sent."""
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(
                socket.create_connection(("127.0.0.1", server.port), timeout=5, source_address=(address, 0))
            )
            for _ in range(count)
        ]


def is_closed(link):
    link.setblocking(False)
    try:
        return link.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def test_thousands_of_idle_connections_of_one_address_delay_nobody_and_are_cut_to_its_share(server, agency, address):
    with idle(server, IDLE, address) as links:
        with server.client(agency["key"]) as client:
            assert client.get("/me").status == 200
        until(lambda: sum(map(is_closed, links)) >= IDLE - MAX_OF_AN_ADDRESS, "those over the share end", seconds=5)
        assert not is_closed(links[0]), "the oldest stay"


def test_a_connection_that_has_done_nothing_for_long_is_closed(server, address):
    with idle(server, 1, address) as (link,):
        link.settimeout(15)
        assert drained(link) == (b"", True)


def test_a_kept_connection_serves_one_request_after_another_for_longer_than_one_may_take(server, agency):
    with server.client(agency["key"]) as client:
        client.get("/me")
        before = client._connection.sock.getsockname()  # noqa: SLF001
        for _ in range(8):
            time.sleep(4.5)
            assert client.get("/me").status == 200
        assert client._connection.sock.getsockname() == before, "the same connection all the while"  # noqa: SLF001


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_look_finds_the_connections_that_were_accepted_and_no_others(tmp_path, host):
    try:
        listener = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError:
        pytest.skip("no IPv6 here")
    guard = ConnectionGuard(Settings(), lambda *_: None)
    guard.look()
    began = time.monotonic()
    with listener, socket.create_connection(listener.getsockname()[:2]) as client, listener.accept()[0] as accepted:
        (tmp_path / "file").touch()
        with (tmp_path / "file").open("rb"):
            (found,) = [each for each in guard.look() if each.descriptor == accepted.fileno()]
            assert client.fileno() not in [each.descriptor for each in guard.look()]
        assert (found.address, found.inode) == (host, os.fstat(accepted.fileno()).st_ino)
        time.sleep(0.1)
        (found,) = [each for each in guard.look() if each.descriptor == accepted.fileno()]
        assert 0.05 < found.silent <= time.monotonic() - began + A_TICK
        began = time.monotonic()
        accepted.sendall(b"x")
        assert client.recv(1) == b"x"
        (found,) = [each for each in guard.look() if each.descriptor == accepted.fileno()]
        assert found.silent <= time.monotonic() - began + A_TICK
        accepted.sendall(b"y")
        assert client.recv(1) == b"y", "the socket is still open"


def test_a_look_keeps_the_locks_of_the_database(server, agency):
    """Closing any descriptor of a file ends the process' locks on it: no look may do that."""
    database = server.database.stat().st_ino
    with server.client(agency["key"]) as client:
        client.post("/tags", {"name": "Written"})
    worker = server.processes()[-1]

    def locks():
        lines = Path("/proc/locks").read_text(encoding="utf-8")
        return len(re.findall(rf"POSIX .* {worker} [0-9a-f]+:[0-9a-f]+:{database} ", lines))

    before = locks()
    assert before > 0, "an open WAL database is locked against being opened otherwise"
    time.sleep(2.5)
    assert locks() == before
