"""The page of a project: budget against use, tasks by status, people with their hours, and unbilled work."""

from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from sqlalchemy import bindparam, func, select

from retainer.billing.invoices.preview import load_preview
from retainer.console import words
from retainer.console.records.blocks import Block, Column, Fact, GroupBlock, TableBlock
from retainer.console.records.page import RecordPage
from retainer.console.records.values import NOTHING, Value
from retainer.console.reports.tables import hours
from retainer.console.words import money, short_day
from retainer.schema.identity import users
from retainer.schema.work import tasks, time_entries
from retainer.work.projects import Project

NEWEST_ENTRIES = 2000
"""Time entries whose hours are added up by person; of a longer project, these are the newest."""
HIDDEN = frozenset(
    {
        *("name", "status", "client_id", "billing_type", "due_date", "start_date", "manager_id", "description"),
        *("budget_amount", "budget_minutes", "budget_used_percent", "progress_percent", "tracked_minutes"),
        *("billable_minutes", "billable_amount", "unbilled_minutes", "unbilled_amount", "invoiced_amount"),
        *("expense_amount", "currency", "quote_id", "template_id", "hourly_rate", "fixed_fee", "retainer_amount"),
    }
)
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
TASK_STATUSES = ("todo", "in_progress", "in_review", "done", "cancelled")


class TaskCount(NamedTuple):
    """The tasks of a project that have a status, and their estimates."""

    status: str
    size: int
    estimated_minutes: int


class PersonHours(NamedTuple):
    """The time of a person on a project, and the days of the first and the last entry."""

    user_id: int
    minutes: int
    first: str
    last: str


def facts(page: RecordPage) -> list[Fact]:
    """Return the client, the time, the unbilled value and what is left of the budget."""
    project = page.record
    if not isinstance(project, Project):
        return []
    unbilled = page.path("time-entries", project_id=f"{project.id}", billing_status="unbilled")
    found = page.facts("client_id", "budget_used_percent")
    found += [
        Fact(
            "Time",
            Value("number", f"{hours(project.tracked_minutes)} h"),
            page.path("time-entries", project_id=f"{project.id}"),
            f"{hours(project.billable_minutes)} h billable",
        ),
        Fact("Unbilled", Value("number", money(project.unbilled_amount, project.currency)), unbilled),
        Fact("Invoiced", Value("number", money(project.invoiced_amount, project.currency)), "", "before tax"),
        *page.facts("due_date"),
    ]
    return found


def blocks(page: RecordPage) -> Iterator[Block]:
    """Yield the budget, what the next invoice would bill, the tasks by status and the hours by person."""
    project = page.record
    if not isinstance(project, Project):
        return
    terms = page.fields(
        "Terms",
        (
            *("billing_type", "hourly_rate", "fixed_fee", "retainer_amount", "start_date", "due_date", "manager_id"),
            *("currency", "expense_amount", "quote_id"),
        ),
    )
    budget = budget_table(project)
    yield GroupBlock([*([budget] if budget.rows else []), terms._replace(unset=())])
    found = (next_invoice(page, project), tasks_by_status(page), hours_by_person(page, project))
    beside = [block for block in found if block.rows]
    if beside:
        yield GroupBlock(beside)


def budget_table(project: Project) -> TableBlock:
    """Return the budgets of a project, in money and in time, with what is used and what is left of them."""
    rows = []
    if project.budget_amount:
        used, limit = project.billable_amount, project.budget_amount
        rows.append([Value("text", "Amount"), *(money_value(each, project) for each in (limit, used, limit - used))])
    if project.budget_minutes:
        minutes, allowed = project.tracked_minutes, project.budget_minutes
        cells = [Value("number", f"{hours(each)} h") for each in (allowed, minutes, allowed - minutes)]
        rows.append([Value("text", "Time"), *cells])
    titles = ("Budget", "Used", "Left")
    return TableBlock("Budget", [Column("Limit"), *(Column(each, is_number=True) for each in titles)], rows)


def next_invoice(page: RecordPage, project: Project) -> TableBlock:
    """Return what the next invoice would bill of a project, in each currency; without rows if there is nothing."""
    rows, notes = list[list[Value]](), list[str]()
    for row in load_preview(page.tx, project.id).rows:
        parts = (
            ("Time", f"{hours(row.time.minutes)} h", row.time.amount),
            ("Expenses", f"{row.expenses.count:,}", row.expenses.amount),
            ("Milestones", f"{row.milestones.count:,}", row.milestones.amount),
            ("Retainer", words.count(len(row.fees.months), "month"), row.fees.amount),
        )
        rows += [
            [Value("text", name), Value("number", size), Value("number", money(amount, row.currency))]
            for name, size, amount in parts
            if amount
        ]
        notes += [f"{hours(each.minutes)} h {LEFT_OUT[each.reason]}" for each in row.left_out]
    note = f"Left out: {', '.join(notes)}." if notes else ""
    columns = [Column("Work"), Column("Quantity", is_number=True), Column("Amount", is_number=True)]
    return TableBlock("Next invoice", columns, rows, note=note)


def money_value(amount: Decimal, project: Project) -> Value:
    return Value("number", money(amount, project.currency))


def tasks_by_status(page: RecordPage) -> TableBlock:
    """Return the number of tasks by status, each with a link to them."""
    found = map(TaskCount._make, page.tx.all(TASKS_BY_STATUS, project=page.record.id))
    counts = {each.status: each for each in found}
    columns = [Column("Status"), Column("Tasks", is_number=True), Column("Estimated", is_number=True)]
    rows = [
        [
            page.values.word("status", status),
            page.link(f"{counts[status].size:,}", "tasks", project_id=f"{page.record.id}", status=status),
            Value("number", f"{hours(counts[status].estimated_minutes)} h")
            if counts[status].estimated_minutes
            else NOTHING,
        ]
        for status in TASK_STATUSES
        if status in counts
    ]
    return TableBlock("Tasks by status", columns, rows)


def hours_by_person(page: RecordPage, project: Project) -> TableBlock:
    """Return who worked how long: over all time, or of a long project in its newest entries."""
    people = list(map(PersonHours._make, page.tx.all(HOURS_BY_PERSON, project=project.id, limit=NEWEST_ENTRIES)))
    total = sum(person.minutes for person in people)
    rows = [
        [
            Value("link", link=page.names.refer(users, person.user_id)),
            page.link(
                f"{hours(person.minutes)} h", "time-entries", project_id=f"{project.id}", user_id=f"{person.user_id}"
            ),
            Value("number", short_day(person.last)),
        ]
        for person in people
    ]
    note = ""
    if people and total != project.tracked_minutes:
        first = short_day(min(person.first for person in people))
        note = f"In the newest {words.count(NEWEST_ENTRIES, 'entry', 'entries')}, since {first}."
    columns = [Column("Person"), Column("Time", is_number=True), Column("Last day", is_number=True)]
    return TableBlock("People", columns, rows, note=note)
