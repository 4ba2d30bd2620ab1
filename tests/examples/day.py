"""The examples of the reference: a day of an integration at an agency, every operation once, recorded as it happened.

The samples of the reference are the requests of this day, which a test sends again to a demo in each language.
"""

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from retainer.api import ROUTES
from retainer.demo import samples
from retainer.identity import accounts
from retainer.identity.accounts import AccountDetails
from retainer.identity.actors import operator_of
from retainer.identity.keys import keys
from retainer.identity.keys.keys import SCOPES, KeyDetails
from retainer.identity.people import users
from retainer.identity.people.users import UserDetails
from retainer.kernel.resource import Operation
from retainer.store.tx import Store

OPERATIONS = {operation.id: operation for operation in ROUTES.operations}


def open_studio(store: Store) -> dict[str, Any]:
    """Open the agency of the examples: two people, a key with all scopes, and one with a single scope."""
    about = AccountDetails(
        name="Northlight Studio", plan="agency", timezone="Europe/Berlin", hourly_rate=Decimal(95), tax_rate=Decimal(19)
    )
    admin = UserDetails(name="Lena Hartwig", email="lena@northlight.example", role="admin", cost_rate=Decimal(52))
    member = UserDetails(name="Jonas Weber", email="jonas@northlight.example", cost_rate=Decimal("41.50"))
    account_id, admin_id = users.open_account(store, about, admin)
    with store.begin(operator_of(store, account_id), write=True) as tx:
        member_id = users.create_user(tx, member)
        accounts.switch_api(tx, on=True)
        key_id, key = keys.create_key(tx, KeyDetails("Accounting sync", admin_id, list(SCOPES)))
        _, lacking = keys.create_key(tx, KeyDetails("Website form", member_id, ["clients:read"]))
    people = {"account_id": account_id, "admin_id": admin_id, "member_id": member_id}
    return people | {"key_id": key_id, "key": key, "lacking": lacking}


Show = Callable[..., None]
"""Calls an operation by its id, with the ids of its path, the fields of its body, and its query."""


def save_samples(store: Store, studio: dict[str, Any]) -> None:
    """Create the records that the samples name, as the demo does."""
    admin = replace(operator_of(store, studio["account_id"]), user_id=studio["admin_id"], role="admin")
    with store.begin(admin, write=True) as tx:
        samples.create_samples(tx, date.fromisoformat(tx.today))


def day(show: Show) -> None:
    """Call every operation in the order of the pages, each with records that `save_samples` has made.

    So a sample runs without those above it, but for two: quote 2 is sent before it is accepted, invoice 2 before it is
    paid.
    """
    for page in (customers, plan, work, sell, bill, care, mail, report):
        page(show)


def by_external_id(show: Show, noun: str, external_id: str, change: dict[str, Any], **fields: Any) -> None:
    """Show how a record is created, read, changed and deleted by its external id."""
    show(f"upsert{noun}", external_id, **fields)
    show(f"get{noun}ByExternalId", external_id)
    show(f"update{noun}ByExternalId", external_id, **change)
    show(f"delete{noun}ByExternalId", external_id)


