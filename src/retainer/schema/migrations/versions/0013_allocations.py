"""The table `billings` becomes `allocations`, with its constraints and indexes."""

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import INSTANT, INTEGER

revision = "0013"
down_revision = "0012"

COLUMNS = "id, account_id, created_at, updated_at, invoice_line_id, time_entry_id, expense_id, milestone_id, is_live"
WORK = ("time_entry", "expense", "milestone")


def upgrade() -> None:
    references = {"invoice_line_id": "invoice_lines"} | {f"{work}_id": table_of(work) for work in WORK}
    op.create_table(
        "allocations",
        sa.Column("id", INTEGER, nullable=False),
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        *(sa.Column(name, INTEGER, nullable=name != "invoice_line_id") for name in references),
        sa.Column("is_live", INTEGER, nullable=True),
        *(
            sa.ForeignKeyConstraint(
                ["account_id", name],
                [f"{table}.account_id", f"{table}.id"],
                name=op.f(f"allocations_ref_account_id_{name}"),
            )
            for name, table in references.items()
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("allocations_ref_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("allocations_pk")),
        sa.UniqueConstraint("account_id", "id", name=op.f("allocations_unique_account_id_id")),
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    op.execute(f"INSERT INTO allocations ({COLUMNS}) SELECT {COLUMNS} FROM billings")
    op.execute("DELETE FROM sqlite_sequence WHERE name = 'allocations'")
    op.execute("UPDATE sqlite_sequence SET name = 'allocations' WHERE name = 'billings'")  # no id is assigned again
    op.drop_table("billings")
    op.create_index("allocations_by_account_id_invoice_line_id", "allocations", ["account_id", "invoice_line_id"])
    for work in WORK:
        columns = ["account_id", f"{work}_id", "is_live"]
        op.create_index(f"allocations_unique_{work}", "allocations", columns, unique=True)
    op.execute("UPDATE totals SET name = 'allocations' WHERE name = 'billings'")


def table_of(work: str) -> str:
    return {"time_entry": "time_entries", "expense": "expenses", "milestone": "milestones"}[work]
