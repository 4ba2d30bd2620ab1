"""Accounts: details, plan, and the API's switch."""

import json
from decimal import Decimal
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from sqlalchemy import select

from retainer.errors import invalid
from retainer.identity import audit
from retainer.identity.audit import Fields, Target
from retainer.identity.plans import PLANS, Plan, require_api
from retainer.schema.identity import accounts
from retainer.store.engines.base import Row
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Store, Tx
from retainer.values.exact import amount_of, decimal_text, minor_units
from retainer.values.kinds import Currency, Instant, Money, NumberPattern, Percent, Text191, Timezone

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


ALL = select(accounts).order_by(accounts.c.id)
MINE = select(accounts).where(accounts.c.id == ACCOUNT)


def list_accounts(store: Store) -> list[Fields]:
    """Return all accounts, oldest first."""
    with store.unscoped() as tx:
        return [_shown(row) for row in tx.all(ALL)]


def has_accounts(store: Store) -> bool:
    """Return whether there is any account."""
    return store.unscoped_one(select(accounts.c.id)) is not None


def get_account(tx: Tx) -> Fields:
    """Return the account."""
    return _shown(tx.one(MINE) or ())


def get_plan(tx: Tx) -> Plan:
    """Return the plan of the account."""
    return PLANS[get_account(tx)["plan"]]


def set_account(tx: Tx, changes: Fields) -> Fields:
    """Change the account with effect from the next request; return it."""
    before = get_account(tx)
    tx.update_columns(accounts, before["id"], account_values(changes, before["currency"]))
    after = get_account(tx)
    audit.note_changes(tx, "account changed", Target("account", after["id"], after["name"]), before, after)
    return after


def switch_api(tx: Tx, *, on: bool) -> None:
    """Switch the API on or off; off stops every key immediately. On may raise `plan_required` or `trial_ended`."""
    account = get_account(tx)
    if on:
        require_api(account["plan"], account["trial_ends_at"], tx.now)
    if account["api_enabled"] != on:
        tx.update_columns(accounts, account["id"], {"api_enabled": on})
        target = Target("account", account["id"], account["name"])
        audit.note(tx, "API switched on" if on else "API switched off", target)


def account_values(fields: Fields, currency: str) -> Fields:
    """Return the fields of an account as columns."""
    values = in_units(fields, "hourly_rate", currency)
    if "tax_rate" in values:
        values["tax_rate"] = decimal_text(values["tax_rate"])
    if "working_weekdays" in values:
        values["working_weekdays"] = json.dumps(values["working_weekdays"])
    return values


def in_units(fields: Fields, name: str, currency: str) -> Fields:
    """Return fields with the named amount in minor units. Raises `validation_failed` for too many digits."""
    values = dict(fields)
    if values.get(name) is not None:
        try:
            values[name] = minor_units(values[name], currency)
        except ValueError as error:
            raise invalid({name: [str(error)]}) from None
    return values


def _shown(row: Row) -> Fields:
    shown = dict(zip(accounts.c.keys(), row, strict=True))
    shown["api_enabled"] = bool(shown["api_enabled"])
    shown["working_weekdays"] = json.loads(shown["working_weekdays"])
    if shown["hourly_rate"] is not None:
        shown["hourly_rate"] = str(amount_of(shown["hourly_rate"], shown["currency"]))
    return shown
