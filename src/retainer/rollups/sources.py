"""Sources: the figures that a row adds to sums, as selects.

Writes add them to the summaries that reports read and to the totals on records; doctor recomputes both from them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, Table, and_, case, func, literal, select, union

from retainer.schema import TAG_LINKS
from retainer.schema.billing import (
    ISSUED_INVOICES,
    credit_note_shares,
    credit_notes,
    expenses,
    invoice_lines,
    invoices,
    payments,
)
from retainer.schema.crm import clients, external_contacts, tags
from retainer.schema.expressions import is_unpriced
from retainer.schema.rollups import client_sums, money_sums, project_sums, user_sums
from retainer.schema.sites import sites
from retainer.schema.support import ticket_replies, tickets
from retainer.schema.work import counted_cost_rates, milestones, projects, tasks, time_entries
from retainer.store.engines.sql import INTEGER, next_day
from retainer.values.exact import LAST_DAY


class Source(NamedTuple):
    """Rows to sum: each has the `record_id` by which it is found, its day, the keys of the summaries, and figures."""

    rows: Select[Any]
    targets: tuple[Table, ...]
    """The summaries, and the tables with totals of their own (`record_totals`)."""
    statuses: tuple[str, ...] = ()
    """The statuses of rows that count; empty for rows without a status."""
    table: Table | None = None
    """The table that has one row for each row of the source; both are inserted and deleted together."""

    @property
    def has_one_row(self) -> bool:
        """Return whether a record has exactly one row, so that there is nothing to group."""
        return self.table is not None and "id" in self.table.c


KEYS = {
    *("account_id", "record_id", "day", "currency", "status"),
    *("user_id", "client_id", "project_id", "milestone_id", "task_id", "ticket_id", "tag_id"),
}
"""The columns of sources that are not figures."""
ZERO, ONE = literal(0, INTEGER), literal(1, INTEGER)


def key_of(table: Table) -> str:
    """Return the column of a source's rows that refers to a table: `client_id`."""
    return f"{table.name.removesuffix('s')}_id"


COST_RATE = (
    select(counted_cost_rates.c.amount)
    .where(
        counted_cost_rates.c.user_id == time_entries.c.user_id, counted_cost_rates.c.from_date <= time_entries.c.date
    )
    .order_by(counted_cost_rates.c.from_date.desc())
    .limit(1)
    .scalar_subquery()
)
"""The cost of an hour of the entry's user on its day, in minor units, as counted in the sums."""


def labour_at(rate: ColumnElement[int]) -> tuple[ColumnElement[int], ColumnElement[int]]:
    """Return the cost of an entry at a rate, in sixtieths of a minor unit, and its minutes without a rate."""
    minutes = time_entries.c.duration_minutes
    return minutes * func.coalesce(rate, 0), case((rate.is_(None), minutes), else_=0)


LABOUR_COST, MISSING_RATE = labour_at(COST_RATE)

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
        LABOUR_COST.label("labour_cost"),
        MISSING_RATE.label("missing_cost_rate_minutes"),
    ),
    (projects, tasks, tickets, project_sums, user_sums),
    table=time_entries,
)
"""Time entries: minutes, value, billable minutes without a rate, and minutes x cost rate of the day."""

BILLED_TIME = Source(
    select(
        time_entries.c.account_id,
        time_entries.c.invoice_line_id.label("record_id"),
        time_entries.c.date.label("day"),
        *time_entries.c["client_id", "project_id", "user_id", "currency"],
        time_entries.c.duration_minutes.label("billed_minutes"),
        time_entries.c.amount.label("billed_value"),
    ).where(time_entries.c.invoice_line_id.is_not(None)),
    (projects, project_sums, user_sums),
)
"""Time entries on lines of invoices; found by the line."""

EXPENSES = Source(
    select(
        expenses.c.account_id,
        expenses.c.id.label("record_id"),
        expenses.c.date.label("day"),
        *expenses.c["client_id", "project_id", "currency"],
        expenses.c.net_amount.label("expenses"),
        expenses.c.billable_amount.label("billable_expenses"),
    ),
    (projects, project_sums, client_sums, money_sums),
    table=expenses,
)
"""Expenses: net, and the amount to bill to clients."""

