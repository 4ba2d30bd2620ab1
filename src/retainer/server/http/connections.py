"""The connection guard: closes connections of slow clients, but never one whose request is being answered."""

import os
import socket
import stat
import struct
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from operator import attrgetter
from typing import NamedTuple

from retainer.background import Background, Chore, Report
from retainer.kernel.http import is_trusted, networks, parse_address
from retainer.server.http.gate import BODY_SECONDS, Underway
from retainer.settings import Settings

SCAN_SECONDS = 1.0
DRAIN_SCAN_SECONDS = 0.1
IDLE_SECONDS = 30
"""Maximum time between two requests of a connection, or to take a response."""
MAX_CONNECTIONS = 8192
MAX_PER_ADDRESS, SHARE_OF_ADDRESS = 512, 4
"""An address, which a whole agency may share, has 512 connections without a request, or a fourth of all if fewer."""
OLD_SECONDS = 10
"""For how long a body is overdue until all connections of its peer that may belong to it are no longer received."""
TOLERANCE_SECONDS = 2
"""By how much the kernel's time of the last data of a request may differ from the gate's."""
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


IS_IDLE = attrgetter("is_idle")


class Requests:
    """The requests of each peer that are being received or answered, at the time of a scan."""

    def __init__(self, underway: list[Underway]) -> None:
        self._now = time.monotonic()
        self._awaited: dict[str, list[float]] = defaultdict(list)
        self._received: dict[str, list[float]] = defaultdict(list)
        for request in underway:
            (self._awaited if request.awaits_body else self._received)[request.peer].append(request.at)
        for received in self._received.values():
            received.sort()

    def overdue(self, seconds: float) -> Counter[str]:
        """Return the number of bodies of each peer that have been overdue for some seconds."""
        before = self._now - seconds
        return Counter({peer: sum(until < before for until in all_of) for peer, all_of in self._awaited.items()})

    def has_answer(self, connection: ClientConnection) -> bool:
        """Return whether a connection may be that of a request that is being answered: it came at the same time."""
        received, at = self._received.get(connection.peer, []), self._now - connection.received_ago
        place = bisect_left(received, at - TOLERANCE_SECONDS)
        return place < len(received) and received[place] <= at + TOLERANCE_SECONDS


class ConnectionGuard(Background):
    """Scans all connections every second in a thread; their sockets belong to the HTTP server.

    `underway` returns the requests that are being received or answered. The HTTP server does not say which connection
    each belongs to. But one that is being answered has received nothing since.
    """

    def __init__(
        self, settings: Settings, underway: Callable[[], list[Underway]], max_connections: int, report: Report
    ) -> None:
        self.settings, self.underway = settings, underway
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
        """End overdue bodies, responses that no client takes, and connections over the share of an address."""
        for connection in connections:
            if not connection.is_taken and connection.sent_ago > IDLE_SECONDS:
                end(connection, socket.SHUT_RDWR)
        requests = Requests(self.underway())
        incomplete = self._incomplete(connections, requests)
        self._end_overdue_bodies(incomplete, requests)
        self._end_surplus([*filter(IS_IDLE, connections), *incomplete])
        self._seen = {connection.inode for connection in connections}

    def _incomplete(self, connections: list[ClientConnection], requests: Requests) -> list[ClientConnection]:
        """Return the connections on which a part of a request has come: of its head, or of its body.

        They were like that in the last look, too, without a response since: what has just come may be a whole request
        that the gate does not know yet.
        """
        now, looked_at, before = time.monotonic(), self._looked_at, self._unanswered
        unanswered = [each for each in connections if not each.is_idle and not requests.has_answer(each)]
        self._looked_at, self._unanswered = now, {each.inode for each in unanswered}
        return [each for each in unanswered if each.inode in before and each.sent_ago > now - looked_at]

    def _end_overdue_bodies(self, incomplete: list[ClientConnection], requests: Requests) -> None:
        """Let threads that wait for overdue bodies read their end, and refuse the requests.

        The connection of an overdue body has had no response for that long, and does not wait for one. If a peer has no
        more of such connections than overdue bodies, each of them belongs to one. After OLD_SECONDS all of them end:
        else half a request on another connection would keep a body for ever.
        """
        overdue, old = requests.overdue(0), requests.overdue(OLD_SECONDS)
        stalled = [each for each in incomplete if overdue[each.peer] and each.sent_ago > BODY_SECONDS]
        found = Counter(connection.peer for connection in stalled)
        for connection in stalled:
            if found[connection.peer] <= overdue[connection.peer] or old[connection.peer]:
                end(connection, socket.SHUT_RD)

    def _end_surplus(self, unused: list[ClientConnection]) -> None:
        """End the newest connections without a whole request of each address that has too many; of proxies none.

        Those on which a part of a request has come end first.
        """
        by_address: dict[str, list[ClientConnection]] = defaultdict(list)
        for connection in unused:
            address = parse_address(connection.peer)
            if not is_trusted(address, self.settings):
                by_address[networks(address)[0]].append(connection)
        for of_address in by_address.values():
            of_address.sort(key=lambda connection: (not connection.is_idle, connection.inode not in self._seen))
            for connection in of_address[self.max_per_address :]:
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
