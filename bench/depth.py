"""Measure how answers slow down as an account grows: python -m bench.depth [--small N] [--large N] [--rounds N].

The databases have so many time entries, and of everything else a share of that; clients, projects and tags are as many
in both, so that each has the more children.
"""

import argparse
import itertools
import random
import re
import statistics
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import msgspec

from bench.account import DAYS, PROJECTS, USERS, Account, client_of, fill
from bench.data import long_ago, work_done
from bench.servers import Connection, Server, add_option, request, stage
from retainer.api import RESOURCES
from retainer.kernel.routes import Routes
from retainer.settings import BASE_PATH

Streams = dict[str, Iterator[bytes]]
"""Endless streams of requests by their kind."""
Medians = dict[str, list[list[float]]]
"""Microseconds by the kind of request: of each round, a median for each server."""
PER_PAGE = 25
WARM_SECONDS, TURN_SECONDS, TIMEOUT_SECONDS = 0.5, 0.1, 120
TARGET, LAST, MIDDLE, WRITE = 1.5, "... last page", "... middle page", "POST /time-entries"
WRITE_DAYS = 20  # on which each key records time
RECORDS = 10  # of each kind are read: those with the most children
OPERATIONS = [
    operation
    for operation in Routes(RESOURCES).operations
    if operation.method == "GET"
    and (operation.paged or operation.path.endswith("}"))
    and not operation.path.startswith("/webhooks/{")
    and "external:" not in operation.path
    and operation.path.count("{") < 2
]
"""Every list and single record of the API, by one id, except those of webhooks: an account has few of these."""


def cursor_of(server: Server, path: str, key: str) -> str:
    """The path of the page after this one, which begins after a record."""
    connection = Connection(server.port, TIMEOUT_SECONDS)
    page = msgspec.json.decode(connection.ask(request("GET", path, key)))
    connection.socket.close()
    return str(page["links"]["next"]).partition(BASE_PATH)[2]


def endless_requests(made: Account, server: Server) -> Streams:
    """An endless stream of requests for each kind, spread over the keys; the write comes last, as it adds rows."""
    rng = random.Random(2)
    pages = -(-made.entries // PER_PAGE)
    middle = f"/time-entries?page={1 + pages // 2}"
    projects = [rng.randint(1, PROJECTS) for _ in made.keys]
    midst = datetime.now(UTC).date() - timedelta(days=DAYS // 2)
    period = f"date_from={midst}&date_to={midst + timedelta(days=30)}"
    reads = {
        str(operation): [re.sub(r"\{\w+\}", str(n), operation.path) for n in range(1, RECORDS + 1)]
        for operation in OPERATIONS
    }
    reads |= {
        LAST: [f"/time-entries?page={pages}"],
        MIDDLE: [middle],
        "... page after a cursor in the middle": [cursor_of(server, middle, made.keys[0])],
        "... ?user_id=": [f"/time-entries?user_id={rng.randint(1, USERS)}" for _ in made.keys],
        "... ?project_id=": [f"/time-entries?project_id={project}" for project in projects],
        "... ?date_from=&date_to=": [f"/time-entries?{period}"],
        "... ?updated_since=": [f"/time-entries?updated_since={made.recent}"],
    }
    streams = {
        kind: [request("GET", path, key) for path, key in zip(itertools.cycle(paths), made.keys, strict=False)]
        for kind, paths in reads.items()
    }
    return {kind: itertools.cycle(requests) for kind, requests in streams.items()} | {WRITE: endless_writes(made)}


def endless_writes(made: Account) -> Iterator[bytes]:
    """An endless stream of requests that record time, spread over the keys, and over more days than they fill."""
    rng, keys = random.Random(3), made.keys * WRITE_DAYS
    bodies = (
        {"client_id": client_of(project), "project_id": project, "duration_minutes": rng.randint(1, 3)}
        | {"date": long_ago(rng), "billable": rng.random() < 0.8, "description": work_done(rng)}
        for project in [rng.randint(1, PROJECTS) for _ in keys]
    )
    requests = [
        request("POST", "/time-entries", key, msgspec.json.encode(body)) for key, body in zip(keys, bodies, strict=True)
    ]
    return itertools.cycle(requests)


def turn(connection: Connection, requests: Iterator[bytes], seconds: float) -> float:
    """Ask one after another for a time, once at least; return the median in microseconds."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        sent = next(requests)
        began = time.perf_counter()
        connection.ask(sent)
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e6


def measure(servers: list[Server], rounds: int) -> Medians:
    """For each kind of request the medians of each round; the servers take turns."""
    connections = [Connection(server.port, TIMEOUT_SECONDS) for server in servers]
    found: Medians = {}
    for kind in servers[0].requests:
        streams = [server.requests[kind] for server in servers]
        for connection, stream in zip(connections, streams, strict=True):
            turn(connection, stream, WARM_SECONDS)
        found[kind] = [
            [turn(connection, stream, TURN_SECONDS) for connection, stream in zip(connections, streams, strict=True)]
            for _ in range(rounds)
        ]
    for connection in connections:
        connection.socket.close()
    return found


def report(sizes: list[int], found: Medians) -> None:
    """Print a line for each kind of request: medians over the rounds."""
    line = "{:<48}{:>18}{:>18}{:>9}{:>9}"
    print(line.format("microseconds", *(f"{size:,} entries" for size in sizes), "ratio", "target"))
    for kind, rounds in found.items():
        small, large = (statistics.median(column) for column in zip(*rounds, strict=True))
        ratio = statistics.median(large / small for small, large in rounds)
        target = "" if kind in {LAST, MIDDLE} else f"{TARGET:.1f}"
        print(line.format(kind, f"{small:,.0f}", f"{large:,.0f}", f"{ratio:.1f}", target).rstrip())


def compare(doc: str | None, ask: Callable[[Account, Server], Streams], rounds: int) -> tuple[list[int], Medians]:
    """Measure what is asked of two accounts, as the command line says; return their sizes and the medians."""
    options = argparse.ArgumentParser(description=doc)
    options.add_argument("--small", type=int, default=10_000, help="time entries of the one account")
    options.add_argument("--large", type=int, default=1_000_000, help="time entries of the other")
    options.add_argument(
        "--rounds", type=int, default=rounds, help="how often each kind of request is measured on each"
    )
    add_option(options)
    given = options.parse_args()
    sizes = [given.small, given.large]
    with stage(given.database) as place:
        for size in sizes:
            file = place.folder / str(size) / "retainer.db"
            account = fill(file, size)
            server = place.start(f"{size} entries", file)
            server.requests = ask(account, server)
        return sizes, measure(place.servers, given.rounds)


if __name__ == "__main__":
    report(*compare(__doc__, endless_requests, rounds=15))
