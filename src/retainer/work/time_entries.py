"""Time entries: who worked how long on what, and what that is worth.

The project follows from the task or the ticket, the client from the project; when a change names only the narrower one,
the broader follows again. `date` is the day in the account's zone on which work started: that of `started_at`, else
today; when `started_at` moves to another day and `date` is not sent, it follows. Start and end say the duration to the
minute. The end follows from start and duration unless it is sent; an end that is sent says the duration. A user has no
more than 1440 minutes on a day. A key that acts as a member changes and deletes only that user's own time.

The hourly rate is that of the project, else of the client, the user, or the account; one in another currency than the
entry's is passed over. It is fixed when time is recorded: a rate that changes later does not change recorded time. When
the entry gets another client, project or user, a derived rate is derived again, and a rate that was sent stays; null
takes it back. A derived rate that is sent back as it was read is still a derived one. A rate that was sent is an amount
of its currency: with a client of another currency the move must say the rate in that one, or null.

What is billable has a client: an entry that loses its client must say `"billable": false`, or null, with it.
"""

from typing import Annotated, Any

from sqlalchemy import ColumnElement, bindparam, func, select, update

from retainer.billing import allocations
from retainer.billing.allocation_types import TimeBillingStatusFilter
from retainer.kernel import etag
from retainer.kernel.body import New, Patch
from retainer.kernel.paging import Page, Paged, listing
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.rollups import changes
from retainer.rollups.sources import TIME
from retainer.schema.crm import clients
from retainer.schema.filters import Where, since, until
from retainer.schema.identity import accounts, users
from retainer.schema.support import tickets
from retainer.schema.work import projects, tasks, time_entries
from retainer.shared import ownership, relations
from retainer.store.engines.sql import INTEGER, json_row
from retainer.store.records import decode_row
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values.kinds import Day, Id, Text191, UserId
from retainer.work import rates, timing
from retainer.work.time_entry_types import Context, TimeEntry

RELATIONS = ("client_id", "project_id", "ticket_id", "task_id")  # the broader first


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
    has_rate: Annotated[
        bool | None,
        Where(
            lambda table, value: table.c.hourly_rate.is_not(None) if value else table.c.hourly_rate.is_(None),
            description="With true, entries with an `hourly_rate`; with false, those without one.",
        ),
    ] = None
    billing_status: TimeBillingStatusFilter = None
    invoice_id: OneOf[Id] | None = None
    external_id: OneOf[Text191] | None = None


