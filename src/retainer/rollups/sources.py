"""Sources: the figures that a row adds to stored sums, as selects.

Writes add them to the summaries of time and to the totals on records; doctor recomputes both from them. Reports read
money from its rows.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, Table, case, func, literal, select

from retainer.schema import TAG_LINKS
from retainer.schema.billing import credit_note_shares, credit_notes, expenses, invoice_lines, invoices, is_issued
from retainer.schema.crm import clients, external_contacts, tags
from retainer.schema.expressions import is_unpriced
from retainer.schema.rollups import project_sums, user_sums
from retainer.schema.sites import sites
from retainer.schema.support import ticket_replies, tickets
from retainer.schema.work import cost_rates, milestones, projects, tasks, time_entries
from retainer.store.engines.sql import INTEGER


@dataclass(frozen=True, eq=False)
class Source:
    """Rows to add up: each has the `record_id` by which it is found, references, and figures."""

    rows: Select[Any]
    records: dict[Table, str]
    """The tables whose records show totals of these rows, and the column that refers to the record."""
    summaries: tuple[Table, ...] = ()
    table: Table | None = None
    """The table that has one row for each row of the source; both are inserted and deleted together."""
    fields: tuple[str, ...] = ()
    """The fields of a row of that table from which its references and figures follow."""

    @property
    def has_one_row(self) -> bool:
        """Whether a record has exactly one row, so that there is nothing to group."""
        return self.table is not None and "id" in self.table.c


KEYS = {
    *("account_id", "record_id", "day", "currency", "user_id", "client_id", "project_id", "milestone_id", "task_id"),
    *("parent_id", "ticket_id", "tag_id", "invoice_id"),
}
"""The columns of sources that are not figures."""
ZERO, ONE = literal(0, INTEGER), literal(1, INTEGER)


COST_RATE = (
    select(cost_rates.c.amount)
    .where(cost_rates.c.user_id == time_entries.c.user_id, cost_rates.c.from_date <= time_entries.c.date)
    .order_by(cost_rates.c.from_date.desc())
    .limit(1)
    .scalar_subquery()
)
"""The cost of an hour of the entry's user on its day, in minor units."""


LABOUR_SUMS = (
    (time_entries.c.duration_minutes * func.coalesce(COST_RATE, 0)).label("labour_cost"),
    case((COST_RATE.is_(None), time_entries.c.duration_minutes), else_=0).label("missing_cost_rate_minutes"),
)
"""The cost of an entry, in sixtieths of a minor unit, and its minutes without a cost rate."""

TIME = Source(
    select(
        time_entries.c.account_id,
        time_entries.c.id.label("record_id"),
        time_entries.c.date.label("day"),
        *time_entries.c["client_id", "project_id", "task_id", "ticket_id", "user_id", "currency"],
        time_entries.c.duration_minutes.label("tracked_minutes"),
        case((time_entries.c.billable, time_entries.c.duration_minutes), else_=0).label("billable_minutes"),
        func.coalesce(time_entries.c.amount, 0).label("billable_value"),
        case((is_unpriced(time_entries), time_entries.c.duration_minutes), else_=0).label("unpriced_minutes"),
        *LABOUR_SUMS,
    ),
    {projects: "project_id", tasks: "task_id", tickets: "ticket_id"},
    (project_sums, user_sums),
    table=time_entries,
    fields=(
        *("date", "client_id", "project_id", "task_id", "ticket_id", "user_id", "currency"),
        *("duration_minutes", "billable", "amount"),
    ),
)
"""Time entries: minutes, value, billable minutes without a rate, and minutes x cost rate of the day."""

LABOUR = Source(
    TIME.rows.with_only_columns(
        *TIME.rows.selected_columns["account_id", "day", "client_id", "project_id", "user_id", "currency"], *LABOUR_SUMS
    ),
    {},
    (project_sums,),
)
"""The part of TIME that follows from the cost rates of a user, whose entries are found by the user."""

BILLED_TIME = Source(
    select(
        time_entries.c.account_id,
        time_entries.c.invoice_line_id.label("record_id"),
        time_entries.c.date.label("day"),
        *time_entries.c["client_id", "project_id", "user_id", "currency"],
        time_entries.c.duration_minutes.label("billed_minutes"),
        time_entries.c.amount.label("billed_value"),
    ).where(time_entries.c.invoice_line_id.is_not(None)),
    {projects: "project_id"},
    (project_sums, user_sums),
)
"""Time entries on lines of invoices; found by the line."""

