"""Outstanding: what was due of invoices at the end of a day, now or in the past.

An invoice remembers the day from whose end on nothing has been outstanding of it (`settled_date`; a draft has none), so
that only those are looked at of which something may be.
"""

from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, case, func, null, select, union_all

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
    issued = func.coalesce(its.issue_date, null()) <= LAST  # read by no index: most were issued, and few are still open
    still = [issued, its.settled_date > LAST, *(its[name] == bindparam(name) for name in limits)]
    later = union_all(_later("payments", "paid_date"), _later("credit_notes", "issue_date"))
    then = its.total - _by_then("payments", "amount", "paid_date") - _by_then("credit_notes", "total", "issue_date")
    whose = its["client_id", "currency", "due_date"]
    both = union_all(
        select(*whose, its.balance_due.label("due")).where(its.id.not_in(later), *still),
        select(*whose, then.label("due")).where(its.id.in_(later), *still),
    )
    each = both.subquery().c
    late = and_(each.due > 0, each.due_date < LAST)
    sums: tuple[Any, ...] = (
        func.sum(case((each.due > 0, each.due), else_=0)),
        func.sum(case((late, each.due), else_=0)),
        func.sum(case((late, 1), else_=0)),
    )
    return select(each.client_id, each.currency, *sums).group_by(each.client_id, each.currency)


def _later(name: str, day: str) -> Select[Any]:
    """The invoices to which something of this kind happened after the day, so that their balance is not that of now."""
    its = metadata.tables[name].c
    return select(its.invoice_id).where(its[day] > LAST)


def _by_then(name: str, amount: str, day: str) -> ColumnElement[Any]:
    its, invoices = metadata.tables[name].c, metadata.tables["invoices"].c
    added = select(func.coalesce(func.sum(its[amount]), 0))
    return added.where(its.invoice_id == invoices.id, its[day] <= LAST).scalar_subquery()
