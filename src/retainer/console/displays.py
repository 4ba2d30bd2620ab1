"""The displays of all kinds of records, by the names of the kinds in paths."""

from retainer.console.kinds import (
    clients,
    contacts,
    credit_notes,
    expenses,
    invoices,
    milestones,
    projects,
    quotes,
    sites,
    tags,
    tasks,
    tickets,
    time_entries,
)

DISPLAYS = {
    "clients": clients.DISPLAY,
    "external-contacts": contacts.DISPLAY,
    "tags": tags.DISPLAY,
    "projects": projects.DISPLAY,
    "milestones": milestones.DISPLAY,
    "tasks": tasks.DISPLAY,
    "time-entries": time_entries.DISPLAY,
    "quotes": quotes.DISPLAY,
    "invoices": invoices.DISPLAY,
    "credit-notes": credit_notes.DISPLAY,
    "expenses": expenses.DISPLAY,
    "tickets": tickets.DISPLAY,
    "sites": sites.DISPLAY,
}
