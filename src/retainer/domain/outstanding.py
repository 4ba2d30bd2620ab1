"""Outstanding: what was due of invoices at the end of a day, now or in the past.

An invoice remembers the day from whose end on nothing has been outstanding of it, so that only those are looked at of
which something may be.
"""

from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, and_, bindparam, case, func, or_, select

from retainer.domain.settlement import ISSUED
from retainer.store.columns import among
from retainer.store.engines import DAY
from retainer.store.tables import metadata
from retainer.store.tx import Tx

LAST = bindparam("last_day", type_=DAY)


def balances(tx: Tx, last_day: str, **only: int | str) -> dict[tuple[int, str], tuple[int, int, int]]:
    """What was outstanding and overdue at the end of a day, and how many invoices were, by client and currency.

    The balance of an issued invoice is its total less what was paid and credited by then; it is overdue when it was due
    before that day (contract 4). What is void was never due, and what was written off is not due any more.
    """
    rows = tx.all(_balances(tuple(only)), last_day=last_day, **only)
    return {(client, its): (due, late, count) for client, its, due, late, count in rows if due}


@cache
def _balances(limits: tuple[str, ...]) -> Select[Any]:
    its = metadata.tables["invoices"].c
    paid = _by_then(metadata.tables["payments"], "amount", "paid_date")
    credited = _by_then(metadata.tables["credit_notes"], "total", "issue_date")
    due = its.total - paid - credited
    still = and_(its.issue_date <= LAST, or_(its.settled_date.is_(None), its.settled_date > LAST))
    only = [its[name] == bindparam(name) for name in limits]
    left = select(its.client_id, its.currency, its.due_date, due.label("due"))
    each = left.where(among(its.status, ISSUED), still, *only).subquery().c
    late = and_(each.due > 0, each.due_date < LAST)
    sums: tuple[Any, ...] = (
        func.sum(case((each.due > 0, each.due), else_=0)),
        func.sum(case((late, each.due), else_=0)),
        func.sum(case((late, 1), else_=0)),
    )
    return select(each.client_id, each.currency, *sums).group_by(each.client_id, each.currency)


def _by_then(table: Table, amount: str, day: str) -> ColumnElement[Any]:
    invoices = metadata.tables["invoices"]
    added = select(func.coalesce(func.sum(table.c[amount]), 0)).select_from(table)
    return added.where(table.c.invoice_id == invoices.c.id, table.c[day] <= LAST).scalar_subquery()
