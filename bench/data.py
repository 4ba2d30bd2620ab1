"""The database of `load`, `instructions` and `writers`, the bodies of creates, and what fills databases."""

import itertools
import math
import random
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bench import bare, bare_clients
from retainer.identity import accounts
from retainer.identity.accounts import AccountDetails
from retainer.identity.actors import OPERATORS, operator, operator_of
from retainer.identity.keys import keys
from retainer.identity.keys.keys import SCOPES
from retainer.identity.people import users
from retainer.rollups import doctor
from retainer.schema.migrations import migrate
from retainer.store import engines
from retainer.store.tx import Store
from retainer.values.collation import number_key, printed_form

CLIENTS, CONTACTS, TAGS, PROJECTS, ENTRIES, KEYS = 10_000, 2_500, 12, 400, 20_000, 500
CITIES = ("Zürich", "Lyon", "Porto", "Gdańsk", "Leeds", "Austin")
SUBJECTS = ("the shop's checkout", "the newsletter", "search results", "the brand guide", "hosting", "the press page")
WORK = (
    "Drafts for {}",
    "Weekly call about {}",
    "Fixes to {} after the review",
    "Estimate and plan for {}",
    "{}: tests",
)
Row = dict[str, Any]


class Agency(NamedTuple):
    """An account on the plan enterprise that was just opened."""

    account: int
    user: int
    keys: list[str]


def open_account(store: Store, name: str, count: int) -> Agency:
    """Open an account with its admin and a number of keys with all scopes."""
    details = AccountDetails(name=f"{name.title()} Agency", plan="enterprise", hourly_rate=Decimal(90))
    admin = users.UserDetails(name="Ana Lima", email=f"ana@{name}.example", role="admin")
    account, user = users.open_account(store, details, admin)
    with store.begin(operator_of(store, account), write=True) as tx:
        accounts.switch_api(tx, on=True)
        names = (f"key {number}" for number in range(count))
        made = [keys.create_key(tx, keys.KeyDetails(name, user, list(SCOPES))).value for name in names]
    return Agency(account, user, made)


def open_agency(path: Path, count: int) -> Agency:
    """Make a database with one account."""
    engine = engines.Sqlite(path)
    migrate(engine)
    agency = open_account(Store(engine), "north", count)
    engine.close()
    return agency


def insert(connection: Any, account: int, table: str, rows: Iterable[Row]) -> None:
    """Insert rows, which all have the same columns, and add them to the counter of their table.

    They need not say what follows from a name, a number or a text, nor what is 0. They may say what the table lacks.
    """
    columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
    zeros = {
        name: 0 for _, name, kind, required, default, _ in columns if kind == "INTEGER" and required and not default
    }
    names = [name for _, name, *_ in columns]
    derived = (zeros | {"account_id": account} | derive(row) | row for row in rows)
    first = next(derived, None)
    if first is not None:
        names = [name for name in names if name in first and name != "id"]
        quoted = ", ".join(f'"{name}"' for name in names)
        statement = f"INSERT INTO {table} ({quoted}) VALUES ({', '.join('?' * len(names))})"
        values = (tuple([row[name] for name in names]) for row in itertools.chain([first], derived))
        made = connection.executemany(statement, values).rowcount
        count = "INSERT INTO totals VALUES (?, ?, ?) ON CONFLICT (account_id, name) DO UPDATE SET count = count + ?3"
        connection.execute(count, (account, table, made))


def derive(row: Row) -> Row:
    """What orders and finds a row by its name, number or text."""
    name, number = row.get("name", ""), str(row.get("number", ""))
    text = next(
        (row[each] for each in ("name", "title", "subject", "number", "description", "body") if each in row), ""
    )
    found = {"updated_at": row["created_at"], "search": str(text).casefold(), "name_sort": name.casefold()}
    return found | ({"number_folded": printed_form(number), "number_sort": number_key(number)} if number else {})


def recompute(path: Path) -> None:
    """Add up all totals anew."""
    store = Store(engines.Sqlite(path))
    with store.unscoped() as tx:
        (owner,) = tx.all(OPERATORS)
    with store.begin(operator(owner), write=True, seconds=math.inf) as tx:
        doctor.rebuild(tx)
    store.engine.close()


