"""Payments that offset a refund of another invoice."""

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import INTEGER

revision = "0021"
down_revision = "0020"
LOCKS = {
    "payments": "gets a column without a value and an index, which reads its rows",
    "invoices": "is referred to by the new column, which takes a moment",
}


def upgrade() -> None:
    with op.batch_alter_table("payments", schema=None) as batch_op:
        batch_op.add_column(sa.Column("offset_invoice_id", INTEGER, nullable=True))
        batch_op.create_foreign_key(
            batch_op.f("payments_ref_account_id_offset_invoice_id"),
            "invoices",
            ["account_id", "offset_invoice_id"],
            ["account_id", "id"],
        )
        batch_op.create_index(
            "payments_by_offset_invoice_id",
            ["account_id", "offset_invoice_id"],
            sqlite_where=sa.text("offset_invoice_id IS NOT NULL"),
            postgresql_where=sa.text("offset_invoice_id IS NOT NULL"),
        )
