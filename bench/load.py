"""Measure Retainer against the hand-written yardstick: python bench/load.py [--seconds S] [--rounds N]."""

import argparse
import contextlib
import itertools
import os
import random
import re
import selectors
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from data import CLIENTS, KEYS, describe, fill
from retainer.settings import BASE_PATH

HERE = Path(__file__).resolve().parent
CONNECTIONS, THREADS = 16, 16
TARGETS = {"read one": 0.70, "list 25 with total": 0.75, "create": 0.70}
TICK = os.sysconf("SC_CLK_TCK")
STAMPS = re.compile(rb'"(?:created_at|updated_at)":"[^"]*",')


@dataclass
class Server:
    """A running server, and the requests that are measured on it."""

    name: str
    port: int
    process: subprocess.Popen[bytes]
    requests: dict[str, Iterator[bytes]]


@dataclass
class Turn:
    """What a server did in one turn: requests, wall seconds, its CPU seconds and the load generator's."""

    answered: int
    wall: float
    server: float
    load: float

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.answered / self.wall


class Connection:
    """One keep-alive connection and the part of a response that has arrived."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray(1 << 20)
        self.view = memoryview(self.buffer)
        self.have = 0

    def receive(self, expected: bytes) -> bool:
        """Take what has arrived; answers whether a response is complete."""
        got = self.socket.recv_into(self.view[self.have :])
        self.have += got
        head = self.buffer.find(b"\r\n\r\n", 0, self.have)
        if got and head < 0:
            return False
        at = self.buffer.find(b"content-length: ", 0, head) + 16
        if not got or at < 16 or not self.buffer.startswith(expected):
            raise SystemExit(f"Unexpected response: {bytes(self.view[: self.have])[:2000]!r}")
        return self.have == head + 4 + int(self.buffer[at : self.buffer.find(b"\r", at)])

    def body(self) -> bytes:
        """The body of the response that is complete."""
        return bytes(self.view[self.buffer.find(b"\r\n\r\n") + 4 : self.have])


def request(method: str, path: str, key: str, body: bytes = b"") -> bytes:
    """The bytes of a request; the same Host for both servers, so that links are the same too."""
    head = f"{method} {BASE_PATH}{path} HTTP/1.1\r\nHost: bench.example\r\nAuthorization: Bearer {key}\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def ask(port: int, sent: bytes) -> bytes:
    """The body that answers one request."""
    connection = Connection(port)
    connection.socket.sendall(sent)
    while not connection.receive(b"HTTP/1.1 20"):
        pass
    connection.socket.close()
    return connection.body()


def drive(port: int, requests: Iterator[bytes], seconds: float) -> int:
    """Keep every connection busy for a time; answers how many responses came."""
    answered = 0
    with selectors.EpollSelector() as selector:
        connections = [Connection(port) for _ in range(CONNECTIONS)]
        for connection in connections:
            connection.socket.settimeout(0)
            selector.register(connection.socket, selectors.EVENT_READ, connection)
            connection.socket.sendall(next(requests))
        end = time.perf_counter() + seconds
        waiting = CONNECTIONS
        while waiting:
            ready = selector.select(10)
            if not ready:
                raise SystemExit("The server has not answered for 10 seconds.")
            sending = time.perf_counter() < end
            for entry, _ in ready:
                connection = entry.data
                if connection.receive(b"HTTP/1.1 20"):
                    answered += 1
                    connection.have = 0
                    if sending:
                        connection.socket.sendall(next(requests))
                    else:
                        waiting -= 1
        for connection in connections:
            connection.socket.close()
    return answered


def measure(server: Server, scenario: str, seconds: float) -> Turn:
    """One turn: the server runs while the other is stopped; the first tenth is not counted."""
    os.killpg(server.process.pid, signal.SIGCONT)
    drive(server.port, server.requests[scenario], seconds / 10)
    began, server_cpu, load_cpu = time.perf_counter(), cpu_seconds(server), time.process_time()
    answered = drive(server.port, server.requests[scenario], seconds)
    wall = time.perf_counter() - began
    turn = Turn(answered, wall, cpu_seconds(server) - server_cpu, time.process_time() - load_cpu)
    os.killpg(server.process.pid, signal.SIGSTOP)
    return turn


def cpu_seconds(server: Server) -> float:
    """User and system time of the server's processes, which are a process group of their own."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[2]) == server.process.pid:
                ticks += int(fields[11]) + int(fields[12])
    return ticks / TICK


