"""Rules of recorded time: its types, its duration and its day, with a limit of minutes a day, and its price."""

from collections.abc import Collection
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta

from retainer.billing.allocation_types import BillingInvoice, BillingLine, Locked, Settled, TimeBillingStatusField
from retainer.errors import FALSE, NULL, SEND, part
from retainer.shared import relations
from retainer.store.tx import Tx
from retainer.values.common import ActingUser, ExternalId, Minutes
from retainer.values.exact import amount_of, instant_after, local_day, minutes_between
from retainer.values.kinds import Currency, Day, Id, Instant, Money, Text5000
from retainer.values.money import time_amount
from retainer.values.records import READ_ONLY, SERVER_DEFAULT, NeededUnless, Record

MAX_MINUTES = 1440  # a day
MAX_DURATION = timedelta(minutes=MAX_MINUTES)
PRICED_BY = ("client_id", "project_id", "user_id")
MAX_AMOUNT = 10**10  # the sums of a project fit into the database's integers


class TimeEntry(Record):
    """Time that a user worked, and its price, which is fixed when the time is recorded."""

    client_id: Annotated[
        Id | None,
        NeededUnless(("project_id", "ticket_id", "task_id")),
        "Follows from project, ticket or task. One of the four is required.",
    ] = None
    project_id: Annotated[Id | None, "Follows from the task or the ticket, and must agree with them."] = None
    ticket_id: Annotated[Id | None, "Follows from the task. Becomes null when the ticket is deleted."] = None
    task_id: Annotated[
        Id | None, "The narrowest: the other three follow from it. Becomes null when the task is deleted."
    ] = None
    user_id: ActingUser = SERVER_DEFAULT
    date: Annotated[Day, "Day that the time counts for. Default: the day of `started_at`, else today."] = SERVER_DEFAULT
    duration_minutes: Annotated[
        Minutes,
        Meta(ge=1, le=MAX_MINUTES),
        NeededUnless(("started_at", "ended_at"), takes_all=True),
        "Required without start and end. A user has at most 1440 a day.",
    ] = SERVER_DEFAULT
    billable: Annotated[bool, "Default: as the task, else as the project; not billable without a client."] = (
        SERVER_DEFAULT
    )
    is_settled: Settled = False
    started_at: Annotated[
        Instant | None,
        "The duration follows from it and `ended_at`, rounded half up to whole minutes, at least 1. If it moves alone, "
        "the end moves, too.",
    ] = None
    ended_at: Annotated[Instant | None, "At most a day after `started_at`. Default: start plus duration."] = None
    description: Annotated[Text5000 | None, "What was done. Invoice lines use this text."] = None
    hourly_rate: Annotated[
        Money | None, "Fixed when the time is recorded. Default: that of the project, else client, user, account."
    ] = None
    amount: Annotated[
        Money | None,
        "Hours x `hourly_rate`, rounded half up, before tax. 0 if not billable; null if billable without a rate.",
    ] = READ_ONLY
    currency: Annotated[Currency, "Currency of the client, else of the account."] = READ_ONLY
    billing_status: TimeBillingStatusField = READ_ONLY
    invoice_id: BillingInvoice = READ_ONLY
    invoice_line_id: BillingLine = READ_ONLY
    is_locked: Locked = READ_ONLY
    external_id: ExternalId = None


class TimeTotals(msgspec.Struct):
    """The sums of time entries in one currency."""

    currency: Annotated[Currency, "Currency of the client, else of the account."]
    duration_minutes: Annotated[int, "Sum of the durations."]
    billable_minutes: Annotated[int, "Sum of the durations of billable entries."]
    amount: Annotated[Money, "Sum of the amounts; unpriced time counts as 0."]


class Context(NamedTuple):
    """What an entry follows from, as far as it exists: `CONTEXT_COLUMNS` says from which column."""

    tracked_minutes: int = 0  # minutes of the user's other entries on the same day
    entry_rate_is_sent: bool | None = None
    """Whether the rate was sent when the entry was last written; null for a new entry."""
    user_hourly_rate: int | None = None
    account_hourly_rate: int | None = None
    task_id: int | None = None
    task_project_id: int | None = None
    task_client_id: int | None = None
    task_ticket_id: int | None = None
    task_billable: bool | None = None
    ticket_id: int | None = None
    ticket_project_id: int | None = None
    ticket_client_id: int | None = None
    project_id: int | None = None
    project_client_id: int | None = None
    project_status: str | None = None
    project_is_template: bool | None = None
    project_billing_type: str | None = None
    project_currency: str | None = None
    project_hourly_rate: int | None = None
    client_id: int | None = None
    client_status: str | None = None
    client_currency: str | None = None
    client_hourly_rate: int | None = None


