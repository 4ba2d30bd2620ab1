"""The request log in blocks: the requests of a key in ten seconds are one row, which costs far less to write."""

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
ARRAY = {"sqlite": "json_array({})", "postgresql": "json_build_array({})"}
ALL = {"sqlite": "json_group_array({})", "postgresql": "json_agg({})"}
STORED = {"sqlite": "json(stored)", "postgresql": "stored"}
TERMS = {
    "request_id": "(substr(request_id, 1, 4) <> 'req_' OR length(request_id) <> 28)",
    "record": "record IS NOT NULL",
    "CAST(failure_class AS TEXT) || 'xx'": "failure_class IS NOT NULL",
}


def upgrade() -> None:
    create(
        "request_blocks",
        ("period", "number"),
        sa.Column("period", TEXT, nullable=False),
        sa.Column("number", INTEGER, nullable=False),
        sa.Column("key_id", INTEGER, nullable=False),
        sa.Column("requests", INTEGER, nullable=False),
        sa.Column("content", TEXT, nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "key_id"],
            ["api_keys.account_id", "api_keys.id"],
            name=op.f("request_blocks_ref_account_id_key_id"),
        ),
    )
    create(
        "request_terms",
        ("term", "period", "number"),
        sa.Column("term", TEXT, nullable=False),
        sa.Column("period", TEXT, nullable=False),
        sa.Column("number", INTEGER, nullable=False),
    )
    fill()
    op.create_index(
        "request_blocks_by_key_id", "request_blocks", ["account_id", "key_id", "period", "number", "requests"]
    )
    op.create_index("request_terms_by_period", "request_terms", ["account_id", "period"])
    op.drop_table("requests")


def fill() -> None:
    """Put the requests of a key in a period into a block, and number them all anew."""
    database = op.get_bind().dialect.name
    time, array, all_of = TIME[database], ARRAY[database], ALL[database]
    block, alike = "account_id, key_id, period", "method, operation, status, address"
    stored = array.format("substr(time, 19), request_id, path, duration_us / 1000.0, record")
    op.execute(
        f"CREATE TEMPORARY TABLE logged AS SELECT {block}, sum(requests) AS requests, "
        f"CAST({all_of.format(array.format(f'{alike}, {STORED[database]}'))} AS TEXT) AS content FROM ("
        f"SELECT {block}, {alike}, count(*) AS requests, {all_of.format(stored)} AS stored FROM ("
        f"SELECT requests.*, {time} AS time, substr({time}, 1, 18) AS period FROM requests) AS timed "
        f"GROUP BY {block}, {alike}) AS alike GROUP BY {block}"
    )
    op.execute(
        "INSERT INTO request_blocks (account_id, period, number, key_id, requests, content) SELECT account_id, period, "
        "sum(requests) OVER (ORDER BY account_id, period, key_id) - requests, key_id, requests, content FROM logged"
    )
    op.execute("DROP TABLE logged")
    for term, present in TERMS.items():
        op.execute(
            "INSERT INTO request_terms (account_id, term, period, number) "
            f"SELECT DISTINCT timed.account_id, {term}, blocks.period, blocks.number "
            f"FROM (SELECT requests.*, substr({time}, 1, 18) AS in_period FROM requests WHERE {present}) AS timed "
            "JOIN request_blocks AS blocks ON blocks.account_id = timed.account_id AND blocks.key_id = timed.key_id "
            "AND blocks.period = timed.in_period WHERE true ON CONFLICT DO NOTHING"
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
