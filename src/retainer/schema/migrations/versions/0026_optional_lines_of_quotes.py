"""Optional lines of quotes."""

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import FLAG

revision = "0026"
down_revision = "0025"
LOCKS = {"quote_lines": "gets a column with a constant value, which takes a moment"}


def upgrade() -> None:
    with op.batch_alter_table("quote_lines", schema=None) as batch_op:
        batch_op.add_column(sa.Column("is_optional", FLAG, server_default="0", nullable=False))
