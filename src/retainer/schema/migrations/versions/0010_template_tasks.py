"""Indexes that tell tasks of templates from work; and tasks of templates without billing say what their copies were.

Until now, all tasks of a template that is not billed were billable in its copies, whatever they said, for they could
not say otherwise. Now copies follow what the tasks say, so these say what they were copied as.
"""

from alembic import op

revision = "0010"
down_revision = "0009"

BILLABLE = """
UPDATE tasks SET billable = {true} WHERE EXISTS (
    SELECT 1 FROM projects WHERE projects.account_id = tasks.account_id AND projects.id = tasks.project_id
        AND projects.is_template = {true} AND projects.billing_type = 'non_billable')
"""


def upgrade() -> None:
    with op.batch_alter_table("projects", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("projects_by_account_id_client_id"))
        batch_op.create_index("projects_by_client", ["account_id", "client_id", "is_template"], unique=False)

    with op.batch_alter_table("tasks", schema=None) as batch_op:
        for names in ("assignee_id_created_at_id", "client_id_created_at_id", "created_at_id", "due_date_id"):
            batch_op.drop_index(batch_op.f(f"tasks_by_account_id_{names}"))
        for names in ("status_completed_at", "status_due_date", "updated_at_id"):
            batch_op.drop_index(batch_op.f(f"tasks_by_account_id_{names}"))
        for name, columns in (
            ("assignee", ("assignee_id", "created_at", "id")),
            ("client", ("client_id", "created_at", "id")),
            ("created_at", ("created_at", "id")),
            ("due_date", ("due_date", "id")),
            ("status_and_completed_at", ("status", "completed_at")),
            ("status_and_due_date", ("status", "due_date")),
            ("updated_at", ("updated_at", "id")),
        ):
            batch_op.create_index(f"tasks_by_{name}", ["account_id", *columns, "project_id"], unique=False)

    op.execute(BILLABLE.format(true="1" if op.get_bind().dialect.name == "sqlite" else "true"))
