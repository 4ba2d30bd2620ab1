"""The first records of the demo, which the samples of the reference name by their ids.

So each sample works on a new demo, from the first page to the last.
"""

from collections.abc import Callable
from datetime import date, timedelta
from io import BytesIO
from typing import Any

from retainer.billing import client_links, expenses
from retainer.billing.credit_notes import credit_notes
from retainer.billing.invoices import invoices
from retainer.billing.invoices.invoices import load_invoice
from retainer.billing.quotes import quotes
from retainer.billing.quotes.quotes import load_quote
from retainer.crm import clients, contacts, tags
from retainer.demo.make import change, create, make
from retainer.events import webhooks
from retainer.files import files
from retainer.files.contents import examine
from retainer.mail import send
from retainer.schema import billing as schema
from retainer.schema.mail import messages
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
    the third; invoice 4 is paid, and has credit note 1 and message 1. Quotes can be accepted until 30 days after
    `today`, even if the transaction is in the past.
    """

    def save(handler: Callable[..., Any], *rows: dict[str, Any], ids: tuple[int, ...] = (), **fields: Any) -> None:
        for row in rows:
            create(handler, tx, *ids, **fields, **row)

    save(tags.create_tag, {"name": "Optician", "color": "#1971c2"}, {"name": "Trade fair", "color": "#868e96"})
    names = ({"name": "Lindner Optik GmbH", "status": "active"}, {"name": "Messebau Thiel", "status": "prospect"})
    save(clients.create_client, *names, city="Köln", country="DE", tag_ids=[1])
    for first, last, phone in (("Sofie", "Lindner", "+49 221 4710 101"), ("Paul", "Petersen", "+49 221 4710 102")):
        fields = {"client_id": 1, "first_name": first, "last_name": last, "phone": phone}
        save(contacts.create_external_contact, fields, email=f"{first.lower()}@lindner-optik.example")
    save(projects.create_project, {"name": "Online shop"}, {"name": "Catalogue"}, client_id=1, hourly_rate="95")
    save(milestones.create_milestone, {"name": "Launch"}, {"name": "Training"}, ids=(1,))
    titles = ({"title": "Import the product data"}, {"title": "Call back"})
    save(tasks.create_task, *titles, project_id=1, assignee_id=2)
    save(time_entries.create_time_entry, {"duration_minutes": 210}, {"duration_minutes": 15}, task_id=1)
    spent = ({"amount": "119.00", "vendor": "Typehaus"}, {"amount": "12.50", "vendor": "Copy shop"})
    save(expenses.create_expense, *spent, project_id=1, category="Licences", tax_rate="19")
    for name in ("receipt.txt", "terms.txt"):
        files.add_file(tx, "expense", 1, name, examine(BytesIO(b"Typehaus: web font licence, 119.00 EUR\n")))
    quote = {"client_id": 1, "contact_id": 1, "title": "Online shop", "valid_until": str(today + timedelta(days=30))}
    save(quotes.create_quote, *[quote] * 4, lines=SHOP_LINES)
    billed = ({"lines": lines} for lines in (SHOP_LINES, SHOP_LINES[:1], SHOP_LINES[1:], SHOP_LINES[1:]))
    save(invoices.create_invoice, *billed, client_id=1, subject="Online shop")
    change(invoices.update_invoice, tx, 4, status="sent")
    credit = {"amount": "59.50", "reason": "goodwill", "description": "For the late import"}
    create(credit_notes.create_credit_note, tx, 4, **credit)
    change(invoices.update_invoice, tx, 4, status="paid")
    change(quotes.update_quote, tx, 4, status="sent")
    for table, document in ((schema.invoices, load_invoice(tx, 4)), (schema.quotes, load_quote(tx, 4))):
        for _ in range(2):
            client_links.create_link(tx, table, document, make(client_links.ClientLink), "https://northlight.example")
    plugins = [{"slug": "woocommerce", "name": "WooCommerce", "version": "9.6.1", "update_version": "9.7.0"}]
    hosts = ({"url": f"https://{host}.lindner-optik.example"} for host in ("www", "staging"))
    save(sites.create_site, *hosts, client_id=1, monitoring_enabled=False, wp_version="6.7.2", plugins=plugins)
    letter = send.NewMessage(to=["sofie@lindner-optik.example"])
    (message,) = send.send(tx, "invoice", 4, letter, lambda _: None)
    tx.update_columns(messages, message.id, {"status": "sent", "attempts": 1, "sent_at": tx.now})
    for subject in ("The checkout is slow", "New opening hours"):
        about = {"subject": subject, "site_id": 1, "type": "incident", "client_id": 1, "contact_id": 1}
        ticket = create(tickets.create_ticket, tx, **about)
        reply = {"body": "We are looking into it.", "status": "pending"}
        create(ticket_replies.create_ticket_reply, tx, ticket.id, **reply)
    for name in ("Accounting", "Archive"):
        url = f"https://hooks.northlight.example/{name.lower()}"
        webhook = make(webhooks.Webhook, url=url, description=name, types=["invoice.paid"])
        webhooks.add_webhook(tx, webhook, f"http://127.0.0.1:8000{BASE_PATH}", ())
