"""Sources: the figures that a row adds to stored sums, as selects.

Writes add them to the summaries of time and to the totals on records; doctor recomputes both from them. A figure has
the name of the columns that it is added to. Reports read money from its rows.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, case, func, literal, select

from retainer.schema import TAG_LINKS
from retainer.schema.billing import (
    FEE_KINDS,
    credit_note_shares,
    credit_notes,
    discount_shares,
    expenses,
    invoice_lines,
    invoices,
    is_issued,
    payments,
)
from retainer.schema.columns import in_literals
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


def rows_of(table: Table, *keys: str, **figures: ColumnElement[Any]) -> Select[Any]:
    """Return a select of the rows of a table, with these references and figures; `record_id` is their id by default."""
    columns = figures if "record_id" in figures else {"record_id": table.c.id, **figures}
    labels = (column.label(name) for name, column in columns.items())
    return select(table.c.account_id, *(table.c[key] for key in keys), *labels)


ZERO, ONE = literal(0, INTEGER), literal(1, INTEGER)
COST_RATE = (
    select(cost_rates.c.amount)
    .where(cost_rates.c.user_id == time_entries.c.user_id, cost_rates.c.from_date <= time_entries.c.date)
    .order_by(cost_rates.c.from_date.desc())
    .limit(1)
    .scalar_subquery()
)
"""The cost of an hour of the entry's user on its day, in minor units."""
LABOUR_SUMS: dict[str, ColumnElement[int]] = {
    "labour_cost": time_entries.c.duration_minutes * func.coalesce(COST_RATE, 0),
    "missing_cost_rate_minutes": case((COST_RATE.is_(None), time_entries.c.duration_minutes), else_=0),
}
"""The cost of an entry, in sixtieths of a minor unit, and its minutes without a cost rate."""
BILLABLE_MINUTES = case((time_entries.c.billable, time_entries.c.duration_minutes), else_=0)
SETTLED_MINUTES = case((time_entries.c.is_settled, time_entries.c.duration_minutes), else_=0)
UNPRICED_MINUTES = case((is_unpriced(time_entries), time_entries.c.duration_minutes), else_=0)
VALUE = func.coalesce(time_entries.c.amount, 0)
SETTLED_VALUE = case((time_entries.c.is_settled, VALUE), else_=0)

TIME = Source(
    rows_of(
        time_entries,
        *("client_id", "project_id", "task_id", "ticket_id", "user_id", "currency"),
        day=time_entries.c.date,
        tracked_minutes=time_entries.c.duration_minutes,
        billable_minutes=BILLABLE_MINUTES,
        billable_value=VALUE,
        billable_amount=VALUE,
        billed_value=SETTLED_VALUE,
        unpriced_minutes=UNPRICED_MINUTES,
        unbilled_minutes=BILLABLE_MINUTES - UNPRICED_MINUTES - SETTLED_MINUTES,
        unbilled_amount=VALUE - SETTLED_VALUE,
        **LABOUR_SUMS,
    ),
    {projects: "project_id", tasks: "task_id", tickets: "ticket_id"},
    (project_sums, user_sums),
    table=time_entries,
    fields=(
        *("date", "client_id", "project_id", "task_id", "ticket_id", "user_id", "currency"),
        *("duration_minutes", "billable", "is_settled", "amount"),
    ),
)

LABOUR = Source(
    rows_of(time_entries, "client_id", "project_id", "user_id", "currency", day=time_entries.c.date, **LABOUR_SUMS),
    {},
    (project_sums,),
)
"""The part of TIME that follows from the cost rates of a user, whose entries are found by the user."""

BILLED_TIME = Source(
    rows_of(
        time_entries,
        *("client_id", "project_id", "user_id", "currency"),
        record_id=time_entries.c.invoice_line_id,
        day=time_entries.c.date,
        billed_value=time_entries.c.amount,
        unbilled_minutes=-time_entries.c.duration_minutes,
        unbilled_amount=-time_entries.c.amount,
    ).where(time_entries.c.invoice_line_id.is_not(None)),
    {projects: "project_id"},
    (project_sums, user_sums),
)
"""Time entries on lines of invoices; found by the line."""

