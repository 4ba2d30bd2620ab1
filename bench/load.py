"""Measure Retainer against the hand-written yardstick: python -m bench.load [--seconds S] [--rounds N].

The yardstick is always on SQLite, also if Retainer is on PostgreSQL.
"""

import argparse
import contextlib
import itertools
import os
import random
import re
import selectors
import shutil
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from testing.process import group, status_of

from bench.data import CLIENTS, KEYS, describe, fill
from bench.servers import CORES, THREADS, Connection, Server, add_option, request, stage

CONNECTIONS = 16
BARE = [
    *(sys.executable, "-m", "granian", "bench.bare:create", "--factory", "--interface", "wsgi", "--no-ws"),
    *("--http", "1", "--http1-header-read-timeout", "10000", "--http1-buffer-size", "65536", "--backlog", "2048"),
    *("--log-level", "warning", "--blocking-threads", str(THREADS), "--port"),
]
"""Retainer's own server starts with the same options; the address is 127.0.0.1."""
TARGETS = {"read one": 0.70, "list 25 with total": 0.80, "create": 1.25}
SWITCHES = {"read one": 1, "list 25 with total": 2, "create": 5}
TICK = os.sysconf("SC_CLK_TCK")
STAMPS = re.compile(rb'"(?:created_at|updated_at)":"[^"]*",')


@dataclass
class Turn:
    """What a server did in one turn: requests, wall and CPU seconds, and how often its threads waited."""

    answered: int
    wall: float
    server: float
    switches: int

    @property
    def cost(self) -> float:
        """Microseconds of the processor for a request."""
        return self.server / self.answered * 1e6

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.answered / self.wall


def drive(port: int, requests: Iterator[bytes], seconds: float, count: int = CONNECTIONS) -> int:
    """Keep a number of connections busy for some seconds; return the number of responses."""
    answered = 0
    with selectors.EpollSelector() as selector:
        connections = [Connection(port) for _ in range(count)]
        for connection in connections:
            connection.socket.settimeout(0)
            selector.register(connection.socket, selectors.EVENT_READ, connection)
            connection.socket.sendall(next(requests))
        end = time.perf_counter() + seconds
        waiting = count
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
    """One turn; the first tenth is not counted."""
    drive(server.port, server.requests[scenario], seconds / 10)
    began, cpu, switched = time.perf_counter(), cpu_seconds(server), switches(server)
    answered = drive(server.port, server.requests[scenario], seconds)
    wall = time.perf_counter() - began
    return Turn(answered, wall, cpu_seconds(server) - cpu, switches(server) - switched)


def measure_alone(server: Server, scenario: str, seconds: float) -> Turn:
    """One turn: the server runs while the others are stopped. Each has a database of its own, for it may hold locks."""
    os.killpg(server.process.pid, signal.SIGCONT)
    turn = measure(server, scenario, seconds)
    os.killpg(server.process.pid, signal.SIGSTOP)
    return turn


def cpu_seconds(server: Server) -> float:
    """User and system time of the server's processes, which are a process group of their own."""
    ticks = 0
    for pid in group(server.process.pid):
        with contextlib.suppress(OSError):
            ticks += sum(map(int, status_of(pid)[11:13]))
    return ticks / TICK


def switches(server: Server) -> int:
    """How often the server's threads have waited: for a request, for a flush, or for each other."""
    found = 0
    for status in Path("/proc").glob("[0-9]*/task/*/status"):
        with contextlib.suppress(OSError):
            text = status.read_text()
            if f"\nNSsid:\t{server.process.pid}\n" in text:
                found += int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
    return found


def endless_requests(keys: list[str]) -> dict[str, Iterator[bytes]]:
    """An endless stream of requests for each scenario, spread evenly over the keys; the same for each server."""
    rng = random.Random(2)
    clients = [describe(rng, n) for n in range(4 * KEYS)]
    streams = {
        "read one": [request("GET", f"/clients/{rng.randint(1, CLIENTS)}", key) for key in keys * 8],
        "list 25 with total": [request("GET", "/clients", key) for key in keys],
        "create": [request("POST", "/clients", key, body) for key, body in zip(keys * 4, clients, strict=True)],
    }
    return {scenario: itertools.cycle(requests) for scenario, requests in streams.items()}


