"""To bill: what the next invoices would bill, one figure that pages, lists and reports read from here.

It is the unbilled time and expenses until a day, completed milestones, the months of retainers that have begun, and
what is left of the fixed fees of completed projects. Each part is what `unbilled_work` takes of that kind. Amounts are
before tax, in minor units.
"""

from functools import cache
from typing import NamedTuple

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Select,
    Table,
    and_,
    bindparam,
    case,
    cast,
    func,
    or_,
    select,
    union_all,
)
from sqlalchemy import literal_column as literal_sql

from retainer.rollups import summaries
from retainer.rollups.summaries import Figures, Sums, keyed
from retainer.schema import expressions
from retainer.schema.billing import allocations, expenses, invoice_lines
from retainer.schema.columns import in_literals
from retainer.schema.rollups import project_sums
from retainer.schema.work import milestones, projects, time_entries
from retainer.store.engines.sql import DAY, INSTANT, INTEGER, TEXT, DialectFunction, month_name
from retainer.store.tables import TODAY
from retainer.store.tx import Tx

PARTS = ("unbilled_time", "unbilled_expenses", "unbilled_milestones", "unbilled_fees", "unbilled_fixed_fees")
"""The parts of `to_bill`."""
OF_PROJECTS = (*PARTS[2:], "open_fees", "open_fees_count")
"""The parts that follow from projects, and what is not due yet of fixed fees, with the number of their projects."""
BY_TIME = union_all(select(projects.c.id).where(~expressions.is_covered(projects)), select(literal_sql("0")))
"""The projects whose hours no fee covers, and 0 for time without a project."""
MONTHS = 12
AFTER_ALL = "9999-12-31T00:00:00.000000Z"
"""A moment after all that has happened until now."""


class End(NamedTuple):
    """The last day that counts, and the moment at which it ends; None for now."""

    day: ColumnElement[str]
    moment: ColumnElement[str] | None = None

    def includes(self, moment: ColumnElement[str | None]) -> ColumnElement[bool]:
        """Return whether something has happened by the end."""
        return moment.is_not(None) if self.moment is None else moment < self.moment


NOW = End(TODAY)
DAY_OF_REPORT = End(bindparam("last", type_=DAY), bindparam("until", type_=INSTANT))


def smaller(first: ColumnElement[int], second: ColumnElement[int]) -> ColumnElement[int]:
    return DialectFunction(INTEGER, "min({0}, {1})", "least({0}, {1})", first, second)


def positive(number: ColumnElement[int]) -> ColumnElement[int]:
    return DialectFunction(INTEGER, "max({0}, 0)", "greatest({0}, 0)", number)


def is_unbilled_milestone(project: FromClause) -> tuple[FromClause, ColumnElement[bool]]:
    """Return the tables and the condition of the milestones with an amount that no live invoice has."""
    on_invoice = and_(allocations.c.milestone_id == milestones.c.id, allocations.c.is_live == literal_sql("1"))
    source = milestones.outerjoin(allocations, on_invoice)
    columns = milestones.c
    return source, and_(columns.project_id == project.c.id, columns.amount > 0, allocations.c.id.is_(None))


def left_of_fee(project: FromClause) -> ColumnElement[int]:
    """Return what no invoice bills of a fixed fee: below 0 if invoices bill more."""
    return func.coalesce(project.c.fixed_fee, 0) - project.c.fee_billed_amount


def due_milestones(project: FromClause, end: End) -> ColumnElement[int]:
    """Return the amount of completed milestones, in the order of their completion, as far as the fee is not billed."""
    source, is_unbilled = is_unbilled_milestone(project)
    columns = milestones.c
    running: ColumnElement[int] = DialectFunction(
        INTEGER,
        "sum({0}) OVER (ORDER BY {1}, {2})",
        "CAST(sum({0}) OVER (ORDER BY {1}, {2}) AS BIGINT)",
        *(columns.amount, columns.completed_at, columns.id),
    )
    due = (
        select(columns.amount.label("amount"), running.label("running"))
        .select_from(source)
        .where(is_unbilled, columns.status == "completed", end.includes(columns.completed_at))
        .correlate(project)
        .subquery()
    )
    amount = func.coalesce(func.sum(due.c.amount), 0)
    return select(amount).where(due.c.running <= left_of_fee(project)).correlate(project).scalar_subquery()


def open_milestones(project: FromClause, end: End) -> ColumnElement[int]:
    """Return the amount of the milestones that are not completed: they are billed when they are."""
    source, is_unbilled = is_unbilled_milestone(project)
    is_open = ~and_(milestones.c.status == "completed", func.coalesce(end.includes(milestones.c.completed_at), False))
    amount = select(func.coalesce(func.sum(milestones.c.amount), 0)).select_from(source)
    return amount.where(is_unbilled, is_open).correlate(project).scalar_subquery()


def due_fixed_fee(project: FromClause, end: End) -> ColumnElement[int]:
    """Return what is left of the fixed fee of a completed project, besides its milestones."""
    rest = left_of_fee(project) - due_milestones(project, end) - open_milestones(project, end)
    return case((end.includes(project.c.completed_at), positive(rest)), else_=0)


def month_number(day: ColumnElement[str]) -> ColumnElement[int]:
    text = cast(day, TEXT)
    return MONTHS * cast(func.substr(text, 1, 4), INTEGER) + cast(func.substr(text, 6, 2), INTEGER)


