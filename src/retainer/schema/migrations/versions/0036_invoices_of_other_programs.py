"""Invoices that other programs have issued."""

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import TEXT

revision = "0036"
down_revision = "0035"
LOCKS = {"invoices": "gets a column without a value, which takes a moment"}


def upgrade() -> None:
    with op.batch_alter_table("invoices", schema=None) as batch_op:
        batch_op.add_column(sa.Column("imported_from", TEXT, nullable=True))
