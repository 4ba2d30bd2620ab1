"""quotes."""

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import DAY, INSTANT, INTEGER

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "quotes",
        sa.Column("id", INTEGER, nullable=False),
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("client_id", INTEGER, nullable=False),
        sa.Column("contact_id", INTEGER, nullable=True),
        sa.Column("project_id", INTEGER, nullable=True),
        sa.Column("converted_project_id", INTEGER, nullable=True),
        sa.Column("number", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("issue_date", DAY, nullable=False),
        sa.Column("valid_until", DAY, nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("notes", sa.Text(), nullable=True),
        sa.Column("terms", sa.Text(), nullable=True),
        sa.Column("decline_reason", sa.Text(), nullable=True),
        sa.Column("accepted_by", sa.Text(), nullable=True),
        sa.Column("subtotal", INTEGER, nullable=False),
        sa.Column("tax_total", INTEGER, nullable=False),
        sa.Column("total", INTEGER, nullable=False),
        sa.Column("tax_breakdown", sa.Text(), nullable=False),
        sa.Column("sent_at", INSTANT, nullable=True),
        sa.Column("accepted_at", INSTANT, nullable=True),
        sa.Column("declined_at", INSTANT, nullable=True),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("search", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "client_id"],
            ["clients.account_id", "clients.id"],
            name=op.f("quotes_ref_account_id_client_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "contact_id"],
            ["external_contacts.account_id", "external_contacts.id"],
            name=op.f("quotes_ref_account_id_contact_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "converted_project_id"],
            ["projects.account_id", "projects.id"],
            name=op.f("quotes_ref_account_id_converted_project_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "project_id"],
            ["projects.account_id", "projects.id"],
            name=op.f("quotes_ref_account_id_project_id"),
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("quotes_ref_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("quotes_pk")),
        sa.UniqueConstraint(
            "account_id", "converted_project_id", name=op.f("quotes_unique_account_id_converted_project_id")
        ),
        sa.UniqueConstraint("account_id", "external_id", name=op.f("quotes_unique_account_id_external_id")),
        sa.UniqueConstraint("account_id", "id", name=op.f("quotes_unique_account_id_id")),
        sa.UniqueConstraint("account_id", "number", name=op.f("quotes_unique_account_id_number")),
        info={"tenant": True},
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    with op.batch_alter_table("quotes", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("quotes_by_account_id_client_id_created_at_id"),
            ["account_id", "client_id", "created_at", "id"],
            unique=False,
        )
        batch_op.create_index(batch_op.f("quotes_by_account_id_contact_id"), ["account_id", "contact_id"], unique=False)
        batch_op.create_index(
            batch_op.f("quotes_by_account_id_created_at_id"), ["account_id", "created_at", "id"], unique=False
        )
        batch_op.create_index(batch_op.f("quotes_by_account_id_project_id"), ["account_id", "project_id"], unique=False)
        batch_op.create_index(
            batch_op.f("quotes_by_account_id_updated_at_id"), ["account_id", "updated_at", "id"], unique=False
        )

    op.create_table(
        "quote_lines",
        sa.Column("id", INTEGER, nullable=False),
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("quote_id", INTEGER, nullable=False),
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
        sa.ForeignKeyConstraint(
            ["account_id", "project_id"],
            ["projects.account_id", "projects.id"],
            name=op.f("quote_lines_ref_account_id_project_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "quote_id"],
            ["quotes.account_id", "quotes.id"],
            name=op.f("quote_lines_ref_account_id_quote_id"),
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("quote_lines_ref_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("quote_lines_pk")),
        sa.UniqueConstraint("account_id", "id", name=op.f("quote_lines_unique_account_id_id")),
        info={"tenant": True},
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    with op.batch_alter_table("quote_lines", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("quote_lines_by_account_id_quote_id_position"),
            ["account_id", "quote_id", "position"],
            unique=False,
        )

    with op.batch_alter_table("accounts", schema=None) as batch_op:
        batch_op.add_column(
            sa.Column("quote_number_pattern", sa.Text(), server_default="Q-{YYYY}-{0000}", nullable=False)
        )
