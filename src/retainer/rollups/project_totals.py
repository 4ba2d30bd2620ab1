"""Project totals: what a project's time is worth, what is not yet billed and what was invoiced, on the project's row.

They are kept in the transaction that changes a time entry or an invoice: to add up all entries of the projects in a
list would take longer with every day of work. Amounts of another currency than the project's are not in its totals.
"""

from decimal import Decimal
from typing import Any, Protocol

from sqlalchemy import ColumnElement, Update, and_, bindparam, case, func, select, update

from retainer.schema.expressions import is_covered
from retainer.schema.work import projects, time_entries
from retainer.store.engines import INTEGER
from retainer.store.tx import Tx
from retainer.values.exact import minor_units


class HasTotals(Protocol):
    """A project, as far as its totals go."""

    tracked_minutes: int
    billable_minutes: int
    unbilled_minutes: int
    billable_amount: Decimal
    unbilled_amount: Decimal
    invoiced_amount: Decimal


class Priced(Protocol):
    """A time entry, as far as totals count it."""

    project_id: int | None
    duration_minutes: int
    amount: Decimal
    currency: str
    billable: bool


def init_totals(project: HasTotals) -> None:
    """Set the totals of a new project, which has neither time nor invoices yet."""
    project.tracked_minutes = project.billable_minutes = project.unbilled_minutes = 0
    project.billable_amount = project.unbilled_amount = project.invoiced_amount = Decimal(0)


def apply_time(tx: Tx, entry: Priced, sign: int) -> None:
    """Add a time entry to the totals of its project, or, with the sign -1, take it away."""
    if entry.project_id is not None:
        minutes = sign * entry.duration_minutes
        amount = sign * minor_units(entry.amount, entry.currency)
        billable = minutes if entry.billable else 0
        figures = {"minutes": minutes, "billable": billable, "amount": amount, "currency": entry.currency}
        tx.run(APPLY_TIME, project=entry.project_id, **figures)


def apply_billing(tx: Tx, line_id: int, sign: int) -> None:
    """Take the time on an invoice's line from what is unbilled of its projects, with the sign -1, or give it back."""
    tx.run(APPLY_BILLING, line=line_id, sign=sign)


def apply_invoiced(tx: Tx, project_id: int, units: int, currency: str) -> None:
    """Add what an issued invoice bills of a project, in minor units; less than 0 when that is void or credited."""
    tx.run(APPLY_INVOICED, project=project_id, units=units, currency=currency)


def recount_client(tx: Tx, client_id: int) -> None:
    """Recount the totals of a client's projects after their currency has changed."""
    tx.run(RECOUNT_CLIENT, id=client_id)


def recount_project(tx: Tx, project_id: int) -> None:
    """Recount the totals of a project after its billing type has changed."""
    tx.run(RECOUNT_PROJECT, id=project_id)


def _apply_time() -> Update:
    same = case((projects.c.currency == bindparam("currency"), bindparam("amount", type_=INTEGER)), else_=0)
    covered, billable = is_covered(projects), bindparam("billable", type_=INTEGER)
    sums = {"tracked_minutes": bindparam("minutes"), "billable_amount": same, "billable_minutes": billable}
    sums |= {"unbilled_amount": case((covered, 0), else_=same), "unbilled_minutes": case((covered, 0), else_=billable)}
    values: dict[str, Any] = {name: projects.c[name] + more for name, more in sums.items()}
    return update(projects).where(projects.c.id == bindparam("project")).values(values)


def _apply_billing() -> Update:
    on_line = time_entries.c.invoice_line_id == bindparam("line")
    of_project = and_(on_line, time_entries.c.project_id == projects.c.id)
    sign = bindparam("sign", type_=INTEGER)

    def added(column: ColumnElement[Any], *limits: ColumnElement[bool]) -> ColumnElement[Any]:
        total = select(func.coalesce(func.sum(column), 0)).select_from(time_entries).where(of_project, *limits)
        return sign * total.scalar_subquery()

    minutes = added(time_entries.c.duration_minutes)
    amount = added(time_entries.c.amount, time_entries.c.currency == projects.c.currency)
    sums = {"unbilled_minutes": minutes, "unbilled_amount": amount}
    values: dict[str, Any] = {name: projects.c[name] + more for name, more in sums.items()}
    billed = projects.c.id.in_(select(time_entries.c.project_id).where(on_line))
    return update(projects).where(billed, ~is_covered(projects)).values(values)


def _apply_invoiced() -> Update:
    same = and_(projects.c.id == bindparam("project"), projects.c.currency == bindparam("currency"))
    more: dict[str, Any] = {"invoiced_amount": projects.c.invoiced_amount + bindparam("units", type_=INTEGER)}
    return update(projects).where(same).values(more)


def _recount() -> Update:
    on_project = time_entries.c.project_id == projects.c.id
    on_no_invoice = time_entries.c.invoice_line_id.is_(None)
    same = time_entries.c.currency == projects.c.currency

    def total(amount: ColumnElement[Any], *limits: ColumnElement[bool]) -> ColumnElement[Any]:
        return select(func.coalesce(func.sum(amount), 0)).where(on_project, *limits).scalar_subquery()

    def unless_covered(amount: ColumnElement[Any]) -> ColumnElement[Any]:
        return case((is_covered(projects), 0), else_=amount)

    minutes = total(time_entries.c.duration_minutes, on_no_invoice, time_entries.c.billable.is_(True))
    sums: dict[str, Any] = {
        "billable_amount": total(time_entries.c.amount, same),
        "unbilled_amount": unless_covered(total(time_entries.c.amount, same, on_no_invoice)),
        "unbilled_minutes": unless_covered(minutes),
    }
    return update(projects).values(sums)


APPLY_TIME, APPLY_BILLING, APPLY_INVOICED = _apply_time(), _apply_billing(), _apply_invoiced()
RECOUNT_CLIENT = _recount().where(projects.c.client_id == bindparam("id"))
RECOUNT_PROJECT = _recount().where(projects.c.id == bindparam("id"))