def customers(show: Show) -> None:
    """Show clients, their contacts, and tags."""
    show("listClients", query={"status": "active", "country": "DE", "sort": "name", "per_page": 2})
    show(
        "createClient",
        name="Nordlicht Verlag GmbH",
        email="office@nordlicht-verlag.example",
        invoice_email="billing@nordlicht-verlag.example",
        address_line1="Lindenstraße 14",
        postal_code="50674",
        city="Köln",
        country="DE",
        vat_number="DE811234567",
        payment_terms_days=14,
        external_id="crm-20418",
        tag_ids=[1],
    )
    show("getClient", 1)
    show("updateClient", 1, phone="+49 221 5550143", payment_terms_days=30)
    show("replaceClient", 1, name="Lindner Optik GmbH & Co. KG", website="https://lindner-optik.example")
    show("deleteClient", 2)
    by_external_id(
        show, "Client", "crm-20418", {"payment_terms_days": 14}, name="Nordlicht Verlag GmbH", city="Hamburg"
    )
    show("getUnbilledWorkOfClient", 1)

    show("listExternalContacts", query={"client_id": 1, "per_page": 2})
    show(
        "createExternalContact",
        client_id=1,
        first_name="Jana",
        last_name="Lindner",
        email="jana@lindner-optik.example",
        job_title="Managing director",
        role="decision_maker",
    )
    show("getExternalContact", 1)
    show("updateExternalContact", 1, mobile="+49 170 5550188")
    show("replaceExternalContact", 1, job_title="Owner", role="billing")
    show("deleteExternalContact", 2)
    by_external_id(
        show,
        "ExternalContact",
        "crm-31",
        {"job_title": "Bookkeeper"},
        client_id=1,
        last_name="Sommer",
        email="sommer@lindner-optik.example",
    )

    show("listTags", query={"per_page": 2})
    show("createTag", name="Care plan", color="#2f9e44")
    show("updateTag", 1, color="#2b8a3e")
    show("replaceTag", 1, name="Opticians", color="#2b8a3e")
    show("deleteTag", 2)


def plan(show: Show) -> None:
    """Show projects with milestones and tasks."""
    show("listProjects", query={"client_id": 1, "status": "active", "per_page": 2})
    show(
        "createProject",
        name="Newsletter",
        client_id=1,
        billing_type="time_and_materials",
        hourly_rate="95",
        budget_minutes=4800,
        start_date="2026-03-16",
    )
    show("getProject", 1)
    show("updateProject", 1, budget_amount="8000")
    show("replaceProject", 1, name="Online shop for contact lenses", manager_id=1)
    show("deleteProject", 2)
    by_external_id(show, "Project", "erp-118", {"budget_minutes": 2400}, name="Online shop", client_id=1)
    show("getUnbilledWork", 1)

    show("listMilestones", 1, query={"status": "open", "per_page": 2})
    show("createMilestone", 1, name="First order", due_date="2026-06-30")
    show("updateMilestone", 1, 1, description="The shop takes its first order.")
    show("deleteMilestone", 1, 2)

    show("listTasks", query={"project_id": 1, "open": "true", "assignee_id": 2, "per_page": 2})
    show(
        "createTask",
        title="Connect the payment provider",
        project_id=1,
        milestone_id=1,
        assignee_id=2,
        priority="high",
        estimated_minutes=480,
    )
    show("getTask", 1)
    show("updateTask", 1, status="in_progress")
    show("replaceTask", 1, status="in_review", due_date="2026-04-10")
    show("deleteTask", 2)
    by_external_id(show, "Task", "jira-WEB-7", {"estimated_minutes": 120}, title="Test the checkout", project_id=1)


def work(show: Show) -> None:
    """Show tracked time and expenses."""
    show("listTimeEntries", query={"date_from": "2026-03-01", "date_to": "2026-03-31", "per_page": 2})
    show(
        "createTimeEntry",
        client_id=1,
        project_id=1,
        duration_minutes=90,
        billable=True,
        date="2026-03-16",
        description="Cleaned up the lens catalogue",
    )
    show("getTimeEntry", 1)
    show("updateTimeEntry", 1, duration_minutes=105)
    show("replaceTimeEntry", 1, task_id=1, description="Cleaned up the lens catalogue, part two")
    show("deleteTimeEntry", 2)
    by_external_id(
        show, "TimeEntry", "toggl-5521", {"duration_minutes": 45}, client_id=1, date="2026-03-17", duration_minutes=30
    )

    show("listExpenses", query={"project_id": 1, "billing_status": "unbilled", "per_page": 2})
    show(
        "createExpense",
        amount="119.00",
        client_id=1,
        project_id=1,
        date="2026-03-12",
        vendor="Typehaus",
        category="Licences",
        description="Web font licence, one year",
        billable=True,
        markup_percent="10",
    )
    show("getExpense", 1)
    show("updateExpense", 1, receipt_url="https://files.northlight.example/receipts/2026-031.pdf")
    show("replaceExpense", 1, markup_percent="15")
    show("deleteExpense", 2)
    by_external_id(
        show,
        "Expense",
        "receipt-88",
        {"category": "Fonts"},
        amount="24.90",
        client_id=1,
        date="2026-03-18",
        vendor="Typehaus",
    )


