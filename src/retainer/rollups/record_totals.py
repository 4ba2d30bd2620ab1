"""Record totals: sums of a record's children on its own row, like a project's time or a client's contacts.

Adding up the children of all records in a list would take longer with every day of work. A project's totals exclude
amounts in other currencies.
"""

from functools import cache
from typing import Any

import sqlalchemy as sa

from retainer.rollups.sources import SOURCES, ZERO
from retainer.schema.crm import clients, tags
from retainer.schema.support import tickets
from retainer.schema.work import milestones, projects, tasks
from retainer.store.announcements import maintaining
from retainer.store.engines.base import Row
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx

Formulas = dict[str, dict[str, int]]
"""The totals of a record, and the signs of the figures that each adds up."""

FORMULAS: dict[sa.Table, Formulas] = {
    clients: {"contacts_count": {"contacts": 1}, "projects_count": {"live_projects": 1}, "sites_count": {"sites": 1}},
    tags: {"usage_count": {"uses": 1}},
    projects: {
        "tracked_minutes": {"tracked_minutes": 1},
        "billable_minutes": {"billable_minutes": 1},
        "billable_amount": {"billable_value": 1},
        "unbilled_minutes": {"billable_minutes": 1, "billed_minutes": -1, "unpriced_minutes": -1},
        "unbilled_amount": {"billable_value": 1, "billed_value": -1},
        "invoiced_amount": {"invoiced": 1, "credited": -1},
        "expense_amount": {"expenses": 1},
        "tasks_count": {"tasks": 1},
        "tasks_done_count": {"done_tasks": 1},
        "tasks_cancelled_count": {"cancelled_tasks": 1},
    },
    milestones: {"tasks_count": {"tasks": 1}, "tasks_done_count": {"done_tasks": 1}},
    tasks: {"tracked_minutes": {"tracked_minutes": 1}, "subtasks_count": {"tasks": 1}},
    tickets: {"replies_count": {"replies": 1}, "tracked_minutes": {"tracked_minutes": 1}},
}
AMOUNTS = tuple(column.name for column in projects.c if column.info.get("money") and "maintained" in column.info)
"""The totals of a project that are in its currency."""


def adding(table: sa.Table, rows: sa.FromClause, reference: str, *, single_row: bool) -> sa.Update:
    """Return the statement that adds rows of a source to the totals of the records that a column of them refers to."""
    key = rows.c[reference]
    if single_row:
        added = _totals(table, rows.c, table)
    else:  # grouped once: scanning the rows for each record would take the product of both
        record = table.alias("record")
        sums = [sa.func.sum(total).label(name) for name, total in _totals(table, rows.c, record).items()]
        of_record = rows.join(record, sa.and_(record.c.id == key, record.c.account_id == ACCOUNT))
        grouped = sa.select(key.label("id"), *sums).select_from(of_record).group_by(key).subquery("sums")
        added, key = {each.name: grouped.c[each.name] for each in sums}, grouped.c.id
    values = {name: table.c[name] + total for name, total in added.items()}
    return maintaining(table, table.c.id == key, values=values)


def _totals(table: sa.Table, columns: Any, record: sa.FromClause) -> dict[str, sa.ColumnElement[int]]:
    """Return what a row adds to each total of its record; totals that do not use its figures are omitted."""
    totals = {name: _total(table, name, columns, record) for name in FORMULAS[table]}
    return {name: total for name, total in totals.items() if total is not None}


def _total(table: sa.Table, name: str, columns: Any, record: sa.FromClause) -> sa.ColumnElement[int] | None:
    """Return what the figures of a row add to a total of its record; None if the total does not use them."""
    figures = [(columns[name], sign) for name, sign in FORMULAS[table][name].items() if name in columns]
    terms: list[Any] = [column if sign == 1 else -column for column, sign in figures]
    if not terms:
        return None
    figure: sa.ColumnElement[int] = sum(terms[1:], terms[0])
    is_amount = table is projects and name in AMOUNTS
    return sa.case((columns.currency == record.c.currency, figure), else_=0) if is_amount else figure


@cache
def differences(table: sa.Table, owner: str | None = None) -> sa.Select[int]:
    """Return a select of the records with mismatched totals, and the totals that they should have.

    With an `owner`, like client_id, it compares only the records of the owner in that parameter.
    """
    figures = dict.fromkeys(figure for formula in FORMULAS[table].values() for figure in formula)
    is_compared = sa.true() if owner is None else table.c[owner] == sa.bindparam(owner)
    selects = []
    for source in SOURCES:
        if table in source.records:
            columns = source.rows.subquery().c
            key = columns[source.records[table]]
            currency = columns.currency if "currency" in columns else sa.null()
            added = (columns.get(name, ZERO).label(name) for name in figures)
            is_needed = key.is_not(None) if owner is None else key.in_(sa.select(table.c.id).where(is_compared))
            selects.append(sa.select(key.label("id"), currency.label("currency"), *added).where(is_needed))
    every = sa.union_all(*selects).subquery().c
    summed = (sa.func.sum(every[name]).label(name) for name in figures)
    groups = sa.select(every.id, every.currency, *summed).group_by(every.id, every.currency).subquery()
    totals = (
        sa.func.coalesce(sa.func.sum(_total(table, name, groups.c, table)), 0).label(name) for name in FORMULAS[table]
    )
    joined = table.outerjoin(groups, groups.c.id == table.c.id)
    expected = (
        sa.select(table.c.id, *totals).select_from(joined).where(is_compared).group_by(*table.c["account_id", "id"])
    )
    right = expected.subquery()
    is_other = sa.or_(*(table.c[name] != right.c[name] for name in FORMULAS[table]))
    return sa.select(*right.c).select_from(table.join(right, right.c.id == table.c.id)).where(is_other)


@cache
def difference(table: sa.Table) -> sa.Select[int]:
    """Return a select of one record with mismatched totals; no row if there is none."""
    return differences(table).limit(1)


def rebuild(tx: Tx) -> None:
    for table in FORMULAS:
        _correct(tx, table, tx.all(differences(table)))


def rebuild_of_client(tx: Tx, client_id: int) -> None:
    """Correct the totals of a client's projects, whose currency has changed."""
    _correct(tx, projects, tx.all(differences(projects, "client_id"), client_id=client_id))


def _correct(tx: Tx, table: sa.Table, rows: list[Row]) -> None:
    for record_id, *totals in rows:
        tx.run(_writing(table), row_id=record_id, **dict(zip(FORMULAS[table], totals, strict=True)))


@cache
def _writing(table: sa.Table) -> sa.Update:
    values: dict[str, sa.ColumnElement[int]] = {name: sa.bindparam(name) for name in FORMULAS[table]}
    return maintaining(table, table.c.id == sa.bindparam("row_id"), values=values)
