"""What depth.py adds to its databases: the other kinds of children, all of which grow with the time entries.

Clients, projects, milestones, tags and the tickets that people talk about stay as many, so that each has more children.
"""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.bare_databases import Sqlite
from bench.depth_data import CLIENTS, DAYS, FAST, PROJECTS, STAMPS, client_of, put
from retainer.values.collation import number_key, printed_form

TAGS, STAGES, BUSY_TICKETS = 12, 2, 20
Row = tuple[Any, ...]
TAG = (*STAMPS, "name", "name_folded", "name_sort", "search")
STAGE = (*STAMPS, "project_id", "name", "status", "currency", "position", "search")
CONTACT = (*STAMPS, "client_id", "name", "role", "is_primary", "status", "last_name", "last_name_sort", "search")
SITE = (
    *(*STAMPS, "url", "name", "client_id", "environment", "platform", "monitoring_enabled", "check_interval_seconds"),
    *("plugins_count", "plugin_updates_count", "core_update_available", "name_sort", "search"),
)
TICKET = (*STAMPS, "client_id", "number", "subject", "status", "priority", "type", "reopened_count", "search")
REPLY = (*STAMPS, "ticket_id", "body", "author_type", "user_id", "is_internal", "search")
QUOTE = (
    *(*STAMPS, "client_id", "number", "status", "issue_date", "valid_until", "currency", "subtotal", "tax_total"),
    *("total", "tax_breakdown", "number_folded", "number_sort", "search"),
)
LINK_TASKS = f"""
UPDATE tasks SET milestone_id = {STAGES} * project_id - id % {STAGES},
                 parent_id = CASE WHEN id > {PROJECTS} AND id % 5 = 0 THEN project_id END"""
LINK_TIME = f"UPDATE time_entries SET ticket_id = 1 + id / 10 % {BUSY_TICKETS} WHERE id % 10 = 0"
LINK_TAGS = """
INSERT INTO {0}_tags (account_id, record_id, tag_id)
SELECT DISTINCT r.account_id, r.id, 1 + (r.id + t.id) % ? FROM {0} r, tags t WHERE t.id <= 2"""
TAGGED = ("clients", "external_contacts", "projects", "tasks", "tickets", "sites")


def add_children(path: Path, entries: int) -> dict[str, int]:
    """Add children to a database with a number of time entries; return how many there are of each kind."""
    connection = Sqlite(str(path)).connect()
    for pragma in FAST:
        connection.execute(f"PRAGMA {pragma}")
    rng, account = random.Random(6), 1
    counts = {
        "tags": TAGS,
        "milestones": STAGES * PROJECTS,
        "external_contacts": max(1, entries // 200),
        "sites": max(1, entries // 1000),
        "tickets": max(BUSY_TICKETS, entries // 500),
        "ticket_replies": max(1, entries // 100),
        "quotes": max(1, entries // 200),
    }
    makers = {
        "tags": (TAG, tag),
        "milestones": (STAGE, stage),
        "external_contacts": (CONTACT, contact),
        "sites": (SITE, site),
        "tickets": (TICKET, ticket),
        "ticket_replies": (REPLY, reply),
        "quotes": (QUOTE, quote),
    }
    connection.execute("BEGIN")
    for name, (columns, make) in makers.items():
        rows = ((*stamps, *make(rng, n)) for n, stamps in enumerate(moments(account, counts[name]), start=1))
        put(connection, account, name, columns, rows)
    connection.execute(LINK_TASKS)
    connection.execute(LINK_TIME)
    for owner in TAGGED:
        connection.execute(LINK_TAGS.format(owner), (TAGS,))
    connection.execute("COMMIT")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    return counts


def moments(account: int, count: int) -> Iterator[Row]:
    """Return the account and both timestamps for a number of rows, spread over the years."""
    for n in range(count):
        day = datetime.now(UTC).date() - timedelta(days=DAYS - 1 - n * DAYS // count)
        moment = f"{day}T10:00:00.{n % 10**6:06}Z"
        yield account, moment, moment


def tag(_: random.Random, n: int) -> Row:
    return (f"Tag {n}", *[f"tag {n}"] * 3)


def stage(_: random.Random, n: int) -> Row:
    return -(-n // STAGES), "Launch", "open", "EUR", 1 + n % STAGES, "launch"


def contact(rng: random.Random, n: int) -> Row:
    name = f"Person {rng.randrange(10**6)}"
    return 1 + n % CLIENTS, name, "general", 0, "active", name, name.casefold(), name.casefold()


def site(_: random.Random, n: int) -> Row:
    url = f"https://shop{n}.example"
    return (url, f"Shop {n}", 1 + n % CLIENTS, "production", "wordpress", 0, 300, 0, 0, 0, f"shop {n}", url)


def ticket(rng: random.Random, n: int) -> Row:
    status = "open" if rng.random() < 0.1 else "closed"
    return 1 + n % CLIENTS, 1000 + n, "The checkout is slow", status, "normal", "question", 0, "the checkout is slow"


def reply(_: random.Random, n: int) -> Row:
    return 1 + n % BUSY_TICKETS, "We are looking into it.", "user", 1, 0, "we are looking into it."


def quote(rng: random.Random, n: int) -> Row:
    day, net = datetime.now(UTC).date() - timedelta(days=30), 100 * rng.randint(100, 5000)
    number = f"Q-{n:06}"
    client = client_of(1 + n % PROJECTS)
    texts = (printed_form(number), number_key(number), number.casefold())
    return client, number, "declined", str(day), str(day), "EUR", net, 0, net, "[]", *texts
