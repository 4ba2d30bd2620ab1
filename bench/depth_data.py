"""The databases of depth.py: the same agency after few and after many hours of work."""

import random
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from bench.bare_databases import Sqlite
from bench.data import open_agency, work_done

USERS, CLIENTS, PROJECTS, YEARS, KEYS = 50, 200, 500, 4, 100
DAYS = 365 * YEARS
OLD = 60  # days after which nearly all is done, and paid
TASK_ENTRIES = 50  # time entries for each task that there is
RECENT = 100
FAST = ("journal_mode=OFF", "synchronous=OFF", "foreign_keys=OFF", "cache_size=-262144")  # a crash may lose it

INSERT_USER = """
INSERT INTO users (account_id, created_at, updated_at, name, name_sort, search, email, email_folded, role, is_active,
                   weekly_capacity_minutes, target_percent, hourly_rate, password_hash)
SELECT account_id, created_at, created_at, ?2, ?2, ?2, ?3, ?3, 'member', 1, weekly_capacity_minutes, target_percent, ?4,
       ''
FROM users WHERE id = ?1"""
STAMPS = ("account_id", "created_at", "updated_at")
CLIENT = (
    *(*STAMPS, "name", "number", "status", "currency", "hourly_rate", "payment_terms_days"),
    *("number_folded", "number_sort", "name_sort", "search"),
)
PROJECT = (
    *(*STAMPS, "client_id", "name", "status", "billing_type", "currency", "hourly_rate", "budget_amount"),
    *("budget_minutes", "is_template", "name_sort", "search"),
)
TASK = (
    *(*STAMPS, "title", "client_id", "project_id", "status", "completed_at", "priority", "assignee_id"),
    *("due_date", "estimated_minutes", "billable", "position", "created_by_id", "search"),
)
ENTRY = (
    *(*STAMPS, "client_id", "project_id", "task_id", "user_id", "date", "duration_minutes", "billable"),
    *("description", "currency", "hourly_rate", "amount", "search"),
)


class Made(NamedTuple):
    """What the requests to a database must know of it."""

    keys: list[str]
    entries: int
    recent: str
    """The moment since which the last RECENT time entries were changed."""


def fill(path: Path, count: int) -> Made:
    """Make a database with a number of time entries; its sums are still to be made (`report_data.add_money` does)."""
    account, admin, keys = open_agency(path, KEYS)
    connection = Sqlite(str(path)).connect()
    for pragma in FAST:
        connection.execute(f"PRAGMA {pragma}")
    rng = random.Random(1)
    days = [str(datetime.now(UTC).date() - timedelta(days=DAYS - n)) for n in range(DAYS)]
    first = (account, f"{days[0]}T08:00:00.000000Z", f"{days[0]}T08:00:00.000000Z")
    connection.execute("BEGIN")
    people = [(admin, f"Person {n}", f"person.{n}@north.example", 7000 + 100 * n) for n in range(1, USERS)]
    connection.executemany(INSERT_USER, people)
    put(connection, account, "clients", CLIENT, clients(rng, first))
    put(connection, account, "projects", PROJECT, projects(rng, first))
    put(connection, account, "tasks", TASK, tasks(rng, account, count // TASK_ENTRIES, days))
    put(connection, account, "time_entries", ENTRY, time_entries(rng, account, count, days))
    connection.execute("UPDATE totals SET count = (SELECT count(*) FROM users) WHERE name = 'users'")
    connection.execute("COMMIT")
    last = "SELECT updated_at FROM time_entries ORDER BY account_id DESC, updated_at DESC LIMIT 1 OFFSET ?"
    recent = connection.execute(last, (min(RECENT, count) - 1,)).fetchone()[0]
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    return Made(keys, count, recent)


def put(connection: Any, account: int, table: str, names: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> None:
    """Insert rows, and set the counter of their table."""
    places = ", ".join("?" * len(names))
    made = connection.executemany(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({places})", rows).rowcount
    connection.execute("INSERT INTO totals (account_id, name, count) VALUES (?, ?, ?)", (account, table, made))


def clients(rng: random.Random, stamps: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    for n in range(1, CLIENTS + 1):
        name, rate, number = f"Client {rng.randrange(10**6)}", rng.choice((None, 9000, 11050)), f"c-{n:04}"
        folded = name.casefold()
        yield (*stamps, name, number.upper(), "active", "EUR", rate, 30, number, number, folded, f"{folded}\n{number}")


def projects(rng: random.Random, stamps: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    for n in range(1, PROJECTS + 1):
        name, status = f"Project {rng.randrange(10**6)}", rng.choice(("active", "active", "completed"))
        budget = rng.choice(((None, None), (5_000_000, None), (None, 60_000), (5_000_000, 60_000)))
        rate, folded = rng.choice((None, 9500, 12000)), name.casefold()
        yield (*stamps, client_of(n), name, status, "time_and_materials", "EUR", rate, *budget, 0, folded, folded)


def tasks(rng: random.Random, account: int, count: int, days: list[str]) -> Iterator[tuple[Any, ...]]:
    """Due a month after they were made; nearly all that were due long ago are done."""
    for n in range(1, count + 1):
        project, title, age = project_of(n), work_done(rng), DAYS - n * DAYS // (count + 1)
        made = f"{days[-age]}T09:00:00.{n:06}Z"
        done = rng.random() < (0.97 if age > OLD else 0.5 * age / OLD)
        status, completed = ("done", made) if done else (rng.choice(("todo", "in_progress")), None)
        due = str(date.fromisoformat(days[-age]) + timedelta(days=30))
        priority, user = rng.choice(("normal", "high")), rng.randint(1, USERS)
        task = (account, made, made, title, client_of(project), project, status, completed, priority, user, due)
        yield (*task, 60 * rng.randint(1, 40), 1, n // PROJECTS, 1, title.casefold())


def time_entries(rng: random.Random, account: int, count: int, days: list[str]) -> Iterator[tuple[Any, ...]]:
    """In the order in which they were recorded. Some projects have far more than others; few are changed later."""
    texts = [f"{work_done(rng)} (#{n})" for n in range(5000)]
    folded = [text.casefold() for text in texts]
    pick, task_count = rng.random, count // TASK_ENTRIES
    for n in range(count):
        recorded = n * DAYS // count
        changed = recorded if pick() < 0.98 else recorded + int(pick() * (DAYS - recorded))
        clock = f"T{8 + int(pick() * 12):02}:{int(pick() * 60):02}:{int(pick() * 60):02}.{n % 1_000_000:06}Z"
        task = 1 + int(pick() * task_count) if task_count and pick() < 0.5 else None
        project = 1 + int(pick() ** 2 * PROJECTS) if task is None else project_of(task)
        minutes, billable, text = 15 * (1 + int(pick() * 20)), pick() < 0.8, int(pick() * 5000)
        yield (
            *(account, days[recorded] + clock, days[changed] + clock, client_of(project), project, task),
            *(1 + int(pick() * USERS), days[max(0, recorded - int(pick() ** 3 * 4))], minutes, billable),
            *(texts[text], "EUR", 9000, 150 * minutes if billable else 0, folded[text]),
        )


def client_of(project: int) -> int:
    return 1 + project % CLIENTS


def project_of(task: int) -> int:
    return 1 + (task - 1) % PROJECTS
