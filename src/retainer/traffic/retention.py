"""Retention: old requests and sums are deleted, a few at a time, so that no writer waits for long."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import Delete, Table, bindparam, delete, func, select

from retainer.schema.identity import accounts
from retainer.schema.requests import HOUR, operation_hours, request_hours, requests
from retainer.store.engines.sql import INSTANT
from retainer.store.tx import Store
from retainer.values.exact import as_instant

BATCH = 1000
SUMS_DAYS = 90
"""For how long sums are kept, or for as long as requests when that is longer."""

OF_ACCOUNT = requests.c.account_id == bindparam("account")
OLD = select(accounts.c.id).where(
    select(requests.c.number)
    .where(requests.c.account_id == accounts.c.id, requests.c.answered_at < bindparam("before"))
    .exists()
)
LAST_OF_BATCH = (
    select(requests.c.answered_at)
    .where(OF_ACCOUNT)
    .order_by(requests.c.answered_at)
    .limit(1)
    .offset(bindparam("batch"))
).scalar_subquery()
DELETE = delete(requests).where(
    OF_ACCOUNT,
    requests.c.answered_at < bindparam("before", type_=INSTANT),
    requests.c.answered_at < func.coalesce(LAST_OF_BATCH, bindparam("before", type_=INSTANT)),
)


def _delete_sums(table: Table) -> Delete:
    return delete(table).where(table.c.account_id == bindparam("account"), table.c.hour < bindparam("before"))


DELETE_SUMS = [_delete_sums(table) for table in (request_hours, operation_hours)]
ACCOUNTS = select(accounts.c.id)


def delete_requests(store: Store, days: int) -> int:
    """Delete a batch of each account's requests that are older than so many days; return how many were deleted."""
    before = as_instant(datetime.now(UTC) - timedelta(days=days))
    deleted = 0
    with store.unscoped("old requests of all accounts") as tx:
        accounts_with_old = tx.all(OLD, before=before)
    for (account_id,) in accounts_with_old:
        with store.unscoped("old requests of an account", write=True) as tx:
            deleted += tx.change(DELETE, account=account_id, before=before, batch=BATCH)
    return deleted


def delete_sums(store: Store, days: int) -> int:
    """Delete the sums of hours that are older than so many days, and than SUMS_DAYS; return how many."""
    before = as_instant(datetime.now(UTC) - timedelta(days=max(days, SUMS_DAYS)))[:HOUR]
    deleted = 0
    with store.unscoped("the request log of all accounts") as tx:
        every = tx.all(ACCOUNTS)
    for (account_id,) in every:
        with store.unscoped("old sums of an account", write=True) as tx:
            deleted += sum(tx.change(statement, account=account_id, before=before) for statement in DELETE_SUMS)
    return deleted