OTHERS_OF_DAY = select(func.coalesce(func.sum(time_entries.c.duration_minutes), 0)).where(
    time_entries.c.user_id == bindparam("user"),
    time_entries.c.date == bindparam("day"),
    time_entries.c.id.is_distinct_from(bindparam("entry", type_=INTEGER)),
)
CONTEXT_COLUMNS: dict[str, ColumnElement[Any]] = {
    "tracked_minutes": OTHERS_OF_DAY.correlate(None).scalar_subquery(),
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
"""The columns of a Context. Rows of broader records are found through the narrower ones."""
LOAD_CONTEXT = (
    select(json_row(*(CONTEXT_COLUMNS[name] for name in Context._fields)))
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
SET_RATE_SOURCE = (
    update(time_entries).where(time_entries.c.id == bindparam("entry")).values(rate_is_sent=bindparam("is_sent"))
)


def prepare(tx: Tx, entry: TimeEntry, before: TimeEntry | None, sent: relations.SentFields) -> tuple[TimeEntry, bool]:
    """Fill in what an entry follows from: relations, user, day, duration, price; return whether its rate was sent.

    `sent` holds the fields of the body, and gets those that followed from them.
    """
    ownership.prepare_user(tx, entry, before, "time entry")
    timing.prepare_duration(tx, entry, before, sent)
    timing.prepare_date(tx, entry, before, sent)
    context = load_context(tx, entry, before)
    timing.check_room(tx, entry, before, context.tracked_minutes)
    sent_relations = relations.named_fields(entry, sent, *RELATIONS)
    if relations.concerns(before, sent, *RELATIONS):
        derive_parents(tx, entry, context, sent, sent_relations)
    if before is None or (entry.client_id, entry.project_id) != (before.client_id, before.project_id):
        check_open(tx, entry, context, sent_relations)
    had_none = before is not None and not has_relation(before)  # its task may have been deleted
    if not (has_relation(entry) or had_none) and tx.readable(*RELATIONS):
        tx.error(RELATIONS[0], f"Give at least one of {', '.join(RELATIONS[:-1])} and {RELATIONS[-1]}.")
    return entry, rates.price(tx, entry, context, before, sent)


def load_context(tx: Tx, entry: TimeEntry, before: TimeEntry | None) -> Context:
    """Return what an entry is recorded on and by whom."""
    ids = {"client": entry.client_id, "project": entry.project_id, "ticket": entry.ticket_id, "task": entry.task_id}
    row = tx.value(LOAD_CONTEXT, **ids, user=entry.user_id, day=entry.date, entry=before and before.id)
    return Context(*decode_row(row))


def has_relation(entry: TimeEntry) -> bool:
    """Whether an entry says what it was for."""
    return any(getattr(entry, field) is not None for field in RELATIONS)


def derive_parents(
    tx: Tx, entry: TimeEntry, context: Context, sent: relations.SentFields, sent_relations: list[str]
) -> None:
    """Derive the ticket from the task, the project from either, the client from the project or else from them."""
    task_has_ticket = context.task_ticket is not None
    if task_has_ticket:
        relations.derive_parent(tx, entry, sent, "task_id", "ticket_id", context.task_ticket)
    if context.task_project is not None:
        relations.derive_parent(tx, entry, sent, "task_id", "project_id", context.task_project)
    if context.ticket_project is not None and (not task_has_ticket or context.task_project is None):
        relations.derive_parent(tx, entry, sent, "ticket_id", "project_id", context.ticket_project)
    if context.project is not None and context.project == entry.project_id:
        narrow = relations.first_named(sent_relations, "project_id", "ticket_id", "task_id")
        relations.derive_parent(tx, entry, sent, narrow, "client_id", context.project_client)
    if context.task_project is None and context.task_client is not None:
        relations.derive_parent(tx, entry, sent, "task_id", "client_id", context.task_client)
    if context.ticket_project is None and context.ticket_client is not None and not task_has_ticket:
        relations.derive_parent(tx, entry, sent, "ticket_id", "client_id", context.ticket_client)


def check_open(tx: Tx, entry: TimeEntry, context: Context, sent_relations: list[str]) -> None:
    """Note an error, on the field that was sent, when client or project take no time: archived, or a template."""
    if context.project is not None:
        field, name = relations.first_named(sent_relations, *RELATIONS[1:]), f"Project {entry.project_id}"
        relations.check_open(tx, field, name, context.project_status, template=bool(context.is_template))
    if entry.client_id is not None and entry.client_id == context.client:
        field = relations.first_named(sent_relations, *RELATIONS)
        relations.check_open(tx, field, f"Client {entry.client_id}", context.client_status)


def record_time(tx: Tx, entry: TimeEntry) -> int:
    """Write a new time entry, add it to the sums of project and reports, and return its id."""
    prepared, rate_is_sent = prepare(tx, entry, None, relations.sent_fields(entry))
    entry_id = changes.insert(tx, TIME, time_entries, prepared)
    if rate_is_sent:
        tx.run(SET_RATE_SOURCE, entry=entry_id, is_sent=True)
    return entry_id


api = Resource("/time-entries", tag="Time entries", scope="time", table=time_entries)


@api.get()
def list_time_entries(tx: Tx, filters: TimeEntryFilter, page: Page) -> Paged[TimeEntry]:
    """List time entries, newest day first."""
    return listing(tx, time_entries, TimeEntry, filters, page)


@api.post()
def create_time_entry(tx: Tx, body: New[TimeEntry]) -> TimeEntry:
    """Record time on a client, project, ticket or task; what is left out follows from it, the key's user and today."""
    return tx.get(time_entries, record_time(tx, body), TimeEntry)


@api.get("/{entry_id}")
def get_time_entry(tx: Tx, entry_id: Id) -> TimeEntry:
    """Read a time entry."""
    return tx.get(time_entries, entry_id, TimeEntry)


@api.put("/{entry_id}")
@api.patch("/{entry_id}")
def update_time_entry(tx: Tx, entry_id: Id, patch: Patch[TimeEntry]) -> TimeEntry:
    """Change a time entry; members left out keep their value, and follow those that were sent.

    A member's key changes only that user's own.
    """
    before = tx.get(time_entries, entry_id, TimeEntry)
    after, rate_is_sent = prepare(tx, patch.apply_to(before), before, patch.given)
    allocations.validate_locked(tx, after, before, before.invoice_id, free=("description", "external_id"))
    changes.update(tx, TIME, time_entries, before, after)
    if "hourly_rate" in patch.given:
        tx.run(SET_RATE_SOURCE, entry=entry_id, is_sent=rate_is_sent)
    return tx.get(time_entries, entry_id, TimeEntry)


@api.delete("/{entry_id}")
def delete_time_entry(tx: Tx, entry_id: Id) -> None:
    """Delete a time entry; one that is billed stays. A member's key deletes only that user's own."""
    before = etag.check_unchanged(tx, time_entries, tx.get(time_entries, entry_id, TimeEntry))
    ownership.check_deletion(tx, before, "time entry")
    allocations.check_deletion(before.invoice_id, "time entry")
    changes.delete(tx, time_entries, before)
