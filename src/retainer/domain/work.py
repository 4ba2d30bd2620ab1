"""What work has come to: its time, value, budget and progress, as expressions of a table."""

from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, Update, and_, bindparam, case, func, or_, select, update

from retainer.exact import minor_units
from retainer.store.columns import among
from retainer.store.engines import INTEGER
from retainer.store.records import Derived
from retainer.store.tables import TODAY, metadata
from retainer.store.tx import Tx

COVERED = ("fixed_fee", "retainer")
"""The billing types of projects whose hours the fee covers: they are not billed beside it (contract 3.8)."""


def percent(hundredths: int | None) -> float | None:
    """A ratio that was counted in hundredths of a percent, as a JSON number with two places."""
    return None if hundredths is None else hundredths / 100


def ratio(part: ColumnElement[Any], whole: ColumnElement[Any]) -> ColumnElement[Any]:
    """A part of a whole in hundredths of a percent, halves up; null when the whole is nothing."""
    return case((whole > 0, (20000 * part + whole) // (2 * whole)))


def overdue(*still_open: str) -> Callable[[Any], ColumnElement[bool]]:
    """Whether something should be done by now and is in one of these states."""
    return lambda table: and_(among(table.c.status, still_open), was_due(table))


def was_due(table: Table) -> ColumnElement[bool]:
    """Whether something should be done by now."""
    due: ColumnElement[bool] = table.c.due_date < TODAY
    return due


def count_of(child: str, column: str, *, having: Callable[[Any], ColumnElement[bool]] | None = None) -> Derived:
    """How many rows of a table refer to the record; of those `having` a condition, if one is given."""

    def expression(table: Table) -> ColumnElement[Any]:
        rows = metadata.tables[child].alias()
        counted = select(func.count()).select_from(rows).where(rows.c[column] == table.c.id)
        return (counted if having is None else counted.where(having(rows))).scalar_subquery()

    return Derived(expression)


def is_live(projects: Any) -> ColumnElement[bool]:
    """Whether a project is one, and not a template."""
    live: ColumnElement[bool] = projects.c.is_template.is_(False)
    return live


def minutes(of: str) -> Derived:
    """The minutes of the time entries that refer to the record by this column."""

    def expression(table: Table) -> ColumnElement[Any]:
        entries = metadata.tables["time_entries"]
        added = select(func.coalesce(func.sum(entries.c.duration_minutes), 0)).select_from(entries)
        return added.where(entries.c[of] == table.c.id).scalar_subquery()

    return Derived(expression)


def spent(of: str) -> Derived:
    """The net of the expenses that refer to the record by this column and are in its currency."""

    def expression(table: Table) -> ColumnElement[Any]:
        expenses = metadata.tables["expenses"]
        added = select(func.coalesce(func.sum(expenses.c.net_amount), 0)).select_from(expenses)
        its = (expenses.c[of] == table.c.id, expenses.c.currency == table.c.currency)
        return added.where(*its).scalar_subquery()

    return Derived(expression, money=True)


def remaining(of: str) -> Derived:
    """The estimated minutes that are not yet worked; never less than nothing, null without an estimate."""
    worked = minutes(of).expression
    return Derived(lambda table: table.c.estimated_minutes - worked(table), lambda n: None if n is None else max(0, n))


def progress(table: Table) -> ColumnElement[Any]:
    """The done tasks of a project as a ratio of those that are not cancelled."""
    done = count_of("tasks", "project_id", having=lambda tasks: tasks.c.status == "done")
    meant = count_of("tasks", "project_id", having=lambda tasks: tasks.c.status != "cancelled")
    return ratio(done.expression(table), meant.expression(table))


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


def begin(project: Any) -> None:
    """A new project has neither time nor invoices yet."""
    project.tracked_minutes = project.billable_minutes = project.unbilled_minutes = 0
    project.billable_amount = project.unbilled_amount = project.invoiced_amount = Decimal(0)


def count(tx: Tx, entry: Any, sign: int) -> None:
    """Add a time entry to the sums that its project keeps, or, with the sign -1, take it away.

    They are kept in the transaction that changes the entry: to add up all entries of the projects in a list would take
    longer with every day of work. Amounts of another currency than the project's are not in its sums.
    """
    if entry.project_id is not None:
        spent = sign * entry.duration_minutes
        worth = sign * minor_units(entry.amount, entry.currency)
        billable = spent if entry.billable else 0
        tx.run(_counted(), project=entry.project_id, spent=spent, billable=billable, worth=worth, its=entry.currency)


@cache
def _counted() -> Update:
    projects = metadata.tables["projects"]
    same = case((projects.c.currency == bindparam("its"), bindparam("worth", type_=INTEGER)), else_=0)
    covered, billable = is_covered(projects), bindparam("billable", type_=INTEGER)
    sums = {"tracked_minutes": bindparam("spent"), "billable_amount": same, "billable_minutes": billable}
    sums |= {"unbilled_amount": case((covered, 0), else_=same), "unbilled_minutes": case((covered, 0), else_=billable)}
    values: dict[str, Any] = {name: projects.c[name] + more for name, more in sums.items()}
    return update(projects).where(projects.c.id == bindparam("project")).values(values)


def bill(tx: Tx, line: int, sign: int) -> None:
    """Take the time on an invoice's line from what is unbilled of its projects, with the sign -1, or give it back."""
    tx.run(_billed(), line=line, sign=sign)


@cache
def _billed() -> Update:
    projects, entries = metadata.tables["projects"], metadata.tables["time_entries"]
    on_it = entries.c.invoice_line_id == bindparam("line")
    its = and_(on_it, entries.c.project_id == projects.c.id)
    sign = bindparam("sign", type_=INTEGER)

    def added(column: ColumnElement[Any], *limits: ColumnElement[bool]) -> ColumnElement[Any]:
        total = select(func.coalesce(func.sum(column), 0)).select_from(entries).where(its, *limits)
        return sign * total.scalar_subquery()

    minutes = added(entries.c.duration_minutes)
    worth = added(entries.c.amount, entries.c.currency == projects.c.currency)
    sums = {"unbilled_minutes": minutes, "unbilled_amount": worth}
    values: dict[str, Any] = {name: projects.c[name] + more for name, more in sums.items()}
    billed = projects.c.id.in_(select(entries.c.project_id).where(on_it))
    return update(projects).where(billed, ~is_covered(projects)).values(values)


def invoice(tx: Tx, project: int, units: int, currency: str) -> None:
    """Add what an issued invoice bills of a project, or, less than nothing, take it away when that is void."""
    tx.run(_invoiced(), project=project, units=units, its=currency)


@cache
def _invoiced() -> Update:
    projects = metadata.tables["projects"]
    its = and_(projects.c.id == bindparam("project"), projects.c.currency == bindparam("its"))
    more: dict[str, Any] = {"invoiced_amount": projects.c.invoiced_amount + bindparam("units", type_=INTEGER)}
    return update(projects).where(its).values(more)


def is_covered(projects: Table) -> ColumnElement[bool]:
    """Whether the hours of a project are covered by its fee."""
    return among(projects.c.billing_type, COVERED)


@cache
def covered_projects() -> Select[Any]:
    """Return the ids of the projects whose hours are covered by their fee."""
    projects = metadata.tables["projects"]
    return select(projects.c.id).where(is_covered(projects))


def recount(tx: Tx, column: str, value: int) -> None:
    """Add up again what the entries of projects are worth, after their currency or billing type was changed."""
    tx.run(_recount(column), value=value)


@cache
def _recount(column: str) -> Update:
    projects, entries = metadata.tables["projects"], metadata.tables["time_entries"]
    on_project, on_no_invoice = entries.c.project_id == projects.c.id, entries.c.invoice_line_id.is_(None)
    same = entries.c.currency == projects.c.currency

    def total(amount: ColumnElement[Any], *limits: ColumnElement[bool]) -> ColumnElement[Any]:
        return select(func.coalesce(func.sum(amount), 0)).where(on_project, *limits).scalar_subquery()

    def unless_covered(amount: ColumnElement[Any]) -> ColumnElement[Any]:
        return case((is_covered(projects), 0), else_=amount)

    minutes = total(entries.c.duration_minutes, on_no_invoice, entries.c.billable.is_(True))
    sums: dict[str, Any] = {
        "billable_amount": total(entries.c.amount, same),
        "unbilled_amount": unless_covered(total(entries.c.amount, same, on_no_invoice)),
        "unbilled_minutes": unless_covered(minutes),
    }
    return update(projects).where(projects.c[column] == bindparam("value")).values(sums)
