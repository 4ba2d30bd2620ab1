"""The facts of issued documents, in versions, and the days of service of invoices."""

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import DAY, INSTANT, INTEGER, TEXT

revision = "0020"
down_revision = "0019"
REFERENCE = "is referred to by the new table, which takes a moment"
LOCKS = {
    "accounts": REFERENCE,
    "quotes": REFERENCE,
    "credit_notes": REFERENCE,
    "invoices": "gets two columns without a value, which takes a moment",
}


def upgrade() -> None:
    op.create_table(
        "document_versions",
        sa.Column("id", INTEGER, nullable=False),
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("invoice_id", INTEGER, nullable=True),
        sa.Column("credit_note_id", INTEGER, nullable=True),
        sa.Column("quote_id", INTEGER, nullable=True),
        sa.Column("version", INTEGER, nullable=False),
        sa.Column("facts", TEXT, nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "credit_note_id"],
            ["credit_notes.account_id", "credit_notes.id"],
            name=op.f("document_versions_ref_account_id_credit_note_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "invoice_id"],
            ["invoices.account_id", "invoices.id"],
            name=op.f("document_versions_ref_account_id_invoice_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "quote_id"],
            ["quotes.account_id", "quotes.id"],
            name=op.f("document_versions_ref_account_id_quote_id"),
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("document_versions_ref_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("document_versions_pk")),
        sa.UniqueConstraint("account_id", "id", name=op.f("document_versions_unique_account_id_id")),
        info={"of_account": True, "announced": False, "parent": None, "named_by": ()},
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    with op.batch_alter_table("document_versions", schema=None) as batch_op:
        batch_op.create_index(
            "document_versions_unique_credit_note", ["account_id", "credit_note_id", "version"], unique=True
        )
        batch_op.create_index("document_versions_unique_invoice", ["account_id", "invoice_id", "version"], unique=True)
        batch_op.create_index("document_versions_unique_quote", ["account_id", "quote_id", "version"], unique=True)

    with op.batch_alter_table("invoices", schema=None) as batch_op:
        batch_op.add_column(sa.Column("service_from", DAY, nullable=True))
        batch_op.add_column(sa.Column("service_to", DAY, nullable=True))
