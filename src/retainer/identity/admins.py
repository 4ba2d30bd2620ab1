"""Admins: who acts for an account beside the API, in the console or, as its operator, at the command line."""

from functools import cache
from typing import Any

from sqlalchemy import Select, Table, bindparam, literal_column, select

from retainer.errors import Refusal
from retainer.schema.identity import accounts, users
from retainer.store.constraints import singular
from retainer.store.tx import Actor, Store

ACTING = [*accounts.c["id", "currency", "timezone", "payment_terms_days", "client_number_pattern"]]
"""The columns from which `operator` makes an actor."""
IS_ADMIN = users.c.is_active & (users.c.role == literal_column("'admin'"))
"""Whether a user may sign in."""


class Admin(Actor, frozen=True, gc=False):
    """An admin who is signed in, or an operator, whose user is 0; with the address of the request."""

    name: str = ""
    email: str = ""
    account_name: str = ""
    session_id: int | None = None
    address: str | None = None


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
