"""projects milestones tasks time entries."""

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import DAY, INSTANT, INTEGER

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "projects",
        sa.Column("id", INTEGER, nullable=False),
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("client_id", INTEGER, nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=True),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("billing_type", sa.Text(), nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("hourly_rate", INTEGER, nullable=True),
        sa.Column("fixed_fee", INTEGER, nullable=True),
        sa.Column("retainer_amount", INTEGER, nullable=True),
        sa.Column("budget_amount", INTEGER, nullable=True),
        sa.Column("budget_minutes", INTEGER, nullable=True),
        sa.Column("start_date", DAY, nullable=True),
        sa.Column("due_date", DAY, nullable=True),
        sa.Column("manager_id", INTEGER, nullable=True),
        sa.Column("is_template", sa.Boolean().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("completed_at", INSTANT, nullable=True),
        sa.Column("archived_at", INSTANT, nullable=True),
        sa.Column("tracked_minutes", INTEGER, nullable=False),
        sa.Column("billable_minutes", INTEGER, nullable=False),
        sa.Column("unbilled_minutes", INTEGER, nullable=False),
        sa.Column("billable_amount", INTEGER, nullable=False),
        sa.Column("unbilled_amount", INTEGER, nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("name_folded", sa.Text(), nullable=False),
        sa.Column("search", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "client_id"],
            ["clients.account_id", "clients.id"],
            name=op.f("projects_ref_account_id_client_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "manager_id"],
            ["users.account_id", "users.id"],
            name=op.f("projects_ref_account_id_manager_id"),
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("projects_ref_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("projects_pk")),
        sa.UniqueConstraint("account_id", "code", name=op.f("projects_unique_account_id_code")),
        sa.UniqueConstraint("account_id", "external_id", name=op.f("projects_unique_account_id_external_id")),
        sa.UniqueConstraint("account_id", "id", name=op.f("projects_unique_account_id_id")),
        info={"tenant": True},
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    with op.batch_alter_table("projects", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("projects_by_account_id_client_id"), ["account_id", "client_id"], unique=False)
        batch_op.create_index(
            batch_op.f("projects_by_account_id_created_at_id"), ["account_id", "created_at", "id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("projects_by_account_id_is_template_name_folded_id"),
            ["account_id", "is_template", "name_folded", "id"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("projects_by_account_id_updated_at_id"), ["account_id", "updated_at", "id"], unique=False
        )

    op.create_table(
        "milestones",
        sa.Column("id", INTEGER, nullable=False),
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("project_id", INTEGER, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("start_date", DAY, nullable=True),
        sa.Column("due_date", DAY, nullable=True),
        sa.Column("amount", INTEGER, nullable=True),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("position", INTEGER, nullable=False),
        sa.Column("completed_at", INSTANT, nullable=True),
        sa.Column("search", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "project_id"],
            ["projects.account_id", "projects.id"],
            name=op.f("milestones_ref_account_id_project_id"),
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("milestones_ref_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("milestones_pk")),
        sa.UniqueConstraint("account_id", "id", name=op.f("milestones_unique_account_id_id")),
        info={"tenant": True},
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    with op.batch_alter_table("milestones", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("milestones_by_account_id_project_id_position_id"),
            ["account_id", "project_id", "position", "id"],
            unique=False,
        )

    op.create_table(
        "projects_tags",
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("record_id", INTEGER, nullable=False),
        sa.Column("tag_id", INTEGER, nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "record_id"],
            ["projects.account_id", "projects.id"],
            name=op.f("projects_tags_ref_account_id_record_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "tag_id"], ["tags.account_id", "tags.id"], name=op.f("projects_tags_ref_account_id_tag_id")
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("projects_tags_ref_account_id")),
        sa.PrimaryKeyConstraint("account_id", "record_id", "tag_id", name=op.f("projects_tags_pk")),
        info={"tenant": True},
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("projects_tags", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("projects_tags_by_account_id_tag_id"), ["account_id", "tag_id"], unique=False)

    op.create_table(
        "tasks",
        sa.Column("id", INTEGER, nullable=False),
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("client_id", INTEGER, nullable=True),
        sa.Column("project_id", INTEGER, nullable=True),
        sa.Column("milestone_id", INTEGER, nullable=True),
        sa.Column("parent_id", INTEGER, nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("priority", sa.Text(), nullable=False),
        sa.Column("assignee_id", INTEGER, nullable=True),
        sa.Column("start_date", DAY, nullable=True),
        sa.Column("due_date", DAY, nullable=True),
        sa.Column("estimated_minutes", INTEGER, nullable=True),
        sa.Column("billable", sa.Boolean().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("position", INTEGER, nullable=False),
        sa.Column("created_by_id", INTEGER, nullable=False),
        sa.Column("started_at", INSTANT, nullable=True),
        sa.Column("completed_at", INSTANT, nullable=True),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("search", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "assignee_id"],
            ["users.account_id", "users.id"],
            name=op.f("tasks_ref_account_id_assignee_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "client_id"],
            ["clients.account_id", "clients.id"],
            name=op.f("tasks_ref_account_id_client_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "created_by_id"],
            ["users.account_id", "users.id"],
            name=op.f("tasks_ref_account_id_created_by_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "milestone_id"],
            ["milestones.account_id", "milestones.id"],
            name=op.f("tasks_ref_account_id_milestone_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "parent_id"], ["tasks.account_id", "tasks.id"], name=op.f("tasks_ref_account_id_parent_id")
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "project_id"],
            ["projects.account_id", "projects.id"],
            name=op.f("tasks_ref_account_id_project_id"),
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("tasks_ref_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("tasks_pk")),
        sa.UniqueConstraint("account_id", "external_id", name=op.f("tasks_unique_account_id_external_id")),
        sa.UniqueConstraint("account_id", "id", name=op.f("tasks_unique_account_id_id")),
        info={"tenant": True},
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    with op.batch_alter_table("tasks", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("tasks_by_account_id_assignee_id_created_at_id"),
            ["account_id", "assignee_id", "created_at", "id"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("tasks_by_account_id_client_id_created_at_id"),
            ["account_id", "client_id", "created_at", "id"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("tasks_by_account_id_created_at_id"), ["account_id", "created_at", "id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("tasks_by_account_id_due_date_id"), ["account_id", "due_date", "id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("tasks_by_account_id_milestone_id_created_at_id"),
            ["account_id", "milestone_id", "created_at", "id"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("tasks_by_account_id_parent_id_created_at_id"),
            ["account_id", "parent_id", "created_at", "id"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("tasks_by_account_id_project_id_created_at_id"),
            ["account_id", "project_id", "created_at", "id"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("tasks_by_account_id_project_id_position_id"),
            ["account_id", "project_id", "position", "id"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("tasks_by_account_id_updated_at_id"), ["account_id", "updated_at", "id"], unique=False
        )

    op.create_table(
        "tasks_tags",
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("record_id", INTEGER, nullable=False),
        sa.Column("tag_id", INTEGER, nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "record_id"],
            ["tasks.account_id", "tasks.id"],
            name=op.f("tasks_tags_ref_account_id_record_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "tag_id"], ["tags.account_id", "tags.id"], name=op.f("tasks_tags_ref_account_id_tag_id")
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("tasks_tags_ref_account_id")),
        sa.PrimaryKeyConstraint("account_id", "record_id", "tag_id", name=op.f("tasks_tags_pk")),
        info={"tenant": True},
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("tasks_tags", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("tasks_tags_by_account_id_tag_id"), ["account_id", "tag_id"], unique=False)

    op.create_table(
        "time_entries",
        sa.Column("id", INTEGER, nullable=False),
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("client_id", INTEGER, nullable=True),
        sa.Column("project_id", INTEGER, nullable=True),
        sa.Column("task_id", INTEGER, nullable=True),
        sa.Column("user_id", INTEGER, nullable=False),
        sa.Column("date", DAY, nullable=False),
        sa.Column("duration_minutes", INTEGER, nullable=False),
        sa.Column("billable", sa.Boolean().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("started_at", INSTANT, nullable=True),
        sa.Column("ended_at", INSTANT, nullable=True),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("hourly_rate", INTEGER, nullable=True),
        sa.Column("amount", INTEGER, nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("search", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["account_id", "client_id"],
            ["clients.account_id", "clients.id"],
            name=op.f("time_entries_ref_account_id_client_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "project_id"],
            ["projects.account_id", "projects.id"],
            name=op.f("time_entries_ref_account_id_project_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "task_id"],
            ["tasks.account_id", "tasks.id"],
            name=op.f("time_entries_ref_account_id_task_id"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "user_id"],
            ["users.account_id", "users.id"],
            name=op.f("time_entries_ref_account_id_user_id"),
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("time_entries_ref_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("time_entries_pk")),
        sa.UniqueConstraint("account_id", "external_id", name=op.f("time_entries_unique_account_id_external_id")),
        sa.UniqueConstraint("account_id", "id", name=op.f("time_entries_unique_account_id_id")),
        info={"tenant": True},
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    with op.batch_alter_table("time_entries", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("time_entries_by_account_id_client_id_date_id"),
            ["account_id", "client_id", "date", "id"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("time_entries_by_account_id_date_id"), ["account_id", "date", "id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("time_entries_by_account_id_project_id_date_id"),
            ["account_id", "project_id", "date", "id"],
            unique=False,
        )
        batch_op.create_index("time_entries_by_created_at", ["account_id", "created_at", "id", "date"], unique=False)
        batch_op.create_index(
            "time_entries_by_task", ["account_id", "task_id", "date", "id", "duration_minutes"], unique=False
        )
        batch_op.create_index("time_entries_by_updated_at", ["account_id", "updated_at", "id", "date"], unique=False)
        batch_op.create_index(
            "time_entries_by_user",
            ["account_id", "user_id", "date", "id", "project_id", "billable", "duration_minutes"],
            unique=False,
        )
