"""Writers whose numbers must have neither gap nor duplicate.

Writers issue invoices and credit notes in two accounts and two years at once. Every fifth attempt is one that is
refused, most of them after it has taken a number; some callers hang up before they are answered; the server is killed.
"""

import contextlib
import http.client
import itertools
import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testing.ports import free_port
from testing.process import START_PATIENCE, Answer, Server, children, query, start, unsound, until, with_database

from retainer.settings import BASE_PATH

ACCOUNTS = ("North", "South")
YEARS = (2024, 2025)
EVERY = 5  # of so many attempts one is refused
NOBODY = 2**53 - 1
TIMEOUT_SECONDS = 60
LINE = {"description": "Design", "unit_price": "100"}

REFUSALS: dict[str, tuple[str, dict[str, Any]]] = {
    "no line": ("status", {"lines": []}),
    "less than nothing": ("status", {"lines": [LINE | {"quantity": "-1"}]}),
    "no price": ("lines.0.unit_price", {"lines": [{"description": "Design"}]}),
    "no such hours": ("lines.0.time_entry_ids.0", {"lines": [{"time_entry_ids": [NOBODY]}]}),
    "nothing to bill": ("unbilled_work", {"unbilled_work": {"time": {}}}),
    "no such contact": ("contact_id", {"contact_id": NOBODY}),
    "due too early": ("due_date", {"due_date": "2000-01-01"}),
    "external id taken": ("external_id", {"external_id": "taken"}),
}
"""What a body that issues is refused for, with POST and with PATCH: the field, and what is wrong."""
OF_DRAFTS = {"paid too much": ("record_payment.amount", {"record_payment": {"amount": "1000000"}})}
"""The same, with PATCH only."""
OF_CREDIT_NOTES = {  # of an invoice of the second year
    "credited too much": ("amount", {"amount": "1000000"}),
    "credited too early": ("issue_date", {"amount": "1", "issue_date": f"{YEARS[1]}-01-01"}),
}
STALE = "changed since"
"""The one refusal that comes before a number is taken: If-Match names another state."""
KINDS = [
    *(f"{kind} ({method})" for kind in REFUSALS for method in ("POST", "PATCH")),
    *(f"{kind} (PATCH)" for kind in OF_DRAFTS),
    *OF_CREDIT_NOTES,
    STALE,
]