def derive_duration(entry: TimeEntry, before: TimeEntry | None, sent: relations.SentFields) -> None:
    """Fill in the end that follows from start and duration, or the duration between start and end."""
    passed, now = _passed(entry), (entry.started_at, entry.duration_minutes)
    is_changed = before is None or now != (before.started_at, before.duration_minutes)
    is_moved = "started_at" in sent or "ended_at" in sent
    is_implied = entry.duration_minutes is None or (is_moved and "duration_minutes" not in sent)
    if entry.started_at and entry.duration_minutes and "ended_at" not in sent and is_changed:
        entry.ended_at = instant_after(entry.started_at, timedelta(minutes=entry.duration_minutes))
    elif is_implied and passed and timedelta() < passed <= MAX_DURATION:
        entry.duration_minutes = _minutes(entry)


def derive_date(tx: Tx, entry: TimeEntry, before: TimeEntry | None, sent: relations.SentFields) -> None:
    """Fill in the day: that of the start, else today; it follows a start that moves. Notes an error for no such day."""
    has_new_start = before is not None and entry.started_at and "started_at" in sent
    if entry.date is not None and (not has_new_start or "date" in sent):
        return
    day = _day_of(tx, entry.started_at) if entry.started_at else tx.today
    if day is None:
        tx.error("started_at", "Lies outside the calendar in the account's time zone.")
    former_day = before and (_day_of(tx, before.started_at) if before.started_at else before.date)
    if entry.date is None or day != former_day:
        entry.date = day or tx.today


def validate_times(tx: Tx, entry: TimeEntry, before: TimeEntry | None, tracked: int) -> None:
    """Note errors of times, and of a day with `tracked` other minutes of the user. A duration can always be reduced."""
    passed = _passed(entry)
    if passed is not None and not timedelta() < passed <= MAX_DURATION:
        tx.error(
            "ended_at",
            f"Must be after {part('started_at')}, by at most {MAX_MINUTES} minutes. Make one entry for each day.",
        )
    elif entry.duration_minutes is None:
        if tx.readable("started_at", "ended_at"):
            tx.error(
                "duration_minutes",
                f"{part('Is required')}, unless {part('started_at')} and {part('ended_at')} are given.",
            )
    elif passed is not None and abs(passed - timedelta(minutes=entry.duration_minutes)) >= timedelta(minutes=1):
        message = (
            f"Must be the {_minutes(entry)} minutes between {part('started_at')} and {part('ended_at')}, or left out."
        )
        tx.error("duration_minutes", message)
    names = ("user_id", "date", "duration_minutes")
    if entry.duration_minutes is None or not tx.readable(*names, "started_at", "ended_at"):
        return
    changed = [name for name in names if before is None or getattr(entry, name) != getattr(before, name)]
    is_reduced = before and changed == ["duration_minutes"] and entry.duration_minutes < before.duration_minutes
    total = tracked + entry.duration_minutes
    if total > MAX_MINUTES and changed and not is_reduced:
        room = max(0, MAX_MINUTES - tracked)
        message = f"Makes {total} minutes on {part(entry.date)} for user {entry.user_id}: a day has {MAX_MINUTES}, "
        tx.error(changed[-1], f"{message}and {room} are left. Record less, or choose another day.")


def _passed(entry: TimeEntry) -> timedelta | None:
    if entry.started_at is None or entry.ended_at is None:
        return None
    return datetime.fromisoformat(entry.ended_at) - datetime.fromisoformat(entry.started_at)


def _minutes(entry: TimeEntry) -> int:
    return max(1, minutes_between(str(entry.started_at), str(entry.ended_at)))


def _day_of(tx: Tx, instant: str) -> str | None:
    try:
        return local_day(instant, tx.actor.timezone)
    except OverflowError:
        return None


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
    relations.validate_settled(tx, is_settled=entry.is_settled, billable=entry.billable)
    rate = entry.hourly_rate if entry.billable else Decimal(0)
    entry.amount = None if rate is None else time_amount(entry.duration_minutes or 0, rate, entry.currency)
    lacks_client = entry.billable and entry.client_id is None
    is_known = all(getattr(entry, name) in {None, getattr(context, name)} for name in ("project_id", "task_id"))
    if lacks_client and is_known and tx.readable("client_id", "project_id", "task_id", "ticket_id"):
        tx.error("billable", f"Must be {FALSE} without a client. {SEND} {FALSE}, or name a client.")
    if before and source != "derived" and entry.hourly_rate is None:
        tx.error(
            "hourly_rate",
            f"Was sent in {before.currency}, but the entry is now in {entry.currency}. "
            f"{SEND} the rate in {entry.currency}, or {NULL} for the default rate.",
        )
    if entry.amount is not None and entry.amount > MAX_AMOUNT:
        tx.error(
            "hourly_rate",
            f"Makes the entry worth {part(entry.amount)} {entry.currency}; at most {part(MAX_AMOUNT)} is possible.",
        )
    return source != "derived"


def _rate_source(
    entry: TimeEntry, before: TimeEntry | None, sent: Collection[str], *, was_sent: bool
) -> Literal["derived", "kept", "sent"]:
    """Return whether a rate is `sent` now, `kept` from before, or `derived`, even if sent back unchanged."""
    if entry.hourly_rate is None:
        return "derived"
    if "hourly_rate" not in sent:
        return "kept" if was_sent else "derived"
    is_sent_back = before is not None and not was_sent and entry.hourly_rate == before.hourly_rate
    return "derived" if is_sent_back else "sent"
