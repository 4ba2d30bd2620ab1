"""Record totals: sums of a record's children on its own row, like a project's time or a client's contacts.

Adding up the children of all records in a list would take longer with every day of work. A project's totals exclude
amounts in other currencies.
"""

from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Select,
    Table,
    Update,
    and_,
    bindparam,
    case,
    func,
    null,
    or_,
    select,
    union_all,
)

from retainer.rollups import summaries
from retainer.rollups.sources import SOURCES, ZERO, Source, key_of
from retainer.schema.columns import in_literals
from retainer.schema.crm import clients, tags
from retainer.schema.rollups import project_sums
from retainer.schema.support import tickets
from retainer.schema.work import milestones, projects, tasks
from retainer.store.announcements import maintaining
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values.exact import LAST_DAY

Formulas = dict[str, dict[str, int]]
"""The totals of a record, and the signs of the figures that each adds up."""

FORMULAS: dict[Table, Formulas] = {
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
AMOUNT_FIGURES = tuple(dict.fromkeys(figure for name in AMOUNTS for figure in FORMULAS[projects][name]))
CURRENCIES = select(*projects.c["id", "currency"]).where(projects.c.client_id == bindparam("client"))


def adding(table: Table, rows: FromClause, *, single_row: bool) -> Update:
    """Return the statement that adds rows of a source to the totals of the records that they refer to."""
    key = rows.c[key_of(table)]
    if single_row:
        added = _totals(table, rows.c, table)
    else:  # grouped once: scanning the rows for each record would take the product of both
        record = table.alias("record")
        sums = [func.sum(total).label(name) for name, total in _totals(table, rows.c, record).items()]
        of_record = rows.join(record, and_(record.c.id == key, record.c.account_id == ACCOUNT))
        grouped = select(key.label("id"), *sums).select_from(of_record).group_by(key).subquery("sums")
        added, key = {each.name: grouped.c[each.name] for each in sums}, grouped.c.id
    values = {name: table.c[name] + total for name, total in added.items()}
    return maintaining(table, table.c.id == key, values=values)


def fields(source: Source, table: Table) -> set[str]:
    """Return the columns of a source's rows that the totals of a table are computed from."""
    columns = source.rows.selected_columns
    figures = {figure for formula in FORMULAS[table].values() for figure in formula if figure in columns}
    return {key_of(table), *figures, *(["currency"] if table is projects and "currency" in columns else [])}


def write_amounts(tx: Tx, client_id: int) -> None:
    """Recompute the amounts of a client's projects in their current currency."""
    sums = summaries.read(
        tx, project_sums, (None, LAST_DAY), ("project_id", "currency"), AMOUNT_FIGURES, client_id=client_id
    )
    for project_id, currency in tx.all(CURRENCIES, client=client_id):
        figures = sums.get((project_id, currency), summaries.Figures())
        amounts = {
            name: sum(sign * figures[figure] for figure, sign in FORMULAS[projects][name].items()) for name in AMOUNTS
        }
        tx.run(_writing(projects, AMOUNTS), row_id=project_id, **amounts)


def _totals(table: Table, columns: Any, record: FromClause) -> dict[str, ColumnElement[int]]:
    """Return what a row adds to each total of its record; totals that do not use its figures are omitted."""
    totals = {name: _total(table, name, columns, record) for name in FORMULAS[table]}
    return {name: total for name, total in totals.items() if total is not None}


def _total(table: Table, name: str, columns: Any, record: FromClause) -> ColumnElement[int] | None:
    """Return what the figures of a row add to a total of its record; None if the total does not use them."""
    figures = [(columns[name], sign) for name, sign in FORMULAS[table][name].items() if name in columns]
    terms: list[Any] = [column if sign == 1 else -column for column, sign in figures]
    if not terms:
        return None
    figure: ColumnElement[int] = sum(terms[1:], terms[0])
    is_amount = table is projects and name in AMOUNTS
    return case((columns.currency == record.c.currency, figure), else_=0) if is_amount else figure


@cache
def _expected(table: Table) -> Select[int]:
    """Return a select of the totals of all records of a table, computed from rows with a status that counts."""
    key = key_of(table)
    figures = dict.fromkeys(figure for formula in FORMULAS[table].values() for figure in formula)
    selects = []
    for source in SOURCES:
        if table in source.targets:
            selected = source.rows.selected_columns
            rows = source.rows.where(in_literals(selected.status, source.statuses)) if source.statuses else source.rows
            columns = rows.subquery().c
            currency = columns.currency if "currency" in columns else null().label("currency")
            added = (columns.get(name, ZERO).label(name) for name in figures)
            selects.append(select(columns[key], currency, *added).where(columns[key].is_not(None)))
    every = union_all(*selects).subquery().c
    summed = (func.sum(every[name]).label(name) for name in figures)
    groups = select(every[key], every.currency, *summed).group_by(every[key], every.currency).subquery()
    totals = (func.coalesce(func.sum(_total(table, name, groups.c, table)), 0).label(name) for name in FORMULAS[table])
    joined = table.outerjoin(groups, groups.c[key] == table.c.id)
    return select(table.c.id, *totals).select_from(joined).group_by(*table.c["account_id", "id"])


@cache
def differences(table: Table) -> Select[int]:
    """Return a select of the records with mismatched totals, and the totals that they should have."""
    expected = _expected(table).subquery()
    is_other = or_(*(table.c[name] != expected.c[name] for name in FORMULAS[table]))
    return select(*expected.c).select_from(table.join(expected, expected.c.id == table.c.id)).where(is_other)


@cache
def difference(table: Table) -> Select[int]:
    """Return a select of one record with mismatched totals; no row if there is none."""
    return differences(table).limit(1)


@cache
def _writing(table: Table, names: tuple[str, ...]) -> Update:
    return maintaining(table, table.c.id == bindparam("row_id"), values={name: bindparam(name) for name in names})


def rebuild(tx: Tx) -> None:
    """Correct the totals of records that differ from their rows."""
    for table, formulas in FORMULAS.items():
        for record_id, *totals in tx.all(differences(table)):
            values = dict(zip(formulas, totals, strict=True))
            tx.run(_writing(table, tuple(formulas)), row_id=record_id, **values)
