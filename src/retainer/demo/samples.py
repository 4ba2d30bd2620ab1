"""The first records of the demo: those that the samples of the reference name by their ids.

So every sample runs on a demo as it stands, from the top of the first page to the bottom of the last.
"""

from datetime import date, timedelta

import msgspec

from retainer.billing import expenses
from retainer.billing.credit_notes import credit_notes
from retainer.billing.credit_notes.types import CreditNote
from retainer.billing.invoices import invoices
from retainer.billing.invoices.types import Invoice
from retainer.billing.quotes import quotes
from retainer.billing.quotes.types import Quote
from retainer.crm import clients, contacts, tags
from retainer.demo.make import make
from retainer.sites import sites
from retainer.store.tx import Tx
from retainer.support import ticket_replies, tickets
from retainer.work import milestones, projects, tasks, time_entries
from retainer.work.time_entry_types import TimeEntry

SHOP_LINES = [
    {"description": "Concept and design", "quantity": "12", "unit": "hours", "unit_price": "95"},
    {"description": "Shop set-up", "quantity": "1", "unit_price": "4800"},
]


def prepare(tx: Tx, today: date) -> None:
    """Create records in an account that has none, so that the first of each kind has the id 1.

    Samples read and change record 1, and delete the last one. Of quotes and invoices, they send the second and delete
    the third; invoice 4 is paid, and has credit note 1. Quotes can be accepted until 30 days after `today`, whatever
    day the transaction has.
    """
    valid_until = (today + timedelta(days=30)).isoformat()
    _customers(tx)
    _work(tx)
    for _ in range(3):
        fields = {"client_id": 1, "contact_id": 1, "title": "Online shop", "valid_until": valid_until}
        quotes.create_quote(tx, make(Quote, **fields, lines=SHOP_LINES))
    for lines in (SHOP_LINES, SHOP_LINES[:1], [], SHOP_LINES[1:]):
        invoices.create_invoice(tx, make(Invoice, client_id=1, subject="Online shop", lines=lines))
    _settle(tx, 4)
    _care(tx)
    tx.raise_errors()


def _customers(tx: Tx) -> None:
    for name, color in (("Optician", "#1971c2"), ("Trade fair", "#868e96")):
        tags.create_tag(tx, make(tags.Tag, name=name, color=color))
    for name, status in (("Lindner Optik GmbH", "active"), ("Messebau Thiel", "prospect")):
        clients.create_client(
            tx, make(clients.Client, name=name, city="Köln", country="DE", status=status, tag_ids=[1])
        )
    for first, last in (("Sofie", "Lindner"), ("Paul", "Petersen")):
        email = f"{first.lower()}@lindner-optik.example"
        person = make(contacts.ExternalContact, client_id=1, first_name=first, last_name=last, email=email)
        contacts.create_external_contact(tx, person)


def _work(tx: Tx) -> None:
    for name in ("Online shop", "Catalogue"):
        projects.create_project(tx, make(projects.Project, name=name, client_id=1, hourly_rate="95"))
    for name in ("Launch", "Training"):
        milestones.create_milestone(tx, 1, make(milestones.Milestone, name=name))
    for title in ("Import the product data", "Call back"):
        tasks.create_task(tx, make(tasks.Task, title=title, project_id=1, assignee_id=2))
    for minutes in (210, 15):
        time_entries.create_time_entry(tx, make(TimeEntry, task_id=1, duration_minutes=minutes))
    for amount, vendor in (("119.00", "Typehaus"), ("12.50", "Copy shop")):
        spent = make(expenses.Expense, amount=amount, project_id=1, vendor=vendor, category="licences", tax_rate="19")
        expenses.create_expense(tx, spent)


def _settle(tx: Tx, invoice_id: int) -> None:
    """Send an invoice, credit a part of it, and let it be paid."""
    _change(tx, invoice_id, "sent")
    note = make(CreditNote, amount="59.50", reason="goodwill", description="For the late import")
    credit_notes.create_credit_note(tx, invoice_id, note)
    _change(tx, invoice_id, "paid")


def _change(tx: Tx, invoice_id: int, status: str) -> None:
    before = invoices.load_invoice(tx, invoice_id)
    invoices.change_invoice(tx, msgspec.structs.replace(before, status=status), before)


def _care(tx: Tx) -> None:
    plugins = [{"slug": "woocommerce", "name": "WooCommerce", "version": "9.6.1", "update_version": "9.7.0"}]
    for host in ("www", "staging"):
        url = f"https://{host}.lindner-optik.example"
        site = make(sites.Site, url=url, client_id=1, monitoring_enabled=False, wp_version="6.7.2", plugins=plugins)
        sites.create_site(tx, site)
    for subject in ("The checkout is slow", "New opening hours"):
        ticket = make(tickets.Ticket, subject=subject, client_id=1, contact_id=1, site_id=1, type="incident")
        found = tickets.create_ticket(tx, ticket).id
        answer = make(ticket_replies.TicketReply, body="We are looking into it.", status="pending")
        ticket_replies.create_ticket_reply(tx, found, answer)
