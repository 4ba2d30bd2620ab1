"""Time entries: the time that users worked, on what, and what it is worth.

The project follows from the task or the ticket, the client from the project. If a change sends only the narrower one,
the broader follows again. `date` is the day of `started_at` in the account's time zone, else today. If `started_at`
moves to another day and `date` is not sent, `date` follows. The end follows from start and duration, or the duration
from start and end, to the minute. A user has at most 1440 minutes a day. A member's key changes and deletes only its
own user's time.

The hourly rate is that of the project, else of the client, the user or the account, if it is in the entry's currency.
It is fixed when time is recorded. If the entry gets another client, project or user, a derived rate is derived again; a
rate that was sent stays, and null removes it. Sending a derived rate back unchanged keeps it derived. If the new client
has another currency, send the rate in that currency, or null.

Billable time has a client: to remove the client, send `"billable": false` or null with it.
"""

from typing import Annotated, Any

from sqlalchemy import bindparam, func, select

from retainer.billing.allocation_types import TimeBillingStatusFilter
from retainer.errors import part
from retainer.kernel.body import New, Patch
from retainer.kernel.paging import Page, SummedPage
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.rollups import changes
from retainer.rollups.list_sums import summed_listing
from retainer.schema.crm import clients
from retainer.schema.filters import Where, since, until
from retainer.schema.identity import accounts, users
from retainer.schema.support import tickets
from retainer.schema.work import projects, tasks, time_entries
from retainer.shared import relations
from retainer.store.announcements import maintaining
from retainer.store.engines.sql import INTEGER, json_row
from retainer.store.row_mapper import decode_row
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values.kinds import Code191, Currency, Day, Id, UserId
from retainer.values.reading import writable_fields
from retainer.work import time_rules
from retainer.work.time_rules import Context, TimeEntry, TimeTotals

RELATIONS = ("client_id", "project_id", "ticket_id", "task_id")  # the broader first
LOCKED_FIELDS = [name for name in writable_fields(TimeEntry) if name not in {"description", "external_id"}]
"""The fields that are fixed while an entry is on an invoice."""


class TimeEntryFilter(Filter):
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
    currency: OneOf[Currency] | None = None
    invoice_id: OneOf[Id] | None = None
    external_id: OneOf[Code191] | None = None


TRACKED_MINUTES = select(func.coalesce(func.sum(time_entries.c.duration_minutes), 0)).where(
    time_entries.c.user_id == bindparam("user"),
    time_entries.c.date == bindparam("day"),
    time_entries.c.id.is_distinct_from(bindparam("entry", type_=INTEGER)),
)
CONTEXT_COLUMNS: dict[str, Any] = {
    "tracked_minutes": TRACKED_MINUTES.correlate(None).scalar_subquery(),
    "entry_rate_is_sent": time_entries.c.rate_is_sent,
    "user_hourly_rate": users.c.hourly_rate,
    "account_hourly_rate": accounts.c.hourly_rate,
    "task_id": tasks.c.id,
    "task_project_id": tasks.c.project_id,
    "task_client_id": tasks.c.client_id,
    "task_ticket_id": tasks.c.ticket_id,
    "task_billable": tasks.c.billable,
    "ticket_id": tickets.c.id,
    "ticket_project_id": tickets.c.project_id,
    "ticket_client_id": tickets.c.client_id,
    "project_id": projects.c.id,
    "project_client_id": projects.c.client_id,
    "project_status": projects.c.status,
    "project_is_template": projects.c.is_template,
    "project_billing_type": projects.c.billing_type,
    "project_currency": projects.c.currency,
    "project_hourly_rate": projects.c.hourly_rate,
    "client_id": clients.c.id,
    "client_status": clients.c.status,
    "client_currency": clients.c.currency,
    "client_hourly_rate": clients.c.hourly_rate,
}
"""What each field of Context says."""
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
SET_RATE_SOURCE = maintaining(
    time_entries, time_entries.c.id == bindparam("entry"), values={"rate_is_sent": bindparam("is_sent")}
)


def build_time_entry(
    tx: Tx, entry: TimeEntry, before: TimeEntry | None, sent: relations.SentFields
) -> tuple[TimeEntry, bool]:
    """Return an entry with its derived fields, and whether its rate was sent; note every error."""
    entry.user_id = relations.build_owner(tx, entry.user_id)
    time_rules.derive_duration(entry, before, sent)
    time_rules.derive_date(tx, entry, before, sent)
    ids = {"client": entry.client_id, "project": entry.project_id, "ticket": entry.ticket_id, "task": entry.task_id}
    found = {name: record_id or 0 for name, record_id in ids.items()}  # Citus cannot plan joins with a bound null
    row = tx.value(LOAD_CONTEXT, **found, user=entry.user_id, day=entry.date, entry=before.id if before else 0)
    context = Context(*decode_row(row))
    if relations.sets_any(before, sent, *RELATIONS):
        derive_parents(tx, entry, context, sent)
    rate_is_sent = time_rules.build_price(tx, entry, context, before, sent)
    relations.validate_owner(tx, entry.user_id, before.user_id if before else None, "time entry")
    time_rules.validate_times(tx, entry, before, context.tracked_minutes)
    validate_relations(tx, entry, before, context, sent)
    return entry, rate_is_sent


