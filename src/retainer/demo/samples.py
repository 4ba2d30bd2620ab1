"""The first records of the demo, which the samples of the reference name by their ids.

So each sample works on a new demo, from the first page to the last.
"""

from datetime import date, timedelta

from retainer.billing import expenses
from retainer.billing.credit_notes import credit_notes
from retainer.billing.invoices import invoices
from retainer.billing.quotes import quotes
from retainer.crm import clients, contacts, tags
from retainer.demo.make import change, create, make
from retainer.events import webhooks
from retainer.settings import BASE_PATH
from retainer.sites import sites
from retainer.store.tx import Tx
from retainer.support import ticket_replies, tickets
from retainer.work import milestones, projects, tasks, time_entries

SHOP_LINES = [
    {"description": "Concept and design", "quantity": "12", "unit": "hours", "unit_price": "95"},
    {"description": "Shop set-up", "quantity": "1", "unit_price": "4800"},
]


def create_samples(tx: Tx, today: date) -> None:
    """Create records in an account that has none, so that the first of each kind has the id 1.

    Samples read and change record 1, and delete the last one. Of quotes and invoices, they send the second and delete
    the third; invoice 4 is paid, and has credit note 1. Quotes can be accepted until 30 days after `today`, even if the
    transaction is in the past.
    """
    for name, color in (("Optician", "#1971c2"), ("Trade fair", "#868e96")):
        create(tags.create_tag, tx, name=name, color=color)
    for name, status in (("Lindner Optik GmbH", "active"), ("Messebau Thiel", "prospect")):
        create(clients.create_client, tx, name=name, city="Köln", country="DE", status=status, tag_ids=[1])
    for first, last, phone in (("Sofie", "Lindner", "+49 221 4710 101"), ("Paul", "Petersen", "+49 221 4710 102")):
        fields = {"client_id": 1, "first_name": first, "last_name": last, "phone": phone}
        create(contacts.create_external_contact, tx, email=f"{first.lower()}@lindner-optik.example", **fields)
    _work(tx)
    _documents(tx, (today + timedelta(days=30)).isoformat())
    _care(tx)


def _work(tx: Tx) -> None:
    for name in ("Online shop", "Catalogue"):
        create(projects.create_project, tx, name=name, client_id=1, hourly_rate="95")
    for name in ("Launch", "Training"):
        create(milestones.create_milestone, tx, 1, name=name)
    for title in ("Import the product data", "Call back"):
        create(tasks.create_task, tx, title=title, project_id=1, assignee_id=2)
    for minutes in (210, 15):
        create(time_entries.create_time_entry, tx, task_id=1, duration_minutes=minutes)
    for amount, vendor in (("119.00", "Typehaus"), ("12.50", "Copy shop")):
        fields = {"amount": amount, "vendor": vendor, "category": "Licences", "tax_rate": "19"}
        create(expenses.create_expense, tx, project_id=1, **fields)


def _documents(tx: Tx, valid_until: str) -> None:
    document = {"client_id": 1, "contact_id": 1}
    for _ in range(3):
        fields = {**document, "title": "Online shop", "valid_until": valid_until}
        create(quotes.create_quote, tx, lines=SHOP_LINES, **fields)
    for lines in (SHOP_LINES, SHOP_LINES[:1], SHOP_LINES[1:], SHOP_LINES[1:]):
        create(invoices.create_invoice, tx, client_id=1, subject="Online shop", lines=lines)
    change(invoices.update_invoice, tx, 4, status="sent")
    credit = {"amount": "59.50", "reason": "goodwill", "description": "For the late import"}
    create(credit_notes.create_credit_note, tx, 4, **credit)
    change(invoices.update_invoice, tx, 4, status="paid")


def _care(tx: Tx) -> None:
    plugins = [{"slug": "woocommerce", "name": "WooCommerce", "version": "9.6.1", "update_version": "9.7.0"}]
    for host in ("www", "staging"):
        fields = {"url": f"https://{host}.lindner-optik.example", "wp_version": "6.7.2", "plugins": plugins}
        create(sites.create_site, tx, client_id=1, monitoring_enabled=False, **fields)
    for subject in ("The checkout is slow", "New opening hours"):
        people = {"client_id": 1, "contact_id": 1}
        ticket = create(tickets.create_ticket, tx, subject=subject, site_id=1, type="incident", **people)
        reply = {"body": "We are looking into it.", "status": "pending"}
        create(ticket_replies.create_ticket_reply, tx, ticket.id, **reply)
    for path in ("invoices", "archive"):
        webhook = make(webhooks.Webhook, url=f"https://hooks.northlight.example/{path}", types=["invoice.paid"])
        webhooks.add_webhook(tx, webhook, f"http://127.0.0.1:8000{BASE_PATH}", ())
