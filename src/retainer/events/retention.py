"""Retention of events: old ones are deleted in small batches, so that no writer waits for long."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import bindparam, delete, func, select

from retainer.identity.admins import operator_of
from retainer.schema.identity import accounts
from retainer.store.engines.sql import INSTANT
from retainer.store.outbox import NEWEST_ID
from retainer.store.tables import events
from retainer.store.tx import Store
from retainer.values.exact import as_instant

BATCH_SIZE = 5000
"""Number of events that one transaction deletes."""

BEFORE = bindparam("before", type_=INSTANT)
_first = select(events.c.at).where(events.c.account_id == accounts.c.id).order_by(events.c.id).limit(1)
WITH_OLD = select(accounts.c.id).where(_first.scalar_subquery() < BEFORE)
"""The accounts whose first event is old: events are in the order of their time."""
_batch = select(events.c.id, events.c.at).order_by(events.c.id).limit(bindparam("batch")).subquery()
LAST_OF_BATCH = select(func.max(_batch.c.id)).where(_batch.c.at < BEFORE)
DELETE = delete(events).where(events.c.id <= bindparam("last"), events.c.id < NEWEST_ID)


def delete_events(store: Store, days: int) -> int:
    """Delete a batch of each account's events that are older than these days; return how many were deleted.

    The newest event stays: the next one follows its id.
    """
    before = as_instant(datetime.now(UTC) - timedelta(days=days))
    deleted = 0
    with store.unscoped() as tx:
        found = tx.all(WITH_OLD, before=before)
    for (account_id,) in found:
        with store.begin(operator_of(store, account_id), write=True) as own:
            last = own.value(LAST_OF_BATCH, before=before, batch=BATCH_SIZE)
            if last is not None:  # or another process was faster
                deleted += own.change(DELETE, last=last)
    return deleted
