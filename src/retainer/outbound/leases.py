"""Leases: which rows have work, so that one process does it, and the places that accounts share."""

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, Generic, TypeVar

import msgspec
from sqlalchemy import Column, ColumnElement, Table, bindparam, select

from retainer.store.announcements import maintaining
from retainer.store.engines.sql import INTEGER, listed
from retainer.store.transaction import Transaction
from retainer.store.tx import Store
from retainer.values.exact import instant_after


class LeasedRow(msgspec.Struct):
    """Work that was due at a time, and that no other process does until its lease ends."""

    leased_until: str
    account_id: int
    id: int
    due_at: str


Work = TypeVar("Work", bound=LeasedRow)


class Places:
    """The places of a background loop, and who holds them.

    An account always gets one place, so it never waits for another account. Of the `total` of further places it gets
    one only while it holds fewer than are free (dynamic thresholds; Choudhury and Hahne, 1998): a single account at
    most half of them, two in the long run a third each.
    """

    def __init__(self, total: int, held: Iterable[int]) -> None:
        self.total = total
        self._held = Counter(held)
        self._free = total - sum(count - 1 for count in self._held.values())

    @property
    def accounts_at_limit(self) -> str:
        """Return the accounts that get no further place now, as JSON."""
        return msgspec.json.encode([account_id for account_id in self._held if not self._has_room(account_id)]).decode()

    def fill(self, find: Callable[[], Iterable[Work]], lease: Callable[[Work], bool]) -> list[Work]:
        """Return what could be leased; `find` returns work of accounts below their limit, the oldest first."""
        leased: list[Work] = []
        is_filling = True
        while is_filling:
            is_filling = False
            for work in find():
                if self._has_room(work.account_id) and lease(work):
                    leased.append(work)
                    self._free -= self._held[work.account_id] > 0
                    self._held[work.account_id] += 1
                    is_filling = True
        return leased

    def _has_room(self, account_id: int) -> bool:
        return self._held[account_id] - 1 < self._free


class Leases(Generic[Work]):
    """The rows of a table that have work while `is_due`: a process leases them, so that no other one works on them.

    A lease moves the `time` of a row, unless another process has moved it. If the process dies, the row is due again
    when the lease ends.
    """

    def __init__(self, work: type[Work], table: Table, time: Column[Any], is_due: ColumnElement[bool]) -> None:
        self.work = work
        columns = [time if name == "due_at" else table.c[name] for name in work.__struct_fields__[1:]]
        self.due = (
            select(*columns)
            .where(is_due, table.c.account_id.not_in(listed("accounts_at_limit", INTEGER)))
            .order_by(time)
            .limit(bindparam("limit"))
        )
        """The work that has waited longest; without that of accounts at their limit."""
        this = (table.c.account_id == bindparam("account"), table.c.id == bindparam("id"), time == bindparam("seen"))
        self.lease = maintaining(table, *this, values={time.name: bindparam("until")})

    def claim(self, store: Store, places: Places, length: timedelta) -> list[Work]:
        def find(tx: Transaction, limit: int) -> list[Work]:
            until = instant_after(tx.now, length)
            return [
                self.work(until, *row)
                for row in tx.all(self.due, limit=limit, accounts_at_limit=places.accounts_at_limit)
            ]

        def lease(work: Work) -> bool:
            values = {"account": work.account_id, "id": work.id, "seen": work.due_at, "until": work.leased_until}
            return tx.change(self.lease, **values) > 0

        with store.unscoped() as tx:  # most searches find nothing, and need no lock
            if not find(tx, 1):
                return []
        with store.unscoped(write=True) as tx:
            return places.fill(lambda: find(tx, places.total), lease)
