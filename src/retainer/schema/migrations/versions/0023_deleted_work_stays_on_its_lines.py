"""The ids of deleted work on the lines that once billed it."""

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import INTEGER

revision = "0023"
down_revision = "0022"
LOCKS = {"allocations": "gets a column without a value, which takes a moment"}


def upgrade() -> None:
    with op.batch_alter_table("allocations", schema=None) as batch_op:
        batch_op.add_column(sa.Column("deleted_work_id", INTEGER, nullable=True))
