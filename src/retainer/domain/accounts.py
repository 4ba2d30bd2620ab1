"""Accounts, their plans and their users: what stands behind the API (contract 2)."""

import json
import secrets
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal

import msgspec
from argon2 import PasswordHasher
from msgspec import Meta
from sqlalchemy import Column, Table, delete, insert, select, update

from retainer.domain.values import Currency, Day, Email, Instant, Money, Password, Percent, Text50, Text191, Timezone
from retainer.errors import Refusal, invalid, not_found
from retainer.store.columns import (
    amount_of,
    casefolded,
    day,
    decimal,
    decimal_text,
    flag,
    folded,
    instant,
    integer,
    minor_units,
    money,
    ref,
    text,
    unique,
)
from retainer.store.engines import INTEGER, NUMBERED
from retainer.store.tables import keyed_table, metadata, tenant_table
from retainer.store.tx import Everywhere, Store

TRIAL_DAYS = 90


class Plan(msgspec.Struct, frozen=True):
    """What a plan gives: the API or not, and how many requests a minute for each key."""

    name: str
    has_api: bool
    requests_per_minute: int


PLANS = {
    plan.name: plan
    for plan in (
        Plan("solo", has_api=False, requests_per_minute=600),
        Plan("studio", has_api=False, requests_per_minute=600),
        Plan("agency", has_api=True, requests_per_minute=600),
        Plan("scale", has_api=True, requests_per_minute=1200),
        Plan("enterprise", has_api=True, requests_per_minute=3000),
    )
}
"""Contract 2.1. A plan without the API has its ceiling for the trial: that of `agency`."""

accounts = Table(
    "accounts",
    metadata,
    Column("id", INTEGER, primary_key=True),
    instant("created_at"),
    instant("updated_at"),
    text("name"),
    text("plan"),
    instant("trial_ends_at", optional=True),
    flag("api_enabled"),
    text("currency"),
    text("timezone"),
    money("hourly_rate", optional=True),
    decimal("tax_rate"),
    integer("payment_terms_days"),
    text("client_number_pattern"),
    text("working_weekdays"),
    **NUMBERED,
)

users = tenant_table(
    "users",
    text("name"),
    text("email"),
    folded("email"),
    text("role"),
    flag("is_active"),
    integer("weekly_capacity_minutes"),
    decimal("target_percent"),
    money("hourly_rate", optional=True),
    text("password_hash"),
    unique("email_folded"),
)

cost_rates = keyed_table(
    "cost_rates",
    ref("user_id", "users", on_delete="cascade"),
    day("from_date"),
    money("amount"),
    key=("user_id", "from_date"),
)
"""What an hour of a user costs from a day on, in the account's currency."""

Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
PaymentTerms = Annotated[int, Meta(ge=0, le=365)]
Minutes = Annotated[int, Meta(ge=0, le=10080)]


class AccountDetails(msgspec.Struct):
    """What an operator says of an account; the trial ends 90 days after its creation unless said otherwise."""

    name: Text191
    plan: Literal["solo", "studio", "agency", "scale", "enterprise"]
    currency: Currency = "EUR"
    timezone: Timezone = "UTC"
    trial_ends_at: Instant | None = None
    hourly_rate: Money | None = None
    tax_rate: Percent = Decimal(0)
    payment_terms_days: PaymentTerms = 30
    client_number_pattern: Text50 = "C-{0000}"
    working_weekdays: list[Weekday] = msgspec.field(default_factory=lambda: ["mon", "tue", "wed", "thu", "fri"])


class UserDetails(msgspec.Struct):
    """What an admin says of a user; `cost_rate` counts from `cost_rate_from` on, by default from always."""

    name: Text191
    email: Email
    role: Literal["admin", "member"] = "member"
    weekly_capacity_minutes: Minutes = 2400
    target_percent: Percent = Decimal(75)
    hourly_rate: Money | None = None
    cost_rate: Money | None = None
    cost_rate_from: Day = "0001-01-01"
    password: Password | None = None


