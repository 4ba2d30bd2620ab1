"""What projects and tasks have come to: progress, budget, costs and time that is left, as expressions."""

from typing import Any

from sqlalchemy import ColumnElement, Table, and_, case, func, or_, select

from retainer.schema.billing import expenses
from retainer.schema.expressions import count_of, minutes_on, ratio
from retainer.schema.work import tasks
from retainer.store.records import Derived


def _spent(table: Table) -> ColumnElement[Any]:
    added = select(func.coalesce(func.sum(expenses.c.net_amount), 0)).select_from(expenses)
    of_project = (expenses.c.project_id == table.c.id, expenses.c.currency == table.c.currency)
    return added.where(*of_project).scalar_subquery()


SPENT = Derived(_spent, money=True)
"""The net of a project's expenses in its currency."""


def _remaining(table: Table) -> ColumnElement[Any]:
    return table.c.estimated_minutes - minutes_on("task_id").expression(table)


REMAINING = Derived(_remaining, lambda minutes: None if minutes is None else max(0, minutes))
"""The estimated minutes of a task that are not yet worked; never less than nothing, null without an estimate."""


def done_ratio(table: Table) -> ColumnElement[Any]:
    """The done tasks of a project as a ratio of those that are not cancelled."""
    done = count_of(tasks, "project_id", having=lambda rows: rows.c.status == "done")
    planned = count_of(tasks, "project_id", having=lambda rows: rows.c.status != "cancelled")
    return ratio(done.expression(table), planned.expression(table))


def budget_used(table: Table) -> ColumnElement[Any]:
    """Billable value of a project's budget_amount, or tracked time of its budget_minutes; the greater of both."""
    spent = ratio(table.c.billable_amount, table.c.budget_amount)
    worked = ratio(table.c.tracked_minutes, table.c.budget_minutes)
    both = and_(table.c.budget_amount > 0, table.c.budget_minutes > 0)
    return case((both, case((spent > worked, spent), else_=worked)), (table.c.budget_amount > 0, spent), else_=worked)


def over_budget(table: Table) -> ColumnElement[bool]:
    """Whether a project has gone beyond its budget_amount or its budget_minutes, by however little."""
    spent = and_(table.c.budget_amount > 0, table.c.billable_amount > table.c.budget_amount)
    return or_(spent, and_(table.c.budget_minutes > 0, table.c.tracked_minutes > table.c.budget_minutes))
