"""The connection guard: ends connections that take too long, and those beyond the limit of an address."""

import os
import socket
import stat
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from retainer.kernel.forwarding import group, is_trusted, parse_address
from retainer.settings import Settings

SCAN_SECONDS = 1.0
LEAVE_SECONDS = 0.1  # from one look to the next at whether connections are left
REQUEST_SECONDS = 30  # for the whole of a request, from the last response on
CLOSING_SECONDS = 5  # after that, for the refusal to be sent
MAX_CONNECTIONS = 8192
MAX_PER_ADDRESS = 512  # an agency with all its people and tools may stand behind one address
LAST_DATA_SENT = struct.Struct("=44xI")  # in Linux's tcp_info: milliseconds


class Connection(NamedTuple):
    """A connection of a client, as it was at the time of a scan."""

    descriptor: int
    inode: int  # tells the socket from another that has its descriptor by now
    address: str
    silent: float  # seconds since the server sent something, or since it accepted the connection


class ConnectionGuard:
    """A thread that scans all connections every second. The sockets belong to the HTTP server."""

    def __init__(self, settings: Settings, failed: Callable[[str, Exception], None]) -> None:
        self.settings = settings
        self._failed = failed
        self._ports: set[int] = set()
        self._seen: set[int] = set()
        self._stopped = threading.Event()

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._run, name="connections", daemon=True).start()

    def stop(self) -> None:
        """Let the thread end, without waiting for it."""
        self._stopped.set()

    def leave(self, seconds: float) -> None:
        """Leave new connections to other processes; return when none is left here, or after some seconds.

        The HTTP server cannot stop accepting without closing connections, so another socket, to which nobody
        connects, takes the place of those that it listens on. What waits in them waits for the other processes.
        """
        _, listeners = self._scan()
        with socket.socket(socket.AF_UNIX) as nobody:
            nobody.bind("")
            nobody.listen()
            nobody.setblocking(False)  # noqa: FBT003
            for descriptor in listeners:
                os.dup2(nobody.fileno(), descriptor, inheritable=False)
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.scan():
            time.sleep(LEAVE_SECONDS)

    def _run(self) -> None:
        while not self._stopped.wait(SCAN_SECONDS):
            try:
                self.check(self.scan())
            except Exception as error:  # noqa: BLE001  # the next scan may succeed
                self._failed("looking at connections", error)

    def scan(self) -> list[Connection]:
        """Return every connection of a client."""
        return self._scan()[0]

    def _scan(self) -> tuple[list[Connection], set[int]]:
        """Return every connection of a client, and the descriptors of the listening sockets."""
        listeners: set[int] = set()
        with os.scandir("/proc/self/fd") as entries:
            connections = [self._connection(int(entry.name), listeners) for entry in entries]
        return [connection for connection in connections if connection is not None], listeners

    def check(self, connections: list[Connection]) -> None:
        """End connections that take too long, and the newest of an address that has too many."""
        by_address: dict[str, list[Connection]] = defaultdict(list)
        for connection in connections:
            if connection.silent > REQUEST_SECONDS + CLOSING_SECONDS:
                end(connection, socket.SHUT_RDWR)
            elif connection.silent > REQUEST_SECONDS:
                end(connection, socket.SHUT_RD)  # a thread that waits for the body reads its end
            peer = parse_address(connection.address)
            if not is_trusted(peer, self.settings):
                by_address[group(peer)].append(connection)
        for of_address in by_address.values():
            if len(of_address) > MAX_PER_ADDRESS:
                of_address.sort(key=lambda connection: connection.inode not in self._seen)
                for connection in of_address[MAX_PER_ADDRESS:]:
                    end(connection, socket.SHUT_RDWR)
        self._seen = {connection.inode for connection in connections}

    def _connection(self, descriptor: int, listeners: set[int]) -> Connection | None:
        """Return the client's connection behind a descriptor, or None; note listening sockets and their ports."""
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
                information = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, LAST_DATA_SENT.size)
                (milliseconds,) = LAST_DATA_SENT.unpack(information)
                return Connection(descriptor, status.st_ino, sock.getpeername()[0], milliseconds / 1000)
        except OSError:  # closed meanwhile
            return None


@contextmanager
def socket_from_fd(descriptor: int) -> Iterator[socket.socket]:
    """Yield a socket for a descriptor, which stays open.

    It is not duplicated: by the time it could have become the database's, and closing any descriptor of a file ends
    all locks that the process has on it.
    """
    sock = socket.socket(fileno=descriptor)
    try:
        yield sock
    finally:
        sock.detach()


def end(connection: Connection, how: int) -> None:
    """Shut a connection down, if its descriptor is still the same socket's."""
    with suppress(OSError):  # the client closed it meanwhile
        if os.fstat(connection.descriptor).st_ino == connection.inode:
            with socket_from_fd(connection.descriptor) as sock:
                sock.shutdown(how)
