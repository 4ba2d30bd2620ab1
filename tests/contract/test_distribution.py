"""The tables of PostgreSQL can be distributed by account with Citus: told from the catalogue."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy.sql.elements import ClauseElement

from retainer.billing.invoices.types import Invoice
from retainer.schema import distribution, metadata
from retainer.schema.migrations import migrate
from retainer.server.monitoring.housekeeping import USED
from retainer.sites import uptime
from retainer.sites.monitor import schedule
from retainer.store.engines import connect
from retainer.store.engines.base import Unavailable
from retainer.store.engines.postgresql import Postgresql
from retainer.store.row_mapper import row_mapper
from retainer.store.statements import statements_of
from retainer.store.transaction import select_field
from tests.databases import PostgresqlDatabases

ON_EVERY_NODE, DISTRIBUTED, ON_COORDINATOR = (
    [table.name for table in tables]
    for tables in (distribution.ON_EVERY_NODE, distribution.DISTRIBUTED, distribution.ON_COORDINATOR)
)
PAGE = (Path(__file__).parents[2] / "docs" / "citus.md").read_text(encoding="utf-8")
UNCHECKED = {"idempotency_keys", "requests", "request_hours", "operation_hours", "webhooks"}
"""The tables whose references to keys a cluster does not check. Keys are never deleted."""

UNIQUE_INDEXES = """
SELECT relname, indexrelid::regclass::text, array_agg(attname ORDER BY place)
FROM pg_index
JOIN pg_class ON pg_class.oid = indrelid
JOIN unnest(indkey) WITH ORDINALITY AS keys (number, place) ON place <= indnkeyatts
LEFT JOIN pg_attribute ON attrelid = indrelid AND attnum = number
WHERE indisunique AND relnamespace = 'public'::regnamespace
GROUP BY relname, indexrelid
"""
FOREIGN_KEYS = """
SELECT conrelid::regclass::text, confrelid::regclass::text, confdeltype::text, confupdtype::text,
    array_agg(own.attname ORDER BY place), array_agg(other.attname ORDER BY place)
