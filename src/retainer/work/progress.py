"""What projects and tasks have come to: progress, budget, costs and time that is left, as expressions."""

from sqlalchemy import ColumnElement, Table, and_, case, func, or_, select

from retainer.schema.billing import expenses
from retainer.schema.expressions import count_of, minutes_on, ratio
from retainer.schema.work import tasks
from retainer.store.records import Derived


def _spent(table: Table) -> ColumnElement[int]:
    total = select(func.coalesce(func.sum(expenses.c.net_amount), 0)).select_from(expenses)
    of_project = (expenses.c.project_id == table.c.id, expenses.c.currency == table.c.currency)
    return total.where(*of_project).scalar_subquery()


SPENT = Derived(_spent, money=True)
"""The net of a project's expenses in its currency, in minor units of it."""


def _remaining(table: Table) -> ColumnElement[int | None]:
    return table.c.estimated_minutes - minutes_on("task_id").expression(table)


REMAINING = Derived(_remaining, lambda minutes: None if minutes is None else max(0, minutes))
"""The estimated minutes of a task that are not yet worked; at least 0, null without an estimate."""


def done_ratio(table: Table) -> ColumnElement[int | None]:
    """Return the done tasks of a project as a share of those that are not cancelled, in hundredths of a percent."""
    done = count_of(tasks, "project_id", having=lambda rows: rows.c.status == "done")
    planned = count_of(tasks, "project_id", having=lambda rows: rows.c.status != "cancelled")
    return ratio(done.expression(table), planned.expression(table))


def budget_used(table: Table) -> ColumnElement[int | None]:
    """Return the greater share of a project's budget_amount or budget_minutes, in hundredths of a percent.

    That is the billable amount as a share of the one, or the tracked time of the other; null without a budget.
    """
    of_amount = ratio(table.c.billable_amount, table.c.budget_amount)
    of_minutes = ratio(table.c.tracked_minutes, table.c.budget_minutes)
    has_both = and_(table.c.budget_amount > 0, table.c.budget_minutes > 0)
    greater = case((of_amount > of_minutes, of_amount), else_=of_minutes)
    return case((has_both, greater), (table.c.budget_amount > 0, of_amount), else_=of_minutes)


def over_budget(table: Table) -> ColumnElement[bool]:
    """Whether a project has gone beyond its budget_amount or its budget_minutes, by however little."""
    by_amount = and_(table.c.budget_amount > 0, table.c.billable_amount > table.c.budget_amount)
    by_minutes = and_(table.c.budget_minutes > 0, table.c.tracked_minutes > table.c.budget_minutes)
    return or_(by_amount, by_minutes)
