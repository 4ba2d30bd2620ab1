"""Measure what a large invoice costs, and whom it holds up: python -m bench.large_invoices [--sizes N,N] [--rounds N].

For clients with so many unbilled time entries on 50 projects it prints the statements that one request runs to bill all
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
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bench.databases import add_option, databases
from bench.servers import RETAINER, start, stop, wait
from bench.slow_senders import open_account
from retainer.billing.invoice_types import Invoice
from retainer.billing.invoices import create_invoice
from retainer.crm.clients import Client, create_client
from retainer.demo.records import make
from retainer.identity.admins import operator_of
from retainer.rollups import doctor
from retainer.schema.migrations import migrate
from retainer.settings import BASE_PATH
from retainer.store.engines import Sqlite, connect
from retainer.store.tx import Store
from retainer.work.projects import Project, create_project
from retainer.work.time_entries import record_time
from retainer.work.time_entry_types import TimeEntry

PROJECTS = 50
COPY = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {times}) "
    "INSERT INTO time_entries ({names}) SELECT {names} FROM time_entries, n WHERE id = {id}"
)


def fill(store: Store, sizes: list[int]) -> dict[int, int]:
    """Record so many hours for a client of each size; return the clients."""
    clients = {}
    for size in sizes:
        with store.begin(replace(operator_of(store, 1), user_id=1, role="admin"), write=True) as tx:
            client = clients[size] = create_client(tx, make(Client, name=f"Client of {size}", hourly_rate="90")).id
            columns = tx.connection.execute("SELECT name FROM pragma_table_info('time_entries')").fetchall()
            names = ", ".join(name for (name,) in columns if name != "id")
            for number in range(PROJECTS):
                project = create_project(tx, make(Project, name=f"Project {number}", client_id=client)).id
                entry = record_time(tx, make(TimeEntry, project_id=project, duration_minutes=45))
                tx.connection.execute(COPY.format(times=size // PROJECTS - 1, names=names, id=entry))
    doctor.inspect(store, repair=True)
    return clients


class Undone(Exception):
    """Ends a transaction of which nothing is to stay."""


def count_statements(address: str, client: int) -> int:
    """Return how many statements one request runs to bill everything of a client."""
    store, ran = Store(connect(address)), itertools.count()
    run: Any = store.engine.run
    store.engine.run = lambda *args: (next(ran), run(*args))[1]  # type: ignore[method-assign]
    with contextlib.suppress(Undone), store.begin(operator_of(store, 1), write=True) as tx:
        before = next(ran)
        create_invoice(tx, make(Invoice, client_id=client, unbilled_work={"time": {}}))
        raise Undone
    return next(ran) - before - 1


def send(link: http.client.HTTPConnection, key: str, *request: Any) -> tuple[int, Any, float]:
    """Send a method, a path and a body; return the status, the record, and the milliseconds until the answer."""
    began = time.perf_counter()
    method, path, body = (*request, None)[:3]
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    link.request(method, BASE_PATH + path, None if body is None else json.dumps(body), headers)
    answer = link.getresponse()
    data = answer.read()
    return answer.status, json.loads(data or b"{}").get("data"), (time.perf_counter() - began) * 1000


def live(port: int, key: str, client: int, taken: dict[str, list[float]]) -> None:
    """Take an invoice of all hours through its life in three ways; note how long each step takes."""
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def step(name: str, *request: Any) -> Any:
        status, record, milliseconds = send(link, key, *request)
        if status >= 300:
            raise SystemExit(f"{name}: {status}.")
        taken.setdefault(name, []).append(milliseconds)
        return record

    for ends in ("deleted", "void", "credited"):
        made = step("billed", "POST", "/invoices", {"client_id": client, "unbilled_work": {"time": {}}})
        invoice = f"/invoices/{made['id']}"
        if ends == "deleted":
            step("deleted", "DELETE", invoice)
            continue
        step("issued", "PATCH", invoice, {"status": "sent"})
        change = ("PATCH", invoice, {"status": "void"}) if ends == "void" else ("POST", f"{invoice}/credit-notes", {})
        step(ends, *change)


def write_tags(port: int, key: str, ended: threading.Event, answers: list[tuple[int, float]]) -> None:
    """Write in another account until told to end."""
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    while not ended.wait(0.02):
        status, _, milliseconds = send(link, key, "POST", "/tags", {"name": f"Tag {time.time_ns()}"})
        answers.append((status, milliseconds))


def measure(port: int, keys: tuple[str, str], clients: dict[int, int], rounds: int) -> None:
    """Print what the invoices of each size took, and what the other account was answered."""
    for size, client in clients.items():
        taken: dict[str, list[float]] = {}
        answers: list[tuple[int, float]] = []
        ended = threading.Event()
        writer = threading.Thread(target=write_tags, args=(port, keys[1], ended, answers))
        writer.start()
        try:
            for _ in range(rounds):
                live(port, keys[0], client, taken)
        finally:
            ended.set()
            writer.join()
        steps = ", ".join(f"{name} {statistics.median(times):.0f} ms" for name, times in taken.items())
        refused, longest = sum(status == 503 for status, _ in answers), max(time for _, time in answers)
        print(f"{size} entries: {steps}; others: {refused} of {len(answers)} 503, at most {longest:.0f} ms")


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
        clients = fill(store, [int(size) for size in chosen.sizes.split(",")])
        store.engine.close()
        address = place(file)
        for size, client in clients.items():
            print(f"{size} entries: {count_statements(address, client)} statements")
        server = start("retainer", RETAINER, file, None, address)
        try:
            wait(server)
            measure(server.port, keys, clients, chosen.rounds)
        finally:
            stop(server)


if __name__ == "__main__":
    main()
