"""The connections of a serving process: those that take too long are ended, and no address has too many."""

import os
import socket
import stat
import struct
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from retainer.forwarding import group, is_trusted, parse_address
from retainer.settings import Settings

SCAN_SECONDS = 1.0
REQUEST_SECONDS = 30  # what a client has for the whole of a request, from the last answer on
CLOSING_SECONDS = 5  # what is left after that for the refusal to be sent
MOST_CONNECTIONS = 8192
MOST_OF_AN_ADDRESS = 512  # an agency with all its people and tools may stand behind one address
LAST_DATA_SENT = struct.Struct("=44xI")  # in Linux's tcp_info: milliseconds


class Connection(NamedTuple):
    """A connection of a client, as it was at the time of a look."""

    descriptor: int
    inode: int  # which no other socket has, while a descriptor may be another's by now
    address: str
    silent: float  # seconds since the server sent something, or since it accepted the connection


class ConnectionGuard:
    """A thread that looks at all connections every second. The sockets stay the HTTP server's."""

    def __init__(self, settings: Settings, failed: Callable[[str, Exception], None]) -> None:
        self.settings = settings
        self._failed = failed
        self._ports: set[int] = set()
        self._known: set[int] = set()
        self._stopped = threading.Event()

    def start(self) -> None:
        """Begin."""
        threading.Thread(target=self._run, name="connections", daemon=True).start()

    def stop(self) -> None:
        """End, without waiting."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(SCAN_SECONDS):
            try:
                self.check(self.look())
            except Exception as error:  # noqa: BLE001  # the next look may succeed
                self._failed("looking at connections", error)

    def look(self) -> list[Connection]:
        """Every connection of a client."""
        with os.scandir("/proc/self/fd") as entries:
            found = [self._connection(int(entry.name)) for entry in entries]
        return [connection for connection in found if connection is not None]

    def check(self, connections: list[Connection]) -> None:
        """End what takes too long; of an address with too many connections, end the newest."""
        of_address: dict[str, list[Connection]] = defaultdict(list)
        for connection in connections:
            if connection.silent > REQUEST_SECONDS + CLOSING_SECONDS:
                end(connection, socket.SHUT_RDWR)
            elif connection.silent > REQUEST_SECONDS:
                end(connection, socket.SHUT_RD)  # who waits for its body is told that there is no more
            peer = parse_address(connection.address)
            if not is_trusted(peer, self.settings):
                of_address[group(peer)].append(connection)
        for together in of_address.values():
            if len(together) > MOST_OF_AN_ADDRESS:
                together.sort(key=lambda connection: connection.inode not in self._known)
                for connection in together[MOST_OF_AN_ADDRESS:]:
                    end(connection, socket.SHUT_RDWR)
        self._known = {connection.inode for connection in connections}

    def _connection(self, descriptor: int) -> Connection | None:
        """The client's connection behind a descriptor, if there is one."""
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISSOCK(status.st_mode):
                return None
            with borrowed(descriptor) as link:
                if link.family not in {socket.AF_INET, socket.AF_INET6}:
                    return None
                if link.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    self._ports.add(link.getsockname()[1])
                    return None
                if link.getsockname()[1] not in self._ports:
                    return None
                information = link.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, LAST_DATA_SENT.size)
                (milliseconds,) = LAST_DATA_SENT.unpack(information)
                return Connection(descriptor, status.st_ino, link.getpeername()[0], milliseconds / 1000)
        except OSError:  # closed meanwhile
            return None


@contextmanager
def borrowed(descriptor: int) -> Iterator[socket.socket]:
    """A socket by its descriptor, which stays open.

    It is not duplicated: by the time it could have become the database's, and closing any descriptor of a file ends
    all locks that the process has on it.
    """
    link = socket.socket(fileno=descriptor)
    try:
        yield link
    finally:
        link.detach()


def end(connection: Connection, how: int) -> None:
    """Shut a connection down, if its descriptor is still the same socket's."""
    with suppress(OSError):  # the client was faster
        if os.fstat(connection.descriptor).st_ino == connection.inode:
            with borrowed(connection.descriptor) as link:
                link.shutdown(how)
