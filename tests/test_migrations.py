"""What migrations make of the data that was there."""

from pathlib import Path
from typing import Any

import psycopg
import pytest
from alembic import command

from retainer.app import App
from retainer.schema import metadata, migrations
from retainer.store.engines import Sqlite, connect
from retainer.store.engines.postgresql import Postgresql
from retainer.traffic.blocks import LoggedRequest, requests_of
from tests.databases import PostgresqlDatabases
from tests.factories import open_app

NOW = "2026-03-10T09:00:00.000000Z"
DAY = "2026-03-10"


@pytest.fixture
def before(fast_path: Path) -> Sqlite:
    """An account with two users and a client, in a database as it was before rates had a source."""
    path = fast_path / "old.db"
    path.touch()
    engine = Sqlite(path)
    with engine.schema_change() as connection:
        migrations.upgrade(connection, "0008")
    put(engine, "accounts", id=1, currency="EUR", hourly_rate=7000)
    put(engine, "users", id=1, name="Ana", email_folded="a", hourly_rate=8000)
    put(engine, "users", id=2, name="Max", email_folded="m")
    put(engine, "clients", id=1, name="Äpfel", number="1", currency="EUR", hourly_rate=9000)
    put(engine, "clients", id=2, name="Zoo", number="2", currency="USD")
    return engine


def put(engine: Sqlite, table: str, **values: Any) -> None:
    """Write a row as it was then; what is not said is empty."""
    kinds = {"INTEGER": 0, "TEXT": ""}
    connection = engine.connection()
    columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
    row = {name: kinds[kind] for _, name, kind, needed, default, _ in columns if needed and default is None}
    row |= {name: NOW for name in ("created_at", "updated_at") if name in row}
    row |= {name: 1 for name in ("account_id", "user_id", "created_by_id") if name in row}
    row |= values
    marks = ", ".join(f":{name}" for name in row)
    connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", row)
    engine.give_back(connection)


def upgraded(engine: Sqlite) -> App:
    """The application on the database as it is now."""
    migrations.migrate(engine)
    return open_app(engine.path)


def read(app: App, statement: str) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = app.store.engine.connection().execute(statement).fetchall()
    return rows


def test_a_rate_that_the_cascade_does_not_give_counts_as_sent(before: Sqlite):
    put(before, "projects", id=1, client_id=1, name="P", currency="EUR", hourly_rate=10000)
    put(before, "projects", id=2, client_id=1, name="Q", currency="EUR")
    entry = {"client_id": 1, "user_id": 1, "date": DAY, "currency": "EUR", "hourly_rate": None}
    expected = {}
    cases: tuple[tuple[dict[str, Any], int], ...] = (
        ({"project_id": 1, "hourly_rate": 10000}, 0),
        ({"project_id": 1, "hourly_rate": 9000}, 1),
        ({"project_id": 2, "hourly_rate": 9000}, 0),
        ({"client_id": None, "hourly_rate": 8000}, 0),
        ({"client_id": None, "user_id": 2, "hourly_rate": 7000}, 0),
        ({"client_id": None, "user_id": 2, "hourly_rate": 8000}, 1),
        ({"client_id": 2, "currency": "USD", "hourly_rate": 7000}, 1),
        ({"client_id": 2, "currency": "USD"}, 0),
        ({"hourly_rate": 0}, 1),
    )
    for own, (members, is_sent) in enumerate(cases, start=1):
        put(before, "time_entries", id=own, **entry | members)
        expected[own] = is_sent
    assert dict(read(upgraded(before), "SELECT id, rate_is_sent FROM time_entries")) == expected


def test_tasks_of_templates_without_billing_say_that_their_copies_are_billable(before: Sqlite):
    kinds = (("non_billable", 1), ("time_and_materials", 1), ("non_billable", 0))
    for own, (billing_type, is_template) in enumerate(kinds, start=1):
        put(before, "projects", id=own, name="P", billing_type=billing_type, is_template=is_template)
        put(before, "tasks", id=own, project_id=own)
    put(before, "tasks", id=4)
    assert read(upgraded(before), "SELECT billable FROM tasks ORDER BY id") == [(1,), (0,), (0,), (0,)]