BILLED_EXPENSES = Source(
    select(
        expenses.c.account_id,
        expenses.c.invoice_line_id.label("record_id"),
        expenses.c.date.label("day"),
        expenses.c.client_id,
        expenses.c.currency,
        expenses.c.billable_amount.label("billed_expenses"),
    ).where(expenses.c.invoice_line_id.is_not(None)),
    (client_sums, money_sums),
)
"""Expenses on lines of invoices; found by the line."""

INVOICES = Source(
    select(
        invoices.c.account_id,
        invoices.c.id.label("record_id"),
        invoices.c.issue_date.label("day"),
        *invoices.c["client_id", "currency", "status"],
        ONE.label("invoice_count"),
        invoices.c.subtotal.label("invoiced"),
        invoices.c.tax_total.label("invoiced_tax"),
    ),
    (client_sums, money_sums),
    ISSUED_INVOICES,
)
"""Invoices: net and tax."""

INVOICE_LINES = Source(
    select(
        invoices.c.account_id,
        invoices.c.id.label("record_id"),
        invoices.c.issue_date.label("day"),
        invoices.c.client_id,
        func.coalesce(invoice_lines.c.project_id, invoices.c.project_id).label("project_id"),
        invoices.c.currency,
        invoices.c.status,
        invoice_lines.c.amount.label("invoiced"),
    ).select_from(invoices.join(invoice_lines, invoice_lines.c.invoice_id == invoices.c.id)),
    (projects, project_sums),
    ISSUED_INVOICES,
)
"""Lines of invoices: net, by the project of the line or else of the invoice; found by the invoice."""

CREDIT_NOTES = Source(
    select(
        credit_notes.c.account_id,
        credit_notes.c.id.label("record_id"),
        credit_notes.c.issue_date.label("day"),
        credit_notes.c.client_id,
        credit_notes.c.currency,
        credit_notes.c.subtotal.label("credited"),
        credit_notes.c.tax_total.label("credited_tax"),
    ),
    (client_sums, money_sums),
)
"""Credit notes: net and tax."""

CREDIT_NOTE_SHARES = Source(
    select(
        credit_notes.c.account_id,
        credit_notes.c.id.label("record_id"),
        credit_notes.c.issue_date.label("day"),
        credit_notes.c.client_id,
        credit_note_shares.c.project_id,
        credit_notes.c.currency,
        credit_note_shares.c.amount.label("credited"),
    ).select_from(credit_notes.join(credit_note_shares, credit_note_shares.c.credit_note_id == credit_notes.c.id)),
    (projects, project_sums),
)
"""Credit notes: the share of their net that each project is credited with; found by the note."""

PAYMENTS = Source(
    select(
        payments.c.account_id,
        payments.c.id.label("record_id"),
        payments.c.paid_date.label("day"),
        invoices.c.client_id,
        payments.c.currency,
        payments.c.amount.label("collected"),
    ).select_from(payments.join(invoices, invoices.c.id == payments.c.invoice_id)),
    (client_sums, money_sums),
)
"""Payments less refunds, tax included."""


def _balance(until: Callable[[Any], ColumnElement[bool]]) -> tuple[ColumnElement[int], ...]:
    """Return what is due on an invoice after all events on the days for which `until` is true, and what to refund."""
    balance: ColumnElement[Any] = invoices.c.total
    for amount, day, invoice_id in (
        (payments.c.amount, payments.c.paid_date, payments.c.invoice_id),
        (credit_notes.c.total, credit_notes.c.issue_date, credit_notes.c.invoice_id),
    ):
        settled = select(func.coalesce(func.sum(amount), 0)).where(invoice_id == invoices.c.id, until(day))
        balance -= settled.scalar_subquery()
    is_issued = until(invoices.c.issue_date)
    is_open = and_(is_issued, ~until(invoices.c.settled_date), balance > 0)
    return case((is_open, balance), else_=0), case((and_(is_issued, balance < 0), -balance), else_=0)


