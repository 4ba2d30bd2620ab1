"""Outstanding: what was due of invoices at the end of a day, now or in the past.

An invoice remembers the day from whose end on nothing has been outstanding of it (`settled_date`; a draft has none), so
that only those are looked at of which something may be.
"""

from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, case, func, null, select, union_all

from retainer.domain.settlement import FOREVER
from retainer.store.engines import DAY
from retainer.store.tables import metadata
from retainer.store.tx import Tx

LAST = bindparam("last_day", type_=DAY)


def balances(tx: Tx, last_day: str, **only: int | str) -> dict[tuple[int, str], tuple[int, int, int]]:
    """What was outstanding and overdue at the end of a day, and how many invoices were, by client and currency.

    The balance of an issued invoice is its total less what was paid and credited by then; it is overdue when it was due
    before that day (contract 4). What is void was never due, and what was written off is not due any more.
    """
    since = any(tx.one(statement, last_day=last_day) for statement in _happened())
    rows = tx.all(_balances(tuple(only), since=since), last_day=last_day, **only)
    return {(client, its): (due, late, count) for client, its, due, late, count in rows if due}


@cache
def _happened() -> list[Select[Any]]:
    """A row when something happened after the day, so that its balances are not those of now."""
    its = metadata.tables["invoices"].c
    ended = select(its.id).where(its.settled_date > LAST, its.settled_date < FOREVER)
    return [found.limit(1) for found in (_later("payments", "paid_date"), _later("credit_notes", "issue_date"), ended)]


@cache
def _balances(limits: tuple[str, ...], *, since: bool) -> Select[Any]:
    """The balances of now or, when something has happened `since`, those of then."""
    its = metadata.tables["invoices"].c
    issued = func.coalesce(its.issue_date, null()) <= LAST  # read by no index: most were issued, and few are still open
    only = [issued, *(its[name] == bindparam(name) for name in limits)]
    whose = its["client_id", "currency"]
    if not since:  # in the order of the index
        return select(*whose, *_sums(its)).where(its.settled_date == FOREVER, *only).group_by(*whose)
    changed = its.id.in_(union_all(_later("payments", "paid_date"), _later("credit_notes", "issue_date")))
    then = its.total - _by_then("payments", "amount", "paid_date") - _by_then("credit_notes", "total", "issue_date")
    both = [
        select(*whose, its.due_date, due.label("balance_due")).where(its.settled_date > LAST, which, *only)
        for which, due in ((~changed, its.balance_due), (changed, then))
    ]
    each = union_all(*both).subquery().c
    return select(each.client_id, each.currency, *_sums(each)).group_by(each.client_id, each.currency)


def _sums(its: Any) -> list[ColumnElement[Any]]:
    """What is due, what of it is overdue, and of how many invoices."""
    late = and_(its.balance_due > 0, its.due_date < LAST)
    each = (
        case((its.balance_due > 0, its.balance_due), else_=0),
        case((late, its.balance_due), else_=0),
        case((late, 1), else_=0),
    )
    return [func.sum(one) for one in each]


def _later(name: str, day: str) -> Select[Any]:
    """The invoices to which something of this kind happened after the day, so that their balance is not that of now."""
    its = metadata.tables[name].c
    return select(its.invoice_id).where(its[day] > LAST)


def _by_then(name: str, amount: str, day: str) -> ColumnElement[Any]:
    its, invoices = metadata.tables[name].c, metadata.tables["invoices"].c
    added = select(func.coalesce(func.sum(its[amount]), 0))
    return added.where(its.invoice_id == invoices.id, its[day] <= LAST).scalar_subquery()