def create_account(store: Store, details: AccountDetails, admin: UserDetails) -> tuple[int, int, str]:
    """Open an account with its first admin; answers both ids and the admin's password."""
    with store.everywhere("an account is opened by the operator", write=True) as tx:
        trial_end = details.trial_ends_at or _later(tx.now, timedelta(days=TRIAL_DAYS))
        values = _account_values(msgspec.structs.asdict(details), details.currency)
        values |= {"api_enabled": False, "trial_ends_at": trial_end}
        account_id: int = tx.value(
            insert(accounts).values(created_at=tx.now, updated_at=tx.now, **values).returning(accounts.c.id)
        )
        user_id, password = _insert_user(tx, account_id, details.currency, admin)
    return account_id, user_id, password


def list_accounts(store: Store) -> list[dict[str, Any]]:
    """Every account, oldest first."""
    with store.everywhere("operators see all accounts") as tx:
        return [account_shown(row) for row in tx.all(select(accounts).order_by(accounts.c.id))]


def get_account(store: Store, account_id: int) -> dict[str, Any]:
    """One account. Raises `not_found`."""
    with store.everywhere("operators see all accounts") as tx:
        return account_shown(account_row(tx, account_id))


def set_account(store: Store, account_id: int, changes: dict[str, Any]) -> dict[str, Any]:
    """Change what an account is; counts from the next request of its keys on. Raises `not_found`."""
    with store.everywhere("an account is changed by the operator", write=True) as tx:
        currency = account_shown(account_row(tx, account_id))["currency"]
        values = _account_values(changes, currency)
        tx.run(update(accounts).where(accounts.c.id == account_id).values(updated_at=tx.now, **values))
        return account_shown(account_row(tx, account_id))


def switch_api(store: Store, account_id: int, *, on: bool) -> None:
    """Switch the API on or off; off stops every key at once. Raises `plan_required` or `trial_ended` for on."""
    with store.everywhere("an account's switch", write=True) as tx:
        account = account_shown(account_row(tx, account_id))
        if on:
            require_api(account["plan"], account["trial_ends_at"], tx.now)
        tx.run(update(accounts).where(accounts.c.id == account_id).values(updated_at=tx.now, api_enabled=on))


def require_api(plan: str, trial_ends_at: str | None, now: str) -> None:
    """Refuse when neither the plan nor a running trial includes the API (contract 2.1)."""
    if PLANS[plan].has_api or (trial_ends_at is not None and now < trial_ends_at):
        return
    including = ", ".join(name for name, offer in PLANS.items() if offer.has_api)
    change = f"Change the account's plan to one that does: {including}."
    if trial_ends_at is None:
        raise Refusal("plan_required", f"The plan {plan} does not include the API. {change}", plan=plan)
    raise Refusal(
        "trial_ended",
        f"The trial ended on {trial_ends_at[:10]} and the plan {plan} does not include the API. {change}",
        plan=plan,
    )


def create_user(store: Store, account_id: int, details: UserDetails) -> tuple[int, str]:
    """Add a user to an account; answers the id and the password. Raises `not_found` or `validation_failed`."""
    with store.everywhere("a user is added by an admin", write=True) as tx:
        currency = account_shown(account_row(tx, account_id))["currency"]
        return _insert_user(tx, account_id, currency, details)


def list_users(store: Store, account_id: int) -> list[dict[str, Any]]:
    """The users of an account, deactivated ones included. Raises `not_found`."""
    with store.everywhere("admins see their users") as tx:
        currency = account_shown(account_row(tx, account_id))["currency"]
        rows = tx.all(select(users).where(users.c.account_id == account_id).order_by(users.c.id))
        return [_user_shown(row, currency) for row in rows]


def set_user(store: Store, user_id: int, changes: dict[str, Any]) -> dict[str, Any]:
    """Change what a user is; `is_active=False` stops the user's keys at once. Raises `not_found`."""
    with store.everywhere("a user is changed by an admin", write=True) as tx:
        account_id, currency = _account_of(tx, user_id)
        values = _user_values(tx, account_id, user_id, changes, currency)
        tx.run(update(users).where(users.c.id == user_id).values(updated_at=tx.now, **values))
        _set_cost_rate(tx, account_id, user_id, currency, changes)
        row = tx.one(select(users).where(users.c.id == user_id))
        return _user_shown(row or (), currency)


