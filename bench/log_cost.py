"""Measure what the request log costs readers: python -m bench.log_cost [--seconds S] [--rounds N] [--pairs N].

Two servers on one core take turns, one with the request log and one without, in several pairs: two processes of one
program differ by some percent for as long as they run. Each line is the median of the ratios of all turns.
"""

import argparse
import contextlib
import itertools
import os
import shutil
import signal
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.data import fill
from bench.load import Turn, endless_requests, measure_alone
from bench.servers import RETAINER, Server, start, stop, wait

READS = ("read one", "list 25 with total")
AT_LEAST = 0.92


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=2.0, help="how long each server is measured at a time")
    options.add_argument("--rounds", type=int, default=3, help="how often each pair is measured")
    options.add_argument("--pairs", type=int, default=7, help="how many pairs of servers are measured")
    given = options.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[-1]})
    turns: dict[str, list[tuple[Turn, Turn]]] = {scenario: [] for scenario in READS}
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "retainer.db"
        keys = fill(database)
        for number in range(given.pairs):
            place = Path(folder) / str(number)
            place.mkdir()
            with started(database, place, keys, cores[0]) as pair:
                for turn, scenario in itertools.product(range(given.rounds), READS):
                    order = pair if (turn + number) % 2 else pair[::-1]
                    measured = {server.name: measure_alone(server, scenario, given.seconds) for server in order}
                    turns[scenario].append((measured["with"], measured["without"]))
    print(f"{'with the log / without':<24}{'requests/s':>12}{'at least':>10}{'CPU/request':>13}")
    for scenario, pairs in turns.items():
        rate = statistics.median(logged.rate / unlogged.rate for logged, unlogged in pairs)
        cost = statistics.median(cpu(logged) / cpu(unlogged) for logged, unlogged in pairs)
        print(f"{scenario:<24}{rate:>12.3f}{AT_LEAST:>10}{cost:>13.3f}")


@contextlib.contextmanager
def started(database: Path, folder: Path, keys: list[str], core: int) -> Iterator[list[Server]]:
    """Two servers of the same data, one with the request log and one without; both are stopped until their turn."""
    servers = []
    try:
        for name, days in (("with", 30), ("without", 0)):
            place = folder / name
            place.mkdir()
            command = ["env", f"RETAINER_REQUEST_LOG_DAYS={days}", *RETAINER]
            servers.append(start(name, command, Path(shutil.copy(database, place)), core))
            wait(servers[-1])
            servers[-1].requests = endless_requests(keys)
            os.killpg(servers[-1].process.pid, signal.SIGSTOP)
        yield servers
    finally:
        for server in servers:
            stop(server)


def cpu(turn: Turn) -> float:
    """The server's seconds of the processor for a request."""
    return turn.server / turn.answered


if __name__ == "__main__":
    main()
