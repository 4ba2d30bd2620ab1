"""Work: projects with their milestones and tasks, time entries, and cost rates."""

from sqlalchemy import Index, and_, column

from retainer.schema.columns import (
    account_table,
    day,
    flag,
    hidden,
    index_amounts,
    index_where,
    instant,
    integer,
    keyed_table,
    maintained,
    money,
    partial_index,
    ref,
    searchable,
    sortable,
    text,
    unique,
)
from retainer.schema.crm import tag_links

projects = account_table(
    "projects",
    *ref("client_id", "clients", optional=True),
    text("name"),
    text("code", optional=True),
    text("description", optional=True),
    text("status"),
    text("billing_type"),
    text("currency"),
    money("hourly_rate", optional=True),
    money("fixed_fee", optional=True),
    money("retainer_amount", optional=True),
    money("budget_amount", optional=True),
    integer("budget_minutes", optional=True),
    day("start_date", optional=True),
    day("due_date", optional=True),
    *ref("manager_id", "users", optional=True),
    flag("is_template"),
    instant("completed_at", optional=True),
    instant("archived_at", optional=True),
    maintained("tracked_minutes"),
    maintained("billable_minutes"),
    maintained("unbilled_minutes"),
    maintained("billable_amount", money),
    maintained("unbilled_amount", money),
    maintained("invoiced_amount", money),
    maintained("expense_amount", money),
    *(hidden(maintained(name)) for name in ("tasks_count", "tasks_done_count", "tasks_cancelled_count")),
    text("external_id", optional=True),
    sortable("name"),
    searchable("name", "code", "description"),
    unique("code"),
    unique("external_id"),
    Index(None, "account_id", "is_template", "name_sort", "id"),
    Index("projects_by_client", "account_id", "client_id", "is_template"),
    Index(None, "account_id", "created_at", "id"),
    Index(None, "account_id", "updated_at", "id"),
    is_announced=True,
)
index_amounts(projects)
projects_tags = tag_links("projects")

milestones = account_table(
    "milestones",
    *ref("project_id", "projects", on_delete="cascade"),
    text("name"),
    text("description", optional=True),
    text("status"),
    day("start_date", optional=True),
    day("due_date", optional=True),
    money("amount", optional=True),
    text("currency"),
    integer("position"),
    instant("completed_at", optional=True),
    maintained("tasks_count"),
    maintained("tasks_done_count"),
    searchable("name", "description"),
    Index(None, "account_id", "project_id", "position", "id"),
    is_announced=True,
    parent="project_id",
)

tasks = account_table(
    "tasks",
    text("title"),
    text("description", optional=True),
    *ref("client_id", "clients", optional=True, on_delete="detach"),
    *ref("project_id", "projects", optional=True, on_delete="cascade"),
    *ref("milestone_id", "milestones", optional=True, on_delete="detach"),
    *ref("parent_id", "tasks", optional=True, on_delete="cascade"),
    *ref("ticket_id", "tickets", optional=True, on_delete="detach"),
    text("status"),
    text("priority"),
    *ref("assignee_id", "users", optional=True),
    day("start_date", optional=True),
    day("due_date", optional=True),
    integer("estimated_minutes", optional=True),
    flag("billable"),
    integer("position"),
    *ref("created_by_id", "users"),
    instant("started_at", optional=True),
    instant("completed_at", optional=True),
    maintained("tracked_minutes"),
    maintained("subtasks_count"),
    text("external_id", optional=True),
    searchable("title", "description"),
    unique("external_id"),
    Index("tasks_by_created_at", "account_id", "created_at", "id", "project_id"),  # with the project, so that
    Index("tasks_by_updated_at", "account_id", "updated_at", "id", "project_id"),  # tasks of templates are left
    Index("tasks_by_due_date", "account_id", "due_date", "id", "project_id"),  # out without reading their rows
    Index(None, "account_id", "project_id", "position", "id"),
    Index(None, "account_id", "project_id", "created_at", "id"),
    Index("tasks_by_client", "account_id", "client_id", "created_at", "id", "project_id"),
    Index(None, "account_id", "milestone_id", "created_at", "id"),
    Index(None, "account_id", "parent_id", "created_at", "id"),
    Index("tasks_by_assignee", "account_id", "assignee_id", "created_at", "id", "project_id"),
    partial_index("tasks", "ticket_id", "created_at", "id"),
    Index("tasks_by_status_and_due_date", "account_id", "status", "due_date", "project_id"),
    Index("tasks_by_status_and_completed_at", "account_id", "status", "completed_at", "project_id"),
    is_announced=True,
)
tasks_tags = tag_links("tasks")

UNBILLED = and_(column("invoice_line_id").is_(None), column("billable").is_(True))

time_entries = account_table(
    "time_entries",
    *ref("client_id", "clients", optional=True),
    *ref("project_id", "projects", optional=True),
    *ref("ticket_id", "tickets", optional=True, on_delete="detach"),
    *ref("task_id", "tasks", optional=True, on_delete="detach"),
    *ref("user_id", "users"),
    *ref("invoice_id", "invoices", optional=True, on_delete="detach"),
    *ref("invoice_line_id", "invoice_lines", optional=True, on_delete="detach"),
    day("date"),
    integer("duration_minutes"),
    flag("billable"),
    instant("started_at", optional=True),
    instant("ended_at", optional=True),
    text("description", optional=True),
    text("currency"),
    money("hourly_rate", optional=True),
    money("amount", optional=True),  # null: billable, but without a rate
    hidden(flag("rate_is_sent", server_default="0")),  # if false, the rate is derived again when the entry moves
    text("external_id", optional=True),
    searchable("description", optional=True),
    unique("external_id"),
    Index(None, "account_id", "date", "id"),
    Index("time_entries_by_created_at", "account_id", "created_at", "id", "date"),  # with the columns that lists sort
    Index("time_entries_by_updated_at", "account_id", "updated_at", "id", "date"),  # by, so that no row need be read
    Index(None, "account_id", "client_id", "date", "id"),
    Index(None, "account_id", "project_id", "date", "id"),
    Index("time_entries_by_user", "account_id", "user_id", "date", "id", "project_id", "billable", "duration_minutes"),
    Index("time_entries_by_task", "account_id", "task_id", "date", "id", "duration_minutes"),
    index_where("time_entries_without_rate", "hourly_rate", "date", "id", condition=column("hourly_rate").is_(None)),
    index_where(
        "time_entries_unbilled", *("billable", "date", "id", "project_id", "amount", "currency"), condition=UNBILLED
    ),  # `billable` first: without statistics, SQLite would prefer the index by date
    partial_index("time_entries", "invoice_id"),
    partial_index("time_entries", "invoice_line_id"),
    partial_index("time_entries", "ticket_id", "date", "id", "duration_minutes"),
    is_announced=True,
)
index_amounts(time_entries)

cost_rates = keyed_table(
    "cost_rates",
    *ref("user_id", "users", on_delete="cascade"),
    day("from_date"),
    money("amount"),
    key=("user_id", "from_date"),
)
"""The cost of an hour of a user from a day on, in the account's currency."""

counted_cost_rates = keyed_table(
    "counted_cost_rates",
    *ref("user_id", "users", on_delete="cascade"),
    day("from_date"),
    money("amount", optional=True),
    key=("user_id", "from_date"),
)
"""The cost rates in the stored sums; null if none applies. `rollups/labour` brings them up to `cost_rates`."""
