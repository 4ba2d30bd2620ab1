"""Accounts and their plans; operators manage them by the command line (contract 2)."""

import json
from decimal import Decimal
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from sqlalchemy import bindparam, select, update

from retainer.errors import Refusal, invalid
from retainer.schema.identity import accounts
from retainer.store.transaction import Transaction
from retainer.store.tx import Actor, Store
from retainer.values.exact import amount_of, decimal_text, minor_units
from retainer.values.kinds import Currency, Instant, Money, NumberPattern, Percent, Text191, Timezone


class Plan(msgspec.Struct, frozen=True):
    """A plan: whether it includes the API, and how many requests a minute each key has."""

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
"""Contract 2.1. Plans without the API have a limit for trials: that of `agency`."""


ACTING = accounts.c["id", "currency", "timezone", "payment_terms_days", "client_number_pattern"]
"""The columns from which `operator` makes an actor."""

OPERATED = select(*ACTING).where(accounts.c.id == bindparam("id"))

Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
PaymentTerms = Annotated[int, Meta(ge=0, le=365)]


class AccountDetails(msgspec.Struct):
    """The fields of an account that operators set; by default the trial ends 90 days after its creation."""

    name: Text191
    plan: Literal["solo", "studio", "agency", "scale", "enterprise"]
    currency: Currency = "EUR"
    timezone: Timezone = "UTC"
    trial_ends_at: Instant | None = None
    hourly_rate: Money | None = None
    tax_rate: Percent = Decimal(0)
    payment_terms_days: PaymentTerms = 30
    client_number_pattern: NumberPattern = "C-{0000}"
    quote_number_pattern: NumberPattern = "Q-{YYYY}-{0000}"
    invoice_number_pattern: NumberPattern = "INV-{YYYY}-{0000}"
    credit_note_number_pattern: NumberPattern = "CN-{YYYY}-{0000}"
    working_weekdays: list[Weekday] = msgspec.field(default_factory=lambda: ["mon", "tue", "wed", "thu", "fri"])


def list_accounts(store: Store) -> list[dict[str, Any]]:
    """Return all accounts, oldest first."""
    with store.unscoped("operators see all accounts") as tx:
        return [_shown(row) for row in tx.all(select(accounts).order_by(accounts.c.id))]


def get_account(store: Store, account_id: int) -> dict[str, Any]:
    """Return an account. Raises `not_found`."""
    with store.unscoped("operators see all accounts") as tx:
        return account_of(tx, account_id)


def set_account(store: Store, account_id: int, changes: dict[str, Any]) -> dict[str, Any]:
    """Change an account, with effect from the next request of its keys on; return it. Raises `not_found`."""
    with store.unscoped("an account is changed by the operator", write=True) as tx:
        currency = account_of(tx, account_id)["currency"]
        values = account_values(changes, currency)
        tx.run(update(accounts).where(accounts.c.id == account_id).values(updated_at=tx.now, **values))
        return account_of(tx, account_id)


def switch_api(store: Store, account_id: int, *, on: bool) -> None:
    """Switch the API on or off; off stops every key at once. Raises `plan_required` or `trial_ended` for on."""
    with store.unscoped("an account's switch", write=True) as tx:
        account = account_of(tx, account_id)
        if on:
            require_api(account["plan"], account["trial_ends_at"], tx.now)
        tx.run(update(accounts).where(accounts.c.id == account_id).values(updated_at=tx.now, api_enabled=on))


def require_api(plan: str, trial_ends_at: str | None, now: str) -> None:
    """Refuse when neither the plan nor a running trial includes the API (contract 2.1)."""
    if PLANS[plan].has_api or (trial_ends_at is not None and now < trial_ends_at):
        return
    including = ", ".join(plan_name for plan_name, other in PLANS.items() if other.has_api)
    change = f"Change the account's plan to one that does: {including}."
    if trial_ends_at is None:
        raise Refusal("plan_required", f"The plan {plan} does not include the API. {change}", plan=plan)
    raise Refusal(
        "trial_ended",
        f"The trial ended on {trial_ends_at[:10]} and the plan {plan} does not include the API. {change}",
        plan=plan,
    )


def operator(account_id: int, *columns: Any) -> Actor:
    """Return the actor for an operator who changes records of an account; takes the rest of a row of ACTING."""
    return Actor(account_id, 0, "operator", *columns)


def operator_of(store: Store, account_id: int) -> Actor:
    """Return the actor for an operator of an account. Raises `not_found`."""
    row = store.unscoped_one("an operator names an account", OPERATED, id=account_id)
    if row is None:
        raise Refusal("not_found", f"There is no account {account_id}.")
    return operator(*row)


def account_of(tx: Transaction, account_id: int) -> dict[str, Any]:
    """Return an account as operators see it. Raises `not_found`."""
    row = tx.one(select(accounts).where(accounts.c.id == account_id))
    if row is None:
        raise Refusal("not_found", f"There is no account {account_id}.")
    return _shown(row)


def account_values(fields: dict[str, Any], currency: str) -> dict[str, Any]:
    """Return the fields of an account as values of its columns."""
    values = in_units(fields, "hourly_rate", currency)
    if "tax_rate" in values:
        values["tax_rate"] = decimal_text(values["tax_rate"])
    if "working_weekdays" in values:
        values["working_weekdays"] = json.dumps(values["working_weekdays"])
    return values


def in_units(fields: dict[str, Any], name: str, currency: str) -> dict[str, Any]:
    """Return the fields with the named amount in minor units. Raises `validation_failed` for too many digits."""
    values = dict(fields)
    if values.get(name) is not None:
        try:
            values[name] = minor_units(values[name], currency)
        except ValueError as error:
            raise invalid({name: [str(error)]}) from None
    return values


def _shown(row: tuple[Any, ...]) -> dict[str, Any]:
    shown = dict(zip(accounts.c.keys(), row, strict=True))
    shown["api_enabled"] = bool(shown["api_enabled"])
    shown["working_weekdays"] = json.loads(shown["working_weekdays"])
    if shown["hourly_rate"] is not None:
        shown["hourly_rate"] = str(amount_of(shown["hourly_rate"], shown["currency"]))
    return shown
