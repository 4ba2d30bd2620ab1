"""What work has come to: its time, value, budget and progress, as expressions of a table."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import ColumnElement, Table, and_, case, func, select

from retainer.store.columns import among
from retainer.store.records import Derived, count_of
from retainer.store.tables import TODAY, metadata


def percent(hundredths: int | None) -> float | None:
    """A ratio that was counted in hundredths of a percent, as a JSON number with two places."""
    return None if hundredths is None else hundredths / 100


def ratio(part: ColumnElement[Any], whole: ColumnElement[Any]) -> ColumnElement[Any]:
    """A part of a whole in hundredths of a percent, halves up; null when the whole is nothing."""
    return case((whole > 0, (20000 * part + whole) // (2 * whole)))


def overdue(*still_open: str) -> Callable[[Any], ColumnElement[bool]]:
    """Whether something should be done by now and is in one of these states."""
    return lambda table: and_(among(table.c.status, still_open), table.c.due_date < TODAY)


def total(column: str, of: str, *, billable: bool = False, same_currency: bool = False) -> Any:
    """The sum of a column over the entries that refer to the record by another column."""

    def expression(table: Table) -> ColumnElement[Any]:
        entries = metadata.tables["time_entries"]
        added = select(func.coalesce(func.sum(entries.c[column]), 0)).select_from(entries)
        added = added.where(entries.c[of] == table.c.id)
        if billable:
            added = added.where(entries.c.billable)
        if same_currency:  # amounts of different currencies are never added
            added = added.where(entries.c.currency == table.c.currency)
        return added.scalar_subquery()

    return expression


def minutes(of: str, *, billable: bool = False) -> Derived:
    """The minutes of the entries that refer to the record by this column."""
    return Derived(total("duration_minutes", of, billable=billable))


def unbilled_amount(of: str) -> Derived:
    """What the billable entries that refer to the record by this column are worth, in its currency."""
    return Derived(total("amount", of, billable=True, same_currency=True), money=True)


def remaining(of: str) -> Derived:
    """The estimated minutes that are not yet worked; never less than nothing, null without an estimate."""
    left = total("duration_minutes", of)
    return Derived(lambda table: table.c.estimated_minutes - left(table), lambda n: None if n is None else max(0, n))


def progress(table: Table) -> ColumnElement[Any]:
    """The done tasks of a project as a ratio of those that are not cancelled."""
    done = count_of("tasks", "project_id", having=lambda tasks: tasks.c.status == "done")
    meant = count_of("tasks", "project_id", having=lambda tasks: tasks.c.status != "cancelled")
    return ratio(done.expression(table), meant.expression(table))


def budget_used(table: Table) -> ColumnElement[Any]:
    """Billable value of a project's budget_amount, or tracked time of its budget_minutes; the greater of both."""
    spent = ratio(total("amount", "project_id", billable=True, same_currency=True)(table), table.c.budget_amount)
    worked = ratio(total("duration_minutes", "project_id")(table), table.c.budget_minutes)
    both = and_(table.c.budget_amount > 0, table.c.budget_minutes > 0)
    return case((both, case((spent > worked, spent), else_=worked)), (table.c.budget_amount > 0, spent), else_=worked)