FROM pg_constraint
CROSS JOIN unnest(conkey, confkey) WITH ORDINALITY AS keys (own_number, other_number, place)
JOIN pg_attribute AS own ON own.attrelid = conrelid AND own.attnum = own_number
JOIN pg_attribute AS other ON other.attrelid = confrelid AND other.attnum = other_number
WHERE contype = 'f'
GROUP BY pg_constraint.oid, conrelid, confrelid, confdeltype, confupdtype
"""
COLUMNS = """
SELECT attname, atttypid::regtype::text FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
WHERE attnotnull AND attnum > 0 AND relkind = 'r' AND relnamespace = 'public'::regnamespace
"""


@pytest.fixture(scope="module")
def connection(postgresql_databases: PostgresqlDatabases) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgresql_databases.shared) as opened:
        yield opened


def test_every_table_is_distributed_by_its_account_or_on_every_node(connection):
    rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    places = [*ON_EVERY_NODE, *DISTRIBUTED, *ON_COORDINATOR, "alembic_version"]
    assert sorted(places) == sorted(name for (name,) in rows)
    for table in DISTRIBUTED:  # rows of an account lie together if the types are the same
        assert ("account_id", "bigint") in connection.execute(f"{COLUMNS} AND relname = '{table}'").fetchall(), table


def test_whatever_is_unique_is_so_within_an_account(connection):
    keys = connection.execute(UNIQUE_INDEXES).fetchall()
    assert [
        (table, key, columns) for table, key, columns in keys if table in DISTRIBUTED and columns[0] != "account_id"
    ] == []
    assert {table for table, _, _ in keys} >= {*DISTRIBUTED}, "a table has no key"


def test_every_reference_is_to_a_row_on_the_same_node(connection):
    keys = connection.execute(FOREIGN_KEYS).fetchall()
    assert len(keys) > len(DISTRIBUTED)
    for table, target, on_delete, on_update, columns, targets in keys:
        reference = f"{table} {columns} to {target} {targets}"
        together = ("account_id", "account_id") in zip(columns, targets, strict=True)
        assert target in ON_EVERY_NODE or together, reference
        if target in ON_COORDINATOR:
            assert table in ON_COORDINATOR or (table in UNCHECKED and target == "api_keys"), reference
        else:
            assert target in ON_EVERY_NODE or table in DISTRIBUTED, reference
        assert (on_delete, on_update) == ("a", "a"), f"{reference}: Citus refuses SET NULL of what holds the account"


def test_the_page_says_which_tables_are_not_on_the_node_of_their_account():
    rows = re.findall(r"^\| (`.*`) \| on (every node|the coordinator alone),", PAGE, re.MULTILINE)
    named = {place: sorted(re.findall(r"`(\w+)`", tables)) for tables, place in rows}
    assert named == {"every node": sorted(ON_EVERY_NODE), "the coordinator alone": sorted(ON_COORDINATOR)}


def test_the_embedded_database_and_a_server_without_citus_are_not_distributed(postgresql_databases, tmp_path):
    for url in (f"sqlite:///{tmp_path / 'retainer.db'}", postgresql_databases.shared):
        engine = connect(url)
        migrate(engine)
        with pytest.raises(Unavailable, match="is not on a Citus cluster"):
            distribution.distribute(engine)
        engine.close()


VALUES = {
    "account_id": "n % 20",
    "id": "n",
    "bigint": "n",
    "text": "'text ' || n",
    "boolean": "true",
    "bytea": "convert_to('text ' || n, 'UTF8')",
    "date": "current_date",
    "timestamp with time zone": "now()",
}
"""What columns of a name or type hold in the row of a number."""


@pytest.fixture(scope="module")
def full(connection: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    """The same, in a transaction in which every table with ids has thousands of rows, of 20 accounts."""
    connection.execute("SET LOCAL session_replication_role = replica")  # references are to nothing
    for table in (table.name for table in metadata.sorted_tables if "id" in table.c):
        columns = dict(connection.execute(f"{COLUMNS} AND relname = '{table}'").fetchall())
        values = (VALUES.get(name) or VALUES[kind] for name, kind in columns.items())
        rows = f"SELECT {', '.join(values)} FROM generate_series(1, 2000) AS n"
        names = ", ".join(f'"{name}"' for name in columns)
        connection.execute(f"INSERT INTO {table} ({names}) {rows} ON CONFLICT DO NOTHING")
        connection.execute(f"ANALYZE {table}")
    return connection


BY_ID: list[tuple[str, ClauseElement, bool]] = [
    *(
        (table.name, select_field(table.c.id), True)
        for table in metadata.sorted_tables
        if {"id", "account_id"} <= {*table.c.keys()}
    ),
    ("invoices", row_mapper(metadata.tables["invoices"], Invoice).one, True),
    ("sites", schedule.DUE.lease, False),
    *(("sites", statement, True) for statement in (schedule.LOCK_LEASED, schedule.SAVE_RESULT, uptime.WRITE_SHARES)),
    ("api_keys", USED, False),
]


@pytest.mark.parametrize(("table", "statement", "scope"), BY_ID, ids=lambda value: str(value)[:40])
def test_a_row_is_found_by_account_and_id_through_the_primary_key(full, table, statement, scope):
    statements = statements_of(Postgresql.dialect, "$")
    text = (statements.of_account if scope else statements.of_all)(statement).text
    with psycopg.RawCursor(full) as cursor:
        rows = cursor.execute(f"EXPLAIN (GENERIC_PLAN) {text}").fetchall()
    plan = "\n".join(line for (line,) in rows)
    assert re.search(rf"using {table}_pk on {table}\b.*\n\s+Index Cond: \(\(account_id = .*\bid = ", plan), plan
