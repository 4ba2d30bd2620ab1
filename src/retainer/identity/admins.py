"""Admins: who acts for an account beside the API, in the console or, as its operator, at the command line."""

from collections.abc import Callable
from datetime import timedelta
from functools import cache
from typing import Any

from sqlalchemy import Select, Table, bindparam, literal_column, select

from retainer.errors import Refusal
from retainer.schema.identity import accounts, sessions, users
from retainer.store.constraints import singular
from retainer.store.engines.sql import INSTANT
from retainer.store.tx import Actor, Store, Tx
from retainer.values.exact import instant_after

IDLE_TIMEOUT = timedelta(minutes=30)
MAX_AGE = timedelta(hours=12)

ACTING = [*accounts.c["id", "currency", "timezone", "payment_terms_days", "client_number_pattern"]]
"""The columns from which `operator` makes an actor."""
IS_ADMIN = users.c.is_active & (users.c.role == literal_column("'admin'"))
"""Whether a user may sign in."""
IS_LIVE = (
    sessions.c.ended_at.is_(None)
    & (sessions.c.last_used_at > bindparam("idle_since", type_=INSTANT))
    & (sessions.c.created_at > bindparam("begun_since", type_=INSTANT))
)
"""Whether a session is not over; binds the `limits` of the moment."""
OF_USERS = sessions.join(users, users.c.id == sessions.c.user_id)
SIGNED_IN = select(sessions.c.id).select_from(OF_USERS).where(sessions.c.id == bindparam("id"), IS_LIVE, IS_ADMIN)


class Admin(Actor, frozen=True, gc=False):
    """An admin who is signed in, or an operator, whose user is 0; with the address of the request."""

    name: str = ""
    email: str = ""
    account_name: str = ""
    session_id: int | None = None
    address: str | None = None

    def ask(self, tx: Tx) -> Callable[[], bool] | None:
        """Ask whether the session of an admin is not over, and its user an active admin.

        An operator has no session; nor has an admin who is signing in, by what is looked at in that transaction.
        """
        if self.session_id is None:
            return None
        row = tx.first_row(SIGNED_IN, id=self.session_id, **limits(tx.now))
        return lambda: row() is not None


def limits(now: str) -> dict[str, str]:
    """Return since when a session must have been used, and have begun, not to be over."""
    return {"idle_since": instant_after(now, -IDLE_TIMEOUT), "begun_since": instant_after(now, -MAX_AGE)}


def operator(account_id: int, *columns: Any) -> Admin:
    """Return the actor for an operator who changes records of an account; takes the rest of a row of ACTING."""
    return Admin(account_id, 0, "operator", *columns)


def operator_of(store: Store, account_id: int) -> Admin:
    """Return the operator of an account. Raises `not_found`."""
    row = store.unscoped_one("an operator names any account", ACCOUNT_BY_ID, id=account_id)
    if row is None:
        raise Refusal("not_found", f"There is no account {account_id}.")
    return operator(*row)


def operator_for(store: Store, table: Table, row_id: int) -> Admin:
    """Return the operator of the account to which a row belongs. Raises `not_found`."""
    row = store.unscoped_one("an operator names a row of any account", _account_by_row(table), id=row_id)
    if row is None:
        raise Refusal("not_found", f"There is no {singular(table).removeprefix('api ')} {row_id}.")
    return operator(*row)


ACCOUNT_BY_ID = select(*ACTING).where(accounts.c.id == bindparam("id"))


@cache
def _account_by_row(table: Table) -> Select[Any]:
    joined = table.join(accounts, accounts.c.id == table.c.account_id)
    return select(*ACTING).select_from(joined).where(table.c.id == bindparam("id"))
