"""The account of `depth`, `reports` and `pages`: four years of work and of money, as much as there are time entries.

Users, clients, projects, milestones, tags and the tickets that people talk about are as many in each, so that they have
the more children.
"""

import json
import random
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from bench.bare import Database
from bench.data import Row, insert, open_agency, recompute, work_done
from retainer.billing.invoices.types import ClientSnapshot

USERS, CLIENTS, PROJECTS, KEYS = 50, 200, 500, 100
TAGS, STAGES, BUSY_TICKETS = 12, 2, 20
DAYS = 365 * 4
TODAY = datetime.now(UTC).date()
OLD = 60  # days after which nearly all is done, and paid
TASK_ENTRIES, INVOICE_ENTRIES, LINES = 50, 20, 2  # time entries for each task and each invoice, and its lines
RECENT = 100
FAST = ("journal_mode=OFF", "synchronous=OFF", "foreign_keys=OFF", "cache_size=-262144")  # a crash may lose it
SNAPSHOT = json.dumps(dict.fromkeys(ClientSnapshot.__struct_fields__) | {"name": "Client"})
BUDGETS = ((None, None), (5_000_000, None), (None, 60_000), (5_000_000, 60_000))
LINKS = (
    f"""UPDATE tasks SET milestone_id = {STAGES} * project_id - id % {STAGES},
                         parent_id = CASE WHEN id > {PROJECTS} AND id % 5 = 0 THEN project_id END""",
    f"UPDATE time_entries SET ticket_id = 1 + id / 10 % {BUSY_TICKETS} WHERE id % 10 = 0",
    *(
        f"""INSERT INTO {name}_tags (account_id, record_id, tag_id)
            SELECT DISTINCT r.account_id, r.id, 1 + (r.id + t.id) % {TAGS} FROM {name} r, tags t WHERE t.id <= 2"""
        for name in ("clients", "external_contacts", "projects", "tasks", "tickets", "sites")
    ),
)
BILL = f"""
UPDATE time_entries SET invoice_line_id = 1 + id % ?1, invoice_id = 1 + id % ?1 / {LINES}
WHERE billable AND amount IS NOT NULL AND date < ?2"""
LAST = "SELECT updated_at FROM time_entries ORDER BY account_id DESC, updated_at DESC LIMIT 1 OFFSET ?"


class Account(NamedTuple):
    """What the requests to a database must know of it."""

    keys: list[str]
    entries: int
    recent: str
    """The moment since which the last RECENT time entries were changed."""


