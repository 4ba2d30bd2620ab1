"""The connection guard: closes connections of slow clients, but never one whose request is being answered."""

import os
import socket
import stat
import struct
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from retainer.background import Background, Chore, Report
from retainer.kernel.http import is_trusted, networks, parse_address
from retainer.server.http.gate import BODY_SECONDS
from retainer.settings import Settings

SCAN_SECONDS = 1.0
DRAIN_SCAN_SECONDS = 0.1
IDLE_SECONDS = 30
"""Maximum time between two requests of a connection, or to take a response."""
MAX_CONNECTIONS = 8192
MAX_PER_ADDRESS = 512  # a whole agency may share one address
TCP_INFO = struct.Struct("=24xI16xI4xI72xQ8xI")
"""Parts of Linux's tcp_info: unacknowledged packets, milliseconds since data was sent and received, bytes received and
not yet sent."""


class ClientConnection(NamedTuple):
    """A client's connection at the time of a scan."""

    descriptor: int
    inode: int  # identifies the socket, because its descriptor may be reused
    peer: str
    sent_ago: float
    """Seconds since the server last sent data, or accepted the connection."""
    received_ago: float
    is_used: bool
    """Whether the client has sent anything."""
    is_taken: bool
    """Whether the client has taken everything that the server has sent."""

    @property
    def is_idle(self) -> bool:
        """Return whether no request has begun since the last response; False if both were in one tick of the clock."""
        return not self.is_used or self.received_ago > self.sent_ago


class ConnectionGuard(Background):
    """Scans all connections every second in a thread; their sockets belong to the HTTP server.

    `overdue` counts the bodies of each peer that have not arrived in time.
    """

    def __init__(self, settings: Settings, overdue: Callable[[], Counter[str]], report: Report) -> None:
        self.settings, self.overdue = settings, overdue
        self._ports: set[int] = set()
        self._seen: set[int] = set()
        look = Chore("scanning connections", SCAN_SECONDS, lambda: self.check(self.scan()[0]))
        super().__init__("connections", report, [look])

    def drain(self, seconds: float) -> None:
        """Accept no more connections; return when all are closed, or after some seconds.

        The HTTP server cannot stop accepting without closing connections, so a socket without clients replaces its
        listening sockets. Connections that wait in those go to the other workers.
        """
        _, listeners = self.scan()
        with socket.socket(socket.AF_UNIX) as unused:
            unused.bind("")
            unused.listen()
            unused.setblocking(False)  # noqa: FBT003
            for descriptor in listeners:
                os.dup2(unused.fileno(), descriptor, inheritable=False)
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.scan()[0]:
            time.sleep(DRAIN_SCAN_SECONDS)

    def scan(self) -> tuple[list[ClientConnection], set[int]]:
        listeners: set[int] = set()
        with os.scandir("/proc/self/fd") as entries:
            connections = [self._connection(int(entry.name), listeners) for entry in entries]
        return [connection for connection in connections if connection is not None], listeners

    def check(self, connections: list[ClientConnection]) -> None:
        """End overdue bodies, responses that no client takes, and idle connections over the share of an address."""
        for connection in connections:
            if not connection.is_taken and connection.sent_ago > IDLE_SECONDS:
                end(connection, socket.SHUT_RDWR)
        self._end_overdue_bodies(connections)
        self._end_surplus(connections)
        self._seen = {connection.inode for connection in connections}

    def _end_overdue_bodies(self, connections: list[ClientConnection]) -> None:
        """Let threads that wait for overdue bodies read their end, and refuse the requests.

        The HTTP server does not say which connection a body belongs to. But that of an overdue body has had no response
        for that long. If a peer has no more of such connections than overdue bodies, each of them belongs to one.
        """
        overdue = self.overdue()
        stalled = [each for each in connections if not each.is_idle and each.sent_ago > BODY_SECONDS]
        found = Counter(connection.peer for connection in stalled)
        for connection in stalled:
            if found[connection.peer] <= overdue[connection.peer]:
                end(connection, socket.SHUT_RD)

    def _end_surplus(self, connections: list[ClientConnection]) -> None:
        """End the newest idle connections of each address that has too many; of proxies none."""
        by_address: dict[str, list[ClientConnection]] = defaultdict(list)
        for connection in connections:
            address = parse_address(connection.peer)
            if connection.is_idle and not is_trusted(address, self.settings):
                by_address[networks(address)[0]].append(connection)
        for idle in by_address.values():
            idle.sort(key=lambda connection: connection.inode not in self._seen)
            for connection in idle[MAX_PER_ADDRESS:]:
                end(connection, socket.SHUT_RDWR)

    def _connection(self, descriptor: int, listeners: set[int]) -> ClientConnection | None:
        """Return the client's connection of a descriptor, or None; note listening sockets and their ports."""
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISSOCK(status.st_mode):
                return None
            with socket_from_fd(descriptor) as sock:
                if sock.family not in {socket.AF_INET, socket.AF_INET6}:
                    return None
                if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    self._ports.add(sock.getsockname()[1])
                    listeners.add(descriptor)
                    return None
                if sock.getsockname()[1] not in self._ports:
                    return None
                information = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO.size)
                unacknowledged, sent, received, size, unsent = TCP_INFO.unpack(information)
                peer, is_taken = sock.getpeername()[0], not unacknowledged and not unsent
                ago = sent / 1000, received / 1000
                return ClientConnection(descriptor, status.st_ino, peer, *ago, is_used=size > 0, is_taken=is_taken)
        except (OSError, struct.error):  # it was closed
            return None


@contextmanager
def socket_from_fd(descriptor: int) -> Iterator[socket.socket]:
    """Yield a socket for a descriptor, which stays open.

    A duplicate would be unsafe: the descriptor may belong to the database by then, and closing any descriptor of a
    file releases all locks of the process on it.
    """
    sock = socket.socket(fileno=descriptor)
    try:
        yield sock
    finally:
        sock.detach()


def end(connection: ClientConnection, how: int) -> None:
    """Shut a connection down, unless its descriptor belongs to another socket by now."""
    with suppress(OSError):  # the client closed it meanwhile
        if os.fstat(connection.descriptor).st_ino == connection.inode:
            with socket_from_fd(connection.descriptor) as sock:
                sock.shutdown(how)
