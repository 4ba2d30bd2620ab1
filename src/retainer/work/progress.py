"""What projects and tasks have come to: progress, budget and time that is left, as expressions."""

from collections.abc import Callable

from sqlalchemy import ColumnElement, Table, and_, case, or_

from retainer.schema.expressions import is_covered, ratio
from retainer.store.records import Derived


def _remaining(table: Table) -> ColumnElement[int | None]:
    remaining: ColumnElement[int | None] = table.c.estimated_minutes - table.c.tracked_minutes
    return remaining


REMAINING = Derived(_remaining, lambda minutes: None if minutes is None else max(0, minutes))
"""The estimated minutes of a task that are not yet worked; at least 0, null without an estimate."""


def unbilled(name: str) -> Callable[[Table], ColumnElement[int]]:
    """Return the expression of a total of unbilled time; it is 0 for a project whose fee covers the hours."""
    return lambda table: case((is_covered(table), 0), else_=table.c[name])


def done_ratio(table: Table) -> ColumnElement[int | None]:
    """Return the done tasks of a project as a share of those that are not cancelled, in hundredths of a percent."""
    return ratio(table.c.tasks_done_count, table.c.tasks_count - table.c.tasks_cancelled_count)


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
