"""The examples of the reference: a day of an integration at an agency, every operation once, recorded as it happened.

The samples of the reference are the requests of this day, which tests send again in each language.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from retainer.app import ROUTES
from retainer.identity import accounts, keys, users
from retainer.identity.accounts import AccountDetails
from retainer.identity.admins import operator_of
from retainer.identity.keys import SCOPES, KeyDetails
from retainer.identity.users import UserDetails
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


Made = dict[str, Any]
"""A record as it was answered."""
Call = Callable[..., Any]
"""Calls an operation by its id, with the ids of its path, the fields of its body, and its query; returns `data`."""


def day(show: Call, do: Call) -> None:
    """Live through the day: `show` calls what becomes the example of its operation, `do` what only leads there."""
    show("getMe")
    tag, optician, publisher = customers(show, do)
    sofie = contact(show, optician)
    sell(show, optician, sofie)
    shop, task = plan(show, optician)
    work(show, do, optician, shop, task)
    bill(show, optician, shop)
    care(show, optician, sofie)
    report(show)
    leave(show, do, publisher, tag)


def customers(show: Call, do: Call) -> tuple[Made, Made, Made]:
    """Make tags and clients; return a tag, a client, and a prospect."""
    tag = show("createTag", name="Care plan", color="#2f9e44")
    do("createTag", name="E-commerce", color="#e8590c")
    show("listTags", query={"per_page": 2})
    show("updateTag", tag["id"], color="#2b8a3e")
    show("replaceTag", tag["id"], name="Care plan 2026", color="#2b8a3e")

    optician = show(
        "createClient",
        name="Bergmann Optik GmbH",
        email="office@bergmann-optik.example",
        invoice_email="billing@bergmann-optik.example",
        address_line1="Lindenstraße 14",
        postal_code="50674",
        city="Köln",
        country="DE",
        vat_number="DE811234567",
        payment_terms_days=14,
        external_id="crm-20418",
        tag_ids=[tag["id"]],
    )
    publisher = do("createClient", name="Nordlicht Verlag", country="DE", status="prospect")
    show("listClients", query={"status": "active", "country": "DE", "sort": "name", "per_page": 2})
    show("getClient", optician["id"])
    show("updateClient", optician["id"], phone="+49 221 5550143", payment_terms_days=30)
    show("replaceClient", optician["id"], name="Bergmann Optik GmbH & Co. KG", website="https://bergmann-optik.example")
    return tag, optician, publisher


def contact(show: Call, optician: Made) -> Made:
    """Make a contact of a client; return it."""
    sofie = show(
        "createExternalContact",
        client_id=optician["id"],
        first_name="Sofie",
        last_name="Bergmann",
        email="sofie@bergmann-optik.example",
        job_title="Managing director",
        role="decision_maker",
    )
    show("listExternalContacts", query={"client_id": optician["id"], "per_page": 2})
    show("getExternalContact", sofie["id"])
    show("updateExternalContact", sofie["id"], mobile="+49 170 5550188")
    show("replaceExternalContact", sofie["id"], job_title="Owner", role="billing")
    return sofie


def sell(show: Call, optician: Made, sofie: Made) -> None:
    """Make an offer that is accepted."""
    offer = show(
        "createQuote",
        client_id=optician["id"],
        contact_id=sofie["id"],
        title="Online shop for contact lenses",
        lines=[
            {"description": "Concept and design", "quantity": "12", "unit": "hours", "unit_price": "95"},
            {"description": "Shop set-up", "quantity": "1", "unit_price": "4800"},
        ],
    )
    added = show("createQuoteLine", offer["id"], description="Training", quantity="1.5", unit="days", unit_price="760")
    show("deleteQuoteLine", offer["id"], added["id"])
    show("updateQuote", offer["id"], status="sent")
    show("replaceQuote", offer["id"], status="accepted", accepted_by="Sofie Bergmann")
    show("listQuotes", query={"client_id": optician["id"], "status": "accepted", "per_page": 2})
    show("getQuote", offer["id"])


def plan(show: Call, optician: Made) -> tuple[Made, Made]:
    """Make a project with a milestone and a task; return the project and the task."""
    shop = show(
        "createProject",
        name="Online shop",
        client_id=optician["id"],
        billing_type="time_and_materials",
        hourly_rate="95",
        budget_minutes=4800,
        start_date="2026-03-16",
    )
    show("listProjects", query={"client_id": optician["id"], "status": "active", "per_page": 2})
    show("getProject", shop["id"])
    show("updateProject", shop["id"], budget_amount="8000")
    show("replaceProject", shop["id"], name="Online shop for contact lenses", manager_id=1)

    launch = show("createMilestone", shop["id"], name="Launch", due_date="2026-06-30")
    show("listMilestones", shop["id"], query={"status": "open", "per_page": 2})
    show("updateMilestone", shop["id"], launch["id"], description="The shop takes its first order.")

    task = show(
        "createTask",
        title="Import the product data",
        project_id=shop["id"],
        milestone_id=launch["id"],
        assignee_id=2,
        priority="high",
        estimated_minutes=480,
    )
    show("listTasks", query={"project_id": shop["id"], "open": "true", "assignee_id": 2, "per_page": 2})
    show("getTask", task["id"])
    show("updateTask", task["id"], status="in_progress")
    show("replaceTask", task["id"], status="in_review", due_date="2026-04-10")
    return shop, task


def work(show: Call, do: Call, optician: Made, shop: Made, task: Made) -> None:
    """Track time and an expense."""
    worked = show(
        "createTimeEntry",
        client_id=optician["id"],
        project_id=shop["id"],
        duration_minutes=90,
        billable=True,
        date="2026-03-16",
        description="Cleaned up the lens catalogue",
    )
    do("createTimeEntry", task_id=task["id"], duration_minutes=210, date="2026-03-13", description="First import")
    show("listTimeEntries", query={"date_from": "2026-03-01", "date_to": "2026-03-31", "per_page": 2})
    show("getTimeEntry", worked["id"])
    show("updateTimeEntry", worked["id"], duration_minutes=105)
    show("replaceTimeEntry", worked["id"], task_id=task["id"], description="Cleaned up the lens catalogue, part two")

    fonts = show(
        "createExpense",
        amount="119.00",
        client_id=optician["id"],
        project_id=shop["id"],
        date="2026-03-12",
        vendor="Typehaus",
        category="licences",
        description="Web font licence, one year",
        billable=True,
        markup_percent="10",
    )
    show("listExpenses", query={"project_id": shop["id"], "billing_status": "unbilled", "per_page": 2})
    show("getExpense", fonts["id"])
    show("updateExpense", fonts["id"], receipt_url="https://files.northlight.example/receipts/2026-031.pdf")
    show("replaceExpense", fonts["id"], markup_percent="15")


def bill(show: Call, optician: Made, shop: Made) -> None:
    """Bill what was worked, take a payment, and credit a part."""
    invoice = show(
        "createInvoice",
        client_id=optician["id"],
        project_id=shop["id"],
        subject="Online shop, March",
        unbilled_work={"time": {"group_by": "project"}, "expenses": {}},
    )
    hosting = show(
        "createInvoiceLine",
        invoice["id"],
        description="Hosting, March",
        quantity="1",
        unit_price="39.90",
        tax_rate="19",
    )
    show("deleteInvoiceLine", invoice["id"], hosting["id"])
    show("updateInvoice", invoice["id"], status="sent")
    show("replaceInvoice", invoice["id"], record_payment={"amount": "200.00", "reference": "SEPA 2026-03-4471"})
    show("listInvoices", query={"client_id": optician["id"], "status": "open", "per_page": 2})
    show("getInvoice", invoice["id"])

    credit = show(
        "createCreditNote", invoice["id"], amount="59.50", reason="goodwill", description="For the late import"
    )
    show("listCreditNotes", query={"client_id": optician["id"], "per_page": 2})
    show("getCreditNote", credit["id"])


def care(show: Call, optician: Made, sofie: Made) -> None:
    """Look after a site, and answer a ticket."""
    site = show(
        "createSite",
        url="https://bergmann-optik.example",
        client_id=optician["id"],
        monitoring_enabled=False,
        wp_version="6.7.2",
        php_version="8.3.17",
        plugins=[
            {"slug": "woocommerce", "name": "WooCommerce", "version": "9.6.1", "update_version": "9.7.0"},
            {"slug": "wordpress-seo", "name": "Yoast SEO", "version": "24.6"},
        ],
    )
    show("listSites", query={"plugin": "woocommerce", "plugin_version_lt": "9.7", "per_page": 2})
    show("getSite", site["id"])
    show("updateSite", site["id"], keyword="Brillen", expected_status=[200])
    show("replaceSite", site["id"], environment="staging", maintenance_until="2026-03-17T06:00:00+01:00")

    slow = show(
        "createTicket",
        subject="The checkout is slow",
        description="Paying takes half a minute since the update on Friday.",
        client_id=optician["id"],
        contact_id=sofie["id"],
        site_id=site["id"],
        type="incident",
        priority="high",
    )
    show("listTickets", query={"status": "unresolved", "awaiting": "us", "sort": "-priority", "per_page": 2})
    show("getTicket", slow["id"])
    show("createTicketReply", slow["id"], body="Found it: a plugin loads every order. Fixed by noon.", status="pending")
    show("listTicketReplies", slow["id"], query={"per_page": 2})
    show("updateTicket", slow["id"], assignee_id=2)
    show("replaceTicket", slow["id"], status="resolved")


def report(show: Call) -> None:
    """Read all reports."""
    for name in ("Overview", "RevenueByClient", "Utilisation", "ProjectProfitability"):
        show(f"getReport{name}", query={"from": "2026-03-01", "to": "2026-03-31"})
    show("getReportRevenueByMonth", query={"from": "2026-02-01", "to": "2026-03-31"})


def leave(show: Call, do: Call, client: Made, tag: Made) -> None:
    """Delete a record of each kind that can be deleted, made for that."""
    by_mistake = {"client_id": client["id"]}
    show("deleteTicket", do("createTicket", subject="Test", **by_mistake)["id"])
    show("deleteSite", do("createSite", url="https://test.northlight.example", monitoring_enabled=False)["id"])
    show("deleteInvoice", do("createInvoice", **by_mistake)["id"])
    show("deleteExpense", do("createExpense", amount="12.50", date="2026-03-16", vendor="Copy shop")["id"])
    show("deleteTimeEntry", do("createTimeEntry", **by_mistake, duration_minutes=15, date="2026-03-16")["id"])
    show("deleteTask", do("createTask", title="Call back")["id"])
    project = do("createProject", name="Yearbook", **by_mistake)
    show("deleteMilestone", project["id"], do("createMilestone", project["id"], name="Proofs")["id"])
    show("deleteProject", project["id"])
    show("deleteQuote", do("createQuote", **by_mistake)["id"])
    show("deleteExternalContact", do("createExternalContact", last_name="Petersen", **by_mistake)["id"])
    show("deleteClient", client["id"])
    show("deleteTag", tag["id"])


def path_of(operation: Operation, ids: tuple[int, ...]) -> str:
    """The path of an operation with these ids."""
    path = operation.path
    for name, record_id in zip(operation.parameters, ids, strict=True):
        path = path.replace(f"{{{name}}}", str(record_id))
    return path
