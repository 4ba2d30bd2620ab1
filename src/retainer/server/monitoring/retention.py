"""Retention: what is kept for a number of days, and then deleted in small batches, so that no writer waits for long."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Column, ColumnElement, bindparam, delete, func, select, true

from retainer.identity.actors import in_accounts
from retainer.schema.requests import operation_hours, refusals, request_hours, requests
from retainer.schema.webhooks import webhook_deliveries
from retainer.store.outbox import NEWEST_ID
from retainer.store.tables import ONCE, events, totals
from retainer.store.tx import Store, Tx
from retainer.values.exact import as_instant

BATCH_SIZE = 5000
"""Number of rows that one transaction deletes, plus those with the same place in the order as the last one."""


class Kept:
    """Rows of each account that are deleted once their `time` is old, in an order that is also that of their times."""

    def __init__(self, time: Column[Any], order: Column[Any], may_go: ColumnElement[bool] | None = None) -> None:
        self.table = table = order.table
        self.is_counted = table is webhook_deliveries
        before, may_go = bindparam("before", type_=time.type), true() if may_go is None else may_go
        first = select(time).where(table.c.account_id == totals.c.account_id).order_by(order).limit(1)
        self.accounts = select(totals.c.account_id).where(ONCE, first.scalar_subquery() < before)
        batch = select(order, time.label("time")).where(may_go).order_by(order).limit(bindparam("batch")).subquery()
        last = select(func.max(batch.c[order.name])).where(batch.c.time < before).scalar_subquery()
        self.delete = delete(table).where(order <= last, may_go)

    def delete_old(self, store: Store, before: str) -> int:
        def delete_batch(tx: Tx) -> int:
            deleted = tx.change(self.delete, before=before, batch=BATCH_SIZE)
            if self.is_counted:
                tx.count(self.table, -deleted)
            return deleted

        return in_accounts(store, self.accounts, delete_batch, before=before)


REQUESTS = [Kept(table.c.answered_at, table.c.answered_at) for table in (refusals, requests)]
SUMS = [Kept(table.c.hour, table.c.hour) for table in (request_hours, operation_hours)]
EVENTS = [
    Kept(events.c.at, events.c.id, events.c.id < NEWEST_ID),  # the next event follows the id of the newest one
    Kept(webhook_deliveries.c.created_at, webhook_deliveries.c.id, webhook_deliveries.c.status != "pending"),
]
"""Pending deliveries stay until their sender has noticed that the event is gone."""


def delete_old(store: Store, kept: Iterable[Kept], days: int) -> int:
    """Delete a batch of each account's rows that are older than these days; return how many were deleted."""
    before = as_instant(datetime.now(UTC) - timedelta(days=days))
    return sum(each.delete_old(store, before) for each in kept)
