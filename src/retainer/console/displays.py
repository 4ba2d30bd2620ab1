"""The displays of all kinds of records, by the names of the kinds in paths."""

from retainer.console.kinds import clients, credit_notes, expenses, invoices, projects, quotes, sites, tags, tickets
from retainer.console.kinds.display import FREE, Display, Lock
from retainer.console.values import Column
from retainer.rollups.list_sums import Sum
from retainer.values.reading import writable_fields
from retainer.work.milestones import Milestone
from retainer.work.time_entry_types import TimeEntry


def lock_of_milestone(milestone: Milestone) -> Lock:
    reason = "This milestone is on an invoice, so its amount is fixed."
    return FREE if milestone.invoice_id is None else Lock({"amount"}, stays=True, reason=reason)


def lock_of_time_entry(entry: TimeEntry) -> Lock:
    reason = "This time is on an invoice, so only its description can change."
    fields = writable_fields(TimeEntry).keys() - {"description", "external_id"}
    return Lock(fields, stays=True, reason=reason) if entry.is_locked else FREE


DISPLAYS = {
    "clients": clients.DISPLAY,
    "external-contacts": Display(
        columns=(
            *(Column("name", "job_title", sort="last_name"), "client_id", "role", "is_primary"),
            *("email", "phone", "status"),
        ),
        filters=("client_id", "role", "status"),
        facts=("client_id", "job_title", "role", "email", "phone", "mobile"),
    ),
    "tags": tags.DISPLAY,
    "projects": projects.DISPLAY,
    "milestones": Display(
        columns=("name", "status", "due_date", "amount", "tasks_done_count", "tasks_count"), lock=lock_of_milestone
    ),
    "tasks": Display(
        columns=(Column("title", "project_id"), "assignee_id", "priority", "due_date", "tracked_minutes", "status"),
        filters=("project_id", "assignee_id", "status", "due_date_to"),
        views=(
            ("Open", "open=true&sort=due_date"),
            ("Overdue", "overdue=true&sort=due_date"),
            ("Mine", "open=true&assignee_id=me&sort=due_date"),
            ("Done", "status=done&sort=-updated_at"),
            ("All", "sort=-created_at"),
        ),
        facts=(
            "client_id",
            "project_id",
            "assignee_id",
            "due_date",
            "tracked_minutes",
            "estimated_minutes",
            "priority",
        ),
        related=("tasks", "time-entries"),
        rare=("milestone_id", "parent_id"),
        forms=(("handle", "Status and assignment", ()),),
    ),
    "time-entries": Display(
        columns=(
            *(Column("date", "description"), "user_id", Column("project_id", "task_id"), "client_id"),
            *("duration_minutes", "amount", "billing_status"),
        ),
        filters=("date_from", "date_to", "user_id", "project_id", "billing_status"),
        sums=(Sum("duration_minutes"), Sum("amount")),
        facts=("date", "duration_minutes", "user_id", "client_id", "project_id", "amount", "billing_status"),
        is_counted=False,
        lock=lock_of_time_entry,
        rare=("started_at", "ended_at"),
    ),
    "quotes": quotes.DISPLAY,
    "invoices": invoices.DISPLAY,
    "payments": Display(
        columns=(Column("paid_date", "reference"), "client_id", "invoice_id", "kind", "method", "notes", "amount"),
        filters=("paid_date_from", "paid_date_to", "client_id", "method"),
        sums=(Sum("amount"),),
        facts=("client_id", "invoice_id", "amount", "paid_date", "method"),
    ),
    "credit-notes": credit_notes.DISPLAY,
    "expenses": expenses.DISPLAY,
    "tickets": tickets.DISPLAY,
    "sites": sites.DISPLAY,
}


def display_of(name: str) -> Display:
    """Return the display of a kind; it is empty for one that only the pages of others show."""
    return DISPLAYS.get(name) or Display(())