def due_months(project: FromClause, end: End) -> ColumnElement[int]:
    """Return the fees of the months of a retainer that have begun and are on no live invoice."""
    last = case((project.c.fees_to < end.day, project.c.fees_to), else_=end.day)
    begun = positive(month_number(last) - month_number(project.c.fees_from) + 1)
    billed = (
        select(func.count())
        .select_from(invoice_lines)
        .where(
            invoice_lines.c.project_id == project.c.id,
            invoice_lines.c.fee_is_live == literal_sql("1"),
            invoice_lines.c.fee_month.between(month_name(project.c.fees_from), month_name(last)),
        )
        .correlate(project)
        .scalar_subquery()
    )
    return case((project.c.status != "planned", (begun - billed) * project.c.retainer_amount), else_=0)


def due_expenses(project: FromClause, end: End) -> ColumnElement[int]:
    conditions = (
        expressions.is_unbilled(expenses),
        expenses.c.client_id == project.c.client_id,
        expenses.c.project_id == project.c.id,
        expenses.c.currency == project.c.currency,
        expenses.c.date <= end.day,
    )
    amount = select(func.coalesce(func.sum(expenses.c.billable_amount), 0)).select_from(expenses)
    return amount.where(*conditions).correlate(project).scalar_subquery()


def due_time(project: FromClause) -> ColumnElement[int]:
    """Return the value of the unbilled time of a project, without that of days to come."""
    conditions = (
        expressions.is_unbilled(time_entries),
        time_entries.c.project_id == project.c.id,
        time_entries.c.currency == project.c.currency,
        time_entries.c.date > TODAY,
    )
    later = select(func.coalesce(func.sum(time_entries.c.amount), 0)).select_from(time_entries)
    return project.c.unbilled_amount - later.where(*conditions).correlate(project).scalar_subquery()


def of_project(table: Table) -> ColumnElement[int]:
    """Return what is to bill of a project now, in its currency; 0 for templates and internal projects."""
    by_type = case(
        {
            "fixed_fee": due_milestones(table, NOW) + due_fixed_fee(table, NOW),
            "retainer": func.coalesce(due_months(table, NOW), 0),
        },
        value=table.c.billing_type,
        else_=due_time(table),
    )
    is_billed = and_(table.c.client_id.is_not(None), table.c.is_template.is_(False))
    return case((is_billed, by_type + due_expenses(table, NOW)), else_=0)


def read(tx: Tx, by: tuple[str, ...], days: dict[str, str] | None = None, **only: int | str) -> Sums:
    """Return the parts of what is to bill, and `to_bill`, by client, project and currency; groups of zeros are omitted.

    `days` are the `last` day that counts and the moment `until` which it lasts; by default, now. `only` limits the rows
    to a client, a project or a currency.
    """
    days = days or {"last": tx.today, "until": AFTER_ALL}
    whole = (None, days["last"])
    names = ("billable_value", "billed_value")
    found: Sums = {}
    for key, sums in summaries.read(tx, project_sums, whole, by, names, BY_TIME, **only).items():
        found[key] = Figures({"unbilled_time": sums["billable_value"] - sums["billed_value"]})
    of_expenses = tx.all(_unbilled_expenses(by, tuple(only)), last=days["last"], **only)
    of_projects = tx.all(_due_of_projects(by, tuple(only)), **days, **only)
    for part in (keyed(of_expenses, len(by), PARTS[1:2]), keyed(of_projects, len(by), OF_PROJECTS)):
        for key, figures in part.items():
            found.setdefault(key, Figures()).update(figures)
    for figures in found.values():
        figures["to_bill"] = sum(figures[name] for name in PARTS)
    return {key: figures for key, figures in found.items() if any(figures.values())}


@cache
def _unbilled_expenses(by: tuple[str, ...], limits: tuple[str, ...]) -> Select[int]:
    columns = expenses.c
    keys = [func.coalesce(columns[name], 0) if name == "project_id" else columns[name] for name in by]
    conditions = [columns[name] == bindparam(name) for name in limits]
    is_due = (expressions.is_unbilled(expenses), columns.date <= DAY_OF_REPORT.day)
    amounts = select(*keys, func.sum(columns.billable_amount)).where(*is_due, *conditions)
    return amounts.group_by(*(columns[name] for name in by))


@cache
def _due_of_projects(by: tuple[str, ...], limits: tuple[str, ...]) -> Select[int]:
    """Select what is due of fixed fees and retainers: of each project first, as it has several parts."""
    end, columns = DAY_OF_REPORT, projects.c
    names = {"project_id": columns.id, "client_id": columns.client_id, "currency": columns.currency}
    is_fixed = columns.billing_type == "fixed_fee"
    each = (
        select(
            *(names[name].label(name) for name in names),
            case((is_fixed, due_milestones(projects, end)), else_=0).label(PARTS[2]),
            case((~is_fixed, func.coalesce(due_months(projects, end), 0)), else_=0).label(PARTS[3]),
            case((is_fixed, due_fixed_fee(projects, end)), else_=0).label(PARTS[4]),
            case((is_fixed, positive(left_of_fee(projects))), else_=0).label("left"),
        )
        .where(
            in_literals(columns.billing_type, expressions.COVERED),
            columns.client_id.is_not(None),
            columns.is_template.is_(False),
            or_(~is_fixed, left_of_fee(projects) > 0),
            *(names[name] == bindparam(name) for name in limits),
        )
        .subquery()
    )
    open_fee = each.c.left - each.c[PARTS[2]] - each.c[PARTS[4]]
    sums = (*(each.c[name] for name in PARTS[2:]), open_fee, case((open_fee > 0, 1), else_=0))
    keys = [each.c[name] for name in by]
    return select(*keys, *map(func.sum, sums)).group_by(*keys)
