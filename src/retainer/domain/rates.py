"""Rates: what an hour is worth, by whom and for whom it was worked."""

from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Any

from retainer.domain.money import worth
from retainer.exact import amount_of
from retainer.store.tx import Tx

PRICED_BY = ("client_id", "project_id", "user_id")
MOST_WORTH = 10**10  # so that the sums of a project fit into the database's integers


def price(tx: Tx, it: Any, around: Mapping[str, Any], before: Any, given: Collection[str]) -> None:
    """Fix whether an entry is billed, and at which rate: its own, or that of project, client, user or account.

    A rate in another currency is none. What was recorded keeps its rate until it gets another project, client or user.
    """
    if it.billable is None:
        usual = around["billing_type"] != "non_billable" if around["task"] is None else around["task_billable"]
        it.billable = bool(usual) and it.client_id is not None
    elif it.billable and it.client_id is None:
        it.billable = False
        if "billable" in given and tx.knows("client_id", "project_id", "task_id", "ticket_id"):
            tx.fault("billable", "Must be false for time without a client: nobody could be billed.")
    anew = before is None or any(getattr(it, name) != getattr(before, name) for name in PRICED_BY)
    if anew:
        it.currency = (around["client_currency"] if it.client_id else None) or tx.actor.currency
    cleared = it.hourly_rate is None and before is not None and before.hourly_rate is not None
    if cleared or (anew and (it.hourly_rate is None or "hourly_rate" not in given)):
        own = tx.actor.currency
        rates = [
            (around["project_rate"], around["project_currency"]),
            (around["client_rate"], around["client_currency"]),
        ]
        rates += [(around["user_rate"], own), (around["account_rate"], own)]
        units = next((rate for rate, currency in rates if rate is not None and currency == it.currency), None)
        it.hourly_rate = None if units is None else amount_of(units, it.currency)
    rate = it.hourly_rate if it.billable and it.hourly_rate else Decimal(0)
    it.amount = worth(it.duration_minutes or 0, rate, it.currency)
    if it.amount > MOST_WORTH:
        tx.fault("hourly_rate", f"Makes the entry worth {it.amount} {it.currency}; at most {MOST_WORTH} is possible.")
