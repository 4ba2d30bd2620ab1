"""Closing of accounts: suspension, which stops everything that acts for an account, and its deletion 30 days later."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Annotated

import msgspec
from sqlalchemy import Delete, Table, bindparam, delete, select, tuple_

from retainer.errors import Refusal
from retainer.identity import audit
from retainer.identity.accounts import get_account
from retainer.identity.actors import in_accounts
from retainer.identity.audit import Action, Fields, Target
from retainer.schema import metadata
from retainer.schema.identity import accounts
from retainer.store.announcements import erasing
from retainer.store.engines.sql import INSTANT
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Store, Tx
from retainer.values.exact import instant_after, utcnow
from retainer.values.kinds import Text255

DELETED_AFTER = timedelta(days=30)
"""Time from the announcement of a deletion to its beginning, in which it can be undone and the data exported."""
CLOCK_DIFFERENCE = timedelta(minutes=1)
"""How much later a server begins than others refuse to undo it, since their clocks may differ."""
BATCH_SIZE = 200
"""Rows that a statement deletes. A transaction ends after as many, since other accounts wait for it on SQLite."""


class Suspension(msgspec.Struct):
    reason: Annotated[Text255, "People of the account read it in the console."]


def suspend(tx: Tx, reason: str) -> Fields:
    """Suspend the account from the next request on, or change the reason; return the account.

    Nobody of the account can undo it: keys, password links and sessions are refused, checks and webhooks stand still.
    """
    return _set(tx, "account suspended", {"suspended_at": _now_or(tx, "suspended_at"), "suspension_reason": reason})


def close(tx: Tx, reason: str | None) -> Fields:
    """Suspend the account, and announce its deletion in 30 days; return the account. Repeated, the day stays.

    Without a reason, that of a suspension stays.
    """
    ends = {"suspended_at": _now_or(tx, "suspended_at"), "deletes_at": _now_or(tx, "deletes_at", DELETED_AFTER)}
    return _set(tx, "account deletion announced", ends | ({"suspension_reason": reason} if reason else {}))


def resume(tx: Tx) -> str | None:
    """Undo a suspension and the announcement of a deletion; return since when it lasted, None if there is none.

    Raises `locked` once the deletion has begun.
    """
    account = get_account(tx)
    since: str | None = account["suspended_at"]
    if account["deletes_at"] is not None and account["deletes_at"] <= tx.now:
        begun = f"Its deletion began on {account['deletes_at'][:10]}, so it can't be resumed"
        raise Refusal("locked", f"{begun}. Restore a backup of an earlier day into another folder.")
    if since is not None:
        _set(tx, "account resumed", {"suspended_at": None, "suspension_reason": None, "deletes_at": None})
    return since


def _now_or(tx: Tx, name: str, after: timedelta = timedelta()) -> str:
    former: str | None = get_account(tx)[name]
    return former or instant_after(tx.now, after)


def _set(tx: Tx, action: Action, values: Fields) -> Fields:
    before = get_account(tx)
    tx.update_columns(accounts, before["id"], values)
    after = get_account(tx)
    audit.note_changes(tx, action, Target("account", after["id"], after["name"]), before, after)
    return after


IS_DUE = accounts.c.deletes_at <= bindparam("before", type_=INSTANT)
DUE = select(accounts.c.id).where(accounts.c.suspended_at.is_not(None), IS_DUE).order_by(accounts.c.id)
THIS_IS_DUE = DUE.where(accounts.c.id == ACCOUNT)
ERASE_ACCOUNT = delete(accounts).where(accounts.c.id == ACCOUNT)


def _erase_rows(table: Table) -> Delete:
    """Return the deletion of some rows of an account: of those to which no row of the same table refers."""
    keys = [column for column in table.primary_key if column.name != "account_id"]
    rows, others = table.alias(), table.alias()
    found = select(*(rows.c[key.name] for key in keys))
    for name in (column.name for column in table.c if column.info.get("target") == table.name):
        found = found.where(~select(others.c.id).where(others.c[name] == rows.c.id).exists())
    return erasing(table, tuple_(*keys).in_(found.limit(BATCH_SIZE)))


ERASURE = [_erase_rows(table) for table in reversed(metadata.sorted_tables) if table.info.get("of_account")]
"""Each after the tables that refer to its rows."""


def erase_due(store: Store, tell: Callable[[str], None]) -> int:
    """Delete a batch of each account whose deletion is due; return how many rows were deleted.

    Each batch is a transaction, so what ends in between, a kill included, goes on with the next call. `tell` is called
    when the last row of an account is gone. No event says anything about it.
    """
    before = instant_after(utcnow(), -CLOCK_DIFFERENCE)
    erased: list[int] = []
    rows = in_accounts(store, DUE, partial(_erase_batch, before=before, erased=erased), before=before)
    for account_id in erased:
        tell(f"Account {account_id} was deleted, as an operator had announced.")
    return rows


def _erase_batch(tx: Tx, before: str, erased: list[int]) -> int:
    if tx.one(THIS_IS_DUE, before=before) is None:
        return 0
    deleted = 0
    for statement in ERASURE:
        while deleted < BATCH_SIZE and (rows := tx.change(statement)):
            deleted += rows
    if deleted < BATCH_SIZE:  # nothing is left
        deleted += tx.change(ERASE_ACCOUNT)
        erased.append(tx.actor.account_id)
    return deleted
