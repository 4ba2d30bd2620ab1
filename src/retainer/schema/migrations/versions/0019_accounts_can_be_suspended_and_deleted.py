"""Accounts can be suspended and deleted."""

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import INSTANT, TEXT

revision = "0019"
down_revision = "0018"
LOCKS = {"accounts": "adds empty columns, and an index of suspended accounts"}


def upgrade() -> None:
    for name, kind in (("suspended_at", INSTANT), ("deletes_at", INSTANT), ("suspension_reason", TEXT)):
        op.add_column("accounts", sa.Column(name, kind, nullable=True))
    is_suspended = sa.text("suspended_at IS NOT NULL")
    op.create_index("accounts_suspended", "accounts", ["id"], sqlite_where=is_suspended, postgresql_where=is_suspended)
