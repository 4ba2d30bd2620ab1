"""Tickets with their replies, and sites with what is observed of them."""

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import INSTANT, INTEGER, NUMBERED

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    make_tables()
    change_tables()


def make_tables() -> None:
    op.create_table(
        "sites",
        sa.Column("id", INTEGER, nullable=False),
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("client_id", INTEGER, nullable=True),
        sa.Column("project_id", INTEGER, nullable=True),
        sa.Column("environment", sa.Text(), nullable=False),
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("monitoring_enabled", sa.Boolean().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("check_interval_seconds", INTEGER, nullable=False),
        sa.Column("expected_status", sa.Text(), nullable=True),
        sa.Column("keyword", sa.Text(), nullable=True),
        sa.Column("maintenance_until", INSTANT, nullable=True),
        sa.Column("observed", sa.Text(), server_default="unknown", nullable=False),
        sa.Column("failures", INTEGER, server_default="0", nullable=False),
        sa.Column("last_checked_at", INSTANT, nullable=True),
        sa.Column("down_since", INSTANT, nullable=True),
        sa.Column("last_status_code", INTEGER, nullable=True),
        sa.Column("response_time_ms", INTEGER, nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("ssl_expires_at", INSTANT, nullable=True),
        sa.Column("uptime_24h", INTEGER, nullable=True),
        sa.Column("uptime_7d", INTEGER, nullable=True),
        sa.Column("uptime_30d", INTEGER, nullable=True),
        sa.Column("uptime_at", INSTANT, nullable=True),
        sa.Column("next_check_at", INSTANT, nullable=True),
        sa.Column("wp_version", sa.Text(), nullable=True),
        sa.Column("wp_update_version", sa.Text(), nullable=True),
        sa.Column("php_version", sa.Text(), nullable=True),
        sa.Column("plugins_count", INTEGER, nullable=False),
        sa.Column("plugin_updates_count", INTEGER, nullable=False),
        sa.Column("core_update_available", sa.Boolean().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("last_synced_at", INSTANT, nullable=True),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("name_folded", sa.Text(), nullable=False),
        sa.Column("search", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "client_id"],
            ["clients.account_id", "clients.id"],
            name=op.f("sites_ref_account_id_client_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "project_id"],
            ["projects.account_id", "projects.id"],
            name=op.f("sites_ref_account_id_project_id"),
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("sites_ref_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("sites_pk")),
        sa.UniqueConstraint("account_id", "external_id", name=op.f("sites_unique_account_id_external_id")),
        sa.UniqueConstraint("account_id", "id", name=op.f("sites_unique_account_id_id")),
        sa.UniqueConstraint("account_id", "url", name=op.f("sites_unique_account_id_url")),
        info={"tenant": True},
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    with op.batch_alter_table("sites", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("sites_by_account_id_client_id_name_folded_id"),
            ["account_id", "client_id", "name_folded", "id"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("sites_by_account_id_created_at_id"), ["account_id", "created_at", "id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("sites_by_account_id_name_folded_id"), ["account_id", "name_folded", "id"], unique=False
        )
        batch_op.create_index(batch_op.f("sites_by_account_id_project_id"), ["account_id", "project_id"], unique=False)
        batch_op.create_index(
            batch_op.f("sites_by_account_id_updated_at_id"), ["account_id", "updated_at", "id"], unique=False
        )
        batch_op.create_index("sites_due", ["monitoring_enabled", "next_check_at"], unique=False)

    op.create_table(
        "site_checks",
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("site_id", INTEGER, nullable=False),
        sa.Column("checked_at", INSTANT, nullable=False),
        sa.Column("is_up", sa.Boolean().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "site_id"], ["sites.account_id", "sites.id"], name=op.f("site_checks_ref_account_id_site_id")
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("site_checks_ref_account_id")),
        sa.PrimaryKeyConstraint("account_id", "site_id", "checked_at", name=op.f("site_checks_pk")),
        info={"tenant": True},
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_table(
        "site_hours",
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("site_id", INTEGER, nullable=False),
        sa.Column("hour", sa.Text(), nullable=False),
        sa.Column("up", INTEGER, nullable=False),
        sa.Column("down", INTEGER, nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "site_id"], ["sites.account_id", "sites.id"], name=op.f("site_hours_ref_account_id_site_id")
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("site_hours_ref_account_id")),
        sa.PrimaryKeyConstraint("account_id", "site_id", "hour", name=op.f("site_hours_pk")),
        info={"tenant": True},
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_table(
        "site_plugins",
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("site_id", INTEGER, nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=True),
        sa.Column("version_order", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("update_version", sa.Text(), nullable=True),
        sa.Column("auto_update", sa.Boolean().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("update_available", sa.Boolean().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "site_id"],
            ["sites.account_id", "sites.id"],
            name=op.f("site_plugins_ref_account_id_site_id"),
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("site_plugins_ref_account_id")),
        sa.PrimaryKeyConstraint("account_id", "site_id", "slug", name=op.f("site_plugins_pk")),
        info={"tenant": True},
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("site_plugins", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("site_plugins_by_account_id_slug_version_order"),
            ["account_id", "slug", "version_order"],
            unique=False,
        )

    op.create_table(
        "sites_tags",
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("record_id", INTEGER, nullable=False),
        sa.Column("tag_id", INTEGER, nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "record_id"],
            ["sites.account_id", "sites.id"],
            name=op.f("sites_tags_ref_account_id_record_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "tag_id"], ["tags.account_id", "tags.id"], name=op.f("sites_tags_ref_account_id_tag_id")
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("sites_tags_ref_account_id")),
        sa.PrimaryKeyConstraint("account_id", "record_id", "tag_id", name=op.f("sites_tags_pk")),
        info={"tenant": True},
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("sites_tags", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("sites_tags_by_account_id_tag_id"), ["account_id", "tag_id"], unique=False)

    op.create_table(
        "tickets",
        sa.Column("id", INTEGER, nullable=False),
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("client_id", INTEGER, nullable=True),
        sa.Column("contact_id", INTEGER, nullable=True),
        sa.Column("site_id", INTEGER, nullable=True),
        sa.Column("project_id", INTEGER, nullable=True),
        sa.Column("number", INTEGER, nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("requester_name", sa.Text(), nullable=True),
        sa.Column("requester_email", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("priority", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("assignee_id", INTEGER, nullable=True),
        sa.Column("due_at", INSTANT, nullable=True),
        sa.Column("first_response_at", INSTANT, nullable=True),
        sa.Column("first_response_minutes", INTEGER, nullable=True),
        sa.Column("resolved_at", INSTANT, nullable=True),
        sa.Column("closed_at", INSTANT, nullable=True),
        sa.Column("resolution_minutes", INTEGER, nullable=True),
        sa.Column("reopened_count", INTEGER, nullable=False),
        sa.Column("last_reply_at", INSTANT, nullable=True),
        sa.Column("last_reply_by", sa.Text(), nullable=True),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("search", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "assignee_id"],
            ["users.account_id", "users.id"],
            name=op.f("tickets_ref_account_id_assignee_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "client_id"],
            ["clients.account_id", "clients.id"],
            name=op.f("tickets_ref_account_id_client_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "contact_id"],
            ["external_contacts.account_id", "external_contacts.id"],
            name=op.f("tickets_ref_account_id_contact_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "project_id"],
            ["projects.account_id", "projects.id"],
            name=op.f("tickets_ref_account_id_project_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "site_id"], ["sites.account_id", "sites.id"], name=op.f("tickets_ref_account_id_site_id")
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("tickets_ref_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("tickets_pk")),
        sa.UniqueConstraint("account_id", "external_id", name=op.f("tickets_unique_account_id_external_id")),
        sa.UniqueConstraint("account_id", "id", name=op.f("tickets_unique_account_id_id")),
        sa.UniqueConstraint("account_id", "number", name=op.f("tickets_unique_account_id_number")),
        info={"tenant": True},
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    with op.batch_alter_table("tickets", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("tickets_by_account_id_assignee_id_created_at_id"),
            ["account_id", "assignee_id", "created_at", "id"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("tickets_by_account_id_client_id_created_at_id"),
            ["account_id", "client_id", "created_at", "id"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("tickets_by_account_id_contact_id"), ["account_id", "contact_id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("tickets_by_account_id_created_at_id"), ["account_id", "created_at", "id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("tickets_by_account_id_project_id"), ["account_id", "project_id"], unique=False
        )
        batch_op.create_index(batch_op.f("tickets_by_account_id_site_id"), ["account_id", "site_id"], unique=False)
        batch_op.create_index(
            batch_op.f("tickets_by_account_id_status_created_at_id"),
            ["account_id", "status", "created_at", "id"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("tickets_by_account_id_updated_at_id"), ["account_id", "updated_at", "id"], unique=False
        )

    op.create_table(
        "ticket_replies",
        sa.Column("id", INTEGER, nullable=False),
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("ticket_id", INTEGER, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("author_type", sa.Text(), nullable=False),
        sa.Column("user_id", INTEGER, nullable=True),
        sa.Column("contact_id", INTEGER, nullable=True),
        sa.Column("is_internal", sa.Boolean().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("search", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "contact_id"],
            ["external_contacts.account_id", "external_contacts.id"],
            name=op.f("ticket_replies_ref_account_id_contact_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "ticket_id"],
            ["tickets.account_id", "tickets.id"],
            name=op.f("ticket_replies_ref_account_id_ticket_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "user_id"],
            ["users.account_id", "users.id"],
            name=op.f("ticket_replies_ref_account_id_user_id"),
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("ticket_replies_ref_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("ticket_replies_pk")),
        sa.UniqueConstraint("account_id", "id", name=op.f("ticket_replies_unique_account_id_id")),
        info={"tenant": True},
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    with op.batch_alter_table("ticket_replies", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ticket_replies_by_account_id_contact_id"), ["account_id", "contact_id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ticket_replies_by_account_id_ticket_id_created_at_id"),
            ["account_id", "ticket_id", "created_at", "id"],
            unique=False,
        )

    op.create_table(
        "tickets_tags",
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("record_id", INTEGER, nullable=False),
        sa.Column("tag_id", INTEGER, nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "record_id"],
            ["tickets.account_id", "tickets.id"],
            name=op.f("tickets_tags_ref_account_id_record_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "tag_id"], ["tags.account_id", "tags.id"], name=op.f("tickets_tags_ref_account_id_tag_id")
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("tickets_tags_ref_account_id")),
        sa.PrimaryKeyConstraint("account_id", "record_id", "tag_id", name=op.f("tickets_tags_pk")),
        info={"tenant": True},
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("tickets_tags", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("tickets_tags_by_account_id_tag_id"), ["account_id", "tag_id"], unique=False)


def change_tables() -> None:
    with op.batch_alter_table("tasks", table_kwargs=NUMBERED) as batch_op:
        batch_op.add_column(sa.Column("ticket_id", INTEGER, nullable=True))
        batch_op.create_index(
            "tasks_by_ticket_id",
            ["account_id", "ticket_id", "created_at", "id"],
            unique=False,
            sqlite_where=sa.text("ticket_id IS NOT NULL"),
            postgresql_where=sa.text("ticket_id IS NOT NULL"),
        )
        batch_op.create_foreign_key(
            batch_op.f("tasks_ref_account_id_ticket_id"), "tickets", ["account_id", "ticket_id"], ["account_id", "id"]
        )

    with op.batch_alter_table("time_entries", table_kwargs=NUMBERED) as batch_op:
        batch_op.add_column(sa.Column("ticket_id", INTEGER, nullable=True))
        batch_op.create_index(
            "time_entries_by_ticket_id",
            ["account_id", "ticket_id", "date", "id", "duration_minutes"],
            unique=False,
            sqlite_where=sa.text("ticket_id IS NOT NULL"),
            postgresql_where=sa.text("ticket_id IS NOT NULL"),
        )
        batch_op.create_foreign_key(
            batch_op.f("time_entries_ref_account_id_ticket_id"),
            "tickets",
            ["account_id", "ticket_id"],
            ["account_id", "id"],
        )
