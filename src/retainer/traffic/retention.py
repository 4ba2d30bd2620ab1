"""Retention: old requests and sums are deleted, a few at a time, so that no writer waits for long."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import Delete, Table, bindparam, delete, func, select

from retainer.schema.identity import accounts
from retainer.schema.requests import HOUR, PERIOD, operation_hours, request_blocks, request_hours, request_terms
from retainer.store.tx import Store
from retainer.values.exact import as_instant

BATCH = 1000
"""So many blocks of an account are deleted in one transaction, and all others of the last period."""
SUMS_DAYS = 90
"""For how long sums are kept, or for as long as requests when that is longer."""

OLD = select(accounts.c.id).where(
    select(request_blocks.c.number)
    .where(request_blocks.c.account_id == accounts.c.id, request_blocks.c.period < bindparam("before"))
    .exists()
)
LAST_OF_BATCH = (
    select(request_blocks.c.period)
    .where(request_blocks.c.account_id == bindparam("account"), request_blocks.c.period < bindparam("before"))
    .order_by(request_blocks.c.period, request_blocks.c.number)
    .limit(bindparam("batch"))
    .subquery()
)
UNTIL = select(func.max(LAST_OF_BATCH.c.period))


def _delete_until(table: Table) -> Delete:
    return delete(table).where(table.c.account_id == bindparam("account"), table.c.period <= bindparam("until"))


DELETE_BLOCKS, DELETE_TERMS = _delete_until(request_blocks), _delete_until(request_terms)


def _delete_sums(table: Table) -> Delete:
    return delete(table).where(table.c.account_id == bindparam("account"), table.c.hour < bindparam("before"))


DELETE_SUMS = [_delete_sums(table) for table in (request_hours, operation_hours)]
ACCOUNTS = select(accounts.c.id)


def delete_requests(store: Store, days: int) -> int:
    """Delete a batch of each account's blocks that are older than so many days; return how many were deleted."""
    before = as_instant(datetime.now(UTC) - timedelta(days=days))[:PERIOD]
    deleted = 0
    with store.unscoped("old requests of all accounts") as tx:
        accounts_with_old = tx.all(OLD, before=before)
    for (account_id,) in accounts_with_old:
        with store.unscoped("old requests of an account", write=True) as tx:
            until = tx.value(UNTIL, account=account_id, before=before, batch=BATCH)
            if until is not None:  # or another server was faster
                tx.run(DELETE_TERMS, account=account_id, until=until)
                deleted += tx.change(DELETE_BLOCKS, account=account_id, until=until)
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
