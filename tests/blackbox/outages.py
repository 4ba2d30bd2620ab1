"""Check that an outage of PostgreSQL loses no writes: python -m tests.blackbox.outages [--cycles N].

While clients read and write, PostgreSQL is stopped, killed or suspended, or loses its connections, and comes back.
"""

import argparse
import contextlib
import itertools
import json
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from testing.process import Answer, Servers, query, running_together, unsound, until

from retainer.settings import BASE_PATH
from retainer.store.engines.postgresql_connection import REPLY_SECONDS
from tests.postgresql_process import PostgresqlProcess, postgresql_process
from tests.valkey_process import ValkeyProcess

NUMBERS = itertools.count(1)
CALLERS = 8  # of each kind
PAUSE_SECONDS = 0.04  # between two requests of a caller, so that no limit is reached
DOWN_SECONDS = 2.0
NOTICED_SECONDS = REPLY_SECONDS + 0.5  # after which each worker knows that PostgreSQL hangs: one does not tell another
HUNG_SECONDS = 8.0
REFUSED_SECONDS, MAX_SECONDS, RETURN_SECONDS = 1.0, 5.0, 2.0  # what is allowed


@dataclass
class Request:
    """A request and its outcome."""

    began: float
    ended: float
    status: int


@dataclass
class Book:
    """A record of sent requests and acknowledged writes, outside of the server."""

    accounts: list[int] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    acknowledged: dict[str, tuple[int, str]] = field(default_factory=dict)
    replayed: int = 0
    wrong: list[str] = field(default_factory=list)


