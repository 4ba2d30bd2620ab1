"""Measure how slow senders of one account delay another: python -m bench.slow_senders [--seconds S] [--rounds N].

Prints p50 and p99 of the other account's reads and writes on a quiet server and with bodies that never arrive, and the
ratio of the p99. The exit status is always 0.
"""

import argparse
import contextlib
import itertools
import os
import socket
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.servers import RETAINER, Connection, request, start, stop, wait
from retainer.identity import accounts
from retainer.identity.accounts import AccountDetails
from retainer.identity.actors import operator_of
from retainer.identity.keys import keys
from retainer.identity.keys.keys import SCOPES
from retainer.identity.people import users
from retainer.schema.migrations import migrate
from retainer.store.engines import Sqlite
from retainer.store.tx import Store

TARGET = 3.0
BURDENS = {"12 senders over 2 keys": (12, 2), "60 senders of 1 key": (60, 1), "60 senders over 6 keys": (60, 6)}
NAMES = itertools.count(1)


def open_account(store: Store, name: str, count: int) -> list[str]:
    """Open an account on the plan enterprise; return a number of its keys."""
    details = AccountDetails(name=name, plan="enterprise")
    admin = users.UserDetails(name="Ana Lima", email=f"ana@{name}.example", role="admin")
    account, user = users.open_account(store, details, admin)
    with store.begin(operator_of(store, account), write=True) as tx:
        accounts.switch_api(tx, on=True)
        names = (f"key {number}" for number in range(count))
        return [keys.create_key(tx, keys.KeyDetails(name, user, list(SCOPES))).value for name in names]


@contextlib.contextmanager
def senders(port: int, count: int, used: list[str]) -> Iterator[None]:
    """Connections of which each has sent the first byte of a body of 1,000 bytes, and sends no more."""
    begun = [request("POST", "/tags", key, b"{" + b" " * 999)[:-999] for key in used]
    with contextlib.ExitStack() as stack:
        for number in range(count):
            link = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            link.sendall(begun[number % len(used)])
        time.sleep(0.5)
        yield


def measure(port: int, streams: dict[str, Iterator[bytes]], seconds: float) -> dict[str, list[float]]:
    """The milliseconds of each answer: reads and writes in turn, one connection, one after another."""
    taken: dict[str, list[float]] = {name: [] for name in streams}
    connection = Connection(port)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, stream in streams.items():
            began = time.perf_counter()
            connection.ask(next(stream))
            taken[name].append((time.perf_counter() - began) * 1000)
    connection.socket.close()
    return taken


def writes(used: list[str]) -> Iterator[bytes]:
    """Creates, each of another name, spread over the keys."""
    for key in itertools.cycle(used):
        yield request("POST", "/tags", key, b'{"name":"Tag %d"}' % next(NAMES))


def percentiles(taken: list[float]) -> tuple[float, float]:
    """The median and the 99th percentile."""
    return statistics.median(taken), statistics.quantiles(taken, n=100)[98]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=3.0, help="how long each turn takes")
    options.add_argument("--rounds", type=int, default=3, help="how many turns each has")
    given = options.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[-1]})
    rows: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "retainer.db"
        engine = Sqlite(database)
        migrate(engine)
        slow, other = open_account(Store(engine), "slow", 6), open_account(Store(engine), "other", 100)
        engine.close()
        server = start("Retainer", RETAINER, database, cores[0])
        try:
            wait(server)
            streams = {
                "read": itertools.cycle([request("GET", "/tags?per_page=25", key) for key in other]),
                "write": writes(other),
            }
            measure(server.port, streams, 1)
            for _ in range(given.rounds):
                for name, (count, used) in {"quiet": (0, 1), **BURDENS}.items():
                    with senders(server.port, count, slow[:used]):
                        for kind, taken in measure(server.port, streams, given.seconds).items():
                            rows.setdefault(kind, {}).setdefault(name, []).extend(taken)
        finally:
            stop(server)
    print(f"{'':<32}{'p50 ms':>10}{'p99 ms':>10}{'p99 / quiet':>14}{'target':>10}")
    for kind, found in rows.items():
        quiet = percentiles(found["quiet"])[1]
        for name, taken in found.items():
            median, slowest = percentiles(taken)
            ratio = "" if name == "quiet" else f"{slowest / quiet:>14.2f}{TARGET:>10.1f}"
            print(f"{kind + ', ' + name:<32}{median:>10.2f}{slowest:>10.2f}{ratio}")


if __name__ == "__main__":
    main()
