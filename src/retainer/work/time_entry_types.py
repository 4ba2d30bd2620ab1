"""Types of time entries: the record, and what it follows from."""

from typing import Annotated, NamedTuple

from msgspec import Meta

from retainer.billing.allocation_types import BillingInvoice, BillingLine, Locked, TimeBillingStatusField
from retainer.values.common import ActingUser, ExternalId
from retainer.values.kinds import Currency, Day, Id, Instant, Money, Text5000
from retainer.values.records import READ_ONLY, SERVER_DEFAULT, Record

LONGEST_MINUTES = 1440  # a day


class TimeEntry(Record):
    """Time that a user worked. What it is worth is fixed when it is recorded."""

    client_id: Annotated[Id | None, "Follows from project, ticket or task; one of the four is needed."] = None
    project_id: Annotated[Id | None, "Follows from the task or the ticket, and must agree with them."] = None
    ticket_id: Annotated[Id | None, "Follows from the task; null again when the ticket is deleted."] = None
    task_id: Annotated[Id | None, "The narrowest: all others follow from it. Null again when it is deleted."] = None
    user_id: ActingUser = SERVER_DEFAULT
    date: Annotated[Day, "The day that it counts for: that of `started_at`, else today, when left out."] = (
        SERVER_DEFAULT
    )
    duration_minutes: Annotated[
        int, Meta(ge=1, le=LONGEST_MINUTES), "Required without start and end; a day of a user has room for 1440 in all."
    ] = SERVER_DEFAULT
    billable: Annotated[bool, "When left out, the task's, else as the project is billed; false without client."] = (
        SERVER_DEFAULT
    )
    started_at: Annotated[
        Instant | None, "With `ended_at` says the duration. When it moves alone, the duration stays and the end moves."
    ] = None
    ended_at: Annotated[
        Instant | None, "After `started_at`, by a day at most; when left out it follows from start and duration."
    ] = None
    description: Annotated[Text5000 | None, "What was done; lines of invoices take their words from it."] = None
    hourly_rate: Annotated[
        Money | None, "Fixed when recorded; when left out that of project, client, user or account."
    ] = None
    amount: Annotated[
        Money | None,
        "Hours x `hourly_rate`, rounded half up, before tax. 0 when it is not billable; null when it is, without a "
        "rate.",
    ] = READ_ONLY
    currency: Annotated[Currency, "That of the client, else of the account."] = READ_ONLY
    billing_status: TimeBillingStatusField = READ_ONLY
    invoice_id: BillingInvoice = READ_ONLY
    invoice_line_id: BillingLine = READ_ONLY
    is_locked: Locked = READ_ONLY
    external_id: ExternalId = None


class Context(NamedTuple):
    """What an entry is recorded on and by whom, as far as it exists; rates are in minor units of their currency."""

    tracked_minutes: int = 0
    """The minutes of other entries of the user on the day of this one."""
    rate_is_sent: bool | None = None
    """Whether the rate of the entry was sent when it was last written; null for a new one."""
    user_rate: int | None = None
    account_rate: int | None = None
    task: int | None = None
    task_project: int | None = None
    task_client: int | None = None
    task_ticket: int | None = None
    task_billable: bool | None = None
    ticket: int | None = None
    ticket_project: int | None = None
    ticket_client: int | None = None
    project: int | None = None
    project_client: int | None = None
    project_status: str | None = None
    is_template: bool | None = None
    billing_type: str | None = None
    project_currency: str | None = None
    project_rate: int | None = None
    client: int | None = None
    client_status: str | None = None
    client_currency: str | None = None
    client_rate: int | None = None
