"""Bank accounts by currency, and British ones."""

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import TEXT

revision = "0022"
down_revision = "0021"
LOCKS = {"accounts": "gets three columns with a constant or no value, which takes a moment"}


def upgrade() -> None:
    with op.batch_alter_table("accounts", schema=None) as batch_op:
        batch_op.add_column(sa.Column("sort_code", TEXT, nullable=True))
        batch_op.add_column(sa.Column("account_number", TEXT, nullable=True))
        batch_op.add_column(sa.Column("bank_accounts", TEXT, server_default="[]", nullable=False))
