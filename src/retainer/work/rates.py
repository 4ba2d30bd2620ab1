"""Rates: what an hour is worth, by whom and for whom it was worked."""

from collections.abc import Collection
from decimal import Decimal

from retainer.store.tx import Tx
from retainer.values.exact import amount_of
from retainer.values.money import time_amount
from retainer.work.time_entry_types import Context, TimeEntry

PRICED_BY = ("client_id", "project_id", "user_id")
MAX_AMOUNT = 10**10  # so that the sums of a project fit into the database's integers


def price(tx: Tx, entry: TimeEntry, context: Context, before: TimeEntry | None, sent: Collection[str]) -> bool:
    """Fill in whether an entry is billable, its rate, currency and amount; return whether the rate was sent.

    What was recorded keeps its rate until it gets another project, client or user: then a derived one is derived again.
    Errors are noted of `billable` and `hourly_rate`.
    """
    is_billed = before is not None and before.invoice_id is not None  # then no move is possible: an error of its own
    if entry.billable is None:
        default = context.billing_type != "non_billable" if context.task is None else context.task_billable
        entry.billable = bool(default) and entry.client_id is not None
    elif entry.billable and entry.client_id is None and not is_billed:
        message = "Must be false for time without a client: nobody could be billed. Send false, or name a client."
        if tx.readable("client_id", "project_id", "task_id", "ticket_id"):
            tx.error("billable", message)
    moved = before is None or any(getattr(entry, name) != getattr(before, name) for name in PRICED_BY)
    is_sent = _rate_is_sent(entry, before, sent, was_sent=bool(context.rate_is_sent))
    if before is None or entry.client_id != before.client_id or (moved and not is_sent):
        entry.currency = (context.client_currency if entry.client_id else None) or tx.actor.currency
    if not is_sent and (moved or (entry.hourly_rate is None and _had_rate(before))):
        entry.hourly_rate = _derive_rate(context, entry.currency, tx.actor.currency)
    elif before and is_sent and "hourly_rate" not in sent and entry.currency != before.currency and not is_billed:
        tx.error(
            "hourly_rate",
            f"Was sent in {before.currency}, and in {entry.currency} it means something else. "
            f"Send the rate in {entry.currency}, or null for the usual one.",
        )
        entry.hourly_rate = None  # so that no other error is noted for it
    rate = entry.hourly_rate if entry.billable else Decimal(0)
    entry.amount = None if rate is None else time_amount(entry.duration_minutes or 0, rate, entry.currency)
    if entry.amount is not None and entry.amount > MAX_AMOUNT:
        tx.error(
            "hourly_rate", f"Makes the entry worth {entry.amount} {entry.currency}; at most {MAX_AMOUNT} is possible."
        )
    return is_sent


def _had_rate(before: TimeEntry | None) -> bool:
    return before is not None and before.hourly_rate is not None


def _rate_is_sent(entry: TimeEntry, before: TimeEntry | None, sent: Collection[str], *, was_sent: bool) -> bool:
    """Whether a rate was sent for the entry; the derived one, sent back as it was read, says nothing new."""
    if entry.hourly_rate is None or "hourly_rate" not in sent:
        return entry.hourly_rate is not None and was_sent
    return before is None or was_sent or entry.hourly_rate != before.hourly_rate


def _derive_rate(context: Context, currency: str, account_currency: str) -> Decimal | None:
    """Return the rate of project, client, user or account, whichever comes first; one in another currency is none."""
    rates = (
        (context.project_rate, context.project_currency),
        (context.client_rate, context.client_currency),
        (context.user_rate, account_currency),
        (context.account_rate, account_currency),
    )
    units = next((units for units, rate_currency in rates if units is not None and rate_currency == currency), None)
    return None if units is None else amount_of(units, currency)
