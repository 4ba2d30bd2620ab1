"""Time entries: who worked how long on what, and what that is worth.

The project follows from the task or the ticket, the client from the project; when a change names only the narrower
one, the broader follows again. `date` is the day in the account's zone on which work started: that of `started_at`,
else today; when `started_at` moves to another day and `date` is not sent, it follows. Start and end say the duration to
the minute. A key that acts as a member changes and deletes only that user's own time.

The hourly rate is that of the project, else of the client, the user, or the account; one in another currency than the
entry's is passed over. It is fixed when time is recorded: a rate that changes later prices nothing anew. When the entry
gets another client, project or user, a derived rate is derived again, and a rate that was sent stays; null takes it
back. A derived rate that is sent back as it was read is still a derived one. A rate that was sent is an amount of its
currency: with a client of another currency the move must say the rate in that one, or null.

What is billable has a client: an entry that loses its client must say `"billable": false`, or null, with it.
"""

from typing import Annotated, Any

from msgspec import Meta
from sqlalchemy import bindparam, func, select, update

from retainer.billing import allocations
from retainer.billing.allocation_types import (
    BillingInvoice,
    BillingLine,
    BillingStatusField,
    BillingStatusFilter,
    Locked,
)
from retainer.kernel import etag
from retainer.kernel.body import New, Patch
from retainer.kernel.paging import Page, Paged, listing
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.rollups import project_totals, sources, summaries
from retainer.schema.crm import clients
from retainer.schema.filters import since, until
from retainer.schema.identity import accounts, users
from retainer.schema.support import tickets
from retainer.schema.work import projects, tasks, time_entries
from retainer.shared import ownership, relations
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values.common import ActingUser, ExternalId
from retainer.values.kinds import Currency, Day, Id, Instant, Money, Text191, Text5000, UserId
from retainer.values.records import READ_ONLY, SERVER_DEFAULT, Record
from retainer.work import rates, timing

RELATIONS = ("client_id", "project_id", "ticket_id", "task_id")  # the broader first


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
    duration_minutes: Annotated[int, Meta(ge=1, le=timing.LONGEST), "Required without start and end."] = SERVER_DEFAULT
    billable: Annotated[bool, "When left out, the task's, else as the project is billed; false without client."] = (
        SERVER_DEFAULT
    )
    started_at: Annotated[Instant | None, "With `ended_at` says the duration; alone, only the `date`."] = None
    ended_at: Annotated[Instant | None, "After `started_at`, by a day at most."] = None
    description: Annotated[Text5000 | None, "What was done; lines of invoices take their words from it."] = None
    hourly_rate: Annotated[
        Money | None, "Fixed when recorded; when left out that of project, client, user or account."
    ] = None
    amount: Annotated[Money, "Hours x `hourly_rate`, rounded half up, before tax; 0 when it is not billable."] = (
        READ_ONLY
    )
    currency: Annotated[Currency, "That of the client, else of the account."] = READ_ONLY
    billing_status: BillingStatusField = READ_ONLY
    invoice_id: BillingInvoice = READ_ONLY
    invoice_line_id: BillingLine = READ_ONLY
    is_locked: Locked = READ_ONLY
    external_id: ExternalId = None


class TimeEntryFilter(Filter):
    """Which time entries."""

    sorts = ("-date", "duration_minutes", "created_at", "updated_at")
    client_id: OneOf[Id] | None = None
    project_id: OneOf[Id | None] | None = None
    task_id: OneOf[Id | None] | None = None
    ticket_id: OneOf[Id] | None = None
    user_id: OneOf[UserId] | None = None
    date_from: Annotated[Day | None, since("date")] = None
    date_to: Annotated[Day | None, until("date")] = None
    billable: bool | None = None
    billing_status: BillingStatusFilter = None
    invoice_id: OneOf[Id] | None = None
    external_id: OneOf[Text191] | None = None