def links_of(show: Show, document: str, first: int) -> None:
    """Show the links of document 4, of which there are two: `first` and the next one."""
    show(f"list{document}Links", 4, query={"per_page": 2})
    show(f"create{document}Link", 4)
    show(f"get{document}Link", 4, first)
    show(f"delete{document}Link", 4, first + 1)


def sell(show: Show) -> None:
    """Show quotes; the second is sent and accepted."""
    show("listQuotes", query={"client_id": 1, "status": "draft", "per_page": 2})
    show(
        "createQuote",
        client_id=1,
        contact_id=1,
        title="Newsletter",
        lines=[
            {"description": "Template", "quantity": "12", "unit": "hours", "unit_price": "95"},
            {"description": "First campaign", "quantity": "1", "unit_price": "1200"},
        ],
    )
    show("getQuote", 1)
    show("updateQuote", 2, status="sent")
    show("replaceQuote", 2, status="accepted", accepted_by="Sofie Lindner")
    show("deleteQuote", 3)
    by_external_id(show, "Quote", "crm-deal-12", {"title": "Relaunch and care"}, client_id=1, title="Relaunch")
    show("createQuoteLine", 1, description="Training", quantity="1.5", unit="days", unit_price="760")
    show("deleteQuoteLine", 1, 1)


def bill(show: Show) -> None:
    """Show invoices, of which the second is sent and paid, and credit notes."""
    show("listInvoices", query={"client_id": 1, "status": "paid", "per_page": 2})
    show(
        "createInvoice",
        client_id=1,
        project_id=1,
        subject="Online shop, March",
        unbilled_work={"time": {"group_by": "project"}, "expenses": {}},
    )
    show("getInvoice", 1)
    show("updateInvoice", 2, status="sent")
    show("replaceInvoice", 2, record_payment={"amount": "200.00", "reference": "SEPA 2026-03-4471"})
    show("deleteInvoice", 3)
    by_external_id(
        show, "Invoice", "erp-2026-77", {"purchase_order": "4500123"}, client_id=1, subject="Hosting, first quarter"
    )
    show("createInvoiceLine", 1, description="Hosting, March", quantity="1", unit_price="39.90", tax_rate="19")
    show("deleteInvoiceLine", 1, 1)
    show("getUnbilledWorkOfAll")

    show("listPayments", query={"client_id": 1, "paid_date_from": "2026-03-01", "per_page": 2})
    show("getPayment", 1)

    show("createCreditNote", 4, amount="59.50", reason="goodwill", description="For the late start")
    show("listCreditNotes", query={"client_id": 1, "per_page": 2})
    show("getCreditNote", 1)
    links_of(show, "Quote", 3)
    links_of(show, "Invoice", 1)


