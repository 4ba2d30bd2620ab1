"""How many times a job was leased since its last progress."""

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import INTEGER

revision = "0034"
down_revision = "0033"
LOCKS = {"jobs": "gets a column, which takes a moment"}


def upgrade() -> None:
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.add_column(sa.Column("attempts", INTEGER, server_default="0", nullable=False))
