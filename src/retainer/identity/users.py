"""Users: who works at an agency; the first of them opens its account (contract 2.2)."""

import secrets
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal

import msgspec
from argon2 import PasswordHasher
from msgspec import Meta
from sqlalchemy import bindparam, delete, insert, select, update

from retainer.errors import invalid
from retainer.identity.accounts import ACTING, AccountDetails, account_of, account_values, in_units
from retainer.schema.identity import accounts, users
from retainer.schema.work import cost_rates
from retainer.store.transaction import Transaction
from retainer.store.tx import Store, Tx
from retainer.values.collation import folded_text
from retainer.values.exact import amount_of, as_instant, decimal_text
from retainer.values.kinds import Day, Email, Money, Password, Percent, Text191, exact

TRIAL_DAYS = 90
Minutes = Annotated[int, Meta(ge=0, le=10080)]
LARGEST_COST_RATE = Decimal(10) ** 7  # so that the cost of a month's hours fits into the database's integers
CostRate = Annotated[
    Decimal, exact(Decimal(0), LARGEST_COST_RATE, 4, f"the cost of an hour, from 0 to {LARGEST_COST_RATE:f}", "45.00")
]


class UserDetails(msgspec.Struct):
    """The fields of a user that admins set; `cost_rate` applies from `cost_rate_from` on, by default to all days."""

    name: Text191
    email: Email
    role: Literal["admin", "member"] = "member"
    weekly_capacity_minutes: Minutes = 2400
    target_percent: Percent = Decimal(75)
    hourly_rate: Money | None = None
    cost_rate: CostRate | None = None
    cost_rate_from: Day = "0001-01-01"
    password: Password | None = None


OWNER = (
    select(*ACTING)
    .select_from(users)
    .join(accounts, accounts.c.id == users.c.account_id)
    .where(users.c.id == bindparam("id"))
)


def open_account(store: Store, details: AccountDetails, admin: UserDetails) -> tuple[int, int, str]:
    """Open an account with its first admin; return both ids and the admin's password."""
    with store.unscoped("an account is opened by the operator", write=True) as tx:
        trial_end = details.trial_ends_at or as_instant(datetime.fromisoformat(tx.now) + timedelta(days=TRIAL_DAYS))
        values = account_values(msgspec.structs.asdict(details), details.currency)
        values |= {"api_enabled": False, "trial_ends_at": trial_end}
        account_id: int = tx.value(
            insert(accounts).values(created_at=tx.now, updated_at=tx.now, **values).returning(accounts.c.id)
        )
        user_id, password = _insert_user(tx, account_id, details.currency, admin)
    return account_id, user_id, password


def create_user(store: Store, account_id: int, details: UserDetails) -> tuple[int, str]:
    """Add a user to an account; return the id and the password. Raises `not_found` or `validation_failed`."""
    with store.unscoped("a user is added by an admin", write=True) as tx:
        currency = account_of(tx, account_id)["currency"]
        return _insert_user(tx, account_id, currency, details)


def list_users(store: Store, account_id: int) -> list[dict[str, Any]]:
    """Return the users of an account, deactivated ones included. Raises `not_found`."""
    with store.unscoped("admins see their users") as tx:
        currency = account_of(tx, account_id)["currency"]
        rows = tx.all(select(users).where(users.c.account_id == account_id).order_by(users.c.id))
        return [_user_shown(row, currency) for row in rows]


def change_user(tx: Tx, user_id: int, changes: dict[str, Any]) -> dict[str, Any]:
    """Change a user and the cost rate; `is_active=False` stops the user's keys at once. Raises `validation_failed`."""
    account_id, currency = tx.actor.account_id, tx.actor.currency
    values = _user_values(tx, account_id, user_id, changes, currency)
    tx.run(update(users).where(users.c.id == user_id).values(updated_at=tx.now, **values))
    _set_cost_rate(tx, account_id, user_id, currency, changes)
    row = tx.one(select(users).where(users.c.id == user_id))
    return _user_shown(row or (), currency)


def _insert_user(tx: Transaction, account_id: int, currency: str, details: UserDetails) -> tuple[int, str]:
    password = details.password or secrets.token_urlsafe(12)
    fields = msgspec.structs.asdict(details) | {"password": password}
    values = _user_values(tx, account_id, 0, fields, currency)
    user_id: int = tx.value(
        insert(users)
        .values(account_id=account_id, created_at=tx.now, updated_at=tx.now, is_active=True, **values)
        .returning(users.c.id)
    )
    _set_cost_rate(tx, account_id, user_id, currency, fields)
    return user_id, password


def _user_values(
    tx: Transaction, account_id: int, user_id: int, fields: dict[str, Any], currency: str
) -> dict[str, Any]:
    values = in_units(fields, "hourly_rate", currency)
    for name in ("cost_rate", "cost_rate_from"):
        values.pop(name, None)
    if "target_percent" in values:
        values["target_percent"] = decimal_text(values["target_percent"])
    if "password" in values:
        values["password_hash"] = PasswordHasher().hash(values.pop("password"))
    if "email" in values:
        values["email_folded"] = folded_text(values, ("email",))
        same = (users.c.account_id == account_id) & (users.c.email_folded == values["email_folded"])
        if tx.one(select(users.c.id).where(same, users.c.id != user_id)):
            raise invalid({"email": [f"Another user of account {account_id} has this address. Choose another."]})
    return values


def _set_cost_rate(tx: Transaction, account_id: int, user_id: int, currency: str, fields: dict[str, Any]) -> None:
    if fields.get("cost_rate") is None:
        return
    key = {"account_id": account_id, "user_id": user_id, "from_date": fields.get("cost_rate_from", "0001-01-01")}
    amount = in_units(fields, "cost_rate", currency)["cost_rate"]
    tx.run(delete(cost_rates).where(*(cost_rates.c[name] == value for name, value in key.items())))
    tx.run(insert(cost_rates).values(amount=amount, **key))


def _user_shown(row: tuple[Any, ...], currency: str) -> dict[str, Any]:
    shown = dict(zip(users.c.keys(), row, strict=True))
    shown["is_active"] = bool(shown["is_active"])
    if shown["hourly_rate"] is not None:
        shown["hourly_rate"] = str(amount_of(shown["hourly_rate"], currency))
    return {name: value for name, value in shown.items() if name not in {"password_hash", "email_folded"}}
