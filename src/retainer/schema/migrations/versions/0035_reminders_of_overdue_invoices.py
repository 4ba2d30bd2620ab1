"""Reminders of overdue invoices."""

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import DAY, FLAG, INTEGER, TEXT

revision = "0035"
down_revision = "0034"
LOCKS = {
    "accounts": "gets a column with a constant value and an empty one, which takes a moment",
    **dict.fromkeys(["clients", "invoices"], "gets a column with a constant value, which takes a moment"),
    "messages": "gets an empty column and an index over rows that have it, which reads all messages once",
}


def upgrade() -> None:
    with op.batch_alter_table("accounts", schema=None) as batch_op:
        batch_op.add_column(sa.Column("reminder_stages", TEXT, server_default="[]", nullable=False))
        batch_op.add_column(sa.Column("reminders_from", DAY, nullable=True))
    for table in ("clients", "invoices"):
        with op.batch_alter_table(table, schema=None) as batch_op:
            batch_op.add_column(sa.Column("reminders", FLAG, server_default="1", nullable=False))
    is_reminder = sa.text("stage IS NOT NULL")
    with op.batch_alter_table("messages", schema=None) as batch_op:
        batch_op.add_column(sa.Column("stage", INTEGER, nullable=True))
        batch_op.create_index(
            "messages_once_by_stage",
            ["account_id", "record", "record_id", "stage"],
            unique=True,
            sqlite_where=is_reminder,
            postgresql_where=is_reminder,
        )
