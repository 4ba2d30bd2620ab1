"""Rates: the price of recorded time."""

from collections.abc import Collection
from decimal import Decimal
from typing import Literal

from retainer.store.tx import Tx
from retainer.values.exact import amount_of
from retainer.values.money import time_amount
from retainer.work.time_entry_types import Context, TimeEntry

PRICED_BY = ("client_id", "project_id", "user_id")
MAX_AMOUNT = 10**10  # the sums of a project fit into the database's integers


def build_price(tx: Tx, entry: TimeEntry, context: Context, before: TimeEntry | None, sent: Collection[str]) -> bool:
    """Fill in whether an entry is billable, its currency, rate and amount; return whether the rate was ever sent.

    Recorded time keeps its rate until it gets another project, client or user: then a derived one is derived again. A
    rate that was sent in another currency is removed. Notes errors of billable time without a client, of a rate in
    another currency, and of too high an amount.
    """
    if entry.billable is None:
        default = context.project_billing_type != "non_billable" if context.task_id is None else context.task_billable
        entry.billable = bool(default) and entry.client_id is not None
    is_moved = before is None or any(getattr(entry, name) != getattr(before, name) for name in PRICED_BY)
    has_new_client = before is None or entry.client_id != before.client_id
    is_removed = before is not None and before.hourly_rate is not None and entry.hourly_rate is None
    source = _rate_source(entry, before, sent, was_sent=bool(context.entry_rate_is_sent))
    if has_new_client or (is_moved and source == "derived"):
        entry.currency = (context.client_currency if entry.client_id else None) or tx.actor.currency
    if source == "derived" and (is_moved or is_removed):
        rates = (  # the first one in the currency applies
            (context.project_hourly_rate, context.project_currency),
            (context.client_hourly_rate, context.client_currency),
            (context.user_hourly_rate, tx.actor.currency),
            (context.account_hourly_rate, tx.actor.currency),
        )
        found = (
            amount_of(units, entry.currency) for units, code in rates if units is not None and code == entry.currency
        )
        entry.hourly_rate = next(found, None)
    elif source == "kept" and before and entry.currency != before.currency:
        entry.hourly_rate = None  # it was sent in the former currency
    rate = entry.hourly_rate if entry.billable else Decimal(0)
    entry.amount = None if rate is None else time_amount(entry.duration_minutes or 0, rate, entry.currency)
    lacks_client = entry.billable and entry.client_id is None
    is_known = all(getattr(entry, name) in {None, getattr(context, name)} for name in ("project_id", "task_id"))
    if lacks_client and is_known and tx.readable("client_id", "project_id", "task_id", "ticket_id"):
        tx.error("billable", "Must be false without a client. Send false, or name a client.")
    if before and source != "derived" and entry.hourly_rate is None:
        tx.error(
            "hourly_rate",
            f"Was sent in {before.currency}, but the entry is now in {entry.currency}. "
            f"Send the rate in {entry.currency}, or null for the default rate.",
        )
    if entry.amount is not None and entry.amount > MAX_AMOUNT:
        tx.error(
            "hourly_rate", f"Makes the entry worth {entry.amount} {entry.currency}; at most {MAX_AMOUNT} is possible."
        )
    return source != "derived"


def _rate_source(
    entry: TimeEntry, before: TimeEntry | None, sent: Collection[str], *, was_sent: bool
) -> Literal["derived", "kept", "sent"]:
    """Return where the rate of an entry comes from: this request sent it, it is `kept` from an earlier one, or neither.

    A derived rate that is sent back unchanged is still derived.
    """
    if entry.hourly_rate is None:
        return "derived"
    if "hourly_rate" not in sent:
        return "kept" if was_sent else "derived"
    is_sent_back = before is not None and not was_sent and entry.hourly_rate == before.hourly_rate
    return "derived" if is_sent_back else "sent"
