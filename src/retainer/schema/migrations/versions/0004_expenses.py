"""expenses."""

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import DAY, INSTANT, INTEGER

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "expenses",
        sa.Column("id", INTEGER, nullable=False),
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("client_id", INTEGER, nullable=True),
        sa.Column("project_id", INTEGER, nullable=True),
        sa.Column("user_id", INTEGER, nullable=False),
        sa.Column("date", DAY, nullable=False),
        sa.Column("category", sa.Text(), nullable=False),
        sa.Column("vendor", sa.Text(), nullable=True),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("amount", INTEGER, nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("tax_rate", sa.Text(), nullable=False),
        sa.Column("amount_includes_tax", sa.Boolean().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("net_amount", INTEGER, nullable=False),
        sa.Column("billable", sa.Boolean().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("markup_percent", sa.Text(), nullable=False),
        sa.Column("billable_amount", INTEGER, nullable=False),
        sa.Column("reimbursable", sa.Boolean().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("receipt_url", sa.Text(), nullable=True),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("category_folded", sa.Text(), nullable=False),
        sa.Column("search", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["account_id", "client_id"],
            ["clients.account_id", "clients.id"],
            name=op.f("expenses_ref_account_id_client_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "project_id"],
            ["projects.account_id", "projects.id"],
            name=op.f("expenses_ref_account_id_project_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "user_id"], ["users.account_id", "users.id"], name=op.f("expenses_ref_account_id_user_id")
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("expenses_ref_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("expenses_pk")),
        sa.UniqueConstraint("account_id", "external_id", name=op.f("expenses_unique_account_id_external_id")),
        sa.UniqueConstraint("account_id", "id", name=op.f("expenses_unique_account_id_id")),
        info={"tenant": True},
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    with op.batch_alter_table("expenses", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("expenses_by_account_id_client_id_date_id"),
            ["account_id", "client_id", "date", "id"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("expenses_by_account_id_created_at_id"), ["account_id", "created_at", "id"], unique=False
        )
        batch_op.create_index(batch_op.f("expenses_by_account_id_date_id"), ["account_id", "date", "id"], unique=False)
        batch_op.create_index(
            batch_op.f("expenses_by_account_id_project_id_date_id"),
            ["account_id", "project_id", "date", "id"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("expenses_by_account_id_updated_at_id"), ["account_id", "updated_at", "id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("expenses_by_account_id_user_id_date_id"), ["account_id", "user_id", "date", "id"], unique=False
        )
