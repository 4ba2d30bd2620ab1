"""Accounts, users, keys, clients, contacts and tags."""

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import DAY, INSTANT, INTEGER

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "accounts",
        sa.Column("id", INTEGER, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("plan", sa.Text(), nullable=False),
        sa.Column("trial_ends_at", INSTANT, nullable=True),
        sa.Column("api_enabled", sa.Boolean().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("timezone", sa.Text(), nullable=False),
        sa.Column("hourly_rate", INTEGER, nullable=True),
        sa.Column("tax_rate", sa.Text(), nullable=False),
        sa.Column("payment_terms_days", INTEGER, nullable=False),
        sa.Column("client_number_pattern", sa.Text(), nullable=False),
        sa.Column("working_weekdays", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("accounts_pk")),
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    op.create_table(
        "clients",
        sa.Column("id", INTEGER, nullable=False),
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("number", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("email", sa.Text(), nullable=True),
        sa.Column("invoice_email", sa.Text(), nullable=True),
        sa.Column("phone", sa.Text(), nullable=True),
        sa.Column("website", sa.Text(), nullable=True),
        sa.Column("address_line1", sa.Text(), nullable=True),
        sa.Column("address_line2", sa.Text(), nullable=True),
        sa.Column("city", sa.Text(), nullable=True),
        sa.Column("region", sa.Text(), nullable=True),
        sa.Column("postal_code", sa.Text(), nullable=True),
        sa.Column("country", sa.Text(), nullable=True),
        sa.Column("vat_number", sa.Text(), nullable=True),
        sa.Column("registration_number", sa.Text(), nullable=True),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("hourly_rate", INTEGER, nullable=True),
        sa.Column("tax_rate", sa.Text(), nullable=True),
        sa.Column("payment_terms_days", INTEGER, nullable=False),
        sa.Column("notes", sa.Text(), nullable=True),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("name_folded", sa.Text(), nullable=False),
        sa.Column("search", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("clients_ref_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("clients_pk")),
        sa.UniqueConstraint("account_id", "external_id", name=op.f("clients_unique_account_id_external_id")),
        sa.UniqueConstraint("account_id", "id", name=op.f("clients_unique_account_id_id")),
        sa.UniqueConstraint("account_id", "number", name=op.f("clients_unique_account_id_number")),
        info={"tenant": True},
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    with op.batch_alter_table("clients", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("clients_by_account_id_created_at_id"), ["account_id", "created_at", "id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("clients_by_account_id_name_folded_id"), ["account_id", "name_folded", "id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("clients_by_account_id_updated_at_id"), ["account_id", "updated_at", "id"], unique=False
        )

    op.create_table(
        "series",
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("last", INTEGER, nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("series_ref_account_id")),
        sa.PrimaryKeyConstraint("account_id", "name", name=op.f("series_pk")),
        info={"tenant": True},
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_table(
        "tags",
        sa.Column("id", INTEGER, nullable=False),
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_folded", sa.Text(), nullable=False),
        sa.Column("color", sa.Text(), nullable=True),
        sa.Column("search", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("tags_ref_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("tags_pk")),
        sa.UniqueConstraint("account_id", "id", name=op.f("tags_unique_account_id_id")),
        sa.UniqueConstraint("account_id", "name_folded", name=op.f("tags_unique_account_id_name_folded")),
        info={"tenant": True},
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    with op.batch_alter_table("tags", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("tags_by_account_id_created_at_id"), ["account_id", "created_at", "id"], unique=False
        )

    op.create_table(
        "totals",
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("count", INTEGER, nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("totals_ref_account_id")),
        sa.PrimaryKeyConstraint("account_id", "name", name=op.f("totals_pk")),
        info={"tenant": True},
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_table(
        "users",
        sa.Column("id", INTEGER, nullable=False),
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("email_folded", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("is_active", sa.Boolean().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("weekly_capacity_minutes", INTEGER, nullable=False),
        sa.Column("target_percent", sa.Text(), nullable=False),
        sa.Column("hourly_rate", INTEGER, nullable=True),
        sa.Column("password_hash", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("users_ref_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("users_pk")),
        sa.UniqueConstraint("account_id", "email_folded", name=op.f("users_unique_account_id_email_folded")),
        sa.UniqueConstraint("account_id", "id", name=op.f("users_unique_account_id_id")),
        info={"tenant": True},
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    op.create_table(
        "api_keys",
        sa.Column("id", INTEGER, nullable=False),
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("user_id", INTEGER, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("last_four", sa.Text(), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("expires_at", INSTANT, nullable=True),
        sa.Column("revoked_at", INSTANT, nullable=True),
        sa.Column("last_used_at", INSTANT, nullable=True),
        sa.ForeignKeyConstraint(
            ["account_id", "user_id"], ["users.account_id", "users.id"], name=op.f("api_keys_ref_account_id_user_id")
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("api_keys_ref_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("api_keys_pk")),
        sa.UniqueConstraint("account_id", "id", name=op.f("api_keys_unique_account_id_id")),
        info={"tenant": True},
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    with op.batch_alter_table("api_keys", schema=None) as batch_op:
        batch_op.create_index("api_keys_unique_hash", ["hash"], unique=True)

    op.create_table(
        "clients_tags",
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("record_id", INTEGER, nullable=False),
        sa.Column("tag_id", INTEGER, nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "record_id"],
            ["clients.account_id", "clients.id"],
            name=op.f("clients_tags_ref_account_id_record_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "tag_id"], ["tags.account_id", "tags.id"], name=op.f("clients_tags_ref_account_id_tag_id")
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("clients_tags_ref_account_id")),
        sa.PrimaryKeyConstraint("account_id", "record_id", "tag_id", name=op.f("clients_tags_pk")),
        info={"tenant": True},
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("clients_tags", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("clients_tags_by_account_id_tag_id"), ["account_id", "tag_id"], unique=False)

    op.create_table(
        "cost_rates",
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("user_id", INTEGER, nullable=False),
        sa.Column("from_date", DAY, nullable=False),
        sa.Column("amount", INTEGER, nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "user_id"], ["users.account_id", "users.id"], name=op.f("cost_rates_ref_account_id_user_id")
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("cost_rates_ref_account_id")),
        sa.PrimaryKeyConstraint("account_id", "user_id", "from_date", name=op.f("cost_rates_pk")),
        info={"tenant": True},
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_table(
        "external_contacts",
        sa.Column("id", INTEGER, nullable=False),
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("client_id", INTEGER, nullable=False),
        sa.Column("first_name", sa.Text(), nullable=True),
        sa.Column("last_name", sa.Text(), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("email", sa.Text(), nullable=True),
        sa.Column("phone", sa.Text(), nullable=True),
        sa.Column("mobile", sa.Text(), nullable=True),
        sa.Column("job_title", sa.Text(), nullable=True),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("is_primary", sa.Boolean().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("notes", sa.Text(), nullable=True),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("last_name_folded", sa.Text(), nullable=False),
        sa.Column("email_folded", sa.Text(), nullable=True),
        sa.Column("search", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "client_id"],
            ["clients.account_id", "clients.id"],
            name=op.f("external_contacts_ref_account_id_client_id"),
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("external_contacts_ref_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("external_contacts_pk")),
        sa.UniqueConstraint(
            "account_id",
            "client_id",
            "email_folded",
            name=op.f("external_contacts_unique_account_id_client_id_email_folded"),
        ),
        sa.UniqueConstraint("account_id", "external_id", name=op.f("external_contacts_unique_account_id_external_id")),
        sa.UniqueConstraint("account_id", "id", name=op.f("external_contacts_unique_account_id_id")),
        info={"tenant": True},
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    with op.batch_alter_table("external_contacts", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("external_contacts_by_account_id_created_at_id"),
            ["account_id", "created_at", "id"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("external_contacts_by_account_id_last_name_folded_id"),
            ["account_id", "last_name_folded", "id"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("external_contacts_by_account_id_updated_at_id"),
            ["account_id", "updated_at", "id"],
            unique=False,
        )

    op.create_table(
        "external_contacts_tags",
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("record_id", INTEGER, nullable=False),
        sa.Column("tag_id", INTEGER, nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "record_id"],
            ["external_contacts.account_id", "external_contacts.id"],
            name=op.f("external_contacts_tags_ref_account_id_record_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "tag_id"],
            ["tags.account_id", "tags.id"],
            name=op.f("external_contacts_tags_ref_account_id_tag_id"),
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("external_contacts_tags_ref_account_id")),
        sa.PrimaryKeyConstraint("account_id", "record_id", "tag_id", name=op.f("external_contacts_tags_pk")),
        info={"tenant": True},
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("external_contacts_tags", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("external_contacts_tags_by_account_id_tag_id"), ["account_id", "tag_id"], unique=False
        )

    op.create_table(
        "idempotency_keys",
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("key_id", INTEGER, nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("status", INTEGER, nullable=False),
        sa.Column("headers", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "key_id"],
            ["api_keys.account_id", "api_keys.id"],
            name=op.f("idempotency_keys_ref_account_id_key_id"),
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("idempotency_keys_ref_account_id")),
        sa.PrimaryKeyConstraint("account_id", "key_id", "value", name=op.f("idempotency_keys_pk")),
        info={"tenant": True},
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("idempotency_keys", schema=None) as batch_op:
        batch_op.create_index("idempotency_keys_by_created_at", ["created_at"], unique=False)