def account_row(tx: Everywhere, account_id: int) -> tuple[Any, ...]:
    """The row of an account. Raises `not_found`."""
    row = tx.one(select(accounts).where(accounts.c.id == account_id))
    if row is None:
        raise not_found("account")
    return row


def _account_of(tx: Everywhere, user_id: int) -> tuple[int, str]:
    same = (users.c.account_id == accounts.c.id) & (users.c.id == user_id)
    row = tx.one(select(accounts.c.id, accounts.c.currency).join(users, same))
    if row is None:
        raise not_found("user")
    return row[0], row[1]


def _account_values(given: dict[str, Any], currency: str) -> dict[str, Any]:
    values = _units(given, "hourly_rate", currency)
    if "tax_rate" in values:
        values["tax_rate"] = decimal_text(values["tax_rate"])
    if "working_weekdays" in values:
        values["working_weekdays"] = json.dumps(values["working_weekdays"])
    return values


def _insert_user(tx: Everywhere, account_id: int, currency: str, details: UserDetails) -> tuple[int, str]:
    password = details.password or secrets.token_urlsafe(12)
    given = msgspec.structs.asdict(details) | {"password": password}
    values = _user_values(tx, account_id, 0, given, currency)
    user_id: int = tx.value(
        insert(users)
        .values(account_id=account_id, created_at=tx.now, updated_at=tx.now, is_active=True, **values)
        .returning(users.c.id)
    )
    _set_cost_rate(tx, account_id, user_id, currency, given)
    return user_id, password


def _user_values(tx: Everywhere, account_id: int, user_id: int, given: dict[str, Any], currency: str) -> dict[str, Any]:
    values = _units(given, "hourly_rate", currency)
    for name in ("cost_rate", "cost_rate_from"):
        values.pop(name, None)
    if "target_percent" in values:
        values["target_percent"] = decimal_text(values["target_percent"])
    if "password" in values:
        values["password_hash"] = PasswordHasher().hash(values.pop("password"))
    if "email" in values:
        values["email_folded"] = casefolded(values, ("email",))
        same = (users.c.account_id == account_id) & (users.c.email_folded == values["email_folded"])
        if tx.one(select(users.c.id).where(same, users.c.id != user_id)):
            raise invalid({"email": [f"Another user of account {account_id} has this address. Choose another."]})
    return values


def _set_cost_rate(tx: Everywhere, account_id: int, user_id: int, currency: str, given: dict[str, Any]) -> None:
    if given.get("cost_rate") is None:
        return
    key = {"account_id": account_id, "user_id": user_id, "from_date": given.get("cost_rate_from", "0001-01-01")}
    amount = _units(given, "cost_rate", currency)["cost_rate"]
    tx.run(delete(cost_rates).where(*(cost_rates.c[name] == value for name, value in key.items())))
    tx.run(insert(cost_rates).values(amount=amount, **key))


def _units(given: dict[str, Any], name: str, currency: str) -> dict[str, Any]:
    values = dict(given)
    if values.get(name) is not None:
        try:
            values[name] = minor_units(values[name], currency)
        except ValueError:
            raise invalid({name: [f"{currency} has fewer decimal places than {values[name]}."]}) from None
    return values


def account_shown(row: tuple[Any, ...]) -> dict[str, Any]:
    """An account as operators see it."""
    shown = dict(zip(accounts.c.keys(), row, strict=True))
    shown["api_enabled"] = bool(shown["api_enabled"])
    shown["working_weekdays"] = json.loads(shown["working_weekdays"])
    if shown["hourly_rate"] is not None:
        shown["hourly_rate"] = str(amount_of(shown["hourly_rate"], shown["currency"]))
    return shown


def _user_shown(row: tuple[Any, ...], currency: str) -> dict[str, Any]:
    shown = dict(zip(users.c.keys(), row, strict=True))
    shown["is_active"] = bool(shown["is_active"])
    if shown["hourly_rate"] is not None:
        shown["hourly_rate"] = str(amount_of(shown["hourly_rate"], currency))
    return {name: value for name, value in shown.items() if name not in {"password_hash", "email_folded"}}


def _later(now: str, span: timedelta) -> str:
    return (datetime.fromisoformat(now) + span).isoformat(timespec="microseconds").replace("+00:00", "Z")
