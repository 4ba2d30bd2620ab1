"""Invoices of retainers that the daily job makes."""

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import TEXT

revision = "0031"
down_revision = "0030"
LOCKS = {"projects": "gets a column with a constant value and an empty one, which takes a moment"}


def upgrade() -> None:
    with op.batch_alter_table("projects", schema=None) as batch_op:
        batch_op.add_column(sa.Column("auto_invoice", TEXT, server_default="off", nullable=False))
        batch_op.add_column(sa.Column("auto_invoiced_month", TEXT, nullable=True))