def prepare(keys: list[str]) -> dict[str, Iterator[bytes]]:
    """An endless stream of requests for each scenario, spread evenly over the keys; the same for each server."""
    chance = random.Random(2)
    made = [describe(chance, n) for n in range(4 * KEYS)]
    streams = {
        "read one": [request("GET", f"/clients/{chance.randint(1, CLIENTS)}", key) for key in keys * 8],
        "list 25 with total": [request("GET", "/clients", key) for key in keys],
        "create": [request("POST", "/clients", key, body) for key, body in zip(keys * 4, made, strict=True)],
    }
    return {scenario: itertools.cycle(requests) for scenario, requests in streams.items()}


def start(name: str, folder: Path, core: int, keys: list[str]) -> Server:
    """Start a server on a copy of the database, pinned to a core, in a process group of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    database = folder / f"{name}.db"
    database.write_bytes((folder / "made.db").read_bytes())
    environment = {key: value for key, value in os.environ.items() if not key.startswith("RETAINER_")} | {
        "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),
        "BENCH_DATABASE": str(database),
        "RETAINER_DATA_DIR": str(folder),
        "RETAINER_DATABASE_URL": f"sqlite:///{database}",
    }
    command = [sys.executable, str(HERE / "bare.py"), str(port), str(THREADS)]
    if name == "Retainer":
        command = [sys.executable, "-m", "retainer", "serve", "--port", str(port), "--threads", str(THREADS)]
    quiet, before = subprocess.DEVNULL, os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    process = subprocess.Popen(command, env=environment, cwd=folder, stdout=quiet, stderr=quiet, start_new_session=True)
    os.sched_setaffinity(0, before)
    return Server(name, port, process, prepare(keys))


def wait(server: Server) -> None:
    """Wait until the server listens."""
    for _ in range(200):
        if server.process.poll() is not None:
            break
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", server.port), timeout=1):
            return
        time.sleep(0.1)
    raise SystemExit(f"This does not listen: {' '.join(map(str, server.process.args))}")


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


def compare(retainer: Server, yardstick: Server) -> None:
    """Both must answer the same bytes to reads, and the same members to a create; anything else is no comparison."""
    for scenario in TARGETS:
        for _ in range(50):
            sent = next(retainer.requests[scenario])
            if sent != next(yardstick.requests[scenario]):
                raise SystemExit("The two servers are not asked the same.")
            bodies = [ask(server.port, sent) for server in (retainer, yardstick)]
            if scenario == "create":
                bodies = [STAMPS.sub(b"", body) for body in bodies]
            if bodies[0] != bodies[1]:
                raise SystemExit(f"{scenario}: the answers differ.\nRetainer: {bodies[0]!r}\nBare:     {bodies[1]!r}")


def report(turns: dict[str, list[tuple[Turn, Turn]]]) -> None:
    """Print a line for each scenario: medians over the rounds; pairs are Retainer / bare."""
    line = "{:<20}" + "{:>17}" * 6
    print(line.format("scenario", "requests/s", "ratio", "target", "CPU us/request", "server core", "load core"))
    for scenario, rounds in turns.items():

        def pair(figure: Callable[[Turn], float], form: str, rounds: list[tuple[Turn, Turn]] = rounds) -> str:
            sides = zip(*rounds, strict=True)
            return " / ".join(format(statistics.median(map(figure, side)), form) for side in sides)

        ratio = statistics.median(ours.rate / theirs.rate for ours, theirs in rounds)
        cells = [
            pair(lambda turn: turn.rate, ".0f"),
            f"{ratio:.2f}",
            f"{TARGETS[scenario]:.2f}",
            pair(lambda turn: turn.server / turn.answered * 1e6, ".0f"),
            pair(lambda turn: turn.server / turn.wall, ".0%"),
            pair(lambda turn: turn.load / turn.wall, ".0%"),
        ]
        print(line.format(scenario, *cells))
    print("Pairs are Retainer / bare. A ratio counts when both servers' core is near 100 % and the load core is not.")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=2.0, help="how long each server is measured at a time")
    options.add_argument("--rounds", type=int, default=5, help="how often each scenario is measured on each server")
    given = options.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        print("One core only: servers and load generator share it, and the figures mean little.")
    os.sched_setaffinity(0, {cores[-1]})
    servers: list[Server] = []
    turns: dict[str, list[tuple[Turn, Turn]]] = {scenario: [] for scenario in TARGETS}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        keys = fill(folder / "made.db")
        try:
            for name in ("Retainer", "bare"):
                servers.append(start(name, folder, cores[0], keys))
                wait(servers[-1])
            compare(*servers)
            for server in servers:
                os.killpg(server.process.pid, signal.SIGSTOP)
            for _ in range(given.rounds):
                for scenario in TARGETS:
                    first, second = (measure(server, scenario, given.seconds) for server in servers)
                    turns[scenario].append((first, second))
        finally:
            for server in servers:
                stop(server)
    report(turns)


if __name__ == "__main__":
    main()
