"""Measure what a month of checks costs a list of sites: python -m bench.sites [--sites N] [--rounds N].

One server has sites that were checked every minute for 30 days, the other the same sites without any check.
"""

import argparse
import itertools
import os
import statistics
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench import bare_databases
from bench.data import open_agency
from bench.depth import measure
from bench.depth_data import FAST, put
from bench.servers import RETAINER, Server, request, start, stop, wait
from retainer.identity.actors import operator_of
from retainer.sites import uptime
from retainer.store.engines import Sqlite
from retainer.store.tx import Store
from retainer.values.exact import as_instant

DAYS, KEYS, EVERY = 30, 100, 60
SITE = (
    *("account_id", "created_at", "updated_at", "url", "name", "environment", "platform", "monitoring_enabled"),
    *("check_interval_seconds", "observed", "last_checked_at", "next_check_at", "plugins_count"),
    *("plugin_updates_count", "core_update_available", "name_sort", "search"),
)
HOURS = "INSERT INTO site_hours (account_id, site_id, hour, up, down) VALUES (?, ?, ?, ?, ?)"
CHECKS = "INSERT INTO site_checks (account_id, site_id, checked_at, is_up) VALUES (?, ?, ?, ?)"


def fill(path: Path, sites: int, *, checked: bool) -> list[str]:
    """Make a database with a number of sites; return its keys."""
    agency = open_agency(path, KEYS)
    connection = bare_databases.Sqlite(str(path)).connect()
    for pragma in FAST:
        connection.execute(f"PRAGMA {pragma}")
    now = datetime.now(UTC)
    moment, later = as_instant(now), as_instant(now + timedelta(days=365))
    seen = ("up", moment) if checked else ("unknown", None)
    connection.execute("BEGIN")
    rows = [
        (
            *(agency.account, moment, moment, f"https://shop-{n:04}.example/", f"Shop {n:04}", "production"),
            *("wordpress", 1, EVERY, *seen, later, 20, n % 4, 0, f"shop {n:04}", f"shop {n:04}"),
        )
        for n in range(1, sites + 1)
    ]
    put(connection, agency.account, "sites", SITE, rows)
    if checked:
        connection.executemany(HOURS, hours(agency.account, sites, now))
        connection.executemany(CHECKS, checks(agency.account, sites, now))
    connection.execute("COMMIT")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    store = Store(Sqlite(path))
    with store.begin(operator_of(store, agency.account), write=True) as tx:
        for site in range(1, sites + 1) if checked else ():
            uptime.summarise(tx, site)
    store.engine.close()
    return agency.keys


def hours(account: int, sites: int, now: datetime) -> Iterator[tuple[int, int, str, int, int]]:
    spans = [as_instant(now - timedelta(hours=hour))[:13] for hour in range(24 * DAYS)]
    for site in range(1, sites + 1):
        yield from ((account, site, hour, 3600 // EVERY - site % 3, site % 3) for hour in spans)


def checks(account: int, sites: int, now: datetime) -> Iterator[tuple[int, int, str, int]]:
    moments = [as_instant(now - timedelta(seconds=EVERY * n)) for n in range(86_400 // EVERY)]
    for site in range(1, sites + 1):
        yield from ((account, site, moment, place % 30 >= site % 3) for place, moment in enumerate(moments))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sites", type=int, default=1000)
    options.add_argument("--rounds", type=int, default=21, help="how often each request is measured on each")
    given = options.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[-1]})
    servers: list[Server] = []
    paths = {
        "GET /sites": "/sites",
        "... ?sort=-uptime_percent_30d": "/sites?sort=-uptime_percent_30d",
        "... ?status=up,unknown": "/sites?status=up,unknown",
        "GET /sites/{id}": "/sites/500" if given.sites >= 500 else "/sites/1",
    }
    with tempfile.TemporaryDirectory() as folder:
        try:
            for name, checked in (("never", False), ("checked", True)):
                database = Path(folder) / name / "retainer.db"
                database.parent.mkdir()
                keys = fill(database, given.sites, checked=checked)
                servers.append(start(name, [*RETAINER[:-1], "--no-monitor", RETAINER[-1]], database, cores[0]))
                servers[-1].requests = {
                    what: itertools.cycle([request("GET", path, key) for key in keys]) for what, path in paths.items()
                }
                wait(servers[-1])
            found = measure(servers, given.rounds)
        finally:
            for server in servers:
                stop(server)
    print(f"{given.sites} sites, {given.sites * DAYS * 86_400 // EVERY:,} checks; microseconds")
    for what, rounds in found.items():
        never, checked = (statistics.median(column) for column in zip(*rounds, strict=True))
        ratio = statistics.median(plain / seen for plain, seen in rounds)
        print(f"{what:<30} never checked {never:,.0f}, checked {checked:,.0f}: {ratio:.2f} of its speed")


if __name__ == "__main__":
    main()
