"""Measure the reports as an account grows, and what they cost clients that record time: python -m bench.reports."""

import argparse
import itertools
import os
import signal
import statistics
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench import load
from bench.databases import add_option, databases
from bench.depth import WRITE, endless_writes, measure
from bench.depth_data import fill
from bench.report_data import add_money
from bench.servers import RETAINER, Server, request, start, stop, wait

NAMES = ("overview", "revenue-by-client", "revenue-by-month", "utilisation", "project-profitability")
YEAR_MS, ALWAYS_MS, COST = 50, 150, 0.85
SECONDS = 2.0
MAX_DAYS = 1095  # days before today
WITHOUT = [sys.executable, "-m", "bench.without_reports"]


def asked(keys: list[str]) -> dict[str, Iterator[bytes]]:
    """An endless stream of requests for each report: of years, one of them past, and of as long as it takes."""
    today = datetime.now(UTC).date()
    months, past = today.replace(day=1) - timedelta(days=330), f"{today.year - 1}"
    days = {
        "12 months": f"from={months.replace(day=1)}",
        "365 days": f"from={today - timedelta(days=364)}",
        "last year": f"from={past}-01-01&to={past}-12-31",
        "all": f"from={today - timedelta(days=MAX_DAYS)}",
    }
    paths = {f"{name}, {what}": f"/reports/{name}?{query}" for what, query in days.items() for name in NAMES}
    paths[f"{NAMES[-1]}, all"] = f"/reports/{NAMES[-1]}"
    return {what: itertools.cycle([request("GET", path, key) for key in keys]) for what, path in paths.items()}


def report(sizes: list[int], found: dict[str, list[list[float]]]) -> None:
    line = "{:<34}{:>16}{:>18}{:>10}{:>9}"
    print(line.format("p50 in ms", *(f"{size:,} entries" for size in sizes), "at most", "ratio"))
    for what, rounds in found.items():
        small, large = (statistics.median(column) / 1000 for column in zip(*rounds, strict=True))
        limit = ALWAYS_MS if what.endswith("all") else YEAR_MS
        ratio = statistics.median(large / small for small, large in rounds)
        print(line.format(what, f"{small:.2f}", f"{large:.2f}", limit, f"{ratio:.1f}"))


def cost(servers: list[Server], rounds: int) -> None:
    """Print how many entries a second each of two servers records, with 16 connections; they take turns."""
    for server in servers:
        os.killpg(server.process.pid, signal.SIGSTOP)
    turns = [[load.measure_alone(server, WRITE, SECONDS).rate for server in servers] for _ in range(rounds)]
    without, with_them = (statistics.median(column) for column in zip(*turns, strict=True))
    ratio = statistics.median(second / first for first, second in turns)
    print(f"time entries a second: {with_them:.0f} with the sums, {without:.0f} without; {ratio:.3f} (target {COST})")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--small", type=int, default=10_000, help="time entries of the one account; it has a 20th invoices"
    )
    options.add_argument("--large", type=int, default=1_000_000, help="time entries of the other")
    options.add_argument("--rounds", type=int, default=9, help="how often each report is measured on each")
    add_option(options)
    given = options.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[-1]})
    sizes = [given.small, given.large]
    servers: list[Server] = []
    with tempfile.TemporaryDirectory() as folder, databases(given.database, cores[0]) as place:
        try:
            for name, size, command in (
                ("small", given.small, RETAINER),
                ("large", given.large, RETAINER),
                ("without", given.small, WITHOUT),
                ("with", given.small, RETAINER),
            ):
                database = Path(folder) / name / "retainer.db"
                database.parent.mkdir()
                made = fill(database, size)
                add_money(database, size // 20)
                servers.append(start(name, command, database, cores[0], place(database)))
                reads = name in {"small", "large"}
                servers[-1].requests = asked(made.keys) if reads else {WRITE: endless_writes(made)}
                wait(servers[-1])
            report(sizes, measure(servers[:2], given.rounds))
            cost(servers[2:], given.rounds)
        finally:
            for server in servers:
                stop(server)


if __name__ == "__main__":
    main()
