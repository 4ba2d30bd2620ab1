"""Record totals: sums of a record's children on its own row, like a project's time or a client's contacts.

Adding up the children of all records in a list would take longer with every day of work. A project's totals exclude
amounts in other currencies.
"""

from functools import cache
from typing import Any

import sqlalchemy as sa

from retainer.rollups.sources import SOURCES, ZERO
from retainer.store.announcements import maintaining
from retainer.store.engines.sql import INTEGER
from retainer.store.tables import ACCOUNT

TOTALS: dict[sa.Table, tuple[str, ...]] = {
    table: tuple(column.name for column in table.c if "maintained" in column.info)
    for source in SOURCES
    for table in source.records
}
"""The totals on the records of each table."""
SIGN = sa.bindparam("sign", type_=INTEGER)  # 1 to add rows to sums, -1 to subtract them


def named(rows: sa.Select[Any], name: str) -> sa.TableClause:
    """Return rows by the name of a CTE: an update limits a subquery in its FROM, but no rows, to the account."""
    return sa.TableClause(name, *(sa.column(column.name, column.type) for column in rows.selected_columns))


def adding(table: sa.Table, rows: sa.Select[Any], reference: str, *, is_single: bool) -> sa.Update:
    """Return the statement that adds rows of a source to the totals of the records that a column of them refers to.

    Several are grouped once: scanning them for each record would take the product of both.
    """
    changed, record = named(rows, "changed"), table.alias("record")
    key = changed.c[reference]
    sums = {name: _figure(table, name, changed.c, record) for name in TOTALS[table] if name in changed.c}
    of_record = changed.join(record, sa.and_(record.c.id == key, record.c.account_id == ACCOUNT))
    columns = ((figure if is_single else sa.func.sum(figure)).label(name) for name, figure in sums.items())
    by = () if is_single else (key,)
    added = sa.select(key.label("id"), *columns).select_from(of_record).group_by(*by).subquery("sums").c
    values = {name: table.c[name] + SIGN * added[name] for name in sums}
    return maintaining(table, table.c.id == added.id, values=values).add_cte(rows.cte("changed"))


def _figure(table: sa.Table, name: str, columns: Any, record: sa.FromClause) -> sa.ColumnElement[int]:
    """Return what a row adds to a total of its record: an amount only in the record's currency."""
    figure: sa.ColumnElement[int] = columns[name]
    is_amount = table.c[name].info.get("money")
    return sa.case((columns.currency == record.c.currency, figure), else_=0) if is_amount else figure


@cache
def differences(table: sa.Table, owner: str | None = None) -> sa.Select[int]:
    """Return a select of the records with mismatched totals, and the totals that they should have.

    With an `owner`, like client_id, it compares only the records of the owner in that parameter.
    """
    is_compared = sa.true() if owner is None else table.c[owner] == sa.bindparam(owner)
    selects = []
    for source in SOURCES:
        if table in source.records:
            columns = source.rows.subquery().c
            key = columns[source.records[table]]
            figures = (columns.get(name, ZERO).label(name) for name in TOTALS[table])
            is_needed = key.is_not(None) if owner is None else key.in_(sa.select(table.c.id).where(is_compared))
            currency = columns.get("currency", sa.null()).label("currency")
            selects.append(sa.select(key.label("id"), currency, *figures).where(is_needed))
    every = sa.union_all(*selects).subquery()
    totals = (
        sa.func.coalesce(sa.func.sum(_figure(table, name, every.c, table)), 0).label(name) for name in TOTALS[table]
    )
    joined = table.outerjoin(every, every.c.id == table.c.id)
    expected = (
        sa.select(table.c.id, *totals).select_from(joined).where(is_compared).group_by(*table.c["account_id", "id"])
    ).subquery()
    is_other = sa.or_(*(table.c[name] != expected.c[name] for name in TOTALS[table]))
    return sa.select(*expected.c).select_from(table.join(expected, expected.c.id == table.c.id)).where(is_other)


@cache
def correcting(table: sa.Table, owner: str | None = None) -> sa.Update:
    """Return the statement that corrects the totals of a table, or of the records of an `owner`."""
    rows = differences(table, owner)
    expected = named(rows, "expected")
    values = {name: expected.c[name] for name in TOTALS[table]}
    return maintaining(table, table.c.id == expected.c.id, values=values).add_cte(rows.cte("expected"))
