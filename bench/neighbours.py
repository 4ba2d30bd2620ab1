"""Measure what accounts can do to another: python -m bench.neighbours [--seconds S] [--database postgresql].

An account does the worst that it can with valid keys, one thing after another, then several accounts do. Meanwhile
another account reads and writes over one connection; in the last scenes, what it reads is a PDF. Prints p50 and p99 of
its requests in milliseconds, how often p50 is that of a quiet server, how many were refused, and the memory of the
server. The exit status is always 0.
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
from typing import Any, NamedTuple
from urllib.parse import urlencode

import psycopg
from sqlalchemy import func, select

from bench.data import open_account
from bench.databases import add_option, databases
from bench.servers import RETAINER, Connection, request, start, stop, wait
from bench.unbilled_data import PROJECTS, fill
from retainer.identity.actors import operator_of
from retainer.identity.people import sessions
from retainer.rollups import doctor
from retainer.schema.identity import accounts, users
from retainer.schema.migrations import migrate
from retainer.settings import BASE_PATH
from retainer.store.engines import Sqlite
from retainer.store.tx import Store

ENTRIES, SLOW_ENTRIES = 8_400, 4_200
MORE_PROJECTS = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {times}) "
    "INSERT INTO projects ({names}) SELECT {names} FROM projects, n WHERE account_id = {account}"
)
KEYS = 40
NAMES = itertools.count(1)
THREE_YEARS = f"?from={datetime.now(UTC).date() - timedelta(days=1095)}"
NOT_TAKEN = {b"302", b"303", b"401", b"403", b"404"}
"""What answers a burden that is none, as with a session that has ended."""
LONG_WORD = "Donaudampfschifffahrt" * 90


def percentiles(taken: list[float]) -> tuple[float, float]:
    """The median and the 99th percentile."""
    return statistics.median(taken), statistics.quantiles(taken, n=100)[98]


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


class SentForm(NamedTuple):
    """A form of the console that a person sends again and again over a number of connections."""

    connections: int
    path: str
    body: bytes
    media_type: str = "application/x-www-form-urlencoded"

    def request(self, session: str) -> bytes:
        """The bytes of the request."""
        head = (
            f"POST /console{self.path} HTTP/1.1\r\nHost: x\r\nSec-Fetch-Site: same-origin\r\n"
            f"Cookie: retainer-session={session}\r\n"
            f"Content-Type: {self.media_type}\r\nContent-Length: {len(self.body)}\r\n"
        )
        return f"{head}\r\n".encode() + self.body


class Scene(NamedTuple):
    """What one account or several do at the same time; each with the keys or the session that it uses."""

    parts: list[tuple[Burden | SentForm, list[str]]]
    reads_pdf: bool = False
    """Whether the other account reads a PDF meanwhile."""


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


async def repeat(port: int, burden: Burden | SentForm, key: str) -> None:
    """Send a request, take its answer, and begin again; a connection that ends is replaced."""
    while True:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, ValueError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                while True:
                    writer.write(burden.request(key))
                    head = await reader.readuntil(b"\r\n\r\n")
                    if head[9:12] in NOT_TAKEN:
                        raise SystemExit(f"{burden.path}: {head[:15].decode()}")
                    if b"content-length: " in head:
                        await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r")[0]))
                    if b"connection: close" in head:
                        break
            finally:
                writer.close()
        await asyncio.sleep(0.01)


def play_forever(port: int, scene: Scene) -> None:
    """Do all of a scene over all connections, until this process is ended."""

    async def run() -> None:
        links = [
            repeat(port, burden, key)
            for burden, keys in scene.parts
            for key, _ in zip(itertools.cycle(keys), range(burden.connections), strict=False)
        ]
        await asyncio.gather(*links)

    asyncio.run(run())


def slow_writers(store: Store, count: int) -> Scene:
    """Accounts that each bill all time of a client in atomic batches, of which nothing stays."""
    parts: list[tuple[Burden | SentForm, list[str]]] = []
    for number in range(count):
        keys = open_account(store, f"slow-{count}-{number}", 4).keys
        account, user = newest_account(store)
        (client,) = fill(store, [SLOW_ENTRIES], account, user).values()
        parts.append((burdens(client, [0, 0])["atomic batches of invoices"], keys))
    return Scene(parts)


def newest_account(store: Store) -> tuple[int, int]:
    """Return the account that was opened last, and its admin."""
    with store.unscoped() as tx:
        (account,) = tx.one(select(func.max(accounts.c.id))) or (0,)
        (user,) = tx.one(select(func.max(users.c.id))) or (0,)
    return account, user


def session_of(store: Store, account: int, user: int) -> str:
    with store.begin(operator_of(store, account), write=True) as tx:
        return sessions.start(tx, user, None, None)[1]


def form_with_many_rows(store: Store) -> Scene:
    """A new invoice with too many lines, each naming a project that does not exist, in an account with 20,000."""
    open_account(store, "forms", 1)
    account, user = newest_account(store)
    (client,) = fill(store, [PROJECTS], account, user).values()
    with store.begin(operator_of(store, account), write=True) as tx:
        columns = [name for (name,) in tx.connection.execute("SELECT name FROM pragma_table_info('projects')")]
        names = ", ".join(name for name in columns if name not in {"id", "code", "code_folded", "external_id"})
        tx.connection.execute(MORE_PROJECTS.format(names=names, account=account, times=20_000 // PROJECTS - 1))
    doctor.inspect(store, repair=True)
    rows = [("client_id", str(client)), *((f"lines.{row}.project_id", f"nomatch{row}") for row in range(1990))]
    form = SentForm(2, "/records/invoices/new", urlencode(rows).encode())
    return Scene([(form, [session_of(store, account, user)])])


def logos_at_the_limit(store: Store, count: int) -> Scene:
    """Accounts that upload logos which never end."""
    blurs = '<feGaussianBlur stdDeviation="30"/>' * 4000
    logo = f'<svg xmlns="http://www.w3.org/2000/svg" width="800" height="800"><filter id="f">{blurs}</filter>'
    logo += '<rect width="800" height="800" filter="url(#f)"/></svg>'
    disposition = 'Content-Disposition: form-data; name="logo"; filename="a.svg"\r\nContent-Type: image/svg+xml'
    body = f"--b\r\n{disposition}\r\n\r\n{logo}\r\n--b--\r\n".encode()
    parts: list[tuple[Burden | SentForm, list[str]]] = []
    for number in range(count):
        open_account(store, f"logos-{count}-{number}", 1)
        session = session_of(store, *newest_account(store))
        parts.append((SentForm(4, "/settings/logo", body, "multipart/form-data; boundary=b"), [session]))
    return Scene(parts, reads_pdf=True)


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


def streams_of(port: int, keys: list[str]) -> tuple[dict[str, Iterator[bytes]], dict[str, Iterator[bytes]]]:
    """Return what the other account sends: reads and writes of records, and reads of a PDF with writes."""
    made = Connection(port).ask(request("POST", "/clients", keys[0], b'{"name":"Client"}'))
    client = json.loads(made)["data"]["id"]
    pdf = burdens(client, drafts_of(port, client, keys[0]))["PDFs of a draft"]
    reads = itertools.cycle([request("GET", "/tags?per_page=25", key) for key in keys])
    writes = (request("POST", "/tags", key, b'{"name":"Tag %d"}' % next(NAMES)) for key in itertools.cycle(keys))
    return {"read": reads, "write": writes}, {"read": itertools.cycle(map(pdf.request, keys)), "write": writes}


def play(port: int, scene: Scene, streams: dict[str, Iterator[bytes]], seconds: float) -> tuple[Any, int]:
    """Measure the other account during a scene; return what `measure` returns."""
    if not scene.parts:
        return measure(port, streams, seconds)
    sender = multiprocessing.Process(target=play_forever, args=(port, scene), daemon=True)
    sender.start()
    time.sleep(2)
    found = measure(port, streams, seconds)
    if not sender.is_alive():
        raise SystemExit("The burden ended.")
    sender.kill()
    sender.join()
    time.sleep(12)  # what still waits is refused
    return found


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
        keys, other = open_account(store, "burden", KEYS).keys, open_account(store, "other", 100).keys
        (client,) = fill(store, [ENTRIES]).values()
        several = {f"{count} accounts that write slowly": slow_writers(store, count) for count in (8, 16, 32)}
        several["forms with many rows"] = form_with_many_rows(store)
        several |= {f"{count} accounts, logos without end": logos_at_the_limit(store, count) for count in (2, 4)}
        engine.close()
        address = place(file)
        server = start("Retainer", RETAINER, file, None, address)
        try:
            wait(server)
            alone = burdens(client, drafts_of(server.port, client, keys[0]))
            found = {name: Scene([(burden, keys)]) for name, burden in alone.items()} | several
            streams, pdfs = streams_of(server.port, other)
            measure(server.port, streams, 2)
            if given.database == "postgresql":  # as its autovacuum does within a minute
                with psycopg.connect(address, autocommit=True) as connection:
                    connection.execute("ANALYZE")
            print(f"{'':<32} read p50      p99  ratio  write p50      p99  ratio  503    MB")
            quiet: dict[tuple[str, bool], float] = {}
            rows = {"quiet": Scene([]), "quiet, PDFs": Scene([], reads_pdf=True), **found, "quiet again": Scene([])}
            for name, scene in rows.items():
                if given.only not in name and scene.parts:
                    continue
                if name == "quiet again":
                    time.sleep(40)  # renderers end when they have been idle
                taken, refused = play(server.port, scene, pdfs if scene.reads_pdf else streams, given.seconds)
                row = f"{name:<32}"
                for kind, times in taken.items():
                    median, slowest = percentiles(times) if len(times) > 1 else (statistics.median(times), times[0])
                    first = quiet.setdefault((kind, scene.reads_pdf), median)
                    row += f"{median:>{9 if kind == 'read' else 11}.2f}{slowest:>9.2f}{median / first:>7.1f}"
                print(f"{row}{refused:>5}{memory(server.process.pid):>6}", flush=True)
        finally:
            stop(server)


if __name__ == "__main__":
    main()
