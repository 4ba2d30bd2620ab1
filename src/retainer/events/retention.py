"""Retention of events and deliveries: old ones are deleted in small batches, so that no writer waits for long."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import and_, bindparam, delete, func, select

from retainer.identity.actors import in_accounts
from retainer.schema.webhooks import webhook_deliveries
from retainer.store.engines.sql import INSTANT
from retainer.store.outbox import NEWEST_ID
from retainer.store.tables import ONCE, events, totals
from retainer.store.tx import Store, Tx
from retainer.values.exact import as_instant

BATCH_SIZE = 5000
"""Number of events that one transaction deletes."""

BEFORE = bindparam("before", type_=INSTANT)
_first = select(events.c.at).where(events.c.account_id == totals.c.account_id).order_by(events.c.id).limit(1)
WITH_OLD = select(totals.c.account_id).where(ONCE, _first.scalar_subquery() < BEFORE)
"""The accounts whose first event is old: events are in the order of their time."""
_batch = select(events.c.id, events.c.at).order_by(events.c.id).limit(bindparam("batch")).subquery()
LAST_OF_BATCH = select(func.max(_batch.c.id)).where(_batch.c.at < BEFORE)
DELETE = delete(events).where(events.c.id <= bindparam("last"), events.c.id < NEWEST_ID)

IS_OLD = and_(webhook_deliveries.c.created_at < BEFORE, webhook_deliveries.c.status != "pending")
WITH_OLD_DELIVERIES = select(totals.c.account_id).where(
    ONCE, select(webhook_deliveries.c.id).where(webhook_deliveries.c.account_id == totals.c.account_id, IS_OLD).exists()
)
_old_deliveries = select(webhook_deliveries.c.id).where(IS_OLD).limit(bindparam("batch")).correlate(None)
DELETE_DELIVERIES = delete(webhook_deliveries).where(webhook_deliveries.c.id.in_(_old_deliveries))


def delete_events(store: Store, days: int) -> int:
    """Delete a batch of each account's events and deliveries that are older than these days; return how many.

    The newest event stays: the next one follows its id. Pending deliveries stay until their sender has noticed.
    """
    before = as_instant(datetime.now(UTC) - timedelta(days=days))

    def delete_batch(tx: Tx) -> int:
        last = tx.value(LAST_OF_BATCH, before=before, batch=BATCH_SIZE)
        return 0 if last is None else tx.change(DELETE, last=last)  # else another process was faster

    def delete_deliveries(tx: Tx) -> int:
        old = tx.change(DELETE_DELIVERIES, before=before, batch=BATCH_SIZE)
        tx.count(webhook_deliveries, -old)
        return old

    deleted = in_accounts(store, WITH_OLD, delete_batch, before=before)
    return deleted + in_accounts(store, WITH_OLD_DELIVERIES, delete_deliveries, before=before)
