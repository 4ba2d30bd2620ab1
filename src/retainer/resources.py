"""The resources of all areas, in the order of the reference."""

from retainer.billing import client_links, expenses, lines, payments, unbilled_work
from retainer.billing.credit_notes import credit_notes
from retainer.billing.invoices import invoices, preview
from retainer.billing.quotes import quotes
from retainer.crm import clients, contacts, tags
from retainer.files import files
from retainer.mail import messages, send
from retainer.reports import overview, profitability, revenue, tax, utilisation
from retainer.sites import sites
from retainer.support import ticket_replies, tickets
from retainer.work import milestones, projects, tasks, time_entries

OF_AREAS = [
    clients.api,
    contacts.api,
    tags.api,
    unbilled_work.of_client,
    projects.api,
    preview.api,
    milestones.api,
    tasks.api,
    time_entries.api,
    expenses.api,
    quotes.api,
    lines.of_quotes,
    invoices.api,
    lines.of_invoices,
    unbilled_work.of_account,
    payments.api,
    credit_notes.made,
    credit_notes.api,
    client_links.of_quotes,
    client_links.of_invoices,
    tickets.api,
    ticket_replies.api,
    sites.api,
    files.api,
    send.of_invoices,
    send.of_quotes,
    send.of_credit_notes,
    messages.api,
    overview.api,
    revenue.by_client,
    revenue.by_month,
    utilisation.api,
    profitability.api,
    tax.api,
]
