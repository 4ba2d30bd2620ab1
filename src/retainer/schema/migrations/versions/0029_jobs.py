"""Jobs: work that outlives the request that caused it, and work that the clock starts."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import FLAG, INSTANT, INTEGER, TEXT

revision = "0029"
down_revision = "0028"
LOCKS = dict.fromkeys(["users", "accounts"], "is referred to by a new table, which takes a moment")
IS_OPEN, IS_DAILY = sa.text("next_step_at IS NOT NULL"), sa.text("kind = 'daily'")


def upgrade() -> None:
    op.create_table(
        "jobs",
        *(sa.Column(name, INTEGER, nullable=False) for name in ("id", "account_id")),
        *(sa.Column(name, INSTANT, nullable=False) for name in ("created_at", "updated_at")),
        *(sa.Column(name, TEXT, nullable=False) for name in ("kind", "title", "status")),
        sa.Column("user_id", INTEGER, nullable=True),
        sa.Column("options", TEXT, nullable=False),
        sa.Column("is_dry_run", FLAG, nullable=False),
        *(sa.Column(name, INTEGER, server_default="0", nullable=False) for name in ("position", "done", "refused")),
        sa.Column("total", INTEGER, nullable=True),
        sa.Column("counts", TEXT, nullable=False),
        sa.Column("message", TEXT, nullable=True),
        *(sa.Column(name, INSTANT, nullable=True) for name in ("next_step_at", "ended_at")),
        reference("jobs", "user_id", "users"),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("jobs_ref_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("jobs_pk")),
        sa.UniqueConstraint("account_id", "id", name=op.f("jobs_unique_account_id_id")).ddl_if(dialect="sqlite"),
        info={"of_account": True},
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("jobs_by_account_id_created_at_id"), ["account_id", "created_at", "id"])
        batch_op.create_index(
            "jobs_daily", ["account_id", "kind"], unique=True, sqlite_where=IS_DAILY, postgresql_where=IS_DAILY
        )
        batch_op.create_index("jobs_due", ["next_step_at"], sqlite_where=IS_OPEN, postgresql_where=IS_OPEN)
    create_part(
        "job_refusals",
        sa.Column("position", INTEGER, nullable=False),
        *(sa.Column(name, TEXT, nullable=False) for name in ("name", "message")),
    )
    create_part("job_pieces", sa.Column("content", sa.LargeBinary(), nullable=False))


def create_part(table: str, *columns: sa.Column[Any]) -> None:
    """Create a table whose rows belong to a job and are numbered."""
    op.create_table(
        table,
        *(sa.Column(name, INTEGER, nullable=False) for name in ("account_id", "job_id", "number")),
        *columns,
        reference(table, "job_id", "jobs"),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f(f"{table}_ref_account_id")),
        sa.PrimaryKeyConstraint("account_id", "job_id", "number", name=op.f(f"{table}_pk")),
        info={"of_account": True},
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )


def reference(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"{table}_ref_account_id_{column}")
    return sa.ForeignKeyConstraint(["account_id", column], [f"{target}.account_id", f"{target}.id"], name=name)
