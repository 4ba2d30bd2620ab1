"""Measure the monitor within `serve`: python -m bench.monitor [--sites N] [--minutes M] [--rounds R].

First how late 1,000 local sites with an interval of 60 seconds are checked, seen from those sites, by a server on one
core that answers requests all the while. Then what the API answers with the monitor and without, in turns.
"""

import argparse
import itertools
import os
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

from testing.ports import free_port

from bench.data import fill
from bench.load import drive, endless_requests, measure_alone
from bench.servers import RETAINER, Server, start, stop, wait
from retainer.values.exact import as_instant

INTERVAL = 60
INSERT = """
INSERT INTO sites (account_id, created_at, updated_at, url, name, name_sort, search, environment, platform,
                   monitoring_enabled, check_interval_seconds, plugins_count, plugin_updates_count,
                   core_update_available, next_check_at)
SELECT id, created_at, created_at, ?1, ?2, ?2, ?2, 'production', 'static', 1, ?3, 0, 0, 0, ?4 FROM accounts LIMIT 1"""


def add_sites(database: Path, port: int, sites: int, interval: int, first: datetime) -> dict[str, float]:
    """Write sites that are due one after the other over an interval; return when each is due first."""
    due = {}
    connection = sqlite3.connect(database)
    for n in range(sites):
        at = first + timedelta(seconds=interval * n / sites)
        due[f"/site/{n}"] = at.timestamp()
        url = f"http://127.0.0.1:{port}/site/{n}"
        connection.execute(INSERT, (url, f"site {n}", interval, as_instant(at)))
    connection.commit()
    connection.close()
    return due


def lateness(seen: Path, due: dict[str, float], until: float) -> tuple[list[float], int, int]:
    """How late each check came, how many never came, and how many came twice in an interval."""
    came: dict[str, list[float]] = defaultdict(list)
    for line in seen.read_text(encoding="utf-8").splitlines():
        moment, path = line.split()
        came[path].append(float(moment))
    late, missed, twice = [], 0, 0
    for path, first in due.items():
        for at in itertools.takewhile(lambda at: at < until - 2, itertools.count(first, INTERVAL)):
            within = [moment for moment in came[path] if at <= moment < at + INTERVAL]
            missed += not within
            twice += len(within) > 1
            late += [within[0] - at] if within else []
    return late, missed, twice


def load(server: Server, seconds: float, every: float = 5.0) -> None:
    """Keep a server busy with reads, in pieces."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        drive(server.port, server.requests["read one"], every)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sites", type=int, default=1000)
    options.add_argument("--minutes", type=float, default=4.0, help="how long checks are counted")
    options.add_argument("--rounds", type=int, default=9, help="how often each server is measured")
    given = options.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[-1]})
    port = free_port()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        keys = fill(folder / "made.db")
        sites = subprocess.Popen([sys.executable, "-m", "bench.local_sites", str(port), str(folder / "seen")])
        try:
            on_time(folder, keys, port, given.sites, given.minutes, cores[0])
            side_by_side(folder, keys, port, given.sites, given.rounds, cores[0])
        finally:
            sites.terminate()
            sites.wait(5)


def run(name: str, folder: Path, database: Path, core: int, *more: str) -> Server:
    """Start a server that may check sites on this machine."""
    (folder / ".env").write_text("RETAINER_MONITOR_ALLOW=127.0.0.0/8\n", encoding="utf-8")
    return start(name, [*RETAINER[:4], *more, *RETAINER[4:]], database, core)


def on_time(folder: Path, keys: list[str], port: int, sites: int, minutes: float, core: int) -> None:
    database = copy(folder, "late")
    first = datetime.now(UTC) + timedelta(seconds=5)
    due = add_sites(database, port, sites, INTERVAL, first)
    server = run("Retainer", folder, database, core)
    try:
        server.requests = endless_requests(keys)
        wait(server)
        busy = threading.Thread(target=load, args=(server, minutes * 60))
        busy.start()
        busy.join()
        until = time.time()
    finally:
        stop(server)
    late, missed, twice = lateness(folder / "seen", due, until)
    figures = [statistics.quantiles(late, n=1000)[place] for place in (499, 949, 989, 998)]
    print(f"{len(late)} checks of {sites} sites in {minutes:g} minutes, while one core answered reads without a pause:")
    print(
        "late by p50 {:.2f} s, p95 {:.2f} s, p99 {:.2f} s, p99.9 {:.2f} s, at most {:.2f} s".format(*figures, max(late))
    )
    print(f"not checked: {missed}; checked twice in an interval: {twice}")


def side_by_side(folder: Path, keys: list[str], port: int, sites: int, rounds: int, core: int) -> None:
    """The servers take turns, so that half the time counts: with twice the interval as many checks fall into a turn."""
    with_it, without = copy(folder, "with"), copy(folder, "without")
    add_sites(with_it, port, sites, 2 * INTERVAL, datetime.now(UTC))
    servers = [run("with", folder, with_it, core), run("without", folder, without, core, "--no-monitor")]
    ratios: dict[str, list[float]] = {"read one": [], "list 25 with total": [], "create time entry": []}
    try:
        for server in servers:
            server.requests = endless_requests(keys)
            wait(server)
        for server in servers:
            os.killpg(server.process.pid, signal.SIGSTOP)
        for _ in range(rounds):
            for scenario, found in ratios.items():
                first, second = (measure_alone(server, scenario, 3.0) for server in servers)
                found.append(first.rate / second.rate)
    finally:
        for server in servers:
            stop(server)
    for scenario, found in ratios.items():
        print(f"{scenario}: with the monitor / without = {statistics.median(found):.3f} (target 0.9)")


def copy(folder: Path, name: str) -> Path:
    made = folder / f"{name}.db"
    made.write_bytes((folder / "made.db").read_bytes())
    return made


if __name__ == "__main__":
    main()