def fill(path: Path, entries: int, *, billed: bool = False) -> Account:
    """Make a database with a number of time entries, of which all but the last may be billed."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    account, _, keys = open_agency(path, KEYS)
    connection = Database(str(path)).connect()
    for pragma in FAST:
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("BEGIN")
    rates = [(account, user, "0001-01-01", 4000 + 50 * user) for user in range(1, USERS)]  # the last one has none
    connection.executemany("INSERT INTO cost_rates (account_id, user_id, from_date, amount) VALUES (?, ?, ?, ?)", rates)
    for table, rows in tables(entries).items():
        insert(connection, account, table, rows)
    for statement in LINKS:
        connection.execute(statement)
    if billed:
        connection.execute(BILL, (LINES * (entries // INVOICE_ENTRIES), days_ago(OLD)))
    connection.execute("COMMIT")
    recent = connection.execute(LAST, (min(RECENT, entries) - 1,)).fetchone()[0]
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    recompute(path)
    return Account(keys, entries, recent)


def tables(entries: int) -> dict[str, Iterable[Row]]:
    """The rows of each table, in an order in which they refer to others."""
    rng = random.Random(1)
    many, invoiced = max(1, entries // 200), entries // INVOICE_ENTRIES
    invoices = [Invoice.of(number, moment) for number, moment in moments(invoiced, "09:00:00")]
    credited = [invoice for invoice in invoices if invoice.credited]
    start = f"{days_ago(DAYS)}T08:00:00.000000Z"
    return {
        "users": (user(n, start) for n in range(1, USERS)),
        "clients": (client(rng, n, start) for n in range(1, CLIENTS + 1)),
        "projects": (project(rng, n, start) for n in range(1, PROJECTS + 1)),
        "tasks": (task(rng, n, entries // TASK_ENTRIES) for n in range(1, entries // TASK_ENTRIES + 1)),
        "time_entries": time_entries(rng, entries),
        "tags": ({"created_at": at, "name": f"Tag {n}", "name_folded": f"tag {n}"} for n, at in moments(TAGS)),
        "milestones": (milestone(n, at) for n, at in moments(STAGES * PROJECTS)),
        "external_contacts": (contact(rng, n, at) for n, at in moments(many)),
        "sites": (site(n, at) for n, at in moments(max(1, entries // 1000))),
        "tickets": (ticket(rng, n, at) for n, at in moments(max(BUSY_TICKETS, entries // 500))),
        "ticket_replies": (reply(n, at) for n, at in moments(2 * many)),
        "quotes": (quote(rng, n, at) for n, at in moments(many)),
        "invoices": (invoice.row() for invoice in invoices),
        "invoice_lines": (line for invoice in invoices for line in invoice.lines()),
        "payments": (payment for invoice in invoices for payment in invoice.payments()),
        "credit_notes": (invoice.note() for invoice in credited),
        "credit_note_shares": (invoice.share(note) for note, invoice in enumerate(credited, start=1)),
        "expenses": (expense(rng, at) for _, at in moments(invoiced, "18:00:00")),
        "client_links": (link(n, at) for n, at in moments(4 * many)),
        "files": (file(n, at) for n, at in moments(2 * many)),
        "messages": (message(n, at) for n, at in moments(2 * many)),
    }


def days_ago(days: int) -> str:
    return str(TODAY - timedelta(days=days))


def moments(count: int, clock: str = "10:00:00") -> Iterator[tuple[int, str]]:
    """The numbers of rows from 1, with instants that are spread over the years."""
    for n in range(count):
        yield n + 1, f"{days_ago(DAYS - 1 - n * DAYS // count)}T{clock}.{n % 10**6:06}Z"


def client_of(project: int) -> int:
    return 1 + project % CLIENTS


def project_of(task: int) -> int:
    return 1 + (task - 1) % PROJECTS


def user(n: int, at: str) -> Row:
    email = f"person.{n}@north.example"
    row: Row = {"created_at": at, "name": f"Person {n}", "email": email, "email_folded": email, "role": "member"}
    row |= {"is_active": 1, "weekly_capacity_minutes": 2400, "target_percent": "75"}
    return row | {"hourly_rate": 7000 + 100 * n}


def client(rng: random.Random, n: int, at: str) -> Row:
    name, rate = f"Client {rng.randrange(10**6)}", rng.choice((None, 9000, 11050))
    row = {"created_at": at, "name": name, "number": f"C-{n:04}", "status": "active", "currency": "EUR"}
    return row | {"hourly_rate": rate, "payment_terms_days": 30, "search": f"{name.casefold()}\nc-{n:04}"}


def project(rng: random.Random, n: int, at: str) -> Row:
    amount, minutes = rng.choice(BUDGETS)
    row = {"created_at": at, "client_id": client_of(n), "name": f"Project {rng.randrange(10**6)}", "currency": "EUR"}
    row |= {"status": rng.choice(("active", "active", "completed")), "billing_type": "time_and_materials"}
    return row | {"hourly_rate": rng.choice((None, 9500, 12000)), "budget_amount": amount, "budget_minutes": minutes}


def task(rng: random.Random, n: int, count: int) -> Row:
    """Due a month after it was made; nearly all that were due long ago are done."""
    age = DAYS - n * DAYS // (count + 1)
    at, project = f"{days_ago(age)}T09:00:00.{n:06}Z", project_of(n)
    done = rng.random() < (0.97 if age > OLD else 0.5 * age / OLD)
    row = {"created_at": at, "title": work_done(rng), "client_id": client_of(project), "project_id": project}
    row |= {"status": "done" if done else rng.choice(("todo", "in_progress")), "completed_at": at if done else None}
    row |= {"priority": rng.choice(("normal", "high")), "assignee_id": rng.randint(1, USERS), "created_by_id": 1}
    return row | {"due_date": days_ago(age - 30), "estimated_minutes": 60 * rng.randint(1, 40), "billable": 1}


def time_entries(rng: random.Random, count: int) -> Iterator[Row]:
    """In the order in which they were recorded. Some projects have far more than others; few are changed later."""
    days = [days_ago(DAYS - n) for n in range(DAYS)]
    texts = [f"{work_done(rng)} (#{n})" for n in range(5000)]
    pick, task_count = rng.random, count // TASK_ENTRIES
    for n in range(count):
        recorded = n * DAYS // count
        changed = recorded if pick() < 0.98 else recorded + int(pick() * (DAYS - recorded))
        clock = f"T{8 + int(pick() * 12):02}:{int(pick() * 60):02}:{int(pick() * 60):02}.{n % 1_000_000:06}Z"
        task = 1 + int(pick() * task_count) if task_count and pick() < 0.5 else None
        project = 1 + int(pick() ** 2 * PROJECTS) if task is None else project_of(task)
        minutes, billable = 15 * (1 + int(pick() * 20)), pick() < 0.8
        row = {"created_at": days[recorded] + clock, "updated_at": days[changed] + clock, "task_id": task}
        row |= {"client_id": client_of(project), "project_id": project, "user_id": 1 + int(pick() * USERS)}
        row |= {"date": days[max(0, recorded - int(pick() ** 3 * 4))]}
        row |= {"duration_minutes": minutes, "billable": billable}
        row |= {"description": texts[int(pick() * 5000)], "currency": "EUR", "hourly_rate": 9000}
        yield row | {"amount": 150 * minutes if billable else 0}


def milestone(n: int, at: str) -> Row:
    row = {"created_at": at, "project_id": -(-n // STAGES), "name": "Launch", "status": "open", "currency": "EUR"}
    return row | {"position": 1 + n % STAGES}


def contact(rng: random.Random, n: int, at: str) -> Row:
    name = f"Person {rng.randrange(10**6)}"
    row = {"created_at": at, "client_id": client_of(n), "name": name, "role": "general", "status": "active"}
    return row | {"last_name": name, "last_name_sort": name.casefold()}


def site(n: int, at: str) -> Row:
    url = f"https://shop{n}.example"
    row = {"created_at": at, "client_id": client_of(n), "url": url, "name": f"Shop {n}", "environment": "production"}
    return row | {"platform": "wordpress", "check_interval_seconds": 300, "search": url}


def ticket(rng: random.Random, n: int, at: str) -> Row:
    row = {"created_at": at, "client_id": client_of(n), "number": 1000 + n, "subject": "The checkout is slow"}
    return row | {"status": "open" if rng.random() < 0.1 else "closed", "priority": "normal", "type": "question"}


def reply(n: int, at: str) -> Row:
    row = {"created_at": at, "ticket_id": 1 + n % BUSY_TICKETS, "body": "We are looking into it."}
    return row | {"author_type": "user", "user_id": 1}


def quote(rng: random.Random, n: int, at: str) -> Row:
    net, day = 100 * rng.randint(100, 5000), days_ago(30)
    row = {"created_at": at, "client_id": client_of(1 + n % PROJECTS), "number": f"Q-{n:06}", "status": "declined"}
    row |= {"issue_date": day, "valid_until": day, "currency": "EUR", "subtotal": net, "total": net}
    return row | {"tax_breakdown": "[]"}


def link(n: int, at: str) -> Row:
    """A link to one of ten quotes or ten invoices, which have many."""
    shown = {"invoice_id": None, "quote_id": None, ("invoice_id", "quote_id")[n % 2]: 1 + n // 2 % 10}
    return shown | {"created_at": at, "user_id": 1, "hash": f"{n:064x}", "expires_at": f"{TODAY}T00:00:00.000000Z"}


def file(n: int, at: str) -> Row:
    row = {"created_at": at, "project_id": 1 + n % PROJECTS, "user_id": 1, "name": f"Receipt {n}.txt", "size": 100}
    return row | {"media_type": "text/plain", "sha256": f"{n:064x}"}


def message(n: int, at: str) -> Row:
    to, when = f"office.{n}@client.example", dict.fromkeys(("created_at", "sent_at", "next_attempt_at"), at)
    row = {"kind": "invoice", "record": "invoice", "record_id": 1 + n % 10, "client_id": client_of(n), "user_id": 1}
    row |= {"to": to, "cc": "[]", "all_to": f'["{to}"]', "subject": "Invoice", "message": "Hello", "attachments": "[]"}
    return when | row | {"status": "sent", "attempts": 1, "message_id": f"{n}@north.example"}


def expense(rng: random.Random, at: str) -> Row:
    net, billable, project = rng.randint(500, 50_000), rng.random() < 0.5, 1 + int(rng.random() * PROJECTS)
    row = {"created_at": at, "client_id": client_of(project), "project_id": project, "date": at[:10], "amount": net}
    row |= {"user_id": 1 + int(rng.random() * USERS)}
    row |= {"category": "travel", "category_sort": "travel", "currency": "EUR"}
    row |= {"tax_rate": "0", "net_amount": net, "billable": billable, "billable_amount": net if billable else 0}
    return row | {"markup_percent": "0"}


class Invoice(NamedTuple):
    """An invoice of one project; it may be paid, in two parts, and a tenth of it may be credited."""

    number: int
    common: Row
    """What all its rows have."""
    day: date
    project: int
    net: int
    tax: int
    taxes: str
    paid: int
    paid_date: str
    credited: int

    @classmethod
    def of(cls, number: int, at: str) -> "Invoice":
        rng, day = random.Random(number), date.fromisoformat(at[:10])
        age, project, net = (TODAY - day).days, 1 + int(rng.random() * PROJECTS), 100 * rng.randint(100, 5000)
        tax = net * 19 // 100
        taxes = json.dumps([{"tax_rate": "19", "taxable_amount": decimal(net), "tax_amount": decimal(tax)}])
        paid = net + tax if rng.random() < (0.97 if age > OLD else 0.3 * age / OLD) else 0
        paid_date = days_ago(max(0, age - rng.randint(3, OLD)))
        credited = net // 10 if paid and rng.random() < 0.03 else 0
        common = {"created_at": at, "currency": "EUR", "client_id": client_of(project), "invoice_id": number}
        return cls(number, common, day, project, net, tax, taxes, paid, paid_date, credited)

    def row(self) -> Row:
        total, credited = self.net + self.tax, self.credited + self.credited * 19 // 100
        row = {"project_id": self.project, "number": f"INV-{self.number:06}", "status": "paid" if self.paid else "sent"}
        row |= {"issue_date": str(self.day), "due_date": str(self.day + timedelta(days=30)), "tax_total": self.tax}
        row |= {"subtotal": self.net, "total": total, "tax_breakdown": self.taxes, "amount_paid": self.paid}
        row |= {"amount_credited": credited, "balance_due": total - self.paid, "client_snapshot": SNAPSHOT}
        return self.common | row | {"sent_at": self.common["created_at"]}

    def lines(self) -> Iterator[Row]:
        half = self.net // LINES
        row = self.common | {"description": "Work", "quantity": "1", "unit_price": decimal(half), "tax_rate": "19"}
        row |= {"discount_percent": "0", "amount": half, "kind": "item"}
        return (row | {"position": position} for position in range(1, LINES + 1))

    def payments(self) -> Iterator[Row]:
        parts = [self.paid // 2, self.paid - self.paid // 2] if self.paid else []
        row = self.common | {"paid_date": self.paid_date, "method": "bank_transfer"}
        return (row | {"amount": part} for part in parts)

    def note(self) -> Row:
        tax, price = self.credited * 19 // 100, decimal(self.credited)
        line = {"description": "Goodwill", "unit_price": price, "invoice_line_id": None, "quantity": "1"}
        line |= {"discount_percent": "0", "tax_rate": "19", "amount": price}
        row: Row = {"number": f"CN-{self.number:06}", "issue_date": self.paid_date, "reason": "goodwill"}
        row |= {"lines": json.dumps([line]), "subtotal": self.credited, "tax_total": tax, "total": self.credited + tax}
        return self.common | row | {"refundable_amount": self.credited + tax, "tax_breakdown": self.taxes}

    def share(self, note: int) -> Row:
        return self.common | {"credit_note_id": note, "project_id": self.project, "amount": self.credited}


def decimal(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02}"
