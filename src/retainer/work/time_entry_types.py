"""Types of time entries: the record, and the context that it follows from."""

from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from retainer.billing.allocation_types import BillingInvoice, BillingLine, Locked, TimeBillingStatusField
from retainer.values.common import ActingUser, ExternalId, Minutes
from retainer.values.kinds import Currency, Day, Id, Instant, Money, Text5000
from retainer.values.records import READ_ONLY, SERVER_DEFAULT, Record

MAX_MINUTES = 1440  # a day


class TimeEntry(Record):
    """Time that a user worked, and its price, which is fixed when the time is recorded."""

    client_id: Annotated[Id | None, "Follows from project, ticket or task. One of the four is required."] = None
    project_id: Annotated[Id | None, "Follows from the task or the ticket, and must agree with them."] = None
    ticket_id: Annotated[Id | None, "Follows from the task. Becomes null when the ticket is deleted."] = None
    task_id: Annotated[
        Id | None, "The narrowest: the other three follow from it. Becomes null when the task is deleted."
    ] = None
    user_id: ActingUser = SERVER_DEFAULT
    date: Annotated[Day, "Day that the time counts for. Default: the day of `started_at`, else today."] = SERVER_DEFAULT
    duration_minutes: Annotated[
        Minutes, Meta(ge=1, le=MAX_MINUTES), "Required without start and end. A user has at most 1440 a day."
    ] = SERVER_DEFAULT
    billable: Annotated[
        bool, "Default: that of the task, else whether the project is billed; false without a client."
    ] = SERVER_DEFAULT
    started_at: Annotated[
        Instant | None, "The duration follows from it and `ended_at`. If it moves alone, the end moves, too."
    ] = None
    ended_at: Annotated[Instant | None, "At most a day after `started_at`. Default: start plus duration."] = None
    description: Annotated[Text5000 | None, "What was done. Invoice lines use this text."] = None
    hourly_rate: Annotated[
        Money | None, "Fixed when the time is recorded. Default: the rate of project, client, user or account."
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
    """The records that an entry follows from, if they exist: each field names a table and a column."""

    tracked_minutes: int = 0
    """Minutes of the user's other entries on the same day."""
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
