"""The request log in blocks: the requests of a key in a second are one row, which costs far less to write."""

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import INTEGER, TEXT

revision = "0017"
down_revision = "0016"
LOCKS = {
    "requests": "moves every row into blocks",
    "accounts": "lets new tables refer to it",
    "api_keys": "lets a new table refer to it",
}

TIME = {
    "sqlite": "answered_at",
    "postgresql": """to_char(answered_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')""",
}
ARRAY = {"sqlite": "json_group_array(json_array({}))", "postgresql": "CAST(json_agg(json_build_array({})) AS TEXT)"}
FIELDS = "request_id, method, path, operation, status, duration_us / 1000.0, address, record"
SENT = "(substr(request_id, 1, 4) <> 'req_' OR length(request_id) <> 28)"


def upgrade() -> None:
    create(
        "request_blocks",
        ("second", "number"),
        sa.Column("second", TEXT, nullable=False),
        sa.Column("number", INTEGER, nullable=False),
        sa.Column("key_id", INTEGER, nullable=False),
        sa.Column("requests", INTEGER, nullable=False),
        sa.Column("client_errors", INTEGER, nullable=False),
        sa.Column("server_errors", INTEGER, nullable=False),
        sa.Column("content", TEXT, nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "key_id"],
            ["api_keys.account_id", "api_keys.id"],
            name=op.f("request_blocks_ref_account_id_key_id"),
        ),
    )
    create(
        "request_terms",
        ("term", "second", "number"),
        sa.Column("term", TEXT, nullable=False),
        sa.Column("second", TEXT, nullable=False),
        sa.Column("number", INTEGER, nullable=False),
    )
    fill()
    op.create_index(
        "request_blocks_by_key_id", "request_blocks", ["account_id", "key_id", "second", "number", "requests"]
    )
    for name in ("client_errors", "server_errors"):
        some = sa.text(f"({name} > 0)")
        columns = ["account_id", "second", "number", "key_id", "requests"]
        op.create_index(
            f"request_blocks_by_{name}", "request_blocks", columns, sqlite_where=some, postgresql_where=some
        )
    op.create_index("request_terms_by_second", "request_terms", ["account_id", "second"])
    op.drop_table("requests")


def fill() -> None:
    """Put the requests of a key in a second into a block, and number them all anew."""
    database = op.get_bind().dialect.name
    time = TIME[database]
    op.execute(
        f"CREATE TEMPORARY TABLE logged AS SELECT account_id, key_id, substr({time}, 1, 19) AS second, "
        f"count(*) AS requests, sum(CASE WHEN failure_class = 4 THEN 1 ELSE 0 END) AS client_errors, "
        f"sum(CASE WHEN failure_class = 5 THEN 1 ELSE 0 END) AS server_errors, "
        f"{ARRAY[database].format(f'{time}, {FIELDS}')} AS content "
        f"FROM requests GROUP BY account_id, key_id, substr({time}, 1, 19)"
    )
    op.execute(
        "INSERT INTO request_blocks (account_id, second, number, key_id, requests, client_errors, server_errors, "
        "content) SELECT account_id, second, sum(requests) OVER (ORDER BY account_id, second, key_id) - requests, "
        "key_id, requests, client_errors, server_errors, content FROM logged"
    )
    op.execute("DROP TABLE logged")
    for term, present in (("request_id", SENT), ("record", "record IS NOT NULL")):
        op.execute(
            "INSERT INTO request_terms (account_id, term, second, number) "
            f"SELECT DISTINCT old.account_id, old.{term}, b.second, b.number FROM requests AS old "
            "JOIN request_blocks AS b ON b.account_id = old.account_id AND b.key_id = old.key_id "
            f"AND b.second = substr({time.replace('answered_at', 'old.answered_at')}, 1, 19) "
            f"WHERE {present.replace('request_id', 'old.request_id').replace('record', 'old.record')} "
            "ON CONFLICT DO NOTHING"
        )


def create(name: str, key: tuple[str, ...], *items: sa.Column[object] | sa.Constraint) -> None:
    op.create_table(
        name,
        sa.Column("account_id", INTEGER, nullable=False),
        *items,
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f(f"{name}_ref_account_id")),
        sa.PrimaryKeyConstraint("account_id", *key, name=op.f(f"{name}_pk")),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
