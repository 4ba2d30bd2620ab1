"""The request log, and how many requests keys have made in each hour."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import INSTANT, INTEGER, TEXT

revision = "0015"
down_revision = "0014"
REFERENCES = "lets new tables refer to it"
LOCKS = {"accounts": REFERENCES, "api_keys": REFERENCES}

SUMS = ("requests", "client_errors", "server_errors", "limited")

SPARSE = {
    "request_id": "(substr(request_id, 1, 4) <> 'req_' OR length(request_id) <> 28)",
    "failure_class": "failure_class IS NOT NULL",
    "record": "record IS NOT NULL",
}


def upgrade() -> None:
    create(
        "requests",
        ("answered_at", "number"),
        sa.Column("answered_at", INSTANT, nullable=False),
        sa.Column("number", INTEGER, nullable=False),
        sa.Column("key_id", INTEGER, nullable=False),
        sa.Column("request_id", TEXT, nullable=False),
        sa.Column("method", TEXT, nullable=False),
        sa.Column("path", TEXT, nullable=False),
        sa.Column("operation", TEXT, nullable=True),
        sa.Column("status", INTEGER, nullable=False),
        sa.Column("failure_class", INTEGER, nullable=True),
        sa.Column("duration_us", INTEGER, nullable=False),
        sa.Column("address", TEXT, nullable=True),
        sa.Column("record", TEXT, nullable=True),
    )
    op.create_index("requests_by_key_id", "requests", ["account_id", "key_id", "answered_at", "number"])
    for name, present in SPARSE.items():
        op.create_index(
            f"requests_by_{name}",
            "requests",
            ["account_id", name, "answered_at", "number"],
            sqlite_where=sa.text(present),
            postgresql_where=sa.text(present),
        )
    create(
        "request_hours",
        ("key_id", "hour"),
        sa.Column("key_id", INTEGER, nullable=False),
        sa.Column("hour", TEXT, nullable=False),
        *(sa.Column(name, INTEGER, nullable=False) for name in SUMS),
        sa.Column("busiest_minute", INTEGER, server_default="0", nullable=False),
    )
    create(
        "operation_hours",
        ("key_id", "operation", "hour"),
        sa.Column("key_id", INTEGER, nullable=False),
        sa.Column("operation", TEXT, nullable=False),
        sa.Column("hour", TEXT, nullable=False),
        *(sa.Column(name, INTEGER, nullable=False) for name in SUMS),
    )
    op.create_index(
        op.f("operation_hours_by_account_id_operation_key_id_hour"),
        "operation_hours",
        ["account_id", "operation", "key_id", "hour"],
    )


def create(name: str, key: tuple[str, ...], *columns: sa.Column[Any]) -> None:
    key_names = [f"{name}_ref_account_id_key_id", f"{name}_ref_account_id"]
    op.create_table(
        name,
        sa.Column("account_id", INTEGER, nullable=False),
        *columns,
        sa.ForeignKeyConstraint(
            ["account_id", "key_id"], ["api_keys.account_id", "api_keys.id"], name=op.f(key_names[0])
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f(key_names[1])),
        sa.PrimaryKeyConstraint("account_id", *key, name=op.f(f"{name}_pk")),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