def fill(path: Path) -> list[str]:
    """Make the database: one account with clients, contacts, tags, projects, time and keys; return the keys."""
    account, _, made = open_agency(path, KEYS)
    connection = bare.Database(str(path)).connect()
    caller = connection.execute(bare.KEY, [keys.digest(made[0])]).fetchone()
    rng, today = random.Random(1), datetime.now(UTC).date()
    connection.execute("BEGIN IMMEDIATE")
    tags = [{"name": f"Tag {n}", "name_folded": f"tag {n}"} for n in range(TAGS)]
    made_at = f"{today}T00:00:00.000000Z"
    insert(connection, account, "tags", ({"created_at": made_at} | tag for tag in tags))
    for n in range(CLIENTS):
        bare.insert(connection, caller, bare_clients.decode(describe(rng, n)), "")
    insert(connection, account, "external_contacts", (contact(rng, n, made_at) for n in range(CONTACTS)))
    insert(connection, account, "projects", (project(rng, n, made_at) for n in range(PROJECTS)))
    days = (str(today - timedelta(days=365 - 365 * n // ENTRIES)) for n in range(ENTRIES))
    insert(connection, account, "time_entries", (entry(rng, day, made_at) for day in days))
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    recompute(path)
    return made


def contact(rng: random.Random, n: int, at: str) -> Row:
    row = {"created_at": at, "client_id": rng.randint(1, CLIENTS), "role": "general", "status": "active"}
    return row | dict.fromkeys(("name", "email", "email_folded", "last_name_sort"), f"bo.{n}@example.com")


def project(rng: random.Random, n: int, at: str) -> Row:
    row = {"created_at": at, "client_id": client_of(n + 1), "name": f"Website {n}", "status": "active"}
    rate = rng.choice((None, 9550, 12025))
    return row | {"billing_type": "time_and_materials", "currency": "EUR", "hourly_rate": rate}


def entry(rng: random.Random, day: str, at: str) -> Row:
    row = msgspec.json.decode(describe_time(rng, date=day)) | {"created_at": at, "user_id": 1, "currency": "EUR"}
    return row | {"hourly_rate": 9000, "amount": 150 * row["duration_minutes"] * row["billable"]}


def client_of(project: int) -> int:
    """The client of a project: every 25th has one."""
    return project * (CLIENTS // PROJECTS)


def describe(rng: random.Random, n: int) -> bytes:
    """The body that creates a client."""
    members = {"name": f"{rng.choice(CITIES)} Studio {rng.randrange(10**6)}", "email": f"office.{n}@example.com"}
    members |= {"phone": f"+41 44 {n:07}", "website": f"https://client-{n}.example.com", "country": "CH"}
    members |= {"address_line1": f"{rng.randint(1, 200)} Long Street", "city": rng.choice(CITIES)}
    members |= {"hourly_rate": f"{rng.randint(50, 200)}.50", "tax_rate": "7.5"} if n % 2 else {}
    members |= {"notes": "Met at the fair; prefers e-mail."} if n % 4 == 0 else {}
    return msgspec.json.encode(members | {"tag_ids": rng.sample(range(1, TAGS + 1), n % 3)})


def describe_time(rng: random.Random, **others: str) -> bytes:
    """The body that creates a time entry."""
    project = rng.randint(1, PROJECTS)
    members: Row = {"client_id": client_of(project), "project_id": project, "duration_minutes": rng.randint(1, 3)}
    members |= {"date": long_ago(rng), "billable": rng.random() < 0.8, "description": work_done(rng)}
    return msgspec.json.encode(members | others)


def long_ago(rng: random.Random) -> str:
    """A day of the nineties: a day of a user has room for 1440 minutes, and a long run sends many entries."""
    return (date(1990, 1, 1) + timedelta(days=rng.randrange(3650))).isoformat()


def work_done(rng: random.Random) -> str:
    """Return the note of an hour of work."""
    return rng.choice(WORK).format(rng.choice(SUBJECTS))