def compare(retainer: Server, yardstick: Server) -> None:
    """Both must answer the same bytes to reads, and the same members to a create; anything else is no comparison."""
    connections = [Connection(server.port) for server in (retainer, yardstick)]
    for scenario in TARGETS:
        for _ in range(50):
            sent = next(retainer.requests[scenario])
            if sent != next(yardstick.requests[scenario]):
                raise SystemExit("The two servers are not asked the same.")
            bodies = [connection.ask(sent) for connection in connections]
            if scenario == "create":
                bodies = [STAMPS.sub(b"", body) for body in bodies]
            if bodies[0] != bodies[1]:
                raise SystemExit(f"{scenario}: the answers differ.\nRetainer: {bodies[0]!r}\nBare:     {bodies[1]!r}")
    for connection in connections:
        connection.socket.close()


def report(turns: dict[str, list[tuple[Turn, Turn]]]) -> None:
    """Print a line for each scenario: medians over the rounds, of CPU the lower quartile; pairs are Retainer / bare."""
    line = "{:<20}" + "{:>15}" * 8
    names = ("requests/s", "ratio", "CPU us/request", "CPU ratio", "target", "switches", "target", "server core")
    print(line.format("scenario", *names))
    for scenario, rounds in turns.items():

        def pair(figure: Callable[[Turn], float], form: str, rounds: list[tuple[Turn, Turn]] = rounds) -> str:
            sides = zip(*rounds, strict=True)
            return " / ".join(format(statistics.median(map(figure, side)), form) for side in sides)

        ratio = statistics.median(ours.rate / theirs.rate for ours, theirs in rounds)
        ours, theirs = (sorted(turn.cost for turn in side)[len(rounds) // 4] for side in zip(*rounds, strict=True))
        cells = [
            pair(lambda turn: turn.rate, ".0f"),
            f"{ratio:.2f}",
            f"{ours:.0f} / {theirs:.0f}",
            f"{theirs / ours:.2f}",
            f"{TARGETS[scenario]:.2f}",
            pair(lambda turn: turn.switches / turn.answered, ".1f"),
            f"{SWITCHES[scenario]}",
            pair(lambda turn: turn.server / turn.wall, ".0%"),
        ]
        print(line.format(scenario, *cells))
    print("Pairs are Retainer / bare. The ratio counts when both servers' core is near 100 %, that of CPU always.")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=1.0, help="how long each server is measured at a time")
    options.add_argument("--rounds", type=int, default=12, help="how often each scenario is measured on each server")
    add_option(options)
    given = options.parse_args()
    if len(CORES) < 2:
        print("One core only: servers and load generator share it, and the figures mean little.")
    turns: dict[str, list[tuple[Turn, Turn]]] = {scenario: [] for scenario in TARGETS}
    with stage(given.database) as place:
        file, copy = place.folder / "retainer.db", place.folder / "bare.db"
        keys = fill(file)
        shutil.copy(file, copy)
        servers = [place.start("Retainer", file), place.start("bare", copy, BARE, f"sqlite:///{copy}")]
        for server in servers:
            server.requests = endless_requests(keys)
        compare(*servers)
        for server in servers:
            os.killpg(server.process.pid, signal.SIGSTOP)
        for number in range(given.rounds):
            for scenario in TARGETS:
                in_turn = servers[:: -1 if number % 2 else 1]  # the database still works on what the last one wrote
                found = {server.name: measure_alone(server, scenario, given.seconds) for server in in_turn}
                turns[scenario].append((found["Retainer"], found["bare"]))
    report(turns)


if __name__ == "__main__":
    main()
