"""The connection guard: closes connections that wait for their clients, but never one that is being answered."""

import os
import socket
import stat
import struct
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from operator import attrgetter
from typing import NamedTuple

from retainer.background import Background, Chore, Report
from retainer.kernel.http import is_trusted, networks, parse_address
from retainer.settings import Settings

SCAN_SECONDS = 1.0
DRAIN_SCAN_SECONDS = 0.1
IDLE_SECONDS = 30
"""Maximum time between two requests of a connection, or to take a response."""
MAX_CONNECTIONS = 8192
MAX_PER_ADDRESS, SHARE_OF_ADDRESS = 512, 4
"""An address, which a whole agency may share, has 512 connections that wait for their clients, or a fourth of all if
fewer."""
TCP_INFO = struct.Struct("=24xI16xI4xI72xQ8xI")
"""Parts of Linux's tcp_info: unacknowledged packets, milliseconds since data was sent and received, bytes received and
not yet sent."""


class ClientConnection(NamedTuple):
    """A client's connection at the time of a scan."""

    descriptor: int
    inode: int  # identifies the socket, because its descriptor may be reused
    peer: str
    port: int
    sent_ago: float
    """Seconds since the server last sent data, or accepted the connection."""
    received_ago: float
    is_used: bool
    """Whether the client has sent anything."""
    is_taken: bool
    """Whether the client has taken everything that the server has sent."""

    @property
    def client(self) -> str:
        """Return the address and the port as the HTTP server writes them."""
        return f"[{self.peer}]:{self.port}" if ":" in self.peer else f"{self.peer}:{self.port}"

    @property
    def is_idle(self) -> bool:
        """Return whether no request has begun since the last response; False if both were in one tick of the clock."""
        return not self.is_used or self.received_ago > self.sent_ago


IS_IDLE = attrgetter("is_idle")


class ConnectionGuard(Background):
    """Scans all connections every second in a thread; their sockets belong to the HTTP server.

    `underway` returns the clients, each an address and a port, whose requests have come and are being answered;
    `let_go` gets those whose connections have ended, because the HTTP server does not notice it while nothing is
    read from them.
    """

    def __init__(
        self,
        settings: Settings,
        underway: Callable[[], set[str]],
        let_go: Callable[[set[str]], object],
        max_connections: int,
        report: Report,
    ) -> None:
        self.settings, self.underway, self.let_go = settings, underway, let_go
        self.max_per_address = min(MAX_PER_ADDRESS, max_connections // SHARE_OF_ADDRESS)
        self._ports: set[int] = set()
        self._seen: set[int] = set()
        self._unanswered: set[int] = set()
        self._looked_at = time.monotonic()
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
        """End responses that no client takes, and connections over the share of an address."""
        for connection in connections:
            if not connection.is_taken and connection.sent_ago > IDLE_SECONDS:
                end(connection)
        self._end_surplus([*filter(IS_IDLE, connections), *self._incomplete(connections)])
        self._seen = {connection.inode for connection in connections}

    def _incomplete(self, connections: list[ClientConnection]) -> list[ClientConnection]:
        """Return the connections on which a part of a request has come, but not all of its head or of its body.

        They were like that in the last look, too, without a response since: what has just come may be a whole request
        that the gate does not know yet.
        """
        now, looked_at, before = time.monotonic(), self._looked_at, self._unanswered
        underway = self.underway()
        unanswered = [each for each in connections if not each.is_idle and each.client not in underway]
        self._looked_at, self._unanswered = now, {each.inode for each in unanswered}
        return [each for each in unanswered if each.inode in before and each.sent_ago > now - looked_at]

    def _end_surplus(self, unused: list[ClientConnection]) -> None:
        """End the newest connections without a whole request of each address that has too many; of proxies none.

        Those on which a part of a request has come end first.
        """
        by_address: dict[str, list[ClientConnection]] = defaultdict(list)
        for connection in unused:
            address = parse_address(connection.peer)
            if not is_trusted(address, self.settings):
                by_address[networks(address)[0]].append(connection)
        surplus: list[ClientConnection] = []
        for of_address in by_address.values():
            of_address.sort(key=lambda connection: (not connection.is_idle, connection.inode not in self._seen))
            surplus += of_address[self.max_per_address :]
        for connection in surplus:
            end(connection)
        self.let_go({connection.client for connection in surplus})

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
                (peer, port), is_taken = sock.getpeername()[:2], not unacknowledged and not unsent
                ago = sent / 1000, received / 1000
                return ClientConnection(descriptor, status.st_ino, peer, port, *ago, size > 0, is_taken)
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


def end(connection: ClientConnection) -> None:
    """Shut a connection down, unless its descriptor belongs to another socket by now."""
    with suppress(OSError):  # the client closed it meanwhile
        if os.fstat(connection.descriptor).st_ino == connection.inode:
            with socket_from_fd(connection.descriptor) as sock:
                sock.shutdown(socket.SHUT_RDWR)