CONTEXT = {
    "rate_is_sent": time_entries.c.rate_is_sent,
    "user_rate": users.c.hourly_rate,
    "account_rate": accounts.c.hourly_rate,
    "task": tasks.c.id,
    "task_project": tasks.c.project_id,
    "task_client": tasks.c.client_id,
    "task_ticket": tasks.c.ticket_id,
    "task_billable": tasks.c.billable,
    "ticket": tickets.c.id,
    "ticket_project": tickets.c.project_id,
    "ticket_client": tickets.c.client_id,
    "project": projects.c.id,
    "project_client": projects.c.client_id,
    "project_status": projects.c.status,
    "is_template": projects.c.is_template,
    "billing_type": projects.c.billing_type,
    "project_currency": projects.c.currency,
    "project_rate": projects.c.hourly_rate,
    "client": clients.c.id,
    "client_status": clients.c.status,
    "client_currency": clients.c.currency,
    "client_rate": clients.c.hourly_rate,
}
"""What an entry is recorded on and by whom, as far as it exists; the narrower leads to the broader."""
LOAD_CONTEXT = (
    select(*CONTEXT.values())
    .select_from(
        accounts.outerjoin(time_entries, time_entries.c.id == bindparam("entry"))
        .outerjoin(users, users.c.id == bindparam("user"))
        .outerjoin(tasks, tasks.c.id == bindparam("task"))
        .outerjoin(tickets, tickets.c.id == func.coalesce(tasks.c.ticket_id, bindparam("ticket")))
        .outerjoin(
            projects, projects.c.id == func.coalesce(tasks.c.project_id, tickets.c.project_id, bindparam("project"))
        )
        .outerjoin(
            clients,
            clients.c.id
            == func.coalesce(projects.c.client_id, tasks.c.client_id, tickets.c.client_id, bindparam("client")),
        )
    )
    .where(accounts.c.id == ACCOUNT)
)
Context = dict[str, Any]
SET_RATE_SOURCE = (
    update(time_entries).where(time_entries.c.id == bindparam("own")).values(rate_is_sent=bindparam("sent"))
)


def prepare(tx: Tx, entry: TimeEntry, before: TimeEntry | None, given: relations.SentFields) -> tuple[TimeEntry, bool]:
    """Fill in what an entry follows from: relations, user, day, duration, price; return whether its rate was sent."""
    ownership.prepare_user(tx, entry, before, "time entry")
    asked = {"client": entry.client_id, "project": entry.project_id, "ticket": entry.ticket_id, "task": entry.task_id}
    found = tx.one(LOAD_CONTEXT, **asked, user=entry.user_id, entry=before and before.id)
    around: Context = dict(zip(CONTEXT, found or [None] * len(CONTEXT), strict=True))
    named = relations.named_fields(entry, given, *RELATIONS)
    if relations.concerns(before, given, *RELATIONS):
        derive_parents(tx, entry, around, given, named)
    if before is None or (entry.client_id, entry.project_id) != (before.client_id, before.project_id):
        check_open(tx, entry, around, named)
    had_none = before is not None and not on_something(before)  # its task may have been deleted
    if not (on_something(entry) or had_none) and tx.readable(*RELATIONS):
        for name in RELATIONS:
            tx.error(name, f"Give at least one of {', '.join(RELATIONS)}.")
    timing.prepare_duration(tx, entry, given)
    timing.prepare_date(tx, entry, before, given)
    return entry, rates.price(tx, entry, around, before, given)


def on_something(entry: TimeEntry) -> bool:
    """Whether an entry says what it was for."""
    return any(getattr(entry, name) is not None for name in RELATIONS)


