"""Time and expenses that were billed outside of Retainer."""

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import FLAG

revision = "0028"
down_revision = "0027"
LOCKS = {
    "time_entries": "gets a column with a constant value, and a new index of unbilled ones, which reads its rows",
    "expenses": "gets a column with a constant value, and a new index of unbilled ones, which reads its rows",
}
INDEXES = {
    "time_entries": ("billable", "date", "id", "project_id", "amount", "currency"),
    "expenses": ("billable", "client_id", "project_id", "currency", "date", "billable_amount"),
}


def upgrade() -> None:
    is_unbilled = sa.and_(
        sa.column("invoice_line_id").is_(None), sa.column("billable").is_(True), sa.column("is_settled").is_(False)
    )
    for table, columns in INDEXES.items():
        with op.batch_alter_table(table, schema=None) as batch_op:
            batch_op.add_column(sa.Column("is_settled", FLAG, server_default="0", nullable=False))
        op.drop_index(f"{table}_unbilled", table)
        op.create_index(
            f"{table}_unbilled", table, ["account_id", *columns], sqlite_where=is_unbilled, postgresql_where=is_unbilled
        )
