"""Projects: budget against use, tasks by status, people with their hours, and unbilled work."""

from collections.abc import Iterator
from functools import partial
from typing import get_args

from sqlalchemy import bindparam, func, select

from retainer.billing.invoices.preview import load_preview
from retainer.billing.invoices.unbilled import LeftOut
from retainer.console import words
from retainer.console.kinds.display import Display, RecordPage
from retainer.console.values import NOTHING, AnyBlock, Block, Column, Fact, TableBlock, Value, badge_of, table_of
from retainer.kernel.paging import first_records
from retainer.schema.identity import users
from retainer.schema.work import milestones, tasks, time_entries
from retainer.values.exact import amount_of
from retainer.values.reading import unwrapped
from retainer.work.milestones import Milestone, MilestoneFilter
from retainer.work.project_types import Project
from retainer.work.tasks import Status

SHOWN_MILESTONES = 50
NEWEST_ENTRIES = 2000
"""Time entries whose hours are added up by person; of a longer project, these are the newest."""
TASKS_BY_STATUS = (
    select(tasks.c.status, func.count(), func.sum(func.coalesce(tasks.c.estimated_minutes, 0)))
    .where(tasks.c.project_id == bindparam("project"))
    .group_by(tasks.c.status)
)
NEWEST = (
    select(*time_entries.c["user_id", "date", "duration_minutes", "billable"])
    .where(time_entries.c.project_id == bindparam("project"))
    .order_by(time_entries.c.date.desc(), time_entries.c.id.desc())
    .limit(bindparam("limit"))
    .subquery()
)
HOURS_BY_PERSON = (
    select(NEWEST.c.user_id, func.sum(NEWEST.c.duration_minutes), func.min(NEWEST.c.date), func.max(NEWEST.c.date))
    .group_by(NEWEST.c.user_id)
    .order_by(func.sum(NEWEST.c.duration_minutes).desc(), NEWEST.c.user_id)
)
LEFT_OUT = {"covered": "that the fee covers", "unpriced": "without a rate"}
"""Why time is not billed, after its hours."""
FEES_LEFT_OUT = {
    "fee_billed": "{amount} of milestones whose fixed fee is billed already, perhaps by the invoice of its quote",
    "open_fee": "{amount} of fixed fees whose projects are not completed",
}
TERMS = (
    *("billing_type", "hourly_rate", "fixed_fee", "retainer_amount", "auto_invoice", "start_date", "due_date"),
    *("manager_id", "currency", "expense_amount", "quote_id"),
)


def facts(page: RecordPage[Project]) -> list[Fact]:
    time = partial(page.path, "time-entries", project_id=f"{page.own.id}")
    bill = f"{page.kind.path_of(page.own)}/bill" if page.own.client_id else ""
    billable = f"{words.hours(page.record.billable_minutes)} h billable"
    return [
        *page.facts("client_id", "budget_used_percent"),
        Fact("Tracked time", page.value("tracked_minutes"), time(), billable),
        Fact("To bill", page.value("to_bill_amount"), bill),
        Fact("Invoiced", page.value("invoiced_amount"), "", "before tax"),
        *page.facts("due_date"),
    ]


def blocks(page: RecordPage[Project]) -> Iterator[AnyBlock]:
    budget, terms = budget_table(page.record), page.fields("Terms", TERMS)
    yield Block("group", blocks=[*([budget] if budget.rows else []), terms])
    beside = [block for block in (next_invoice(page), tasks_by_status(page), hours_by_person(page)) if block.rows]
    if beside:
        yield Block("group", blocks=beside)


def budget_table(project: Project) -> TableBlock:
    rows = []
    if project.budget_amount:
        used, limit = project.billable_amount, project.budget_amount
        rows.append(["Amount", *(words.money(each, project.currency) for each in (limit, used, limit - used))])
    if project.budget_minutes:
        minutes, allowed = project.tracked_minutes, project.budget_minutes
        rows.append(["Time", *(f"{words.hours(each)} h" for each in (allowed, minutes, allowed - minutes))])
    return table_of("Budget", ("Limit", "Budget", "Used", "Left"), rows, numbers=3)


