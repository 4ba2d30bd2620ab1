"""Measure what a large invoice costs, and whom it holds up: python -m bench.large_invoices [--sizes N,N] [--rounds N].

For clients with some unbilled time entries on 50 projects it prints the statements that one request runs to bill all
of them, the median milliseconds of each step of the invoice's life, and what another account was answered meanwhile:
how many writes, how many 503, and the longest that one took.
"""

import argparse
import contextlib
import http.client
import itertools
import json
import statistics
import tempfile
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bench.databases import add_option, databases
from bench.servers import RETAINER, start, stop, wait
from bench.slow_senders import open_account
from retainer.billing.invoices import invoices
from retainer.billing.invoices.types import Invoice
from retainer.crm import clients
from retainer.demo.make import make
from retainer.identity.actors import operator_of
from retainer.rollups import doctor
from retainer.schema.migrations import migrate
from retainer.settings import BASE_PATH
from retainer.store.engines import Sqlite, connect
from retainer.store.tx import Store
from retainer.work import projects, time_entries
from retainer.work.project_types import Project
from retainer.work.time_rules import TimeEntry

PROJECTS = 50
COPY = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {times}) "
    "INSERT INTO time_entries ({names}) SELECT {names} FROM time_entries, n WHERE id = {id}"
)
WORK = {"time": {}}


def fill(store: Store, sizes: list[int], account: int = 1, user: int = 1) -> dict[int, int]:
    """Record hours for a client of each size, every project's on a day of its own; return the clients by size."""
    found = {}
    days = itertools.count()
    for size in sizes:
        with store.begin(replace(operator_of(store, account), user_id=user, role="admin"), write=True) as tx:
            client = make(clients.Client, name=f"Client of {size}", hourly_rate="90")
            found[size] = clients.create_client(tx, client).id
            columns = tx.connection.execute("SELECT name FROM pragma_table_info('time_entries')").fetchall()
            names = ", ".join(name for (name,) in columns if name != "id")
            for number in range(PROJECTS):
                project = make(Project, name=f"Project {number}", client_id=found[size])
                hour = {"project_id": projects.create_project(tx, project).id, "duration_minutes": 45}
                day = str(datetime.now(UTC).date() - timedelta(days=next(days)))
                entry = time_entries.record_time(tx, make(TimeEntry, **hour, date=day))
                tx.connection.execute(COPY.format(times=size // PROJECTS - 1, names=names, id=entry))
    doctor.inspect(store, repair=True)
    return found


def count_statements(address: str, client: int) -> int:
    """Return how many statements one request runs to bill everything of a client; nothing of it stays."""
    store, ran = Store(connect(address)), itertools.count()
    run: Any = store.engine.run
    store.engine.run = lambda *args: (next(ran), run(*args))[1]  # type: ignore[method-assign]
    with contextlib.suppress(InterruptedError), store.begin(operator_of(store, 1), write=True) as tx:
        before = next(ran)
        invoices.create_invoice(tx, make(Invoice, client_id=client, unbilled_work=WORK))
        raise InterruptedError
    return next(ran) - before - 1


class Caller:
    """Sends requests of a key over one connection, and notes the status and the milliseconds of each by its name."""

    def __init__(self, port: int, key: str) -> None:
        self.link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self.taken: dict[str, list[tuple[int, float]]] = {}

    def send(self, name: str, method: str, path: str, body: object = None) -> Any:
        """Send a request; return the record of the answer."""
        began = time.perf_counter()
        self.link.request(method, BASE_PATH + path, None if body is None else json.dumps(body), self.headers)
        answer = self.link.getresponse()
        data = answer.read()
        self.taken.setdefault(name, []).append((answer.status, (time.perf_counter() - began) * 1000))
        return json.loads(data or b"{}").get("data")

    def live(self, client: int) -> None:
        """Take an invoice of all hours through its life in three ways."""
        for ends in ("deleted", "void", "credited"):
            made = self.send("billed", "POST", "/invoices", {"client_id": client, "unbilled_work": WORK})
            if made is None:
                raise SystemExit(f"Not billed: {self.taken['billed'][-1]}.")
            path = f"/invoices/{made['id']}"
            if ends == "deleted":
                self.send(ends, "DELETE", path)
                continue
            self.send("issued", "PATCH", path, {"status": "sent"})
            change = ("PATCH", path, {"status": "void"}) if ends == "void" else ("POST", f"{path}/credit-notes", {})
            self.send(ends, *change)

    def write(self, ended: threading.Event) -> None:
        """Write until told to end."""
        while not ended.wait(0.02):
            self.send("tags", "POST", "/tags", {"name": f"Tag {time.time_ns()}"})


def measure(port: int, keys: tuple[str, str], client: int, rounds: int) -> str:
    """Return what the invoices of a client took, and what the other account was answered."""
    caller, other, ended = Caller(port, keys[0]), Caller(port, keys[1]), threading.Event()
    writer = threading.Thread(target=other.write, args=(ended,))
    writer.start()
    try:
        for _ in range(rounds):
            caller.live(client)
    finally:
        ended.set()
        writer.join()
    medians = {name: statistics.median(milliseconds for _, milliseconds in each) for name, each in caller.taken.items()}
    refused, longest = sum(status == 503 for status, _ in other.taken["tags"]), max(ms for _, ms in other.taken["tags"])
    steps = ", ".join(f"{name} {median:.0f} ms" for name, median in medians.items())
    return f"{steps}; others: {refused} of {len(other.taken['tags'])} 503, at most {longest:.0f} ms"


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sizes", default="1000,10000")
    options.add_argument("--rounds", type=int, default=5)
    add_option(options)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, databases(chosen.database, None) as place:
        file = Path(folder) / "large.db"
        store = Store(Sqlite(file))
        migrate(store.engine)
        keys = open_account(store, "large", 1)[0], open_account(store, "other", 1)[0]
        found = fill(store, [int(size) for size in chosen.sizes.split(",")])
        store.engine.close()
        address = place(file)
        server = start("retainer", RETAINER, file, None, address)
        try:
            wait(server)
            for size, client in found.items():
                print(f"{size} entries: {count_statements(address, client)} statements")
                print(f"{size} entries: {measure(server.port, keys, client, chosen.rounds)}")
        finally:
            stop(server)


if __name__ == "__main__":
    main()
