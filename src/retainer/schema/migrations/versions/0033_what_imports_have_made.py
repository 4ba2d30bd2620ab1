"""What imports have made, so that they can be undone."""

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import INTEGER, TEXT

revision = "0033"
down_revision = "0032"
LOCKS = dict.fromkeys(["jobs", "accounts"], "is referred to by a new table, which takes a moment")


def upgrade() -> None:
    op.create_table(
        "job_records",
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("job_id", INTEGER, nullable=False),
        sa.Column("record", TEXT, nullable=False),
        sa.Column("record_id", INTEGER, nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "job_id"], ["jobs.account_id", "jobs.id"], name=op.f("job_records_ref_account_id_job_id")
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("job_records_ref_account_id")),
        sa.PrimaryKeyConstraint("account_id", "job_id", "record", "record_id", name=op.f("job_records_pk")),
        info={"of_account": True},
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
