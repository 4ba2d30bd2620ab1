"""The connection guard: closes connections that are too slow, or too many from one address."""

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
DRAIN_SCAN_SECONDS = 0.1
REQUEST_SECONDS = 30  # for a whole request, from the last response
CLOSING_SECONDS = 5  # then, to send the refusal
MAX_CONNECTIONS = 8192
MAX_PER_ADDRESS = 512  # a whole agency may share one address
LAST_DATA_SENT = struct.Struct("=44xI")  # in Linux's tcp_info: milliseconds


class Connection(NamedTuple):
    """A client's connection at the time of a scan."""

    descriptor: int
    inode: int  # identifies the socket, because its descriptor may be reused
    address: str
    silent: float  # seconds since the server last sent data or accepted the connection


class ConnectionGuard:
    """A thread that scans all connections every second; their sockets belong to the HTTP server."""

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
        """Stop the thread, without waiting for it."""
        self._stopped.set()

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

    def _run(self) -> None:
        while not self._stopped.wait(SCAN_SECONDS):
            try:
                self.check(self.scan()[0])
            except Exception as error:  # noqa: BLE001  # the next scan may succeed
                self._failed("scanning connections", error)

    def scan(self) -> tuple[list[Connection], set[int]]:
        """Return all connections of clients, and the descriptors of the listening sockets."""
        listeners: set[int] = set()
        with os.scandir("/proc/self/fd") as entries:
            connections = [self._connection(int(entry.name), listeners) for entry in entries]
        return [connection for connection in connections if connection is not None], listeners

    def check(self, connections: list[Connection]) -> None:
        """Close connections that are too slow, and the newest ones of an address that has too many."""
        by_address: dict[str, list[Connection]] = defaultdict(list)
        for connection in connections:
            if connection.silent > REQUEST_SECONDS + CLOSING_SECONDS:
                end(connection, socket.SHUT_RDWR)
            elif connection.silent > REQUEST_SECONDS:
                end(connection, socket.SHUT_RD)  # a thread that waits for the body reads the end of it
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
                information = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, LAST_DATA_SENT.size)
                (milliseconds,) = LAST_DATA_SENT.unpack(information)
                return Connection(descriptor, status.st_ino, sock.getpeername()[0], milliseconds / 1000)
        except OSError:  # it was closed
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


def end(connection: Connection, how: int) -> None:
    """Shut a connection down, unless its descriptor belongs to another socket by now."""
    with suppress(OSError):  # the client closed it meanwhile
        if os.fstat(connection.descriptor).st_ino == connection.inode:
            with socket_from_fd(connection.descriptor) as sock:
                sock.shutdown(how)