def care(show: Show) -> None:
    """Show tickets with their replies, and sites."""
    show("listTickets", query={"status": "unresolved", "awaiting": "requester", "sort": "-priority", "per_page": 2})
    show(
        "createTicket",
        subject="Paying takes half a minute",
        description="Since the update on Friday.",
        client_id=1,
        contact_id=1,
        site_id=1,
        type="incident",
        priority="high",
    )
    show("getTicket", 1)
    show("updateTicket", 1, assignee_id=2)
    show("replaceTicket", 1, status="resolved")
    show("deleteTicket", 2)
    by_external_id(
        show, "Ticket", "desk-4711", {"priority": "low"}, subject="The newsletter form is broken", client_id=1
    )
    show("listTicketReplies", 1, query={"per_page": 2})
    show("createTicketReply", 1, body="Found it: a plugin loads every order. Fixed by noon.", status="pending")

    show("listSites", query={"plugin": "woocommerce", "plugin_version_lt": "9.7", "per_page": 2})
    show(
        "createSite",
        url="https://shop.lindner-optik.example",
        client_id=1,
        monitoring_enabled=False,
        wp_version="6.7.2",
        php_version="8.3.17",
        plugins=[
            {"slug": "woocommerce", "name": "WooCommerce", "version": "9.6.1", "update_version": "9.7.0"},
            {"slug": "wordpress-seo", "name": "Yoast SEO", "version": "24.6"},
        ],
    )
    show("getSite", 1)
    show("updateSite", 1, keyword="Brillen", expected_status=[200])
    show("replaceSite", 1, environment="staging", maintenance_until="2026-03-17T06:00:00+01:00")
    show("deleteSite", 2)
    by_external_id(
        show,
        "Site",
        "site-9",
        {"environment": "staging"},
        url="https://blog.lindner-optik.example",
        monitoring_enabled=False,
    )
    show("listFiles", query={"record": "expense", "record_id": 1})
    show("createFile", record="expense", record_id=1, name="2026-031.pdf", content="JVBERi0xLjcgcmVjZWlwdA==")
    show("getFile", 1)
    show("deleteFile", 2)


def mail(show: Show) -> None:
    """Show how documents are sent, and what became of their messages."""
    show("sendInvoice", 2, to=["sofie@lindner-optik.example"], cc=["buchhaltung@lindner-optik.example"])
    show("sendQuote", 2, to=["sofie@lindner-optik.example"], message="Dear Sofie,\n\nhere is our quote.\n\nLena")
    show("sendCreditNote", 1, to=["sofie@lindner-optik.example"])
    show("listMessages", query={"record": "invoice", "record_id": 4})
    show("getMessage", 1)


def report(show: Show) -> None:
    """Show all reports, and whose key it is."""
    for name in ("Overview", "RevenueByClient"):
        show(f"getReport{name}", query={"from": "2026-03-01", "to": "2026-03-31"})
    show("getReportRevenueByMonth", query={"from": "2026-02-01", "to": "2026-03-31"})
    for name in ("Utilisation", "ProjectProfitability", "Tax"):
        show(f"getReport{name}", query={"from": "2026-03-01", "to": "2026-03-31"})
    show("listUsers", query={"is_active": "true", "per_page": 2})
    show("getUser", 2)
    show("listEvents", query={"types": "invoice.paid,ticket.created", "per_page": 2})
    follow(show)
    show(
        "runBatch",
        operations=[
            {"method": "PATCH", "path": "/clients/1", "body": {"phone": "+49 40 5550142"}},
            {"method": "POST", "path": "/tasks", "body": {"title": "Call about the new shop", "client_id": 1}},
        ],
        atomic=True,
    )
    show("getMe")


def follow(show: Show) -> None:
    """Show webhooks and their deliveries."""
    show("listWebhooks", query={"status": "active", "per_page": 2})
    show(
        "createWebhook",
        url="https://hooks.northlight.example/accounting",
        description="Accounting",
        types=["invoice.sent", "invoice.paid", "credit_note.created"],
    )
    show("getWebhook", 1)
    show("updateWebhook", 1, types=["invoice.sent", "invoice.paid"])
    show("deleteWebhook", 2)
    show("rotateWebhookSecret", 1)
    show("sendWebhookTest", 1)
    show("redeliverWebhookEvents", 1, since="2026-03-16T09:00:00Z")
    show("listWebhookDeliveries", 1, query={"status": "pending", "per_page": 2})


def path_of(operation: Operation, ids: tuple[int | str, ...]) -> str:
    """The path of an operation with these ids."""
    path = operation.path
    for name, record_id in zip(operation.parameters, ids, strict=True):
        path = path.replace(f"{{{name}}}", str(record_id))
    return path