def _balance_steps() -> Select[Any]:
    """Return a select of the daily changes in the outstanding, overdue and refundable amounts of invoices.

    The balance of an issued invoice is its total less payments and credits up to the day; a negative one is to be
    refunded. It is overdue from the day after its due date. A void invoice was never due; a written-off invoice is no
    longer due.
    """
    changes = union(  # the days on which one of the amounts may change
        select(invoices.c.id.label("record_id"), invoices.c.issue_date.label("day")),
        select(invoices.c.id, next_day(invoices.c.due_date)),
        select(invoices.c.id, invoices.c.settled_date).where(invoices.c.settled_date < LAST_DAY),
        select(payments.c.invoice_id, payments.c.paid_date),
        select(credit_notes.c.invoice_id, credit_notes.c.issue_date),
    ).subquery()
    day = changes.c.day
    (now, owed), (before, was_owed) = (_balance(until) for until in (day.__ge__, day.__gt__))
    late, was_late = invoices.c.due_date < day, next_day(invoices.c.due_date) < day
    figures = (now.label("now"), before.label("before"), late.label("late"), was_late.label("was_late"))
    refunds = (owed.label("owed"), was_owed.label("was_owed"))
    names = (invoices.c.account_id, changes.c.record_id, day, *invoices.c["client_id", "currency"])
    rows = select(*names, *figures, *refunds).where(
        invoices.c.id == changes.c.record_id, invoices.c.settled_date.is_not(None), day.is_not(None)
    )
    step = rows.subquery().c
    overdue = [case((late, due), else_=0) for late, due in ((step.late, step.now), (step.was_late, step.before))]
    count = [case((due > 0, 1), else_=0) for due in overdue]
    return select(
        *step["account_id", "record_id", "day", "client_id", "currency"],
        (step.now - step.before).label("outstanding"),
        (overdue[0] - overdue[1]).label("overdue"),
        (count[0] - count[1]).label("overdue_count"),
        (step.owed - step.was_owed).label("refund_due"),
    )


BALANCES = Source(_balance_steps(), (client_sums, money_sums))
"""The outstanding, overdue and refundable amounts of invoices, as changes from day to day; found by the invoice."""

CONTACTS = Source(
    select(
        external_contacts.c.account_id,
        external_contacts.c.id.label("record_id"),
        external_contacts.c.client_id,
        ONE.label("contacts"),
    ),
    (clients,),
    table=external_contacts,
)
"""External contacts."""

PROJECTS = Source(
    select(
        projects.c.account_id,
        projects.c.id.label("record_id"),
        projects.c.client_id,
        case((projects.c.is_template, 0), else_=1).label("live_projects"),
    ),
    (clients,),
    table=projects,
)
"""Projects; templates do not count."""

SITES = Source(
    select(sites.c.account_id, sites.c.id.label("record_id"), sites.c.client_id, ONE.label("sites")),
    (clients,),
    table=sites,
)
"""Sites."""

TASKS = Source(
    select(
        tasks.c.account_id,
        tasks.c.id.label("record_id"),
        tasks.c.project_id,
        tasks.c.milestone_id,
        tasks.c.parent_id.label("task_id"),
        ONE.label("tasks"),
        case((tasks.c.status == "done", 1), else_=0).label("done_tasks"),
        case((tasks.c.status == "cancelled", 1), else_=0).label("cancelled_tasks"),
    ),
    (projects, milestones, tasks),
    table=tasks,
)
"""Tasks, by project, milestone and parent task."""

REPLIES = Source(
    select(
        ticket_replies.c.account_id,
        ticket_replies.c.id.label("record_id"),
        ticket_replies.c.ticket_id,
        ONE.label("replies"),
    ),
    (tickets,),
    table=ticket_replies,
)
"""Replies to tickets."""

TAG_USES = {
    owner: Source(
        select(links.c.account_id, links.c.record_id, links.c.tag_id, ONE.label("uses")), (tags,), table=links
    )
    for owner, links in TAG_LINKS.items()
}
"""The tags of the records of each table."""

SOURCES = (
    *(TIME, BILLED_TIME, EXPENSES, BILLED_EXPENSES, INVOICES, INVOICE_LINES, CREDIT_NOTES, CREDIT_NOTE_SHARES),
    *(PAYMENTS, BALANCES, CONTACTS, PROJECTS, SITES, TASKS, REPLIES, *TAG_USES.values()),
)


def negated(source: Source) -> Select[Any]:
    """Return a select of a source's rows with negated figures, to subtract deleted rows."""
    columns = source.rows.selected_columns
    opposite = (each if each.name in KEYS else (-each).label(each.name) for each in columns)
    return source.rows.with_only_columns(*opposite)
