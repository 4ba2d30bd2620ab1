"""Measure what one account can do to another: python -m bench.neighbours [--seconds S] [--database postgresql].

An account does the worst that it can with valid keys, one thing after another. Meanwhile another account reads and
writes over one connection. Prints p50 and p99 of its requests in milliseconds, how often p50 is that of a quiet server,
how many were refused, and the memory of the server. The exit status is always 0.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import psycopg

from bench.databases import add_option, databases
from bench.large_invoices import fill
from bench.servers import RETAINER, Connection, request, start, stop, wait
from bench.slow_senders import open_account, percentiles
from retainer.schema.migrations import migrate
from retainer.settings import BASE_PATH
from retainer.store.engines import Sqlite
from retainer.store.tx import Store

ENTRIES = 8_400
KEYS = 40
NAMES = itertools.count(1)
THREE_YEARS = f"?from={datetime.now(UTC).date() - timedelta(days=1095)}"
LONG_WORD = "Donaudampfschifffahrt" * 90


class Burden(NamedTuple):
    """What an account sends again and again over a number of connections."""

    connections: int
    method: str
    path: str
    body: object = None
    headers: str = ""
    sent_bytes: int | None = None
    """Send only so many bytes of the body, and wait."""

    def request(self, key: str) -> bytes:
        """The bytes of the request."""
        body = b"" if self.body is None else json.dumps(self.body).encode()
        head = (
            f"{self.method} {BASE_PATH}{self.path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n{self.headers}"
        )
        if body:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        return f"{head}\r\n".encode() + body[: self.sent_bytes]


def burdens(client: int, drafts: list[int]) -> dict[str, Burden]:
    """The ten things, each with the name of its row."""
    bill = {"method": "POST", "path": "/invoices", "body": {"client_id": client, "unbilled_work": {"time": {}}}}
    fails = {"method": "POST", "path": "/tags", "body": {"name": ""}}  # so that it can be sent again
    pdf = "Accept: application/pdf\r\n"
    return {
        "PDFs of a draft": Burden(16, "GET", f"/invoices/{drafts[0]}", headers=pdf),
        "PDFs with long words": Burden(16, "GET", f"/invoices/{drafts[1]}", headers=pdf),
        "searches": Burden(64, "GET", "/time-entries?q=nothing+like+this"),
        "lists of 100 with totals": Burden(64, "GET", "/time-entries?per_page=100&page=40"),
        "reports of three years": Burden(32, "GET", f"/reports/overview{THREE_YEARS}"),
        "atomic batches of invoices": Burden(4, "POST", "/batch", {"atomic": True, "operations": [bill, fails]}),
        "creates": Burden(64, "POST", "/external-contacts", {"client_id": client, "first_name": "Ana"}),
        "60 KB of unknown fields": Burden(32, "POST", "/tags", {f"field{number}": 1 for number in range(4000)}),
        "waiting for events": Burden(128, "GET", "/events?after=0&types=site.deleted", headers="Prefer: wait=20\r\n"),
        "bodies that never arrive": Burden(150, "POST", "/tags", {"name": "x" * 900}, sent_bytes=1),
    }


async def repeat(port: int, burden: Burden, key: str) -> None:
    """Send a request, take its answer, and begin again; a connection that ends is replaced."""
    while True:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, ValueError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                while True:
                    writer.write(burden.request(key))
                    head = await reader.readuntil(b"\r\n\r\n")
                    if b"content-length: " in head:
                        await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r")[0]))
                    if b"connection: close" in head:
                        break
            finally:
                writer.close()
        await asyncio.sleep(0.01)


def burden_forever(port: int, burden: Burden, keys: list[str]) -> None:
    """Do it over all connections, until this process is ended."""

    async def run() -> None:
        used = itertools.cycle(keys)
        await asyncio.gather(*(repeat(port, burden, next(used)) for _ in range(burden.connections)))

    asyncio.run(run())


def measure(port: int, streams: dict[str, Iterator[bytes]], seconds: float) -> tuple[dict[str, list[float]], int]:
    """The milliseconds of each answer of the other account, reads and writes in turn, and how many were refused."""
    taken: dict[str, list[float]] = {name: [] for name in streams}
    refused, connection = 0, Connection(port, patience=40)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, stream in streams.items():
            began = time.perf_counter()
            try:
                connection.ask(next(stream))
            except (SystemExit, OSError):
                refused += 1
                connection.socket.close()
                connection = Connection(port, patience=40)
            taken[name].append((time.perf_counter() - began) * 1000)
    connection.socket.close()
    return taken, refused


def memory(group: int) -> int:
    """The MB of memory of all processes of a group; what they share counts once."""
    total = 0
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if folder.name.isdigit() and os.getpgid(int(folder.name)) == group:
                rollup = (folder / "smaps_rollup").read_text(encoding="ascii")
                total += next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    return total // 1000


def drafts_of(port: int, client: int, key: str) -> list[int]:
    """Create a draft with a usual line and one with long words; return their ids."""
    connection = Connection(port)
    texts = ["Design of the start page", " ".join([LONG_WORD] * 1)]
    lines = [[{"description": text[:2000], "quantity": "1", "unit_price": "500"}] * 20 for text in texts]
    bodies = [json.dumps({"client_id": client, "lines": each}).encode() for each in lines]
    return [json.loads(connection.ask(request("POST", "/invoices", key, body)))["data"]["id"] for body in bodies]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=10.0, help="how long each burden lasts")
    options.add_argument("--only", default="", help="a part of the names of the burdens")
    add_option(options)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, databases(given.database, None) as place:
        file = Path(folder) / "retainer.db"
        engine = Sqlite(file)
        migrate(engine)
        store = Store(engine)
        keys, other = open_account(store, "burden", KEYS), open_account(store, "other", 100)
        (client,) = fill(store, [ENTRIES]).values()
        engine.close()
        address = place(file)
        server = start("Retainer", RETAINER, file, None, address)
        try:
            wait(server)
            found = burdens(client, drafts_of(server.port, client, keys[0]))
            reads = itertools.cycle([request("GET", "/tags?per_page=25", key) for key in other])
            writes = (
                request("POST", "/tags", key, b'{"name":"Tag %d"}' % next(NAMES)) for key in itertools.cycle(other)
            )
            streams = {"read": reads, "write": writes}
            measure(server.port, streams, 2)
            if given.database == "postgresql":  # as its autovacuum does within a minute
                with psycopg.connect(address, autocommit=True) as connection:
                    connection.execute("ANALYZE")
            print(f"{'':<32} read p50      p99  ratio  write p50      p99  ratio  503    MB")
            quiet: dict[str, float] = {}
            for name, burden in {"quiet": None, **found, "quiet again": None}.items():
                if given.only not in name and burden is not None:
                    continue
                if name == "quiet again":
                    time.sleep(40)  # renderers end when they have been idle
                sender = multiprocessing.Process(target=burden_forever, args=(server.port, burden, keys), daemon=True)
                if burden is not None:
                    sender.start()
                    time.sleep(2)
                taken, refused = measure(server.port, streams, given.seconds)
                if burden is not None:
                    sender.kill()
                    sender.join()
                    time.sleep(12)  # what still waits is refused
                row = f"{name:<32}"
                for kind, times in taken.items():
                    median, slowest = percentiles(times) if len(times) > 1 else (statistics.median(times), times[0])
                    quiet.setdefault(kind, median)
                    row += f"{median:>{9 if kind == 'read' else 11}.2f}{slowest:>9.2f}{median / quiet[kind]:>7.1f}"
                print(f"{row}{refused:>5}{memory(server.process.pid):>6}", flush=True)
        finally:
            stop(server)


if __name__ == "__main__":
    main()
