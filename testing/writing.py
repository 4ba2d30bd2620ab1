"""Clients that write without pause and note which writes were acknowledged, and how fast."""

import contextlib
import functools
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from retainer.values.exact import day_after
from testing.process import Client, Server, query

TABLES = {"/clients": "clients", "/time-entries": "time_entries", "/invoices": "invoices"}
LINE = {"description": "Design", "unit_price": "100"}


@dataclass
class Acknowledged:
    """The acknowledged records in their order, and the other responses."""

    records: list[tuple[str, int]] = field(default_factory=list)
    seconds: list[tuple[float, float]] = field(default_factory=list)
    wrong: list[Any] = field(default_factory=list)

    def missing(self, database: Path, count: int) -> list[tuple[str, int]]:
        """Return those of the first `count` records that are not in a database."""
        there = {(table, row[0]) for table in TABLES.values() for row in query(database, f"SELECT id FROM {table}")}
        return [record for record in self.records[:count] if record not in there]


@contextlib.contextmanager
def writing(server: Server, writers: int = 8) -> Iterator[Acknowledged]:
    """Let clients write records, which change every kind of stored total, until the block ends."""
    agency = server.agency("Writers", "enterprise")
    acknowledged, stopped = Acknowledged(), threading.Event()
    new_key = functools.partial(server.new_key, agency)
    clients = [server.client(new_key()) for _ in range(writers)]
    threads = [threading.Thread(target=write, args=(client, new_key, acknowledged, stopped)) for client in clients]
    for thread in threads:
        thread.start()
    try:
        yield acknowledged
    finally:
        stopped.set()
        for thread in threads:
            thread.join(timeout=60)
    assert acknowledged.wrong == []


def write(client: Client, new_key: Callable[[], str], acknowledged: Acknowledged, stopped: threading.Event) -> None:
    """Write one record after another; take a new key when the rate limit of one is reached."""
    customer = 0
    with client:
        for turn in itertools.count():
            if stopped.is_set():
                return
            issued = {"status": "sent", "lines": [LINE]} if turn % 10 == 9 else {}
            path, body = [
                ("/clients", {"name": "Customer"}),
                (
                    "/time-entries",
                    {"client_id": customer, "duration_minutes": 1, "date": day_after("2000-01-01", turn % 9000)},
                ),
                ("/invoices", {"client_id": customer, **issued}),
            ][0 if not customer else turn % 3]
            began = time.monotonic()
            answer = client.post(path, body)
            if answer.status == 201:
                customer = answer.data["id"] if path == "/clients" else customer
                acknowledged.records.append((TABLES[path], answer.data["id"]))
                acknowledged.seconds.append((began, time.monotonic() - began))
            elif answer.status == 429:
                client.key = new_key()
            else:
                acknowledged.wrong.append(answer)