class Load:
    """Clients that read and write until they are stopped; a write is repeated until it is acknowledged."""

    def __init__(self, servers: Servers, book: Book) -> None:
        self.servers, self.book = servers, book
        self.ended = threading.Event()
        self.latest = [0.0] * (2 * CALLERS)  # when each caller's latest successful request began
        agencies = [servers.agency(f"Agency{next(NUMBERS)}", "enterprise") for _ in range(2)]
        book.accounts += [agency["account_id"] for agency in agencies]
        self.keys = [servers.new_key(agencies[number // 2 % 2]) for number in range(2 * CALLERS)]
        self.threads = [threading.Thread(target=self.call, args=(number,)) for number in range(2 * CALLERS)]

    def __enter__(self) -> Self:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        for thread in self.threads:
            thread.join()

    def call(self, number: int) -> None:
        """Run a reader or a writer."""
        try:
            (self.write if number % 2 else self.read)(number)
        except Exception as error:  # noqa: BLE001  # a server that runs on answers every request
            self.book.wrong.append(f"caller {number}: {error!r}")

    def read(self, number: int) -> None:
        """Send reads, one after another."""
        with self.servers.client(self.keys[number]) as client:
            for path in itertools.cycle(("/me", "/clients?per_page=5", "/reports/overview")):
                if self.ended.wait(PAUSE_SECONDS):
                    return
                self.note(number, 200, lambda path=path: client.send("GET", BASE_PATH + path))  # type: ignore[misc]

    def write(self, number: int) -> None:
        """Create clients; record acknowledged writes."""
        with self.servers.client(self.keys[number]) as client:
            for turn in itertools.count():
                name = f"{number}-{turn}"

                def send(name: str = name) -> Answer:
                    return client.send("POST", f"{BASE_PATH}/clients", {"name": name}, Idempotency_Key=name)

                while (answer := self.note(number, 201, send)).status == 503:
                    time.sleep(PAUSE_SECONDS)
                self.book.acknowledged[name] = answer.data["id"], answer.data["number"]
                self.book.replayed += "idempotency-replayed" in answer.headers
                if self.ended.wait(PAUSE_SECONDS):
                    return

    def note(self, number: int, expected: int, send: Callable[[], Answer]) -> Answer:
        """Send a request, and record its outcome: the expected status, or a correct 503."""
        began = time.monotonic()
        answer = send()
        self.book.requests.append(Request(began, time.monotonic(), answer.status))
        if answer.status == expected:
            self.latest[number] = began
        elif not is_unavailable(answer):
            self.book.wrong.append(repr(answer))
        return answer

    def until_all_succeed(self, since: float) -> None:
        """Wait until each client has had a successful request since a moment."""
        until(lambda: min(self.latest) > since or self.book.wrong, "every caller's request succeeds")


def is_unavailable(answer: Answer) -> bool:
    """Return whether a response is the documented 503."""
    return (
        answer.status == 503
        and answer.headers["content-type"].startswith("application/json")
        and json.loads(answer.body)["code"] == "unavailable"
        and int(answer.headers["retry-after"]) >= 1
    )


@contextlib.contextmanager
def stopped(database: PostgresqlProcess, mode: str = "fast") -> Iterator[float]:
    database.stop(mode)
    try:
        yield DOWN_SECONDS
    finally:
        database.start()


@contextlib.contextmanager
def killed(database: PostgresqlProcess) -> Iterator[float]:
    database.kill()
    try:
        yield DOWN_SECONDS
    finally:
        database.start()


@contextlib.contextmanager
def hung(database: PostgresqlProcess) -> Iterator[float]:
    database.hang()
    try:
        yield HUNG_SECONDS
    finally:
        database.go_on()


@contextlib.contextmanager
def robbed(database: PostgresqlProcess) -> Iterator[float]:
    for _ in range(5):
        database.end_connections()
        time.sleep(0.2)
    yield 0.0


@contextlib.contextmanager
def full(database: PostgresqlProcess) -> Iterator[float]:
    with database.taken():
        yield DOWN_SECONDS


KINDS: dict[str, Callable[[PostgresqlProcess], AbstractContextManager[float]]] = {
    "killed": killed,
    "stopped": stopped,
    "stopped at once": lambda database: stopped(database, "immediate"),
    "hung": hung,
    "connections ended": robbed,
    "connections taken": full,
}


@dataclass
class Cycle:
    """The figures of one outage, in seconds; times are of `time.monotonic`."""

    kind: str
    outcomes: Counter[int]
    longest: float
    """The longest request."""
    longest_refusal: float
    """The longest request that was refused; while PostgreSQL hangs, of those that began when each worker knew."""
    first_success: float
    """From the return of PostgreSQL to the first success of a request that began then."""
    all_succeed: float
    """The same, to the success of every caller."""

    def violations(self) -> list[str]:
        """What is not as it must be."""
        figures = [
            ("longest request", self.longest, MAX_SECONDS),
            ("longest refusal", self.longest_refusal, REFUSED_SECONDS),
            ("first success", self.first_success, RETURN_SECONDS),
        ]
        return [f"{self.kind}: {name} {seconds:.2f} s" for name, seconds, most in figures if seconds > most]


def cycle(load: Load, database: PostgresqlProcess, kind: str) -> Cycle:
    """Let PostgreSQL fail under load, and come back."""
    book = load.book
    load.until_all_succeed(time.monotonic())
    before, down = len(book.requests), time.monotonic()
    with KINDS[kind](database) as seconds:
        time.sleep(seconds)
    back = time.monotonic()
    load.until_all_succeed(back)
    healthy = time.monotonic()
    requests = book.requests[before:]
    refused = [request for request in requests if request.status == 503]
    if kind == "hung":
        refused = [request for request in refused if request.began > down + NOTICED_SECONDS]
    good = [request.ended for request in requests if request.began > back and request.status < 300]
    return Cycle(
        kind,
        Counter(request.status for request in requests),
        max(request.ended - request.began for request in requests),
        max((request.ended - request.began for request in refused), default=0.0),
        min(good, default=back) - back,
        healthy - back,
    )


def verify(servers: Servers, book: Book) -> None:
    """Compare what is there with what was acknowledged: nothing is lost, and nothing is there twice."""
    ids = ", ".join(str(account) for account in book.accounts)
    rows = query(servers.database, f"SELECT name, id, number, account_id FROM clients WHERE account_id IN ({ids})")
    here = {name: (record_id, number) for name, record_id, number, _ in rows}
    if here != book.acknowledged or len(here) != len(rows):
        book.wrong.append(f"not as acknowledged: {here.items() ^ book.acknowledged.items()}, {len(rows)} rows")
    for account in book.accounts:
        numbers = sorted(row[2] for row in rows if row[3] == account)
        if numbers != [f"C-{number:04}" for number in range(1, len(numbers) + 1)]:
            book.wrong.append(f"numbers of account {account} have gaps: {numbers}")
    book.wrong += map(str, unsound(servers.database))


@contextlib.contextmanager
def started(folder: Path) -> Iterator[tuple[Servers, PostgresqlProcess]]:
    """Two servers of two workers each, with a PostgreSQL and a Valkey of their own."""
    valkey = ValkeyProcess(Path(tempfile.mkdtemp(dir=folder)))
    try:
        with postgresql_process(folder) as database:
            place = Path(tempfile.mkdtemp(dir=folder))
            addresses = {"RETAINER_DATABASE_URL": database.url, "RETAINER_VALKEY_URL": valkey.url}
            with running_together(place, 2, **addresses) as servers:
                yield servers, database
    finally:
        valkey.kill()


def run(servers: Servers, database: PostgresqlProcess, kinds: list[str], cycles: int) -> tuple[Book, list[Cycle]]:
    """Run a number of outages of each kind; return acknowledged writes, errors and cycles."""
    book, processes = Book(), servers.processes()
    with Load(servers, book) as load:
        found = [cycle(load, database, kind) for _ in range(cycles) for kind in kinds if not book.wrong]
    if servers.processes() != processes:
        book.wrong.append(f"A worker was replaced: {processes}, {servers.processes()}")
    verify(servers, book)
    return book, found


def report(book: Book, cycles: list[Cycle]) -> None:
    """Print the worst results of each kind."""
    print(f"{'':<20}{'cycles':>8}{'answered':>10}{'503':>7}{'longest':>9}{'refusal':>9}{'success':>9}{'all':>7}")
    for kind in dict.fromkeys(each.kind for each in cycles):
        mine = [each for each in cycles if each.kind == kind]
        outcomes: Counter[int] = sum((each.outcomes for each in mine), Counter())
        figures: list[Any] = [len(mine), outcomes.total() - outcomes[503], outcomes[503]]
        worst = [
            max(getattr(each, name) for each in mine)
            for name in ("longest", "longest_refusal", "first_success", "all_succeed")
        ]
        print(f"{kind:<20}{figures[0]:>8}{figures[1]:>10}{figures[2]:>7}" + "".join(f"{each:>8.2f}s" for each in worst))
    print(f"{len(book.acknowledged):,} writes acknowledged, {book.replayed} of them answered as the first time")
    for sentence in book.wrong[:20]:
        print("WRONG", sentence[:500])


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--cycles", type=int, default=20, help="of each kind")
    options.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, started(Path(folder)) as place:
        book, cycles = run(*place, given.kinds, given.cycles)
    report(book, cycles)
    wrong = [*book.wrong, *(violation for each in cycles for violation in each.violations())]
    print("\n".join(wrong[:20]) if wrong else "No errors.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
