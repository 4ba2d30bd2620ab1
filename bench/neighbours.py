"""Measure what accounts can do to another: python -m bench.neighbours [--only NAMES] [--database postgresql].

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
import statistics
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlencode

import psycopg
from msgspec.structs import replace
from testing.process import group

from bench.data import Agency, open_account
from bench.load import cpu_seconds
from bench.servers import Connection, Server, add_option, megabytes, request, stage
from retainer.crm import clients
from retainer.demo.make import make
from retainer.identity.actors import operator_of
from retainer.identity.people import sessions
from retainer.rollups import doctor
from retainer.schema.migrations import migrate
from retainer.settings import BASE_PATH
from retainer.store.engines import Sqlite
from retainer.store.tx import Store, Tx
from retainer.work import projects, time_entries
from retainer.work.project_types import Project
from retainer.work.time_rules import TimeEntry

ENTRIES, SLOW_ENTRIES, PROJECTS = 8_400, 4_200, 50
COPIES = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {times}) "
    "INSERT INTO {table} ({names}) SELECT {names} FROM {table}, n WHERE {condition}"
)
UNIQUE = {"id", "code", "code_folded", "external_id"}
KEYS = 40
NAMES = itertools.count(1)
THREE_YEARS = f"?from={datetime.now(UTC).date() - timedelta(days=1095)}"
NOT_TAKEN = {b"302", b"303", b"401", b"403", b"404"}
"""What answers a burden that is none, as with a session that has ended."""
LONG_WORD = "Donaudampfschifffahrt" * 90
IDLE_SECONDS, RENDERER_SECONDS = 12, 40
"""How long the server may be busy with what still waits after a scene, and until idle renderers have ended."""


def percentiles(taken: list[float]) -> tuple[float, float]:
    """The median and the 99th percentile."""
    return statistics.median(taken), max(taken) if len(taken) < 2 else statistics.quantiles(taken, n=100)[98]


class Burden(NamedTuple):
    """What an account sends again and again over a number of connections."""

    connections: int
    method: str
    path: str
    headers: str = ""
    body: bytes = b""
    sent_bytes: int | None = None
    """Send only so many bytes of the body, and wait."""
    sender: str = "Authorization: Bearer {}"

    def request(self, key: str) -> bytes:
        """The bytes of the request with a key, or with the session of a person."""
        head = f"{self.method} {self.path} HTTP/1.1\r\nHost: x\r\n{self.sender.format(key)}\r\n{self.headers}"
        return f"{head}Content-Length: {len(self.body)}\r\n\r\n".encode() + self.body[: self.sent_bytes]


def read(connections: int, path: str, headers: str = "") -> Burden:
    return Burden(connections, "GET", BASE_PATH + path, headers)


def write(connections: int, path: str, body: object, sent_bytes: int | None = None) -> Burden:
    content_type = "Content-Type: application/json\r\n"
    return Burden(connections, "POST", BASE_PATH + path, content_type, json.dumps(body).encode(), sent_bytes)


def form(connections: int, path: str, body: bytes, media_type: str = "application/x-www-form-urlencoded") -> Burden:
    """A form of the console that a person sends."""
    sender = "Sec-Fetch-Site: same-origin\r\nCookie: retainer-session={}"
    return Burden(connections, "POST", f"/console{path}", f"Content-Type: {media_type}\r\n", body, sender=sender)


class Scene(NamedTuple):
    """What one account or several do at the same time; each with the keys or the session that it uses."""

    parts: list[tuple[Burden, list[str]]]
    reads_pdf: bool = False
    """Whether the other account reads a PDF meanwhile."""


def burdens(client: int, drafts: list[int]) -> dict[str, Burden]:
    """The ten things, each with the name of its row."""
    bill = {"method": "POST", "path": "/invoices", "body": {"client_id": client, "unbilled_work": {"time": {}}}}
    fails = {"method": "POST", "path": "/tags", "body": {"name": ""}}  # so that it can be sent again
    pdf = "Accept: application/pdf\r\n"
    return {
        "PDFs of a draft": read(16, f"/invoices/{drafts[0]}", pdf),
        "PDFs with long words": read(16, f"/invoices/{drafts[1]}", pdf),
        "searches": read(64, "/time-entries?q=nothing+like+this"),
        "lists of 100 with totals": read(64, "/time-entries?per_page=100&page=40"),
        "reports of three years": read(32, f"/reports/overview{THREE_YEARS}"),
        "atomic batches of invoices": write(4, "/batch", {"atomic": True, "operations": [bill, fails]}),
        "creates": write(64, "/external-contacts", {"client_id": client, "first_name": "Ana"}),
        "60 KB of unknown fields": write(32, "/tags", {f"field{number}": 1 for number in range(4000)}),
        "waiting for events": read(128, "/events?after=0&types=site.deleted", "Prefer: wait=20\r\n"),
        "bodies that never arrive": write(150, "/tags", {"name": "x" * 900}, sent_bytes=1),
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


def bill_slowly(agencies: list[tuple[int, Agency]], count: int) -> Scene:
    """Accounts that each bill all time of a client in atomic batches, of which nothing stays."""
    name = "atomic batches of invoices"
    return Scene([(burdens(client, [0, 0])[name], agency.keys) for client, agency in agencies[:count]])


def read_together(store: Store) -> Scene:
    """Accounts that each read over four connections: the processor is all that they want."""
    agencies = [open_account(store, f"reader-{number}", KEYS * 10) for number in range(16)]
    return Scene([(read(4, "/tags?per_page=25"), agency.keys) for agency in agencies])


def with_time(store: Store, agency: Agency, size: int) -> int:
    """Record so many hours for a client, every project's on a day of its own; return the client."""
    days = itertools.count()
    with store.begin(replace(operator_of(store, agency.account), user_id=agency.user, role="admin"), write=True) as tx:
        client = clients.create_client(tx, make(clients.Client, name=f"Client of {size}", hourly_rate="90")).id
        for number in range(PROJECTS):
            project = projects.create_project(tx, make(Project, name=f"Project {number}", client_id=client)).id
            day = str(datetime.now(UTC).date() - timedelta(days=next(days)))
            hour = make(TimeEntry, project_id=project, duration_minutes=45, date=day)
            multiply(tx, "time_entries", size // PROJECTS - 1, f"id = {time_entries.record_time(tx, hour)}")
    return client


def multiply(tx: Tx, table: str, times: int, condition: str) -> None:
    """Insert copies of rows; their totals are still to be recomputed."""
    columns = tx.connection.execute(f"SELECT name FROM pragma_table_info('{table}')")
    names = ", ".join(name for (name,) in columns if name not in UNIQUE)
    tx.connection.execute(COPIES.format(table=table, names=names, times=times, condition=condition))


def session_of(store: Store, agency: Agency) -> str:
    with store.begin(operator_of(store, agency.account), write=True) as tx:
        return sessions.start(tx, agency.user, None, None)[1]


def forms_with_many_rows(store: Store, count: int) -> Scene:
    """New invoices with too many lines, each naming a project that does not exist, in accounts with 20,000."""
    parts = []
    for number in range(count):
        agency = open_account(store, f"forms-{count}-{number}", 1)
        client = with_time(store, agency, PROJECTS)
        with store.begin(operator_of(store, agency.account), write=True) as tx:
            multiply(tx, "projects", 20_000 // PROJECTS - 1, f"account_id = {agency.account}")
        rows = [("client_id", str(client)), *((f"lines.{row}.project_id", f"nomatch{row}") for row in range(1990))]
        parts.append((form(2, "/records/invoices/new", urlencode(rows).encode()), [session_of(store, agency)]))
    return Scene(parts)


def logos_at_the_limit(store: Store, count: int) -> Scene:
    """Accounts that upload logos which never end."""
    blurs = '<feGaussianBlur stdDeviation="30"/>' * 4000
    logo = f'<svg xmlns="http://www.w3.org/2000/svg" width="800" height="800"><filter id="f">{blurs}</filter>'
    logo += '<rect width="800" height="800" filter="url(#f)"/></svg>'
    disposition = 'Content-Disposition: form-data; name="logo"; filename="a.svg"\r\nContent-Type: image/svg+xml'
    body = f"--b\r\n{disposition}\r\n\r\n{logo}\r\n--b--\r\n".encode()
    sent = form(4, "/settings/logo", body, "multipart/form-data; boundary=b")
    agencies = [open_account(store, f"logos-{count}-{number}", 1) for number in range(count)]
    return Scene([(sent, [session_of(store, agency)]) for agency in agencies], reads_pdf=True)


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


def memory(leader: int) -> float:
    """The MB of memory of all processes of a group; what they share counts once."""
    total = 0.0
    for pid in group(leader):
        with contextlib.suppress(OSError):
            total += megabytes(pid)["Pss"]
    return total


def drafts_of(port: int, client: int, key: str) -> list[int]:
    """Create a draft with a usual line and one with long words; return their ids."""
    connection = Connection(port)
    texts = ["Design of the start page", LONG_WORD]
    lines = [[{"description": text, "quantity": "1", "unit_price": "500"}] * 20 for text in texts]
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


def play(server: Server, scene: Scene, streams: dict[str, Iterator[bytes]], seconds: float) -> tuple[Any, int]:
    """Measure the other account during a scene; return what `measure` returns when the server is idle again."""
    if not scene.parts:
        return measure(server.port, streams, seconds)
    sender = multiprocessing.Process(target=play_forever, args=(server.port, scene), daemon=True)
    sender.start()
    time.sleep(2)
    found = measure(server.port, streams, seconds)
    if not sender.is_alive():
        raise SystemExit("The burden ended.")
    sender.kill()
    sender.join()
    end, used = time.monotonic() + IDLE_SECONDS, cpu_seconds(server)
    while time.monotonic() < end:  # what still waits is refused
        time.sleep(1)
        before, used = used, cpu_seconds(server)
        if used - before < 0.05:
            break
    return found


ALONE = list(burdens(0, [0, 0]))
SLOW = {f"{count} accounts that write slowly": count for count in (8, 16, 32)}
OTHERS: dict[str, Callable[[Store], Scene]] = {
    "16 accounts that read": read_together,
    "forms with many rows": partial(forms_with_many_rows, count=1),
    "4 accounts, forms with many rows": partial(forms_with_many_rows, count=4),
    **{f"{count} accounts, logos without end": partial(logos_at_the_limit, count=count) for count in (2, 4)},
}


def fill(store: Store, names: list[str]) -> tuple[Agency, int, dict[str, Scene]]:
    """Open the accounts of some scenes; return the one that acts alone with its client, and the scenes of others."""
    agency = open_account(store, "burden", KEYS)
    client = with_time(store, agency, ENTRIES if set(names) & set(ALONE) else PROJECTS)
    slow = [open_account(store, f"slow-{number}", 4) for number in range(max([SLOW.get(name, 0) for name in names]))]
    billed = [(with_time(store, each, SLOW_ENTRIES), each) for each in slow]
    scenes = {name: bill_slowly(billed, SLOW[name]) for name in names if name in SLOW}
    scenes |= {name: OTHERS[name](store) for name in names if name in OTHERS}
    doctor.inspect(store, repair=True)
    return agency, client, scenes


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=10.0, help="how long each burden lasts")
    options.add_argument("--only", default="", help="parts of the names of the burdens, separated by commas")
    add_option(options)
    given = options.parse_args()
    parts = [part.strip() for part in given.only.split(",")]
    names = [name for name in (*ALONE, *SLOW, *OTHERS) if any(part in name for part in parts)]
    if not names:
        options.error(f"--only: {given.only} is part of none of these: {', '.join((*ALONE, *SLOW, *OTHERS))}")
    with stage(given.database, pinned=False) as place:
        file = place.folder / "retainer.db"
        engine = Sqlite(file)
        migrate(engine)
        store = Store(engine)
        other = open_account(store, "other", 100).keys
        agency, client, several = fill(store, names)
        engine.close()
        address = place.address(file)
        server = place.start("Retainer", file, address=address)
        alone = burdens(client, drafts_of(server.port, client, agency.keys[0]))
        scenes = {name: several.get(name) or Scene([(alone[name], agency.keys)]) for name in names}
        streams, pdfs = streams_of(server.port, other)
        measure(server.port, streams, 2)
        if given.database == "postgresql":  # as its autovacuum does within a minute
            with psycopg.connect(address, autocommit=True) as connection:
                connection.execute("ANALYZE")
        print(f"{'':<32} read p50      p99  ratio  write p50      p99  ratio  503    MB")
        quiet: dict[tuple[str, bool], float] = {}
        reads_pdf = any(scene.reads_pdf for scene in scenes.values())
        rows = {"quiet": Scene([])} | ({"quiet, PDFs": Scene([], reads_pdf=True)} if reads_pdf else {}) | scenes
        for name, scene in (rows | {"quiet again": Scene([])}).items():
            if name == "quiet again" and (reads_pdf or any("PDF" in each for each in names)):
                time.sleep(RENDERER_SECONDS)
            taken, refused = play(server, scene, pdfs if scene.reads_pdf else streams, given.seconds)
            row = f"{name:<32}"
            for kind, times in taken.items():
                median, slowest = percentiles(times)
                first = quiet.setdefault((kind, scene.reads_pdf), median)
                row += f"{median:>{9 if kind == 'read' else 11}.2f}{slowest:>9.2f}{median / first:>7.1f}"
            print(f"{row}{refused:>5}{memory(server.process.pid):>6.0f}", flush=True)


if __name__ == "__main__":
    main()
