"""Retention: old requests and sums are deleted in small batches, so that no writer waits for long."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import bindparam, delete, func, select

from retainer.identity.actors import in_accounts
from retainer.schema.identity import accounts
from retainer.schema.requests import HOUR, operation_hours, refusals, request_hours, requests
from retainer.store.tables import ONCE, totals
from retainer.store.tx import Store, Tx
from retainer.values.exact import as_instant

BATCH_SIZE = 5000
"""Number of requests that one transaction deletes, plus those of the same instant as the last one."""
SUMS_DAYS = 90
"""Retention of sums in days, or that of requests if it is longer."""

OLD = select(totals.c.account_id).where(
    ONCE,
    select(requests.c.number)
    .where(requests.c.account_id == totals.c.account_id, requests.c.answered_at < bindparam("before"))
    .exists(),
)
OLDEST = (
    select(requests.c.answered_at)
    .where(requests.c.answered_at < bindparam("before"))
    .order_by(requests.c.answered_at, requests.c.number)
    .limit(bindparam("batch"))
    .subquery()
)
LAST_OF_BATCH = select(func.max(OLDEST.c.answered_at)).scalar_subquery()
DELETE, DELETE_REFUSALS = (delete(table).where(table.c.answered_at <= LAST_OF_BATCH) for table in (requests, refusals))
DELETE_SUMS = [delete(table).where(table.c.hour < bindparam("before")) for table in (request_hours, operation_hours)]
ACCOUNTS = select(accounts.c.id)


def delete_requests(store: Store, days: int) -> int:
    """Delete a batch of each account's requests that are older than these days; return how many were deleted."""
    values = {"before": as_instant(datetime.now(UTC) - timedelta(days=days)), "batch": BATCH_SIZE}

    def delete_batch(tx: Tx) -> int:
        tx.change(DELETE_REFUSALS, **values)  # first, because it finds the batch in the log
        return tx.change(DELETE, **values)

    return in_accounts(store, OLD, delete_batch, before=values["before"])


def delete_sums(store: Store, days: int) -> int:
    """Delete the sums of hours that are older than these days and than SUMS_DAYS; return how many were deleted."""
    before = as_instant(datetime.now(UTC) - timedelta(days=max(days, SUMS_DAYS)))[:HOUR]
    return in_accounts(store, ACCOUNTS, lambda tx: sum(tx.change(each, before=before) for each in DELETE_SUMS))
