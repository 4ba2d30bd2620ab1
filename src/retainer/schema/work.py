"""Work: projects with their milestones and tasks, time entries, and cost rates."""

from sqlalchemy import Index, and_, column

from retainer.schema import columns as col
from retainer.schema.crm import tag_links

projects = col.account_table(
    "projects",
    *col.ref("client_id", "clients", optional=True),
    col.text("name"),
    *col.numbered("code", optional=True),
    col.text("description", optional=True),
    *map(col.text, ("status", "billing_type", "currency")),
    *col.optional(col.money, "hourly_rate", "fixed_fee", "retainer_amount", "budget_amount"),
    col.integer("budget_minutes", optional=True),
    *col.optional(col.day, "start_date", "due_date"),
    *col.ref("manager_id", "users", optional=True),
    col.flag("is_template"),
    *col.optional(col.instant, "completed_at", "archived_at"),
    *map(col.maintained, ("tracked_minutes", "billable_minutes", "unbilled_minutes")),
    col.maintained("billable_amount", col.money),
    col.maintained("unbilled_amount", col.money),
    col.maintained("invoiced_amount", col.money),
    col.maintained("expense_amount", col.money),
    *(col.hidden(col.maintained(name)) for name in ("tasks_count", "tasks_done_count", "tasks_cancelled_count")),
    col.hidden(col.maintained("fee_billed_amount", col.money)),
    col.text("auto_invoice", server_default="off"),
    col.hidden(col.text("auto_invoiced_month", optional=True)),  # the last one that the daily job has billed
    *map(col.hidden, col.optional(col.day, "fees_from", "fees_to")),  # the days of a retainer; null for other projects
    col.text("external_id", optional=True),
    col.sortable("name"),
    col.searchable("name", "code", "description"),
    col.unique("external_id"),
    Index(None, "account_id", "is_template", "name_sort", "id"),
    Index("projects_by_client", "account_id", "client_id", "is_template"),
    *col.indexes("created_at id", "updated_at id"),
    is_announced=True,
    named_by=("name",),
)
col.index_amounts(projects)
projects_tags = tag_links("projects")

milestones = col.account_table(
    "milestones",
    *col.ref("project_id", "projects", on_delete="cascade"),
    col.text("name"),
    col.text("description", optional=True),
    col.text("status"),
    *col.optional(col.day, "start_date", "due_date"),
    col.money("amount", optional=True),
    col.text("currency"),
    col.integer("position"),
    col.instant("completed_at", optional=True),
    *map(col.maintained, ("tasks_count", "tasks_done_count")),
    col.searchable("name", "description"),
    Index(None, "account_id", "project_id", "position", "id"),
    is_announced=True,
    parent="project_id",
    named_by=("name",),
)

tasks = col.account_table(
    "tasks",
    col.text("title"),
    col.text("description", optional=True),
    *col.ref("client_id", "clients", optional=True, on_delete="detach"),
    *col.ref("project_id", "projects", optional=True, on_delete="cascade"),
    *col.ref("milestone_id", "milestones", optional=True, on_delete="detach"),
    *col.ref("parent_id", "tasks", optional=True, on_delete="cascade"),
    *col.ref("ticket_id", "tickets", optional=True, on_delete="detach"),
    *map(col.text, ("status", "priority")),
    *col.ref("assignee_id", "users", optional=True),
    *col.optional(col.day, "start_date", "due_date"),
    col.integer("estimated_minutes", optional=True),
    col.flag("billable"),
    col.integer("position"),
    *col.ref("created_by_id", "users"),
    *col.optional(col.instant, "started_at", "completed_at"),
    *map(col.maintained, ("tracked_minutes", "subtasks_count")),
    col.text("external_id", optional=True),
    col.searchable("title", "description"),
    col.unique("external_id"),
    Index("tasks_by_created_at", "account_id", "created_at", "id", "project_id"),  # with the project, so that
    Index("tasks_by_updated_at", "account_id", "updated_at", "id", "project_id"),  # tasks of templates are left
    Index("tasks_by_due_date", "account_id", "due_date", "id", "project_id"),  # out without reading their rows
    *col.indexes("project_id position id", "project_id created_at id"),
    Index("tasks_by_client", "account_id", "client_id", "created_at", "id", "project_id"),
    *col.indexes("milestone_id created_at id", "parent_id created_at id"),
    Index("tasks_by_assignee", "account_id", "assignee_id", "created_at", "id", "project_id"),
    col.partial_index("tasks", "ticket_id", "created_at", "id"),
    Index("tasks_by_status_and_due_date", "account_id", "status", "due_date", "project_id"),
    Index("tasks_by_status_and_completed_at", "account_id", "status", "completed_at", "project_id"),
    is_announced=True,
    named_by=("title",),
)
tasks_tags = tag_links("tasks")

