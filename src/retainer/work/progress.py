"""Progress: budget used, share of tasks done and remaining time, as SQL expressions."""

from collections.abc import Callable

from sqlalchemy import ColumnElement, Table, and_, case, or_

from retainer.schema.expressions import is_covered, ratio
from retainer.store.row_mapper import Derived


def _remaining(table: Table) -> ColumnElement[int | None]:
    remaining: ColumnElement[int | None] = table.c.estimated_minutes - table.c.tracked_minutes
    return remaining


REMAINING = Derived(_remaining, lambda minutes: max(0, minutes))
"""Estimated minus tracked minutes of a task: at least 0, null without an estimate."""


def unbilled(name: str) -> Callable[[Table], ColumnElement[int]]:
    """Return a total of unbilled time as an expression: 0 if a fee covers the project's time."""
    return lambda table: case((is_covered(table), 0), else_=table.c[name])


def done_ratio(table: Table) -> ColumnElement[int | None]:
    """Return the share of a project's tasks that are done, without cancelled ones, in hundredths of a percent."""
    return ratio(table.c.tasks_done_count, table.c.tasks_count - table.c.tasks_cancelled_count)


def budget_used(table: Table) -> ColumnElement[int | None]:
    """Return the greater of two shares, in hundredths of a percent; null without a budget.

    They are the billable amount of the budget_amount and the tracked time of the budget_minutes.
    """
    of_amount = ratio(table.c.billable_amount, table.c.budget_amount)
    of_minutes = ratio(table.c.tracked_minutes, table.c.budget_minutes)
    has_both = and_(table.c.budget_amount > 0, table.c.budget_minutes > 0)
    greater = case((of_amount > of_minutes, of_amount), else_=of_minutes)
    return case((has_both, greater), (table.c.budget_amount > 0, of_amount), else_=of_minutes)


def over_budget(table: Table) -> ColumnElement[bool]:
    by_amount = and_(table.c.budget_amount > 0, table.c.billable_amount > table.c.budget_amount)
    by_minutes = and_(table.c.budget_minutes > 0, table.c.tracked_minutes > table.c.budget_minutes)
    return or_(by_amount, by_minutes)
