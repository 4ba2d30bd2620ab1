"""Measure reads, lists and creates on a Citus cluster beside one PostgreSQL: python -m bench.cluster.

RETAINER_TEST_CLUSTER names the nodes as for `make cluster`: host:port,port,port, the coordinator first. Both servers
have the same rows of one account, which are on one worker of the cluster.
"""

import argparse
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg

from bench.data import fill
from bench.databases import databases
from bench.load import TARGETS, endless_requests, measure_alone
from bench.servers import RETAINER, Server, start, stop, wait

NAME = "retainer_bench"


@contextlib.contextmanager
def distributed(nodes: str, source: Path) -> Iterator[str]:
    """A block with a database of the cluster that has the rows of a file, with its tables distributed."""
    host, _, ports = nodes.rpartition(":")
    coordinator, *workers = ports.split(",")

    def run(port: str, database: str, *statements: str) -> None:
        with psycopg.connect(f"postgresql://postgres@{host}:{port}/{database}", autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    address = f"postgresql://postgres@{host}:{coordinator}/{NAME}"
    drop = f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)"
    try:
        for port in (coordinator, *workers):
            run(port, "postgres", drop, f"CREATE DATABASE {NAME} ENCODING UTF8 TEMPLATE template0")
            run(port, NAME, "CREATE EXTENSION citus")
        add = [f"SELECT citus_add_node('{host}', {port})" for port in workers]
        run(coordinator, NAME, f"SELECT citus_set_coordinator_host('{host}', {coordinator})", *add)
        for words in (["copy", "--from", f"sqlite:///{source}", "--to", address], ["distribute"]):
            environment = {name: value for name, value in os.environ.items() if not name.startswith("RETAINER_")}
            environment["RETAINER_DATABASE_URL"] = address
            subprocess.run(
                [sys.executable, "-m", "retainer", *words], check=True, env=environment, stdout=subprocess.DEVNULL
            )
        yield address
    finally:
        for port in (coordinator, *workers):
            run(port, "postgres", drop)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=2.0, help="how long each server is measured at a time")
    options.add_argument("--rounds", type=int, default=5, help="how often each scenario is measured on each server")
    given = options.parse_args()
    nodes = os.environ.get("RETAINER_TEST_CLUSTER", "")
    if not nodes:
        raise SystemExit("Set RETAINER_TEST_CLUSTER to host:port,port,port of a cluster, the coordinator first.")
    cores = sorted(os.sched_getaffinity(0))
    servers: list[Server] = []
    rates: dict[str, list[tuple[float, float]]] = {scenario: [] for scenario in TARGETS}
    with contextlib.ExitStack() as stack:
        file = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "made.db"
        keys = fill(file)
        place = stack.enter_context(databases("postgresql", None))
        for name, address in (("cluster", stack.enter_context(distributed(nodes, file))), ("one", place(file))):
            servers.append(start(name, RETAINER, file, cores[0], address))
            stack.callback(stop, servers[-1])
            servers[-1].requests = endless_requests(keys)
            wait(servers[-1])
        for server in servers:
            os.killpg(server.process.pid, signal.SIGSTOP)
        os.sched_setaffinity(0, {cores[-1]})
        for _ in range(given.rounds):
            for scenario in TARGETS:
                first, second = (measure_alone(server, scenario, given.seconds).rate for server in servers)
                rates[scenario].append((first, second))
    print(f"{'scenario':<20}{'cluster':>10}{'one':>10}{'ratio':>8}   requests/s, medians of {given.rounds} rounds")
    for scenario, rounds in rates.items():
        cluster, one = (statistics.median(side) for side in zip(*rounds, strict=True))
        ratio = statistics.median(ours / theirs for ours, theirs in rounds)
        print(f"{scenario:<20}{cluster:>10.0f}{one:>10.0f}{ratio:>8.2f}")


if __name__ == "__main__":
    main()
