"""Project totals: what a project's time is worth, what is not yet billed and what was invoiced, on the project's row.

To add up all entries of the projects in a list would take longer with every day of work. Amounts of another currency
than the project's are not in its totals, and nothing is unbilled where a fee covers the hours. Hours without a rate are
not unbilled, either: nobody can bill them yet.
"""

from decimal import Decimal
from typing import Any, Protocol

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Select,
    Update,
    and_,
    bindparam,
    case,
    func,
    literal,
    or_,
    select,
    union_all,
    update,
)

from retainer.rollups.sources import SOURCES
from retainer.schema.columns import among
from retainer.schema.expressions import is_covered
from retainer.schema.work import projects
from retainer.store.engines.sql import INTEGER
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx

FORMULAS = {
    "tracked_minutes": {"tracked_minutes": 1},
    "billable_minutes": {"billable_minutes": 1},
    "billable_amount": {"billable_value": 1},
    "unbilled_minutes": {"billable_minutes": 1, "billed_minutes": -1, "unpriced_minutes": -1},
    "unbilled_amount": {"billable_value": 1, "billed_value": -1},
    "invoiced_amount": {"invoiced": 1, "credited": -1},
}
"""Each total, and the figures of sources that it adds up, with their signs."""
IN_CURRENCY = ("billable_amount", "unbilled_amount", "invoiced_amount")
UNLESS_COVERED = ("unbilled_minutes", "unbilled_amount")
FIGURES = tuple(dict.fromkeys(name for figures in FORMULAS.values() for name in figures))
ZERO = literal(0, INTEGER)


class HasTotals(Protocol):
    """A project, as far as its totals go."""

    tracked_minutes: int
    billable_minutes: int
    unbilled_minutes: int
    billable_amount: Decimal
    unbilled_amount: Decimal
    invoiced_amount: Decimal


def init_totals(project: HasTotals) -> None:
    """Set the totals of a new project, which has neither time nor invoices yet."""
    project.tracked_minutes = project.billable_minutes = project.unbilled_minutes = 0
    project.billable_amount = project.unbilled_amount = project.invoiced_amount = Decimal(0)


def adding(rows: FromClause, *, is_one: bool) -> Update:
    """Return the statement that adds rows of a source to the totals of their projects."""
    if is_one:
        added, project_id = _totals(rows.c, projects), rows.c.project_id
    else:  # added up once for all projects: to look through the rows for each of them takes as long as both multiplied
        project = projects.alias("project")
        sums = [func.sum(total).label(name) for name, total in _totals(rows.c, project).items()]
        of_project = rows.join(project, and_(project.c.id == rows.c.project_id, project.c.account_id == ACCOUNT))
        grouped = select(rows.c.project_id, *sums).select_from(of_project).group_by(rows.c.project_id).subquery("sums")
        added, project_id = {each.name: grouped.c[each.name] for each in sums}, grouped.c.project_id
    values = {
        name: projects.c[name] + (case((is_covered(projects), 0), else_=total) if name in UNLESS_COVERED else total)
        for name, total in added.items()
    }
    return update(projects).values(values).where(projects.c.id == project_id)


def _totals(columns: Any, project: FromClause) -> dict[str, ColumnElement[Any]]:
    """What a row adds to each total of its project, of those in which it has a say."""
    totals = {name: _total(name, columns, project) for name in FORMULAS}
    return {name: total for name, total in totals.items() if total is not None}


def _total(name: str, columns: Any, project: FromClause = projects) -> ColumnElement[Any] | None:
    """What figures of a row add to a total of its project; None when they have no say in it."""
    figures = [(columns[name], sign) for name, sign in FORMULAS[name].items() if name in columns]
    terms: list[Any] = [column if sign == 1 else -column for column, sign in figures]
    if not terms:
        return None
    figure: ColumnElement[Any] = sum(terms[1:], terms[0])
    return case((columns.currency == project.c.currency, figure), else_=0) if name in IN_CURRENCY else figure


def _expected() -> Select[Any]:
    """The totals of every project as its rows make them; only statuses that count."""
    selects = []
    for source in SOURCES:
        if projects in source.feeds:
            selected = source.rows.selected_columns
            rows = source.rows.where(among(selected.status, source.statuses)) if source.statuses else source.rows
            columns = rows.subquery().c
            figures = [columns.get(name, ZERO).label(name) for name in FIGURES]
            selects.append(select(columns.project_id, columns.currency, *figures))
    union = union_all(*selects).subquery()
    totals = []
    for name in FORMULAS:
        total = func.coalesce(func.sum(_total(name, union.c)), 0)
        totals.append((case((is_covered(projects), 0), else_=total) if name in UNLESS_COVERED else total).label(name))
    joined = projects.outerjoin(union, union.c.project_id == projects.c.id)
    return select(projects.c.id, *totals).select_from(joined).group_by(*projects.c["account_id", "id"])


EXPECTED = _expected().subquery()
DIFFERENCES = (
    select(*EXPECTED.c)
    .select_from(projects.join(EXPECTED, EXPECTED.c.id == projects.c.id))
    .where(or_(*(projects.c[name] != EXPECTED.c[name] for name in FORMULAS)))
)
"""The projects whose totals are not those of their rows, and what they should be."""
WRITE = (
    update(projects).where(projects.c.id == bindparam("row_id")).values({name: bindparam(name) for name in FORMULAS})
)


def rebuild(tx: Tx) -> None:
    """Write the totals of projects anew where they are not those of their rows."""
    for project_id, *totals in tx.all(DIFFERENCES):
        tx.run(WRITE, row_id=project_id, **dict(zip(FORMULAS, totals, strict=True)))
