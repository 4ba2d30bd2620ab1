"""The database that is measured, and the bodies of creates."""

import random
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench import bare
from bench.bare_clients import Clients
from bench.bare_databases import Sqlite
from bench.bare_time import TimeEntries
from retainer.identity import accounts
from retainer.identity.accounts import AccountDetails
from retainer.identity.actors import operator_of
from retainer.identity.keys import keys
from retainer.identity.keys.keys import SCOPES
from retainer.identity.people import users
from retainer.schema.migrations import migrate
from retainer.store import engines
from retainer.store.tx import Store

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

INSERT_TAG = """
INSERT INTO tags (account_id, created_at, updated_at, name, name_folded, name_sort, search)
SELECT ?1, created_at, created_at, ?2, ?3, ?3, ?3 FROM accounts WHERE id = ?1"""
INSERT_CONTACT = """
INSERT INTO external_contacts (account_id, created_at, updated_at, client_id, name, email, role, is_primary, status,
                               last_name_sort, email_folded, search)
SELECT ?1, created_at, created_at, ?2, ?3, ?3, 'general', 0, 'active', ?3, ?3, ?3 FROM accounts WHERE id = ?1"""
INSERT_PROJECT = """
INSERT INTO projects (account_id, created_at, updated_at, client_id, name, status, billing_type, currency, hourly_rate,
                      is_template, name_sort, search)
SELECT account_id, created_at, created_at, id, ?3, 'active', 'time_and_materials', currency, ?4, 0, ?5, ?5
FROM clients WHERE account_id = ?1 AND id = ?2"""
COUNT_CHILDREN = """
UPDATE clients SET
    contacts_count = (SELECT count(*) FROM external_contacts c WHERE c.client_id = clients.id),
    projects_count = (SELECT count(*) FROM projects p WHERE p.client_id = clients.id)"""


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


def fill(path: Path) -> list[str]:
    """Make the database: one account with clients, contacts, tags, projects, time and keys; return the keys."""
    account, _, made = open_agency(path, KEYS)
    database = Sqlite(str(path))
    connection, clients, time = database.connect(), Clients(database), TimeEntries(database)
    caller = database.one(connection, bare.key_statement(database), [keys.digest(made[0])])
    rng = random.Random(1)
    today = date.today()  # noqa: DTZ011
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(INSERT_TAG, [(account, f"Tag {n}", f"tag {n}") for n in range(TAGS)])
    for n in range(CLIENTS):
        clients.insert(connection, caller, clients.decode(describe(rng, n)), "")
    rows = [(account, rng.randint(1, CLIENTS), f"bo.{n}@example.com") for n in range(CONTACTS)]
    connection.executemany(INSERT_CONTACT, rows)
    rates = [rng.choice((None, 9550, 12025)) for _ in range(PROJECTS)]
    names = [f"Website {n}" for n in range(PROJECTS)]
    projects = [(account, client_of(n + 1), names[n], rates[n], names[n].casefold()) for n in range(PROJECTS)]
    connection.executemany(INSERT_PROJECT, projects)
    connection.execute(COUNT_CHILDREN)
    for n in range(ENTRIES):
        day = today - timedelta(days=365 - 365 * n // ENTRIES)
        time.insert(connection, caller, time.decode(describe_time(rng, date=day.isoformat())), "")
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return made


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
    members: dict[str, object] = {"client_id": client_of(project), "project_id": project}
    members |= {"duration_minutes": rng.randint(1, 3), "date": long_ago(rng)}
    members |= {"billable": rng.random() < 0.8, "description": work_done(rng)}
    return msgspec.json.encode(members | others)


def long_ago(rng: random.Random) -> str:
    """A day of the nineties: a day of a user has room for 1440 minutes, and a long run sends many entries."""
    return (date(1990, 1, 1) + timedelta(days=rng.randrange(3650))).isoformat()


def work_done(rng: random.Random) -> str:
    """Return the note of an hour of work."""
    return rng.choice(WORK).format(rng.choice(SUBJECTS))