def has_relation(entry: TimeEntry) -> bool:
    return any(getattr(entry, field) is not None for field in RELATIONS)


def derive_parents(tx: Tx, entry: TimeEntry, context: Context, sent: relations.SentFields) -> None:
    """Derive the ticket from the task, the project from either, the client from the project, else from them."""
    task_has_ticket = context.task_ticket_id is not None
    if task_has_ticket:
        relations.inherit(tx, entry, sent, "task_id", "ticket_id", context.task_ticket_id)
    if context.task_project_id is not None:
        relations.inherit(tx, entry, sent, "task_id", "project_id", context.task_project_id)
    if context.ticket_project_id is not None and (not task_has_ticket or context.task_project_id is None):
        relations.inherit(tx, entry, sent, "ticket_id", "project_id", context.ticket_project_id)
    if context.project_id is not None and context.project_id == entry.project_id:
        narrow = relations.first_sent(entry, sent, *RELATIONS[1:])
        relations.inherit(tx, entry, sent, narrow, "client_id", context.project_client_id)
    if context.task_project_id is None and context.task_client_id is not None:
        relations.inherit(tx, entry, sent, "task_id", "client_id", context.task_client_id)
    if context.ticket_project_id is None and context.ticket_client_id is not None and not task_has_ticket:
        relations.inherit(tx, entry, sent, "ticket_id", "client_id", context.ticket_client_id)


def validate_relations(
    tx: Tx, entry: TimeEntry, before: TimeEntry | None, context: Context, sent: relations.SentFields
) -> None:
    """Note an error if an entry has no relation, or if its project or client accepts no time."""
    had_relation = before is None or has_relation(before)  # else its task was deleted
    if had_relation and not has_relation(entry) and tx.readable(*RELATIONS):
        *others, last = map(part, RELATIONS)
        tx.error(RELATIONS[0], f"Give at least one of {', '.join(others)} and {last}.")
    if before is not None and (entry.client_id, entry.project_id) == (before.client_id, before.project_id):
        return
    if context.project_id is not None:
        field = relations.first_sent(entry, sent, *RELATIONS[1:])
        name = part(f"Project {entry.project_id}")
        relations.validate_open(tx, field, name, context.project_status, template=bool(context.project_is_template))
    if entry.client_id is not None and entry.client_id == context.client_id:
        field = relations.first_sent(entry, sent, *RELATIONS)
        relations.validate_open(tx, field, part(f"Client {entry.client_id}"), context.client_status)


def record_time(tx: Tx, entry: TimeEntry) -> int:
    entry, rate_is_sent = build_time_entry(tx, entry, None, relations.sent_fields(entry))
    return changes.insert(tx, time_entries, entry, rate_is_sent=rate_is_sent)


api = Resource("/time-entries", tag="Time entries", scope="time", table=time_entries)


@api.get()
def list_time_entries(tx: Tx, filters: TimeEntryFilter, page: Page) -> SummedPage[TimeEntry, TimeTotals]:
    """List time entries, newest day first."""
    return summed_listing(tx, time_entries, TimeEntry, TimeTotals, filters, page)


@api.post()
def create_time_entry(tx: Tx, body: New[TimeEntry]) -> TimeEntry:
    """Record time on a client, project, ticket or task; omitted fields follow from it, the key's user and today."""
    return tx.get(time_entries, record_time(tx, body), TimeEntry)


api.reads("/{entry_id}", TimeEntry, "Read a time entry.")


@api.put("/{entry_id}")
@api.patch("/{entry_id}")
def update_time_entry(tx: Tx, entry_id: Id, patch: Patch[TimeEntry]) -> TimeEntry:
    """Change a time entry; omitted fields keep their value, or follow from those that are sent.

    A member's key changes only its own user's entries.
    """
    before = tx.get(time_entries, entry_id, TimeEntry)
    after, rate_is_sent = patch.apply_to(before), False
    if before.invoice_id is None:
        after, rate_is_sent = build_time_entry(tx, after, before, patch.given)
    else:  # nothing is derived again
        after.user_id = relations.build_owner(tx, after.user_id)
        relations.validate_locked(tx, after, before, f"on invoice {before.invoice_id}", LOCKED_FIELDS)
        relations.validate_owner(tx, after.user_id, before.user_id, "time entry")
    changes.update(tx, time_entries, before, after)
    if before.invoice_id is None and "hourly_rate" in patch.given:
        tx.run(SET_RATE_SOURCE, entry=entry_id, is_sent=rate_is_sent)
    return tx.get(time_entries, entry_id, TimeEntry)


@api.delete("/{entry_id}")
def delete_time_entry(tx: Tx, entry_id: Id) -> None:
    """Delete a time entry that is not billed. A member's key deletes only its own user's entries."""
    before = tx.get(time_entries, entry_id, TimeEntry)
    relations.check_deletion(tx, before.user_id, before.invoice_id, "time entry")
    changes.delete(tx, time_entries, before)
