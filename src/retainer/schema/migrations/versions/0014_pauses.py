"""A table of what must not run beside requests until an operator resumes it."""

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import INSTANT, TEXT

revision = "0014"
down_revision = "0013"
LOCKS: dict[str, str] = {}


def upgrade() -> None:
    op.create_table(
        "pauses",
        sa.Column("name", TEXT, nullable=False),
        sa.Column("since", INSTANT, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pauses_pk")),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
