"""The displays of all kinds of records, by the names of the kinds in paths: those of their modules."""

from retainer.console.kinds import (
    clients,
    credit_notes,
    expenses,
    external_contacts,
    invoices,
    milestones,
    payments,
    projects,
    quotes,
    sites,
    tags,
    tasks,
    tickets,
    time_entries,
)

MODULES = (
    *(clients, external_contacts, tags, projects, milestones, tasks, time_entries),
    *(quotes, invoices, payments, credit_notes, expenses, tickets, sites),
)
DISPLAYS = {module.__name__.rpartition(".")[2].replace("_", "-"): module.DISPLAY for module in MODULES}
