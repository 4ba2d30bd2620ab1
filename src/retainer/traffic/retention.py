"""Retention: old requests and sums are deleted in small batches, so that no writer waits for long."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import Delete, Table, bindparam, delete, func, select

from retainer.schema.identity import accounts
from retainer.schema.requests import HOUR, operation_hours, refusals, request_hours, requests
from retainer.store.tables import ONCE, totals
from retainer.store.tx import Store
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
    .where(requests.c.account_id == bindparam("account"), requests.c.answered_at < bindparam("before"))
    .order_by(requests.c.answered_at, requests.c.number)
    .limit(bindparam("batch"))
    .subquery()
)
LAST_OF_BATCH = select(func.max(OLDEST.c.answered_at)).scalar_subquery()
DELETE, DELETE_REFUSALS = (
    delete(table).where(table.c.account_id == bindparam("account"), table.c.answered_at <= LAST_OF_BATCH)
    for table in (requests, refusals)
)


def _delete_sums(table: Table) -> Delete:
    return delete(table).where(table.c.account_id == bindparam("account"), table.c.hour < bindparam("before"))


DELETE_SUMS = [_delete_sums(table) for table in (request_hours, operation_hours)]
ACCOUNTS = select(accounts.c.id)


def delete_requests(store: Store, days: int) -> int:
    """Delete a batch of each account's requests that are older than these days; return how many were deleted."""
    before = as_instant(datetime.now(UTC) - timedelta(days=days))
    deleted = 0
    with store.unscoped() as tx:
        accounts_with_old = tx.all(OLD, before=before)
    for (account_id,) in accounts_with_old:
        with store.unscoped(write=True) as tx:
            batch = {"account": account_id, "before": before, "batch": BATCH_SIZE}
            tx.change(DELETE_REFUSALS, **batch)  # first, because it finds the batch in the log
            deleted += tx.change(DELETE, **batch)
    return deleted


def delete_sums(store: Store, days: int) -> int:
    """Delete the sums of hours that are older than these days and than SUMS_DAYS; return how many were deleted."""
    before = as_instant(datetime.now(UTC) - timedelta(days=max(days, SUMS_DAYS)))[:HOUR]
    deleted = 0
    with store.unscoped() as tx:
        every = tx.all(ACCOUNTS)
    for (account_id,) in every:
        with store.unscoped(write=True) as tx:
            deleted += sum(tx.change(statement, account=account_id, before=before) for statement in DELETE_SUMS)
    return deleted
