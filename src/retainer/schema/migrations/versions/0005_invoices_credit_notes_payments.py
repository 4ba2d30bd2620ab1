"""Invoices with their lines, payments and credit notes; which work stands on them."""

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import DAY, INSTANT, INTEGER, NUMBERED

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    make_tables()
    change_tables()


def make_tables() -> None:
    op.create_table(
        "audit_entries",
        sa.Column("id", INTEGER, nullable=False),
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("audit_entries_ref_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("audit_entries_pk")),
        sa.UniqueConstraint("account_id", "id", name=op.f("audit_entries_unique_account_id_id")),
        info={"tenant": True},
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    with op.batch_alter_table("audit_entries", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("audit_entries_by_account_id_created_at_id"), ["account_id", "created_at", "id"], unique=False
        )

    op.create_table(
        "invoices",
        sa.Column("id", INTEGER, nullable=False),
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("client_id", INTEGER, nullable=False),
        sa.Column("project_id", INTEGER, nullable=True),
        sa.Column("contact_id", INTEGER, nullable=True),
        sa.Column("quote_id", INTEGER, nullable=True),
        sa.Column("number", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("issue_date", DAY, nullable=True),
        sa.Column("due_date", DAY, nullable=True),
        sa.Column("purchase_order", sa.Text(), nullable=True),
        sa.Column("subject", sa.Text(), nullable=True),
        sa.Column("notes", sa.Text(), nullable=True),
        sa.Column("terms", sa.Text(), nullable=True),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("subtotal", INTEGER, nullable=False),
        sa.Column("tax_total", INTEGER, nullable=False),
        sa.Column("total", INTEGER, nullable=False),
        sa.Column("tax_breakdown", sa.Text(), nullable=False),
        sa.Column("amount_paid", INTEGER, nullable=False),
        sa.Column("amount_credited", INTEGER, nullable=False),
        sa.Column("balance_due", INTEGER, nullable=False),
        sa.Column("client_snapshot", sa.Text(), nullable=True),
        sa.Column("sent_at", INSTANT, nullable=True),
        sa.Column("paid_at", INSTANT, nullable=True),
        sa.Column("voided_at", INSTANT, nullable=True),
        sa.Column("written_off_at", INSTANT, nullable=True),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("search", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["account_id", "client_id"],
            ["clients.account_id", "clients.id"],
            name=op.f("invoices_ref_account_id_client_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "contact_id"],
            ["external_contacts.account_id", "external_contacts.id"],
            name=op.f("invoices_ref_account_id_contact_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "project_id"],
            ["projects.account_id", "projects.id"],
            name=op.f("invoices_ref_account_id_project_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "quote_id"],
            ["quotes.account_id", "quotes.id"],
            name=op.f("invoices_ref_account_id_quote_id"),
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("invoices_ref_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("invoices_pk")),
        sa.UniqueConstraint("account_id", "external_id", name=op.f("invoices_unique_account_id_external_id")),
        sa.UniqueConstraint("account_id", "id", name=op.f("invoices_unique_account_id_id")),
        sa.UniqueConstraint("account_id", "number", name=op.f("invoices_unique_account_id_number")),
        info={"tenant": True},
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    with op.batch_alter_table("invoices", schema=None) as batch_op:
        batch_op.create_index("invoices_unique_quote_id", ["account_id", "quote_id"], unique=True)
        batch_op.create_index(
            batch_op.f("invoices_by_account_id_client_id_created_at_id"),
            ["account_id", "client_id", "created_at", "id"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("invoices_by_account_id_contact_id"), ["account_id", "contact_id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("invoices_by_account_id_created_at_id"), ["account_id", "created_at", "id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("invoices_by_account_id_issue_date_id"), ["account_id", "issue_date", "id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("invoices_by_account_id_project_id"), ["account_id", "project_id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("invoices_by_account_id_status_due_date"), ["account_id", "status", "due_date"], unique=False
        )
        batch_op.create_index(
            batch_op.f("invoices_by_account_id_updated_at_id"), ["account_id", "updated_at", "id"], unique=False
        )

    op.create_table(
        "credit_notes",
        sa.Column("id", INTEGER, nullable=False),
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("invoice_id", INTEGER, nullable=False),
        sa.Column("client_id", INTEGER, nullable=False),
        sa.Column("number", sa.Text(), nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("issue_date", DAY, nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("lines", sa.Text(), nullable=False),
        sa.Column("subtotal", INTEGER, nullable=False),
        sa.Column("tax_total", INTEGER, nullable=False),
        sa.Column("total", INTEGER, nullable=False),
        sa.Column("tax_breakdown", sa.Text(), nullable=False),
        sa.Column("applied_amount", INTEGER, nullable=False),
        sa.Column("refundable_amount", INTEGER, nullable=False),
        sa.Column("search", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "client_id"],
            ["clients.account_id", "clients.id"],
            name=op.f("credit_notes_ref_account_id_client_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "invoice_id"],
            ["invoices.account_id", "invoices.id"],
            name=op.f("credit_notes_ref_account_id_invoice_id"),
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("credit_notes_ref_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("credit_notes_pk")),
        sa.UniqueConstraint("account_id", "id", name=op.f("credit_notes_unique_account_id_id")),
        sa.UniqueConstraint("account_id", "number", name=op.f("credit_notes_unique_account_id_number")),
        info={"tenant": True},
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    with op.batch_alter_table("credit_notes", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("credit_notes_by_account_id_client_id_created_at_id"),
            ["account_id", "client_id", "created_at", "id"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("credit_notes_by_account_id_created_at_id"), ["account_id", "created_at", "id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("credit_notes_by_account_id_invoice_id"), ["account_id", "invoice_id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("credit_notes_by_account_id_issue_date"), ["account_id", "issue_date"], unique=False
        )
        batch_op.create_index(
            batch_op.f("credit_notes_by_account_id_updated_at_id"), ["account_id", "updated_at", "id"], unique=False
        )

    op.create_table(
        "invoice_lines",
        sa.Column("id", INTEGER, nullable=False),
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("invoice_id", INTEGER, nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("quantity", sa.Text(), nullable=False),
        sa.Column("unit", sa.Text(), nullable=True),
        sa.Column("unit_price", sa.Text(), nullable=False),
        sa.Column("discount_percent", sa.Text(), nullable=False),
        sa.Column("tax_rate", sa.Text(), nullable=False),
        sa.Column("project_id", INTEGER, nullable=True),
        sa.Column("amount", INTEGER, nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("position", INTEGER, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "invoice_id"],
            ["invoices.account_id", "invoices.id"],
            name=op.f("invoice_lines_ref_account_id_invoice_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "project_id"],
            ["projects.account_id", "projects.id"],
            name=op.f("invoice_lines_ref_account_id_project_id"),
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("invoice_lines_ref_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("invoice_lines_pk")),
        sa.UniqueConstraint("account_id", "id", name=op.f("invoice_lines_unique_account_id_id")),
        info={"tenant": True},
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    with op.batch_alter_table("invoice_lines", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("invoice_lines_by_account_id_invoice_id_position"),
            ["account_id", "invoice_id", "position"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("invoice_lines_by_account_id_project_id"), ["account_id", "project_id"], unique=False
        )

    op.create_table(
        "payments",
        sa.Column("id", INTEGER, nullable=False),
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("invoice_id", INTEGER, nullable=False),
        sa.Column("amount", INTEGER, nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("paid_date", DAY, nullable=False),
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("reference", sa.Text(), nullable=True),
        sa.Column("notes", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["account_id", "invoice_id"],
            ["invoices.account_id", "invoices.id"],
            name=op.f("payments_ref_account_id_invoice_id"),
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("payments_ref_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("payments_pk")),
        sa.UniqueConstraint("account_id", "id", name=op.f("payments_unique_account_id_id")),
        info={"tenant": True},
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    with op.batch_alter_table("payments", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("payments_by_account_id_paid_date"), ["account_id", "paid_date"], unique=False)
        batch_op.create_index("payments_unique_reference", ["account_id", "invoice_id", "reference"], unique=True)

    op.create_table(
        "credit_note_shares",
        sa.Column("id", INTEGER, nullable=False),
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("credit_note_id", INTEGER, nullable=False),
        sa.Column("project_id", INTEGER, nullable=True),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("amount", INTEGER, nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "credit_note_id"],
            ["credit_notes.account_id", "credit_notes.id"],
            name=op.f("credit_note_shares_ref_account_id_credit_note_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "project_id"],
            ["projects.account_id", "projects.id"],
            name=op.f("credit_note_shares_ref_account_id_project_id"),
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("credit_note_shares_ref_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("credit_note_shares_pk")),
        sa.UniqueConstraint("account_id", "id", name=op.f("credit_note_shares_unique_account_id_id")),
        info={"tenant": True},
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    with op.batch_alter_table("credit_note_shares", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("credit_note_shares_by_account_id_credit_note_id"),
            ["account_id", "credit_note_id"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("credit_note_shares_by_account_id_project_id"), ["account_id", "project_id"], unique=False
        )

    op.create_table(
        "billings",
        sa.Column("id", INTEGER, nullable=False),
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("invoice_line_id", INTEGER, nullable=False),
        sa.Column("time_entry_id", INTEGER, nullable=True),
        sa.Column("expense_id", INTEGER, nullable=True),
        sa.Column("milestone_id", INTEGER, nullable=True),
        sa.Column("is_live", INTEGER, nullable=True),
        sa.ForeignKeyConstraint(
            ["account_id", "expense_id"],
            ["expenses.account_id", "expenses.id"],
            name=op.f("billings_ref_account_id_expense_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "invoice_line_id"],
            ["invoice_lines.account_id", "invoice_lines.id"],
            name=op.f("billings_ref_account_id_invoice_line_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "milestone_id"],
            ["milestones.account_id", "milestones.id"],
            name=op.f("billings_ref_account_id_milestone_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "time_entry_id"],
            ["time_entries.account_id", "time_entries.id"],
            name=op.f("billings_ref_account_id_time_entry_id"),
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("billings_ref_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("billings_pk")),
        sa.UniqueConstraint("account_id", "id", name=op.f("billings_unique_account_id_id")),
        info={"tenant": True},
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    with op.batch_alter_table("billings", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("billings_by_account_id_invoice_line_id"), ["account_id", "invoice_line_id"], unique=False
        )
        batch_op.create_index("billings_unique_expense", ["account_id", "expense_id", "is_live"], unique=True)
        batch_op.create_index("billings_unique_milestone", ["account_id", "milestone_id", "is_live"], unique=True)
        batch_op.create_index("billings_unique_time_entry", ["account_id", "time_entry_id", "is_live"], unique=True)


def change_tables() -> None:
    with op.batch_alter_table("accounts", schema=None) as batch_op:
        batch_op.add_column(
            sa.Column("invoice_number_pattern", sa.Text(), server_default="INV-{YYYY}-{0000}", nullable=False)
        )
        batch_op.add_column(
            sa.Column("credit_note_number_pattern", sa.Text(), server_default="CN-{YYYY}-{0000}", nullable=False)
        )

    with op.batch_alter_table("expenses", table_kwargs=NUMBERED) as batch_op:
        batch_op.add_column(sa.Column("invoice_id", INTEGER, nullable=True))
        batch_op.add_column(sa.Column("invoice_line_id", INTEGER, nullable=True))
        batch_op.create_index(
            "expenses_by_invoice_id",
            ["account_id", "invoice_id"],
            unique=False,
            sqlite_where=sa.text("invoice_id IS NOT NULL"),
            postgresql_where=sa.text("invoice_id IS NOT NULL"),
        )
        batch_op.create_index(
            "expenses_by_invoice_line_id",
            ["account_id", "invoice_line_id"],
            unique=False,
            sqlite_where=sa.text("invoice_line_id IS NOT NULL"),
            postgresql_where=sa.text("invoice_line_id IS NOT NULL"),
        )
        batch_op.create_foreign_key(
            batch_op.f("expenses_ref_account_id_invoice_id"),
            "invoices",
            ["account_id", "invoice_id"],
            ["account_id", "id"],
        )
        batch_op.create_foreign_key(
            batch_op.f("expenses_ref_account_id_invoice_line_id"),
            "invoice_lines",
            ["account_id", "invoice_line_id"],
            ["account_id", "id"],
        )

    with op.batch_alter_table("projects", schema=None) as batch_op:
        batch_op.add_column(sa.Column("invoiced_amount", INTEGER, server_default="0", nullable=False))

    with op.batch_alter_table("time_entries", table_kwargs=NUMBERED) as batch_op:
        batch_op.add_column(sa.Column("invoice_id", INTEGER, nullable=True))
        batch_op.add_column(sa.Column("invoice_line_id", INTEGER, nullable=True))
        batch_op.create_index(
            "time_entries_by_invoice_id",
            ["account_id", "invoice_id"],
            unique=False,
            sqlite_where=sa.text("invoice_id IS NOT NULL"),
            postgresql_where=sa.text("invoice_id IS NOT NULL"),
        )
        batch_op.create_index(
            "time_entries_by_invoice_line_id",
            ["account_id", "invoice_line_id"],
            unique=False,
            sqlite_where=sa.text("invoice_line_id IS NOT NULL"),
            postgresql_where=sa.text("invoice_line_id IS NOT NULL"),
        )
        batch_op.create_foreign_key(
            batch_op.f("time_entries_ref_account_id_invoice_id"),
            "invoices",
            ["account_id", "invoice_id"],
            ["account_id", "id"],
        )
        batch_op.create_foreign_key(
            batch_op.f("time_entries_ref_account_id_invoice_line_id"),
            "invoice_lines",
            ["account_id", "invoice_line_id"],
            ["account_id", "id"],
        )