EXPENSES = Source(
    select(
        expenses.c.account_id,
        expenses.c.id.label("record_id"),
        *expenses.c["project_id", "currency"],
        expenses.c.net_amount.label("expenses"),
    ),
    {projects: "project_id"},
    table=expenses,
    fields=("project_id", "currency", "net_amount"),
)
"""Expenses: net."""

INVOICE_LINES = Source(
    select(
        invoices.c.account_id,
        invoices.c.id.label("record_id"),
        func.coalesce(invoice_lines.c.project_id, invoices.c.project_id).label("project_id"),
        invoices.c.currency,
        invoice_lines.c.amount.label("invoiced"),
    )
    .select_from(invoices.join(invoice_lines, invoice_lines.c.invoice_id == invoices.c.id))
    .where(is_issued(invoices)),
    {projects: "project_id"},
)
"""Lines of issued invoices: net, by the project of the line or else of the invoice; found by the invoice."""

CREDIT_NOTE_SHARES = Source(
    select(
        credit_notes.c.account_id,
        credit_notes.c.id.label("record_id"),
        credit_notes.c.invoice_id,
        credit_note_shares.c.project_id,
        credit_notes.c.currency,
        credit_note_shares.c.amount.label("credited"),
    ).select_from(credit_notes.join(credit_note_shares, credit_note_shares.c.credit_note_id == credit_notes.c.id)),
    {projects: "project_id"},
)
"""Credit notes: the share of their net that each project is credited with; found by the note or by its invoice."""

CONTACTS = Source(
    select(
        external_contacts.c.account_id,
        external_contacts.c.id.label("record_id"),
        external_contacts.c.client_id,
        ONE.label("contacts"),
    ),
    {clients: "client_id"},
    table=external_contacts,
    fields=("client_id",),
)
"""External contacts."""

PROJECTS = Source(
    select(
        projects.c.account_id,
        projects.c.id.label("record_id"),
        projects.c.client_id,
        case((projects.c.is_template, 0), else_=1).label("live_projects"),
    ),
    {clients: "client_id"},
    table=projects,
    fields=("client_id", "is_template"),
)
"""Projects; templates do not count."""

SITES = Source(
    select(sites.c.account_id, sites.c.id.label("record_id"), sites.c.client_id, ONE.label("sites")),
    {clients: "client_id"},
    table=sites,
    fields=("client_id",),
)
"""Sites."""

TASKS = Source(
    select(
        tasks.c.account_id,
        tasks.c.id.label("record_id"),
        *tasks.c["project_id", "milestone_id", "parent_id"],
        ONE.label("tasks"),
        case((tasks.c.status == "done", 1), else_=0).label("done_tasks"),
        case((tasks.c.status == "cancelled", 1), else_=0).label("cancelled_tasks"),
    ),
    {projects: "project_id", milestones: "milestone_id", tasks: "parent_id"},
    table=tasks,
    fields=("project_id", "milestone_id", "parent_id", "status"),
)
"""Tasks, by project, milestone and parent task."""

REPLIES = Source(
    select(
        ticket_replies.c.account_id,
        ticket_replies.c.id.label("record_id"),
        ticket_replies.c.ticket_id,
        ONE.label("replies"),
    ),
    {tickets: "ticket_id"},
    table=ticket_replies,
)
"""Replies to tickets."""

TAG_USES = {
    owner: Source(
        select(links.c.account_id, links.c.record_id, links.c.tag_id, ONE.label("uses")), {tags: "tag_id"}, table=links
    )
    for owner, links in TAG_LINKS.items()
}
"""The tags of the records of each table."""

SOURCES = (
    *(TIME, BILLED_TIME, EXPENSES, INVOICE_LINES, CREDIT_NOTE_SHARES),
    *(CONTACTS, PROJECTS, SITES, TASKS, REPLIES, *TAG_USES.values()),
)


def negated(source: Source) -> Select[Any]:
    """Return a select of a source's rows with negated figures, to subtract deleted rows."""
    columns = source.rows.selected_columns
    opposite = (each if each.name in KEYS else (-each).label(each.name) for each in columns)
    return source.rows.with_only_columns(*opposite)
