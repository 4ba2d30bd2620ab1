"""Servers that are measured: started on a core of their own, asked over keep-alive connections, ended."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from testing.ports import free_port

from retainer.settings import BASE_PATH

THREADS = 16
CORES = os.sched_getaffinity(0)
RETAINER = [sys.executable, "-m", "retainer", "serve", "--threads", str(THREADS), "--port"]
BARE = [sys.executable, "-m", "bench.bare", str(THREADS)]


@dataclass
class Server:
    """A running server, and the requests that are measured on it."""

    name: str
    port: int
    process: subprocess.Popen[bytes]
    requests: dict[str, Iterator[bytes]] = field(default_factory=dict)


class Connection:
    """One keep-alive connection and the part of a response that has arrived."""

    def __init__(self, port: int, patience: float = 10) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=patience)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray(1 << 20)
        self.view = memoryview(self.buffer)
        self.have = 0

    def receive(self, expected: bytes) -> bool:
        """Take what has arrived; return whether a response is complete."""
        got = self.socket.recv_into(self.view[self.have :])
        self.have += got
        head = self.buffer.find(b"\r\n\r\n", 0, self.have)
        if got and head < 0:
            return False
        at = self.buffer.find(b"content-length: ", 0, head) + 16
        if not got or at < 16 or not self.buffer.startswith(expected):
            raise SystemExit(f"Unexpected response: {bytes(self.view[: self.have])[:2000]!r}")
        return self.have == head + 4 + int(self.buffer[at : self.buffer.find(b"\r", at)])

    def ask(self, sent: bytes) -> bytes:
        """The body that answers one request."""
        self.have = 0
        self.socket.sendall(sent)
        while not self.receive(b"HTTP/1.1 20"):
            pass
        return bytes(self.view[self.buffer.find(b"\r\n\r\n") + 4 : self.have])


def request(method: str, path: str, key: str, body: bytes = b"") -> bytes:
    """The bytes of a request; the same Host for both servers, so that links are the same too."""
    head = f"{method} {BASE_PATH}{path} HTTP/1.1\r\nHost: bench.example\r\nAuthorization: Bearer {key}\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def start(name: str, command: list[str], database: Path, core: int | None, address: str = "") -> Server:
    """Start a server of a file, or of the database at an address, on a core or all, in a process group of its own."""
    port = free_port()
    address = address or f"sqlite:///{database}"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("RETAINER_")} | {
        "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),
        "BENCH_DATABASE": address,
        "RETAINER_DATA_DIR": str(database.parent),
        "RETAINER_DATABASE_URL": address,
    }
    quiet, before = subprocess.DEVNULL, os.sched_getaffinity(0)
    os.sched_setaffinity(0, CORES if core is None else {core})
    process = subprocess.Popen(
        [*command, str(port)], env=environment, cwd=database.parent, stdout=quiet, stderr=quiet, start_new_session=True
    )
    os.sched_setaffinity(0, before)
    return Server(name, port, process)


def wait(server: Server) -> None:
    """Wait until the server listens."""
    for _ in range(200):
        if server.process.poll() is not None:
            break
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", server.port), timeout=1):
            return
        time.sleep(0.1)
    raise SystemExit(f"This does not listen: {server.name}")


def stop(server: Server) -> None:
    """End a server's processes: ask first, kill what is left."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(server.process.pid, signal.SIGCONT)
        time.sleep(0.3)
        server.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.process.wait(5)
        os.killpg(server.process.pid, signal.SIGKILL)
    server.process.wait(5)
