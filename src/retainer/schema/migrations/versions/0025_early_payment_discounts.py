"""Early-payment discounts."""

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import INSTANT, INTEGER, TEXT

revision = "0025"
down_revision = "0024"
LOCKS = {
    "payments": "gets columns without a value, and indexes, which read its rows",
    "projects": "is referred to by a new table, which takes a moment",
    "accounts": "is referred to by a new table, which takes a moment",
}


def upgrade() -> None:
    op.create_table(
        "discount_shares",
        sa.Column("id", INTEGER, nullable=False),
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("payment_id", INTEGER, nullable=False),
        sa.Column("project_id", INTEGER, nullable=True),
        sa.Column("currency", TEXT, nullable=False),
        sa.Column("amount", INTEGER, nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "payment_id"],
            ["payments.account_id", "payments.id"],
            name=op.f("discount_shares_ref_account_id_payment_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "project_id"],
            ["projects.account_id", "projects.id"],
            name=op.f("discount_shares_ref_account_id_project_id"),
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("discount_shares_ref_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("discount_shares_pk")),
        sa.UniqueConstraint("account_id", "id", name=op.f("discount_shares_unique_account_id_id")),
        info={"of_account": True, "announced": False, "parent": None, "named_by": ()},
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    with op.batch_alter_table("discount_shares", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("discount_shares_by_account_id_payment_id"), ["account_id", "payment_id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("discount_shares_by_account_id_project_id"), ["account_id", "project_id"], unique=False
        )

    with op.batch_alter_table("payments", schema=None) as batch_op:
        batch_op.add_column(sa.Column("payment_id", INTEGER, nullable=True))
        batch_op.add_column(sa.Column("net_amount", INTEGER, nullable=True))
        batch_op.add_column(sa.Column("tax_breakdown", TEXT, nullable=True))
        batch_op.drop_index(batch_op.f("payments_by_day"))
        batch_op.create_index(
            "payments_by_day",
            ["account_id", "paid_date", "id", "invoice_id", "client_id", "currency", "amount", "net_amount"],
            unique=False,
        )
        batch_op.create_index(
            "payments_by_payment_id",
            ["account_id", "payment_id"],
            unique=False,
            sqlite_where=sa.text("payment_id IS NOT NULL"),
            postgresql_where=sa.text("payment_id IS NOT NULL"),
        )
        batch_op.create_foreign_key(
            batch_op.f("payments_ref_account_id_payment_id"),
            "payments",
            ["account_id", "payment_id"],
            ["account_id", "id"],
        )