def test_names_that_there_are_get_their_place_in_the_order(before: Sqlite):
    for own in range(1, 2500):
        put(before, "tags", id=own, name=f"Ärger {own}", name_folded=f"ärger {own}", search=f"ärger {own}")
    put(before, "projects", id=1, name="Ödland", name_folded="ödland")
    put(before, "sites", id=1, url="u", name="École", name_folded="école")
    put(before, "expenses", id=1, user_id=1, date=DAY, category="Übernachtung", category_folded="übernachtung")
    for own, last, first in ((1, "Łoś", "Ana"), (2, None, "Žak")):
        put(
            before, "external_contacts", id=own, client_id=1, last_name=last, first_name=first, email=f"{own}@x.example"
        )
    app = upgraded(before)
    assert read(app, "SELECT name_sort FROM clients ORDER BY id") == [("apfel\x01äpfel",), ("zoo",)]
    assert read(app, "SELECT count(*), min(name_sort) FROM tags WHERE name_sort LIKE 'arger %'") == [
        (2499, "arger 1\x01ärger 1")
    ]
    assert read(app, "SELECT name_sort FROM projects") == [("odland\x01ödland",)]
    assert read(app, "SELECT name_sort FROM sites") == [("ecole\x01école",)]
    assert read(app, "SELECT category_sort FROM expenses") == [("ubernachtung\x01übernachtung",)]
    assert read(app, "SELECT last_name_sort FROM external_contacts ORDER BY id") == [
        ("los\nana\n1@x.example\x01łoś\nana\n1@x.example",),
        ("zak\n2@x.example\x01žak\n2@x.example",),
    ]
    assert read(app, "SELECT seq FROM sqlite_sequence WHERE name = 'tags'") == [(2499,)]


def test_what_is_billed_is_found_under_the_new_name_and_no_id_is_assigned_again(before: Sqlite):
    put(before, "invoices", id=1, client_id=1, currency="EUR", status="draft")
    put(before, "invoice_lines", id=3, invoice_id=1)
    put(before, "time_entries", id=5, client_id=1, date=DAY, currency="EUR")
    put(before, "billings", id=8, invoice_line_id=3, time_entry_id=5, is_live=1)
    put(before, "totals", name="billings", count=1)
    connection = before.connection()
    connection.execute("UPDATE sqlite_sequence SET seq = 9 WHERE name = 'billings'")  # the ninth was deleted
    before.give_back(connection)
    app = upgraded(before)
    assert read(app, "SELECT id, invoice_line_id, time_entry_id, is_live FROM allocations") == [(8, 3, 5, 1)]
    assert read(app, "SELECT name, count FROM totals WHERE name IN ('billings', 'allocations')") == [("allocations", 1)]
    sequences = "SELECT name, seq FROM sqlite_sequence WHERE name IN ('billings', 'allocations')"
    assert read(app, sequences) == [("allocations", 9)]