@dataclass
class Book:
    """What was sent and what was acknowledged, kept outside the server."""

    acknowledged: dict[str, dict[int, str]] = field(default_factory=lambda: {"invoices": {}, "credit_notes": {}})
    refused: Counter[str] = field(default_factory=Counter)
    answers: Counter[int] = field(default_factory=Counter)
    unanswered: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Writer:
    """One caller with a key and a connection of its own; it sends again, under its Idempotency-Key, what was lost."""

    def __init__(self, book: Book, server: Server, agency: dict[str, Any], name: int) -> None:
        self.book = book
        self.name = name
        self.key = server.new_key(agency)
        self.port = server.port
        self.client = server.client(self.key)
        self.attempts = itertools.count(1)
        self.kinds = itertools.islice(itertools.cycle(KINDS), name, None)
        self.body = {"client_id": self.sent("POST", "/clients", {"name": f"Client {name}"}).data["id"]}
        self.parked = f"/invoices/{self.sent('POST', '/invoices', self.body).data['id']}"
        self.last: dict[str, Any] = {"id": 0, "issue_date": ""}

    def write(self, issued: int) -> None:
        """Issue so many invoices; after every fourth comes an attempt that is refused."""
        for turn in range(issued):
            self.issue(turn)
            if turn % 5 in {0, 2}:
                path = f"/invoices/{self.last['id']}/credit-notes"
                self.note_acknowledged("credit_notes", self.sent("POST", path, {"amount": "1", **self.day()}))
            if turn % (EVERY - 1) == EVERY - 2:
                self.send_refused(next(self.kinds), YEARS[turn // EVERY % 2])

    def issue(self, turn: int) -> None:
        """Issue one invoice, in one step or two; sometimes the caller hangs up, and asks again or gives up."""
        issuing = {"status": "sent", "issue_date": f"{YEARS[turn // 2 % 2]}-06-{self.name % 28 + 1:02}"}
        new, hang_up = self.body | issuing | {"lines": [LINE]}, turn % 6 in {3, 4}
        if turn % 2:
            draft = self.sent("POST", "/invoices", self.body | {"lines": [LINE]}).data
            answer = self.sent("PATCH", f"/invoices/{draft['id']}", issuing, hang_up=hang_up)
        else:
            answer = self.sent("POST", "/invoices", new, hang_up=hang_up)
        self.note_acknowledged("invoices", answer)
        if turn % 12 == 5:
            self.hang_up("POST", "/invoices", new | {"subject": "half sent"}, part=2)
        elif turn % 12 == 11:
            self.hang_up("POST", "/invoices", new | {"subject": "given up"})

    def send_refused(self, kind: str, year: int) -> None:
        """Send what is refused, and see that it is refused for that."""
        name, _, method = kind.removesuffix(")").partition(" (")
        field_name, wrong = (REFUSALS | OF_DRAFTS | OF_CREDIT_NOTES).get(name, ("", {}))
        body = self.body | {"status": "sent", "issue_date": f"{year}-03-01", "lines": [LINE]} | wrong
        if name == STALE:
            answer = self.sent("PATCH", self.parked, body, If_Match='"another"')
        elif name in OF_CREDIT_NOTES:
            answer = self.sent("POST", f"/invoices/{self.last['id']}/credit-notes", self.day() | wrong)
        else:
            answer = self.sent(method, "/invoices" if method == "POST" else self.parked, body)
        expected = 412 if name == STALE else 422
        with self.book.lock:
            self.book.refused[kind] += 1
            if answer.status != expected or (field_name and set(answer.json["errors"]) != {field_name}):
                self.book.wrong.append(f"{kind}: {answer}")

    def day(self) -> dict[str, str]:
        """A credit note is of the day of its invoice, so that both are of one year."""
        return {"issue_date": self.last["issue_date"]}

    def note_acknowledged(self, table: str, answer: Answer) -> None:
        """Note what was acknowledged."""
        with self.book.lock:
            if answer.status not in {200, 201}:
                self.book.wrong.append(f"{table}: {answer}")
                return
            self.book.acknowledged[table][answer.data["id"]] = answer.data["number"]
        if table == "invoices":
            self.last = answer.data

    def sent(self, method: str, path: str, body: Any, *, hang_up: bool = False, **headers: str) -> Answer:
        """The answer to a request, sent as often as it takes."""
        key = f"{self.name}-{next(self.attempts)}"
        if hang_up:
            self.hang_up(method, path, body, key=key)
        end = time.monotonic() + START_PATIENCE
        while time.monotonic() < end:
            try:
                answer = self.client.send(method, BASE_PATH + path, body, Idempotency_Key=key, **headers)
            except (OSError, http.client.HTTPException) as error:
                with self.book.lock:
                    self.book.unanswered.append(f"{method} {path}: {error!r}")
            else:
                with self.book.lock:
                    self.book.answers[answer.status] += 1
                if answer.status not in {409, 503}:  # 503: the writers before this one took too long
                    return answer
            time.sleep(0.05)
        raise TimeoutError(f"No answer for {START_PATIENCE} seconds: {method} {path}")

    def hang_up(self, method: str, path: str, body: Any, *, key: str = "", part: int = 1) -> None:
        """Send a request, or a part of it, and close the connection before the answer comes."""
        content = json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        headers |= {"Content-Length": str(len(content))} | ({"Idempotency-Key": key} if key else {})
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_SECONDS)
        with contextlib.suppress(OSError), contextlib.closing(connection):
            connection.request(method, BASE_PATH + path, content[: len(content) // part], headers)


def run(
    folder: Path, issued: int, *, writers: int = 50, kills: int = 0, servers: int = 1, **settings: str
) -> tuple[Book, int]:
    """Issue so many invoices and one more in each series, with so many writers, and kill a server so many times.

    Several servers, of two workers each, need a PostgreSQL and a Valkey that the settings name. Return what was
    acknowledged, with whatever is wrong, and the number of series.
    """
    book = Book()
    running: list[Server] = []
    try:
        for number in range(servers):
            place = folder / str(number)
            place.mkdir()
            running.append(started(place if settings else with_database(place), free_port(), settings))
        agencies = [running[0].agency(name, "enterprise") for name in ACCOUNTS]
        callers = [Writer(book, running[n // 2 % servers], agencies[n % len(agencies)], n) for n in range(writers)]
        for caller in callers[: len(agencies)]:
            caller.sent("POST", "/invoices", caller.body | {"external_id": "taken"})
        with ThreadPoolExecutor(writers) as pool:
            work = [pool.submit(caller.write, issued // writers) for caller in callers]
            for kill in range(kills):
                enough = issued * (kill + 1) // (kills + 1)
                until(arrived(book, enough, work), f"{enough} invoices are issued", seconds=3600)
                running[kill % servers] = killed(running[kill % servers], whole=kill // servers % 2 == 0)
            book.wrong += [f"A writer ended: {done.exception()}" for done in work if done.exception()]
        for caller in callers[: len(agencies)]:
            caller.client.close()  # it may have had nothing to do for longer than a server keeps a connection
            caller.issue(0)
            caller.issue(2)  # the other year: a number that was taken last and lost is a gap now
        for caller in callers:
            caller.client.close()
        book.wrong += ["A server did not end as it was asked to." for server in running if server.stop() != 0]
    finally:
        for server in running:
            server.kill()
    if book.unanswered and not kills:
        book.wrong.append(f"These were not answered by a server that ran on: {book.unanswered}")
    return book, verify(running[0], book, drafts=writers + len(agencies))


def started(folder: Path, port: int, settings: dict[str, str]) -> Server:
    """Start a server, of two workers where they can share a database."""
    return start(folder, "--workers", 2 if settings else 1, port=port, **settings)


def arrived(book: Book, enough: int, work: list[Future[None]]) -> Callable[[], bool]:
    """Whether enough invoices are issued, or a writer has ended."""
    return lambda: len(book.acknowledged["invoices"]) >= enough or any(each.done() for each in work)


def killed(server: Server, *, whole: bool) -> Server:
    """Kill the process that serves, which the main one replaces, or all of them, and start anew."""
    if not whole:
        for pid in children(server.process.pid):
            os.kill(pid, signal.SIGKILL)
        return server
    server.kill()
    return started(server.folder, server.port, server.settings)


def verify(server: Server, book: Book, *, drafts: int) -> int:
    """Note all that differs from what was acknowledged; return the number of series in the database."""
    database, found_series, issued = server.database, 0, 0
    for table, prefix, mark in (("credit_notes", "CN", "description"), ("invoices", "INV", "subject")):
        columns = f"id, account_id, issue_date, number, {mark}"
        rows = query(database, f"SELECT {columns} FROM {table} WHERE number IS NOT NULL")
        series: dict[tuple[int, str], list[str]] = {}
        for _, account, day, number, _ in rows:
            series.setdefault((account, str(day)[:4]), []).append(number)
        for (account, year), numbers in series.items():
            if set(numbers) != {f"{prefix}-{year}-{n:04}" for n in range(1, len(numbers) + 1)}:
                book.wrong.append(f"{account}: not {prefix}-{year} 1 to {len(numbers)}: {sorted(numbers)[:20]}")
        here = {record_id: number for record_id, _, _, number, subject in rows if subject is None}
        if here != book.acknowledged[table]:
            book.wrong.append(f"{table}: told {book.acknowledged[table].items() ^ here.items()}")
        found_series, issued = found_series + len(series), len(rows)
    half_made = query(database, "SELECT subject, count(*) FROM invoices WHERE subject <> 'given up' GROUP BY subject")
    ((unissued,),) = query(database, "SELECT count(*) FROM invoices WHERE number IS NULL")
    ((lines,),) = query(database, "SELECT count(*) FROM invoice_lines")
    if half_made or (unissued, lines) != (drafts, issued):
        book.wrong.append(f"half made: {half_made}, {unissued} drafts of {drafts}, {lines} lines of {issued}")
    book.wrong += map(str, unsound(database))
    return found_series
