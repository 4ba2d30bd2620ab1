"""Reports: summaries of months, which the next step replaces, and since when nothing of an invoice is outstanding."""

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import DAY, INTEGER

revision = "0007"
down_revision = "0006"

SETTLED = """
UPDATE invoices SET settled_date = CASE status
    WHEN 'void' THEN issue_date
    WHEN 'sent' THEN CAST('9999-12-31' AS {day})
    WHEN 'partially_paid' THEN CAST('9999-12-31' AS {day})
    WHEN 'written_off' THEN CAST(substr(CAST(written_off_at AS TEXT), 1, 10) AS {day})
    ELSE (SELECT max(day) FROM (
        SELECT invoices.issue_date AS day
        UNION ALL SELECT paid_date FROM payments
            WHERE payments.account_id = invoices.account_id AND payments.invoice_id = invoices.id
        UNION ALL SELECT issue_date FROM credit_notes
            WHERE credit_notes.account_id = invoices.account_id AND credit_notes.invoice_id = invoices.id
    ) AS days) END
WHERE status <> 'draft'
"""


def upgrade() -> None:
    make_tables()
    change_tables()
    op.execute(SETTLED.format(day="DATE" if op.get_bind().dialect.name == "postgresql" else "TEXT"))


def make_tables() -> None:
    op.create_table(
        "client_months",
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("month", sa.Text(), nullable=False),
        sa.Column("client_id", INTEGER, nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("invoice_count", INTEGER, server_default="0", nullable=False),
        sa.Column("invoiced", INTEGER, server_default="0", nullable=False),
        sa.Column("invoiced_tax", INTEGER, server_default="0", nullable=False),
        sa.Column("credited", INTEGER, server_default="0", nullable=False),
        sa.Column("credited_tax", INTEGER, server_default="0", nullable=False),
        sa.Column("collected", INTEGER, server_default="0", nullable=False),
        sa.Column("expenses", INTEGER, server_default="0", nullable=False),
        sa.Column("billable_expenses", INTEGER, server_default="0", nullable=False),
        sa.Column("billed_expenses", INTEGER, server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("client_months_ref_account_id")),
        sa.PrimaryKeyConstraint("account_id", "month", "client_id", "currency", name=op.f("client_months_pk")),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_table(
        "money_months",
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("month", sa.Text(), nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("invoice_count", INTEGER, server_default="0", nullable=False),
        sa.Column("invoiced", INTEGER, server_default="0", nullable=False),
        sa.Column("invoiced_tax", INTEGER, server_default="0", nullable=False),
        sa.Column("credited", INTEGER, server_default="0", nullable=False),
        sa.Column("credited_tax", INTEGER, server_default="0", nullable=False),
        sa.Column("collected", INTEGER, server_default="0", nullable=False),
        sa.Column("expenses", INTEGER, server_default="0", nullable=False),
        sa.Column("billable_expenses", INTEGER, server_default="0", nullable=False),
        sa.Column("billed_expenses", INTEGER, server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("money_months_ref_account_id")),
        sa.PrimaryKeyConstraint("account_id", "month", "currency", name=op.f("money_months_pk")),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_table(
        "project_months",
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("month", sa.Text(), nullable=False),
        sa.Column("client_id", INTEGER, nullable=False),
        sa.Column("project_id", INTEGER, nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("tracked_minutes", INTEGER, server_default="0", nullable=False),
        sa.Column("billable_minutes", INTEGER, server_default="0", nullable=False),
        sa.Column("billable_value", INTEGER, server_default="0", nullable=False),
        sa.Column("billed_value", INTEGER, server_default="0", nullable=False),
        sa.Column("labour_cost", INTEGER, server_default="0", nullable=False),
        sa.Column("missing_cost_rate_minutes", INTEGER, server_default="0", nullable=False),
        sa.Column("invoiced", INTEGER, server_default="0", nullable=False),
        sa.Column("credited", INTEGER, server_default="0", nullable=False),
        sa.Column("expenses", INTEGER, server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("project_months_ref_account_id")),
        sa.PrimaryKeyConstraint(
            "account_id", "month", "client_id", "project_id", "currency", name=op.f("project_months_pk")
        ),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_table(
        "user_months",
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("month", sa.Text(), nullable=False),
        sa.Column("user_id", INTEGER, nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("tracked_minutes", INTEGER, server_default="0", nullable=False),
        sa.Column("billable_minutes", INTEGER, server_default="0", nullable=False),
        sa.Column("billable_value", INTEGER, server_default="0", nullable=False),
        sa.Column("billed_value", INTEGER, server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("user_months_ref_account_id")),
        sa.PrimaryKeyConstraint("account_id", "month", "user_id", "currency", name=op.f("user_months_pk")),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )


def change_tables() -> None:
    with op.batch_alter_table("invoices", schema=None) as batch_op:
        batch_op.add_column(sa.Column("settled_date", DAY, nullable=True))
        outstanding = ["client_id", "currency", "due_date", "total", "balance_due"]
        batch_op.create_index(
            "invoices_by_settled_date", ["account_id", "settled_date", "issue_date", "id", *outstanding], unique=False
        )

    with op.batch_alter_table("time_entries", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("time_entries_by_account_id_date_id"))
        summed = ["user_id", "client_id", "project_id", "currency", "billable", "duration_minutes", "amount"]
        batch_op.create_index(
            "time_entries_by_day", ["account_id", "date", "id", *summed, "invoice_line_id"], unique=False
        )

    with op.batch_alter_table("payments", schema=None) as batch_op:
        batch_op.create_index("payments_by_invoice", ["account_id", "invoice_id", "paid_date", "amount"], unique=False)

    with op.batch_alter_table("credit_notes", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("credit_notes_by_account_id_invoice_id"))
        batch_op.create_index(
            "credit_notes_by_invoice", ["account_id", "invoice_id", "issue_date", "total"], unique=False
        )

    with op.batch_alter_table("quotes", schema=None) as batch_op:
        batch_op.create_index(
            "quotes_by_moments", ["account_id", "sent_at", "accepted_at", "declined_at", "client_id"], unique=False
        )

    with op.batch_alter_table("tasks", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("tasks_by_account_id_status_due_date"), ["account_id", "status", "due_date"], unique=False
        )
        batch_op.create_index(
            "tasks_by_completed_at",
            ["account_id", "completed_at"],
            unique=False,
            sqlite_where=sa.text("completed_at IS NOT NULL"),
            postgresql_where=sa.text("completed_at IS NOT NULL"),
        )

    with op.batch_alter_table("tickets", schema=None) as batch_op:
        batch_op.create_index(
            "tickets_by_resolved_at",
            ["account_id", "resolved_at"],
            unique=False,
            sqlite_where=sa.text("resolved_at IS NOT NULL"),
            postgresql_where=sa.text("resolved_at IS NOT NULL"),
        )
