"""Signed-in users and operators: actors of the console and the command line."""

import math
import random
import time
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from typing import Any

from sqlalchemy import Select, SelectBase, Table, and_, bindparam, case, select

from retainer.errors import NoSuchRecord, Refusal, part
from retainer.schema.identity import accounts, second_factors, sessions, users
from retainer.store.constraints import singular
from retainer.store.engines.base import Row
from retainer.store.engines.sql import INSTANT
from retainer.store.tx import Actor, Store, Tx
from retainer.values.exact import instant_after, local_day

IDLE_TIMEOUT = timedelta(minutes=30)
MAX_AGE = timedelta(hours=12)
THE_OPERATOR = "the operator of this server"
"""Whom messages name as the contact if the server has none (`RETAINER_CONTACT`)."""

OPERATOR_COLUMNS = {
    "account_id": accounts.c.id,
    "account_name": accounts.c.name,
    "language": accounts.c.document_language,
    **{name: accounts.c[name] for name in ("currency", "timezone", "payment_terms_days", "client_number_pattern")},
    **accounts.c["suspended_at", "suspension_reason", "deletes_at"],
}
PERSON_COLUMNS = OPERATOR_COLUMNS | {
    "user_id": users.c.id,
    **{name: users.c[name] for name in ("role", "name", "email")},
}
OPERATORS = select(*OPERATOR_COLUMNS.values())
IS_LIVE = (
    sessions.c.ended_at.is_(None)
    & (sessions.c.last_used_at > bindparam("idle_since", type_=INSTANT))
    & (sessions.c.created_at > bindparam("begun_since", type_=INSTANT))
)
"""Whether a session is live; binds `session_limits`."""
OF_USERS = sessions.join(users, users.c.id == sessions.c.user_id)
OF_ACCOUNTS = OF_USERS.join(accounts, accounts.c.id == sessions.c.account_id)
HAS_SECOND_FACTOR = select(second_factors.c.id).where(second_factors.c.user_id == users.c.id).correlate(users).exists()
LACKS_SECOND_FACTOR = and_(accounts.c.require_second_factor, ~HAS_SECOND_FACTOR)
"""Whether a user must set up a second factor before anything else."""
SIGNED_IN = (
    select(users.c.role, case((LACKS_SECOND_FACTOR, 1), else_=0), accounts.c.suspended_at)
    .select_from(OF_ACCOUNTS)
    .where(sessions.c.id == bindparam("id"), IS_LIVE, users.c.is_active)
)
OF_ACTIVE_USER = and_(users.c.id == bindparam("id"), users.c.is_active)
ACTIVE_USERS = (
    select(*PERSON_COLUMNS.values())
    .select_from(users.join(accounts, accounts.c.id == users.c.account_id))
    .where(OF_ACTIVE_USER)
)
IS_ACTIVE = (
    select(users.c.role, accounts.c.suspended_at)
    .select_from(users.join(accounts, accounts.c.id == users.c.account_id))
    .where(OF_ACTIVE_USER)
)


class Person(Actor, frozen=True, gc=False):
    """A person at the console, or an operator (user 0); with the address of the request."""

    name: str = ""
    email: str = ""
    account_name: str = ""
    language: str = "en"  # the language of the account's documents, in which its people type numbers
    session_id: int | None = None
    address: str | None = None
    lacks_second_factor: bool = False
    """Whether the account requires a second factor that the user has not set up: then nothing else is allowed."""
    plan: str = ""
    trial_ends_at: str | None = None
    suspended_at: str | None = None
    suspension_reason: str | None = None
    deletes_at: str | None = None

    @property
    def suspension(self) -> str | None:
        """Return since when and why the account is suspended, in sentences; None if it is not."""
        if self.suspended_at is None:
            return None
        why = f": {self.suspension_reason}" if self.suspension_reason else ""
        since = f"{self.account_name} has been suspended since {local_day(self.suspended_at, self.timezone)}{why}"
        sentences = [since if since.endswith((".", "!", "?")) else f"{since}."]
        if self.deletes_at is not None:
            sentences.append(f"It will be deleted with all its data on {local_day(self.deletes_at, self.timezone)}.")
        return " ".join((*sentences, f"Only {part(THE_OPERATOR)} can change that."))

    def require_running(self) -> None:
        """Raise `account_suspended`, with the reason, if the account of the user is suspended."""
        if self.suspension is not None:
            raise Refusal("account_suspended", self.suspension)

    def start_check(self, tx: Tx) -> Callable[[], bool] | None:
        """Ask whether the session is live, and its user active in the same role, with a second factor if it is needed.

        The session of a suspended account may do what it could do when it was recognized as one: sign out.
        An operator has no session, nor has a user who is signing in: that transaction checks the user itself.
        """
        if self.session_id is None:
            return None
        rows = tx.request_rows(SIGNED_IN, id=self.session_id, **session_limits(tx.now))
        return lambda: any(
            role == self.role and (self.lacks_second_factor or not lacks_it) and suspended_at == self.suspended_at
            for role, lacks_it, suspended_at in rows()
        )


class AbsentPerson(Person, frozen=True, gc=False):
    """A user for whom a job acts: it writes only while the user is active in the same role, and the account runs."""

    def start_check(self, tx: Tx) -> Callable[[], bool]:
        rows = tx.request_rows(IS_ACTIVE, id=self.user_id)
        return lambda: any(role == self.role and suspended_at is None for role, suspended_at in rows())


def absent_user(store: Store, user_id: int) -> AbsentPerson | None:
    """Return an active user of any account as the actor of a job; None if the user is not active."""
    row = store.unscoped_one(ACTIVE_USERS, id=user_id)
    return None if row is None else AbsentPerson(**dict(zip(PERSON_COLUMNS, row, strict=True)))


def session_limits(now: str) -> dict[str, str]:
    return {"idle_since": instant_after(now, -IDLE_TIMEOUT), "begun_since": instant_after(now, -MAX_AGE)}


def operator(row: Row) -> Person:
    return Person(user_id=0, role="operator", **dict(zip(OPERATOR_COLUMNS, row, strict=True)))


def operator_of(store: Store, row_id: int, table: Table = accounts) -> Person:
    """Return the operator of an account, or of the account that a row of a table belongs to. Raises `not_found`."""
    row = store.unscoped_one(select_operator(table), id=row_id)
    if row is None:
        raise NoSuchRecord(singular(table).removeprefix("api "), row_id)
    return operator(row)


@cache
def select_operator(table: Table) -> Select[Any]:
    joined = accounts if table is accounts else table.join(accounts, accounts.c.id == table.c.account_id)
    return OPERATORS.select_from(joined).where(table.c.id == bindparam("id"))


def in_accounts(
    store: Store, found: SelectBase, work: Callable[[Tx], int], seconds: float = math.inf, /, **values: object
) -> int:
    """Do work in a transaction of each account that a statement finds; return the sum of its results.

    An account that is deleted meanwhile is left out, and so are those that are left after some seconds. Chance decides
    which these are, so that each gets its turn.
    """
    with store.unscoped() as tx:
        account_ids = [account_id for (account_id,) in tx.all(found, **values)]
    random.shuffle(account_ids)
    total, end = 0, time.monotonic() + seconds
    for account_id in account_ids:
        row = store.unscoped_one(select_operator(accounts), id=account_id)
        if row is not None:
            with store.begin(operator(row), write=True) as tx:
                total += work(tx)
        if time.monotonic() > end:
            break
    return total