def derive_parents(tx: Tx, entry: TimeEntry, around: Context, given: relations.SentFields, named: list[str]) -> None:
    """The ticket follows from the task, the project from either, the client from the project or else from them."""
    own_ticket = around["task_ticket"] is None
    if not own_ticket:
        relations.derive_parent(tx, entry, given, "task_id", "ticket_id", around["task_ticket"])
    if around["task_project"] is not None:
        relations.derive_parent(tx, entry, given, "task_id", "project_id", around["task_project"])
    if around["ticket_project"] is not None and (own_ticket or around["task_project"] is None):
        relations.derive_parent(tx, entry, given, "ticket_id", "project_id", around["ticket_project"])
    if around["project"] is not None and around["project"] == entry.project_id:
        narrow = relations.first_named(named, "project_id", "ticket_id", "task_id")
        relations.derive_parent(tx, entry, given, narrow, "client_id", around["project_client"])
    if around["task_project"] is None and around["task_client"] is not None:
        relations.derive_parent(tx, entry, given, "task_id", "client_id", around["task_client"])
    if around["ticket_project"] is None and around["ticket_client"] is not None and own_ticket:
        relations.derive_parent(tx, entry, given, "ticket_id", "client_id", around["ticket_client"])


def check_open(tx: Tx, entry: TimeEntry, around: Context, named: list[str]) -> None:
    """Archived clients, and projects that are archived or templates, take no time; told on the member that was sent."""
    if around["project"] is not None:
        on, name = relations.first_named(named, *RELATIONS[1:]), f"Project {entry.project_id}"
        relations.check_open(tx, on, name, around["project_status"], template=bool(around["is_template"]))
    if entry.client_id is not None and entry.client_id == around["client"]:
        relations.check_open(
            tx, relations.first_named(named, *RELATIONS), f"Client {entry.client_id}", around["client_status"]
        )


def record(tx: Tx, record: TimeEntry) -> int:
    """Write a new time entry and count it on its project; answers its id."""
    prepared, rate_is_sent = prepare(tx, record, None, relations.sent_fields(record))
    entry = tx.insert(time_entries, prepared)
    if rate_is_sent:
        tx.run(SET_RATE_SOURCE, own=entry, sent=True)
    project_totals.apply_time(tx, record, 1)
    summaries.add(tx, sources.TIME, entry)
    return entry


api = Resource("/time-entries", tag="Time entries", scope="time", table=time_entries)


@api.get()
def list_time_entries(tx: Tx, filters: TimeEntryFilter, page: Page) -> Paged[TimeEntry]:
    """List time entries, newest day first."""
    return listing(tx, time_entries, TimeEntry, filters, page)


@api.post()
def create_time_entry(tx: Tx, body: New[TimeEntry]) -> TimeEntry:
    """Record time on a client, project, ticket or task; what is left out follows from it, the key's user and today."""
    return tx.get(time_entries, record(tx, body), TimeEntry)


@api.get("/{entry}")
def get_time_entry(tx: Tx, entry_id: Id) -> TimeEntry:
    """Read a time entry."""
    return tx.get(time_entries, entry_id, TimeEntry)


@api.put("/{entry}")
@api.patch("/{entry}")
def update_time_entry(tx: Tx, entry_id: Id, patch: Patch[TimeEntry]) -> TimeEntry:
    """Change a time entry; members left out keep their value, and follow those that were sent.

    A member's key changes only that user's own.
    """
    before = tx.get(time_entries, entry_id, TimeEntry)
    after, rate_is_sent = prepare(tx, patch.apply_to(before), before, patch.given)
    allocations.check_locked(tx, after, before, before.invoice_id, free=("description", "external_id"))
    with summaries.tracking(tx, sources.TIME, record_id=entry_id):
        tx.update(time_entries, after)
    if "hourly_rate" in patch.given:
        tx.run(SET_RATE_SOURCE, own=entry_id, sent=rate_is_sent)
    project_totals.apply_time(tx, before, -1)
    project_totals.apply_time(tx, after, 1)
    return tx.get(time_entries, entry_id, TimeEntry)


@api.delete("/{entry}")
def delete_time_entry(tx: Tx, entry_id: Id) -> None:
    """Delete a time entry; one that is billed stays. A member's key deletes only that user's own."""
    before = etag.check_unchanged(tx, tx.get(time_entries, entry_id, TimeEntry))
    ownership.check_deletion(tx, before, "time entry")
    allocations.refuse_deletion(before.invoice_id, "time entry")
    summaries.add(tx, sources.TIME, entry_id, -1)
    tx.delete(time_entries, entry_id)
    project_totals.apply_time(tx, before, -1)
