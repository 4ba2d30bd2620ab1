"""The lists of the console: their columns, filters and sums, one declaration for each kind of record."""

from collections.abc import Collection
from typing import Literal, NamedTuple

Form = Literal[
    "label", "text", "words", "reference", "status", "money", "minutes", "day", "due", "since", "count", "percent"
]
Extra = Literal["open_amount", "uptime"]


class Column(NamedTuple):
    """A column: the field that it shows, its heading, and how it shows it."""

    field: str
    title: str
    form: Form | Extra = "text"
    detail: str = ""
    """A field that stands below, smaller; a reference shows its name."""
    sort: str = ""
    """The field by which its heading sorts, if it is another."""

    @property
    def is_number(self) -> bool:
        """Whether its values are aligned on the right."""
        return self.form in {"money", "minutes", "count", "percent", "open_amount"}


class ListView(NamedTuple):
    """The list of a kind: `filters` are always visible, all others under "More filters"."""

    title: str
    columns: tuple[Column, ...]
    filters: tuple[str, ...]
    sums: tuple[str, ...] = ()
    """The fields that are summed up, each of which is a column of the list."""

    def without(self, left_out: Collection[str]) -> "ListView":
        return self._replace(
            columns=tuple(column for column in self.columns if column.field not in left_out),
            filters=tuple(name for name in self.filters if name not in left_out),
            sums=tuple(name for name in self.sums if name not in left_out),
        )


CLIENT = Column("client_id", "Client", "reference")
STATUS = Column("status", "Status", "status")

VIEWS = {
    "clients": ListView(
        "Clients",
        (
            Column("name", "Client", "label"),
            STATUS,
            Column("open_amount", "Open amount", "open_amount"),
            Column("projects_count", "Projects", "count"),
            Column("sites_count", "Sites", "count"),
            Column("created_at", "Created", "since"),
        ),
        ("status", "has_overdue", "tag_id"),
    ),
    "external-contacts": ListView(
        "Contacts",
        (
            Column("name", "Contact", "label", "job_title", "last_name"),
            CLIENT,
            Column("role", "Role", "words"),
            Column("email", "Email"),
            Column("phone", "Phone"),
            STATUS,
        ),
        ("client_id", "role", "status"),
    ),
    "projects": ListView(
        "Projects",
        (
            Column("name", "Project", "label", "code"),
            CLIENT,
            STATUS,
            Column("start_date", "Start", "day"),
            Column("due_date", "Due", "due"),
            Column("tracked_minutes", "Hours", "minutes"),
            Column("budget_used_percent", "Budget used", "percent"),
            Column("manager_id", "Manager", "reference"),
        ),
        ("client_id", "status", "over_budget"),
    ),
    "tasks": ListView(
        "Tasks",
        (
            Column("title", "Task", "label", "project_id"),
            Column("assignee_id", "Assignee", "reference"),
            Column("priority", "Priority", "status"),
            Column("due_date", "Due", "due"),
            Column("tracked_minutes", "Hours", "minutes"),
            STATUS,
        ),
        ("project_id", "assignee_id", "status", "due_date_to"),
    ),
    "time-entries": ListView(
        "Time",
        (
            Column("date", "Day", "label", "description"),
            Column("user_id", "Person", "reference"),
            Column("project_id", "Project", "reference", "task_id"),
            Column("client_id", "Client", "reference"),
            Column("duration_minutes", "Hours", "minutes"),
            Column("amount", "Amount", "money"),
            Column("billing_status", "Billing", "status"),
        ),
        ("date_from", "date_to", "user_id", "project_id", "billing_status"),
        ("duration_minutes", "amount"),
    ),
    "quotes": ListView(
        "Quotes",
        (
            Column("number", "Quote", "label", "title"),
            CLIENT,
            Column("issue_date", "Issued", "day"),
            Column("valid_until", "Valid until", "day"),
            Column("total", "Total", "money"),
            STATUS,
        ),
        ("client_id", "status", "issue_date_from", "issue_date_to"),
        ("total",),
    ),
    "invoices": ListView(
        "Invoices",
        (
            Column("number", "Invoice", "label", "subject"),
            CLIENT,
            Column("issue_date", "Issued", "day"),
            Column("due_date", "Due", "due"),
            Column("total", "Total", "money"),
            Column("balance_due", "Amount due", "money"),
            STATUS,
        ),
        ("client_id", "status", "issue_date_from", "issue_date_to"),
        ("total", "balance_due"),
    ),
    "credit-notes": ListView(
        "Credit notes",
        (
            Column("number", "Credit note", "label", "description"),
            CLIENT,
            Column("invoice_id", "Invoice", "reference"),
            Column("issue_date", "Issued", "day"),
            Column("reason", "Reason", "words"),
            Column("total", "Total", "money"),
        ),
        ("client_id", "reason", "issue_date_from", "issue_date_to"),
        ("total",),
    ),
    "expenses": ListView(
        "Expenses",
        (
            Column("date", "Day", "label", "description"),
            CLIENT,
            Column("project_id", "Project", "reference"),
            Column("category", "Category", "text", "vendor"),
            Column("amount", "Amount", "money"),
            Column("billable_amount", "Billable", "money"),
            Column("billing_status", "Billing", "status"),
        ),
        ("date_from", "date_to", "client_id", "billing_status"),
        ("amount", "billable_amount"),
    ),
    "tickets": ListView(
        "Tickets",
        (
            Column("subject", "Ticket", "label", "number", "number"),
            CLIENT,
            Column("awaiting", "Waiting for", "status"),
            Column("priority", "Priority", "status"),
            Column("assignee_id", "Assignee", "reference"),
            Column("created_at", "Opened", "since"),
            STATUS,
        ),
        ("status", "awaiting", "priority", "client_id"),
    ),
    "sites": ListView(
        "Sites",
        (
            Column("name", "Site", "label", "url"),
            CLIENT,
            STATUS,
            Column("uptime_percent_30d", "Uptime, 30 days", "uptime"),
            Column("response_time_ms", "Response (ms)", "count"),
            Column("ssl_expires_at", "Certificate expires", "since"),
            Column("plugin_updates_count", "Updates", "count"),
        ),
        ("client_id", "status", "has_updates"),
    ),
    "tags": ListView(
        "Tags",
        (Column("name", "Tag"), Column("usage_count", "Records", "count"), Column("created_at", "Created", "since")),
        (),
    ),
}
"""The lists by the name of their kind in paths."""

GROUPS = (
    ("Clients & contacts", ("clients", "external-contacts", "tags")),
    ("Work", ("projects", "tasks", "time-entries")),
    ("Money", ("quotes", "invoices", "credit-notes", "expenses")),
    ("Support & sites", ("tickets", "sites")),
)
"""The lists in the order of the navigation."""
NAVIGATION = [(group, [(name, VIEWS[name].title) for name in names]) for group, names in GROUPS]
"""The groups of the navigation, with the names and titles of their lists."""