EXPENSES = Source(
    rows_of(expenses, "project_id", "currency", expense_amount=expenses.c.net_amount),
    {projects: "project_id"},
    table=expenses,
    fields=("project_id", "currency", "net_amount"),
)

INVOICE_LINES = Source(
    rows_of(
        invoices,
        "currency",
        project_id=func.coalesce(invoice_lines.c.project_id, invoices.c.project_id),
        invoiced_amount=invoice_lines.c.amount,
    )
    .select_from(invoices.join(invoice_lines, invoice_lines.c.invoice_id == invoices.c.id))
    .where(is_issued(invoices)),
    {projects: "project_id"},
)
"""Lines of issued invoices: net, by the project of the line or else of the invoice; found by the invoice."""

FEE_LINES = Source(
    rows_of(
        invoices,
        "currency",
        project_id=func.coalesce(invoice_lines.c.project_id, invoices.c.project_id),
        fee_billed_amount=invoice_lines.c.amount,
    )
    .select_from(invoices.join(invoice_lines, invoice_lines.c.invoice_id == invoices.c.id))
    .where(in_literals(invoice_lines.c.kind, FEE_KINDS), invoice_lines.c.is_freed.is_(False)),
    {projects: "project_id"},
)
"""Lines that count against a fixed fee, drafts included, by the project as in INVOICE_LINES; found by the invoice."""

CREDIT_NOTE_SHARES = Source(
    rows_of(
        credit_notes,
        *("invoice_id", "currency"),
        project_id=credit_note_shares.c.project_id,
        invoiced_amount=-credit_note_shares.c.amount,
    ).select_from(credit_notes.join(credit_note_shares, credit_note_shares.c.credit_note_id == credit_notes.c.id)),
    {projects: "project_id"},
)
"""Credit notes: the share of their net that each project is credited with; found by the note or by its invoice."""

DISCOUNT_SHARES = Source(
    rows_of(
        payments,
        *("invoice_id", "currency"),
        project_id=discount_shares.c.project_id,
        invoiced_amount=-discount_shares.c.amount,
    ).select_from(payments.join(discount_shares, discount_shares.c.payment_id == payments.c.id)),
    {projects: "project_id"},
)
"""Early-payment discounts: the share of each project in their net; found by their row of `payments` or its invoice."""

CONTACTS = Source(
    rows_of(external_contacts, "client_id", contacts_count=ONE),
    {clients: "client_id"},
    table=external_contacts,
    fields=("client_id",),
)

PROJECTS = Source(
    rows_of(projects, "client_id", projects_count=case((projects.c.is_template, 0), else_=1)),
    {clients: "client_id"},
    table=projects,
    fields=("client_id", "is_template"),
)

SITES = Source(rows_of(sites, "client_id", sites_count=ONE), {clients: "client_id"}, table=sites, fields=("client_id",))

TASKS = Source(
    rows_of(
        tasks,
        *("project_id", "milestone_id", "parent_id"),
        tasks_count=ONE,
        subtasks_count=ONE,
        tasks_done_count=case((tasks.c.status == "done", 1), else_=0),
        tasks_cancelled_count=case((tasks.c.status == "cancelled", 1), else_=0),
    ),
    {projects: "project_id", milestones: "milestone_id", tasks: "parent_id"},
    table=tasks,
    fields=("project_id", "milestone_id", "parent_id", "status"),
)

REPLIES = Source(rows_of(ticket_replies, "ticket_id", replies_count=ONE), {tickets: "ticket_id"}, table=ticket_replies)

TAG_USES = {
    owner: Source(rows_of(links, "tag_id", record_id=links.c.record_id, usage_count=ONE), {tags: "tag_id"}, table=links)
    for owner, links in TAG_LINKS.items()
}

SOURCES = (
    *(TIME, BILLED_TIME, EXPENSES, INVOICE_LINES, FEE_LINES, CREDIT_NOTE_SHARES, DISCOUNT_SHARES),
    *(CONTACTS, PROJECTS, SITES, TASKS, REPLIES, *TAG_USES.values()),
)