LOGGED = """
INSERT INTO requests (account_id, answered_at, number, key_id, request_id, method, path, operation, status,
    failure_class, duration_us, address, record) VALUES
    (1, '2026-03-10T09:00:00.000001Z', 8, 4, 'sent-1', 'GET', '/tags', 'listTags', 200, NULL, 1234, '::1', NULL),
    (1, '2026-03-10T09:00:00.900000Z', 3, 4, 'req_019cd79e4600000000000007', 'PATCH', '/tags/5', 'updateTag', 200, NULL,
        2000, NULL, '/tags/5'),
    (1, '2026-03-10T09:00:00.500000Z', 5, 9, 'sent-1', 'GET', '/tags', NULL, 429, 4, 70, '::1', NULL),
    (2, '2026-03-10T09:00:10.000000Z', 5, 6, 'sent-1', 'GET', '/tags', 'listTags', 503, 5, 70, '::1', NULL)
"""


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_requests_are_in_blocks_from_then_on(database: str, tmp_path: Path, postgresql_databases: PostgresqlDatabases):
    path = tmp_path / "old.db"
    path.touch()
    engine = connect(f"sqlite:///{path}" if database == "sqlite" else postgresql_databases.create())
    with engine.schema_change() as connection:
        if isinstance(engine, Postgresql):
            connection.exec_driver_sql("CREATE TABLE sqlite_sequence (name TEXT, seq BIGINT)")
        migrations.upgrade(connection, "0016")
    if isinstance(engine, Sqlite):
        for account_id in (1, 2):
            put(engine, "accounts", id=account_id)
            put(engine, "users", id=account_id, account_id=account_id)
        for account_id, key_id in ((1, 4), (1, 9), (2, 6)):
            put(engine, "api_keys", id=key_id, account_id=account_id, user_id=account_id, hash=str(key_id))
    with engine.schema_change() as connection:
        if isinstance(engine, Postgresql):
            connection.exec_driver_sql("SET LOCAL session_replication_role = replica")  # it asks for no account
        connection.exec_driver_sql(LOGGED)
        migrations.upgrade(connection, "0017")
        columns = "account_id, period, number, key_id, requests, content"
        rows = list(connection.exec_driver_sql(f"SELECT {columns} FROM request_blocks ORDER BY number"))
        terms = list(connection.exec_driver_sql("SELECT account_id, term, period, number FROM request_terms"))
    engine.close()
    first, second = "2026-03-10T09:00:0", "2026-03-10T09:00:1"
    assert [tuple(row[:-1]) for row in rows] == [(1, first, 0, 4, 2), (1, first, 2, 9, 1), (2, second, 3, 6, 1)]
    assert sorted(map(tuple, terms)) == [
        (1, "/tags/5", first, 0),
        (1, "4xx", first, 2),
        (1, "sent-1", first, 0),
        (1, "sent-1", first, 2),
        (2, "5xx", second, 3),
        (2, "sent-1", second, 3),
    ]
    requests = [request for row in rows for request in requests_of(row[1], row[2], row[3], row[-1])]
    assert min(requests, key=lambda request: request.answered_at) == LoggedRequest(
        "2026-03-10T09:00:00.000001Z",
        requests[0].number,
        4,
        "sent-1",
        "GET",
        "/tags",
        "listTags",
        200,
        1234,
        "::1",
        None,
    )
    assert [request.record for request in requests if request.record] == ["/tags/5"]
    assert sorted(request.status for request in requests) == [200, 200, 429, 503]


ADDED = {
    *("pauses", "request_hours", "operation_hours", "request_blocks", "request_terms"),
    *("sessions", "password_links", "sign_in_failures"),
}
FORMER = """
ALTER TABLE users ALTER password_hash SET NOT NULL;
DROP INDEX users_by_email_folded;
ALTER TABLE api_keys DROP COLUMN last_used_address, DROP COLUMN replaced_by_id;
ALTER TABLE audit_entries DROP COLUMN user_id, DROP COLUMN address, DROP COLUMN target, DROP COLUMN target_id,
    DROP COLUMN target_name, DROP COLUMN before, DROP COLUMN after, ADD COLUMN details TEXT NOT NULL;
"""
"""What makes today's tables those of revision 0013, without the tables that were added since."""


def test_a_postgresql_database_of_an_earlier_version_gets_what_a_new_one_has(postgresql_databases: PostgresqlDatabases):
    url = postgresql_databases.create()
    engine = connect(url)
    with engine.schema_change() as connection:
        metadata.create_all(connection, tables=[table for table in metadata.sorted_tables if table.name not in ADDED])
        connection.exec_driver_sql(FORMER)
        command.stamp(migrations.configuration(connection), "0013")
    assert migrations.migrate(engine) == ("0013", migrations.head())
    engine.close()
    described = "SELECT table_name, column_name, data_type, collation_name, is_nullable FROM information_schema.columns"
    keys = "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
    for statement in (f"{described} WHERE table_schema = 'public'", f"{keys} WHERE conrelid <> 0"):
        assert set(asked(url, statement)) == set(asked(postgresql_databases.prototype, statement))


def asked(url: str, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(statement).fetchall()
