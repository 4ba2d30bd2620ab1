"""Leases: a process leases rows that are due, so that no other one works on them.

A lease moves the time of a row, unless another process has moved it. If the process dies, the row is due again when the
lease ends.
"""

from datetime import timedelta
from typing import Any, Generic

from sqlalchemy import Column, ColumnElement, Table, bindparam, select

from retainer.fairness import Places, Work
from retainer.store.announcements import maintaining
from retainer.store.engines.sql import INTEGER, listed
from retainer.store.transaction import Transaction
from retainer.store.tx import Store
from retainer.values.exact import instant_after


class Leases(Generic[Work]):
    """The rows of a table that have work while `is_due`; a lease moves their `time`."""

    def __init__(self, work: type[Work], table: Table, time: Column[Any], is_due: ColumnElement[bool]) -> None:
        self.work = work
        columns = [time if name == "due_at" else table.c[name] for name in work.__struct_fields__[1:]]
        self.due = (
            select(*columns)
            .where(is_due, table.c.account_id.not_in(listed("sated", INTEGER)))
            .order_by(time)
            .limit(bindparam("limit"))
        )
        """The work that has waited longest; without that of sated accounts."""
        this = (table.c.account_id == bindparam("account"), table.c.id == bindparam("id"), time == bindparam("seen"))
        self.lease = maintaining(table, *this, values={time.name: bindparam("until")})

    def claim(self, store: Store, places: Places, length: timedelta) -> list[Work]:
        """Lease what is due, within the places of its accounts."""

        def find(tx: Transaction, limit: int) -> list[Work]:
            until = instant_after(tx.now, length)
            return [self.work(until, *row) for row in tx.all(self.due, limit=limit, sated=places.sated)]

        def lease(work: Work) -> bool:
            values = {"account": work.account_id, "id": work.id, "seen": work.due_at, "until": work.leased_until}
            return tx.change(self.lease, **values) > 0

        with store.unscoped() as tx:  # most searches find nothing, and need no lock
            if not find(tx, 1):
                return []
        with store.unscoped(write=True) as tx:
            return places.fill(lambda: find(tx, places.total), lease)
