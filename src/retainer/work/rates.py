"""Rates: what an hour is worth, by whom and for whom it was worked."""

from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Any

from retainer.store.tx import Tx
from retainer.values.exact import amount_of
from retainer.values.money import time_amount

PRICED_BY = ("client_id", "project_id", "user_id")
MOST_WORTH = 10**10  # so that the sums of a project fit into the database's integers


def price(tx: Tx, entry: Any, context: Mapping[str, Any], before: Any, given: Collection[str]) -> bool:
    """Fix whether an entry is billed, and at which rate; return whether that rate was sent, or else was derived.

    What was recorded keeps its rate until it gets another project, client or user: then a derived one is derived again.
    """
    is_billed = before is not None and before.invoice_id is not None  # then it does not move, and that is told alone
    if entry.billable is None:
        default = context["billing_type"] != "non_billable" if context["task"] is None else context["task_billable"]
        entry.billable = bool(default) and entry.client_id is not None
    elif entry.billable and entry.client_id is None and not is_billed:
        sentence = "Must be false for time without a client: nobody could be billed. Send false, or name a client."
        if tx.readable("client_id", "project_id", "task_id", "ticket_id"):
            tx.error("billable", sentence)
    moved = before is None or any(getattr(entry, name) != getattr(before, name) for name in PRICED_BY)
    is_sent = _is_sent(entry, before, given, was_sent=bool(context["rate_is_sent"]))
    if before is None or entry.client_id != before.client_id or (moved and not is_sent):
        entry.currency = (context["client_currency"] if entry.client_id else None) or tx.actor.currency
    if not is_sent and (moved or (entry.hourly_rate is None and before.hourly_rate is not None)):
        entry.hourly_rate = _derived(context, entry.currency, tx.actor.currency)
    elif is_sent and "hourly_rate" not in given and entry.currency != before.currency and not is_billed:
        tx.error(
            "hourly_rate",
            f"Was sent in {before.currency}, and in {entry.currency} it means something else. "
            f"Send the rate in {entry.currency}, or null for the usual one.",
        )
        entry.hourly_rate = None  # so that nothing else is said of it
    rate = entry.hourly_rate if entry.billable and entry.hourly_rate else Decimal(0)
    entry.amount = time_amount(entry.duration_minutes or 0, rate, entry.currency)
    if entry.amount > MOST_WORTH:
        tx.error(
            "hourly_rate", f"Makes the entry worth {entry.amount} {entry.currency}; at most {MOST_WORTH} is possible."
        )
    return is_sent


def _is_sent(entry: Any, before: Any, given: Collection[str], *, was_sent: bool) -> bool:
    """Whether a rate was sent for the entry; the derived one, sent back as it was read, says nothing new."""
    if entry.hourly_rate is None or "hourly_rate" not in given:
        return entry.hourly_rate is not None and was_sent
    return before is None or was_sent or entry.hourly_rate != before.hourly_rate


def _derived(context: Mapping[str, Any], currency: str, own_currency: str) -> Decimal | None:
    """The rate of project, client, user or account, whichever comes first; one in another currency is none."""
    rates = [(context[f"{level}_rate"], context[f"{level}_currency"]) for level in ("project", "client")]
    rates += [(context[f"{level}_rate"], own_currency) for level in ("user", "account")]
    units = next((rate for rate, of in rates if rate is not None and of == currency), None)
    return None if units is None else amount_of(units, currency)