UNBILLED = and_(column("invoice_line_id").is_(None), column("billable").is_(True), column("is_settled").is_(False))

time_entries = col.account_table(
    "time_entries",
    *col.ref("client_id", "clients", optional=True),
    *col.ref("project_id", "projects", optional=True),
    *col.ref("ticket_id", "tickets", optional=True, on_delete="detach"),
    *col.ref("task_id", "tasks", optional=True, on_delete="detach"),
    *col.ref("user_id", "users"),
    *col.ref("invoice_id", "invoices", optional=True, on_delete="detach"),
    *col.ref("invoice_line_id", "invoice_lines", optional=True, on_delete="detach"),
    col.day("date"),
    col.integer("duration_minutes"),
    col.flag("billable"),
    col.flag("is_settled", server_default="0"),  # only billable time that is on no invoice
    *col.optional(col.instant, "started_at", "ended_at"),
    col.text("description", optional=True),
    col.text("currency"),
    col.money("hourly_rate", optional=True),
    col.money("amount", optional=True),  # null: billable, but without a rate
    col.hidden(
        col.flag("rate_is_sent", server_default="0")
    ),  # if false, the rate is derived again when the entry moves
    col.text("external_id", optional=True),
    col.searchable("description", optional=True),
    col.unique("external_id"),
    Index(None, "account_id", "date", "id"),
    Index("time_entries_by_created_at", "account_id", "created_at", "id", "date"),  # with the columns that lists sort
    Index("time_entries_by_updated_at", "account_id", "updated_at", "id", "date"),  # by, so that no row need be read
    *col.indexes("client_id date id", "project_id date id"),
    Index("time_entries_by_user", "account_id", "user_id", "date", "id", "project_id", "billable", "duration_minutes"),
    Index("time_entries_by_task", "account_id", "task_id", "date", "id", "duration_minutes"),
    col.index_where(
        "time_entries_without_rate", "hourly_rate", "date", "id", condition=column("hourly_rate").is_(None)
    ),
    col.index_where(
        "time_entries_unbilled", *("billable", "date", "id", "project_id", "amount", "currency"), condition=UNBILLED
    ),  # `billable` first: without statistics, SQLite would prefer the index by date
    col.partial_index("time_entries", "invoice_id"),
    col.partial_index("time_entries", "invoice_line_id"),
    col.partial_index("time_entries", "ticket_id", "date", "id", "duration_minutes"),
    is_announced=True,
    named_by=("description",),
)
col.index_amounts(time_entries)

timers = col.account_table(
    "timers",
    *col.ref("user_id", "users"),
    col.text("work"),
    col.text("description", optional=True),
    col.instant("started_at"),
    col.unique("user_id"),
)
"""Work that a user has begun, and that is no time entry yet: `work` is a field of entries and an id, `task_id-5`."""

cost_rates = col.keyed_table(
    "cost_rates",
    *col.ref("user_id", "users", on_delete="cascade"),
    col.day("from_date"),
    col.money("amount"),
    key=("user_id", "from_date"),
)
"""The cost of an hour of a user from a day on, in the account's currency."""