def next_invoice(page: RecordPage[Project]) -> TableBlock:
    """Return what the next invoice would bill of a project, in each currency; without rows if there is nothing."""
    rows, notes = list[tuple[str, ...]](), list[str]()
    for row in load_preview(page.tx, page.own.id).rows:
        parts = (
            ("Time", f"{words.hours(row.time.minutes)} h", row.time.amount),
            ("Expenses", words.number(row.expenses.count), row.expenses.amount),
            ("Milestones", words.number(row.milestones.count), row.milestones.amount),
            ("Retainer", words.count(len(row.fees.months), "month"), row.fees.amount),
            ("Fixed fee", "", row.fixed_fees.amount),
        )
        rows += [(name, size, words.money(amount, row.currency)) for name, size, amount in parts if amount]
        notes += map(left_out_text, row.left_out)
    note = f"Left out: {', '.join(notes)}." if notes else ""
    return table_of("Next invoice", ("Work", "Quantity", "Amount"), rows, numbers=2, note=note)


def left_out_text(part: LeftOut) -> str:
    """Return what is not billed, and why, as part of a sentence."""
    if part.reason in LEFT_OUT:
        return f"{words.hours(part.minutes)} h {LEFT_OUT[part.reason]}"
    amount = words.money(part.amount or amount_of(0, part.currency), part.currency)
    return FEES_LEFT_OUT[part.reason].format(amount=amount) if part.reason in FEES_LEFT_OUT else amount


def tasks_by_status(page: RecordPage[Project]) -> TableBlock:
    found = {status: sums for status, *sums in page.tx.all(TASKS_BY_STATUS, project=page.own.id)}
    rows = []
    for status in get_args(unwrapped(Status)[0]):
        if status in found:
            size, estimated = found[status]
            link = page.link(words.number(size), "tasks", project_id=f"{page.own.id}", status=status)
            rows.append((badge_of(status), link, f"{words.hours(estimated)} h" if estimated else NOTHING))
    return table_of("Tasks by status", ("Status", "Tasks", "Estimated"), rows, numbers=2)


def hours_by_person(page: RecordPage[Project]) -> TableBlock:
    rows, total, first_days = list[tuple[Value | str, ...]](), 0, list[str]()
    for user_id, minutes, first, last in page.tx.all(HOURS_BY_PERSON, project=page.own.id, limit=NEWEST_ENTRIES):
        person = Value("link", link=page.names.refer(users, user_id))
        filters = {"project_id": f"{page.own.id}", "user_id": f"{user_id}"}
        time = page.link(f"{words.hours(minutes)} h", "time-entries", **filters)
        rows.append((person, time, words.short_day(last)))
        first_days.append(first)
        total += minutes
    note = ""
    if rows and total != page.own.tracked_minutes:
        entries = words.count(NEWEST_ENTRIES, "entry", "entries")
        note = f"In the newest {entries}, since {words.short_day(min(first_days))}."
    return table_of("People", ("Person", "Time", "Last day"), rows, numbers=2, note=note)


def own_blocks(page: RecordPage[Project]) -> Iterator[AnyBlock]:
    """Yield what people who work on a project see of it besides its texts: its milestones, without amounts."""
    found = first_records(
        *(page.tx, milestones, Milestone, MilestoneFilter(), MilestoneFilter.sorts[:1], SHOWN_MILESTONES),
        project_id=page.own.id,
    )
    if found:
        yield page.table("Milestones", found, milestones, ("name", "due_date", "status"))


OWN_DISPLAY = Display(
    columns=(Column("name", "code"), "client_id", "status", "due_date", "budget_minutes", "manager_id"),
    filters=("client_id", "status"),
    facts=("client_id", "budget_minutes", "start_date", "due_date", "manager_id"),
    blocks=own_blocks,
    is_offered=True,
)
DISPLAY = Display(
    columns=(
        *(Column("name", "code"), "client_id", "status", "due_date"),
        *("tracked_minutes", "budget_used_percent", "to_bill_amount", "manager_id"),
    ),
    filters=("client_id", "status", "over_budget"),
    views=(
        ("All", ""),
        ("Active", "status=active"),
        ("Overdue", "overdue=true&sort=due_date"),
        ("Over budget", "over_budget=true"),
        ("Templates", "is_template=true"),
    ),
    facts=facts,
    blocks=blocks,
    is_offered=True,
    rare=("is_template",),
    preset_only=("quote_id",),
)
