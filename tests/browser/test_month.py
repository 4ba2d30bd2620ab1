"""A month of an agency in the console alone, with and without script: its clicks, and figures that agree.

Only what happens outside of it is done by other means: a command imports time, and the mail server gets messages.
"""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
import time_machine

from retainer.identity.people import users
from retainer.job_kinds import KINDS
from retainer.jobs.loop import Jobs
from tests.browser.desks import Desk, DeskWithoutScript, DeskWithScript
from tests.browser.month import Month
from tests.console.serving import serving
from tests.databases import only_sqlite
from tests.exchange import files
from tests.exchange.test_imports import run
from tests.factories import ApiClient
from tests.length import first
from tests.mail.server import Post

pytestmark = only_sqlite
EMAIL = "office@nordlicht.example"
TEAM = ("Mia Müller", "Jo Winter", "Ada Brandt")
CLICKS = {
    "log two hours in a new row of My week": (2, 2),
    "log two hours with a note in a row of My week": (2, 2),
    "time work with the timer, from its page": (2, 2),
    "create a client with address and terms": (3, 3),
    "record an expense": (3, 3),
    "quote three lines, one of them optional, up to the PDF": (5, 5),
    "share a quote with its client": (3, 3),
    "turn an accepted quote into a project and an issued invoice": (3, 3),
    "issue and send an invoice": (2, 2),
    "bill all clients, up to the PDFs": (3, 3),
    "record a payment": (2, 2),
    "record payments of two invoices": (3, 3),
    "answer and resolve a ticket": (3, 3),
    "finish a task that is due": (1, 1),
    "finish a task in its list": (1, 1),
}
"""How many clicks each job costs at most, from Today unless it says otherwise, and how many it should. They fall."""


@pytest.fixture(params=first(["without script", "with script"]))
def desk(request: pytest.FixtureRequest, api: ApiClient, tmp_path: Path) -> Iterator[Desk]:
    if request.param == "without script":
        yield DeskWithoutScript(api.app)
        return
    browser = request.getfixturevalue("browser")
    browser.show()
    with serving(api.app) as site:
        browser.get(site)
        browser.delete_all_cookies()
        yield DeskWithScript(browser, site, tmp_path)


@pytest.fixture
def post(api: ApiClient) -> Iterator[Post]:
    """A mail server, which gets what the agency has sent when it is asked to."""
    made = Post(api)
    yield made
    made.close()


def move_in(month: Month) -> None:
    """Import the time of the program before: it was billed there, so that nothing of it is to bill."""
    job = run(month.api, files.HARVEST.replace("Yes,No,No", "Yes,Yes,No"))
    assert (job.status, job.counts["time_entries"]) == ("done", 4)
    month.desk.open("/console/records/time-entries")
    month.says("Nordwind")
    assert month.to_bill("") == month.to_bill("/billing-run") == 0


def invite(month: Month, post: Post) -> dict[str, str]:
    """Add the team; return the link that each person gets by mail, by the id."""
    links = {}
    for name in TEAM:
        month.desk.open("/console/people/new")
        month.desk.send(
            "/console/people/new", name=name, email=f"{name.split()[0].lower()}@north.example", role="member"
        )
        post.send()
        text = post.server.got[-1].message.get_content()
        links[month.found(r"/console/people/(\d+)")] = re.search(r"/console/password\?token=[\w-]+", text)[0]
    return links


def record_week(month: Month, project: str) -> None:
    """Record two hours, which a note corrects, and try a timer; a member sees no settings."""
    desk, row = month.desk, f"project_id-{project}"
    with month.job("log two hours in a new row of My week", "/console/week"):
        day = month.found(r'name="new\.([\d-]+)"')
        desk.send("/console/week", new=row, **{f"new.{day}": "2"})
        month.says("Week saved.")
    cell = f"{row}.{day}"
    with month.job("log two hours with a note in a row of My week"):
        desk.follow("/console/week")
        desk.send("/console/week", **{cell: "1:20", f"{cell}.note": "Checkout"})
    desk.send("/console/week/timer", press="start", work=row, description="Workshop")
    desk.send("/console/week/timer", press="discard")
    month.says("Nothing was recorded.")
    desk.open("/console/settings")
    month.says("does not include this page")


def time_work(month: Month, project: str) -> None:
    """Time some work: what it takes in a test is a minute, which an invoice rounds up."""
    with month.job("time work with the timer, from its page", project):
        month.desk.send("/console/week/timer", press="start")
        month.desk.send("/console/week/timer", press="stop")
        month.says("0:01 recorded.")


def spend(month: Month, project: str) -> None:
    with month.job("record an expense"):
        month.desk.follow("/console/records/expenses/new")
        form = "/console/records/expenses/new"
        month.save(form, amount="119", category="Software", vendor="Plugwerk", project_id=project)


def quote(month: Month, client: str) -> str:
    """Quote, and let the client accept two of three lines on the page of a link; return the quote."""
    desk, form = month.desk, "/console/records/quotes/new"
    with month.job("quote three lines, one of them optional, up to the PDF"):
        desk.follow(form)
        lines = [("Film", "1,000.00"), ("Music", "250"), ("Drone", "400")]
        typed = {f"lines.{place}.description": text for place, (text, _) in enumerate(lines)}
        typed |= {f"lines.{place}.unit_price": price for place, (_, price) in enumerate(lines)}
        desk.send(form, "sent", client_id=client, title="Image film", **typed, **{"lines.2.is_optional": "yes"})
        month.says("1,250.00 EUR")
        made = desk.path
        desk.download(f"{made}/pdf")
    month.says("Sent")
    with month.job("share a quote with its client", made):
        desk.follow(f"{made}/links")
        desk.send(f"{made}/links")
    link = month.found(r"/client\?token=[\w-]+")
    desk.leave()
    desk.open(link)
    month.says("Drone")
    desk.send(link, press="accept", name="Eva")
    month.sign_in()
    desk.open(made)
    month.says("Eva")
    return made


def send_invoice(month: Month, client: str, post: Post) -> str:
    """Bill something without recorded work, and send it; return the invoice."""
    draft = month.create("invoices", f"client_id={client}", **hosting("50"))
    with month.job("issue and send an invoice", draft):
        month.desk.follow(f"{draft}/issue-and-send")
        month.desk.send(f"{draft}/issue-and-send")
        month.says(f"is being sent to {EMAIL}.")
    post.send()
    (got,) = (each for each in post.server.got if each.recipient == EMAIL)
    assert [part.get_content_type() for part in got.message.iter_attachments()] == ["application/pdf"]
    return draft


def sell(month: Month, quoted: str) -> str:
    """Make the project of an accepted quote and its invoice, which bills its fee; return the invoice."""
    desk = month.desk
    with month.job("turn an accepted quote into a project and an issued invoice"):
        desk.follow(quoted)
        desk.send(f"{quoted}/invoice")
        invoice = desk.path
        desk.send(f"{invoice}/issue")
    (made,) = [each for each in month.api.get("/projects").data if each["name"] == "Image film"]
    assert (made["billing_type"], made["fixed_fee"], made["invoiced_amount"]) == ("fixed_fee", "1250.00", "1250.00")
    return invoice


def bill_all(month: Month) -> list[str]:
    """Bill what is to bill of all clients; return the invoices."""
    desk = month.desk
    with month.job("bill all clients, up to the PDFs"):
        desk.follow("/console/billing-run")
        desk.send("/console/billing-run")
        issuing = month.found(r'action="(/console/billing-run/invoices\?ids=[\d,]+)"')
        desk.send(issuing, press="download")
        month.says("issued. Their PDFs are downloaded now")
        assert desk.downloaded().startswith("invoices-")
    return [f"/console/records/invoices/{each}" for each in issuing.partition("=")[2].split(",")]


def hours_of(month: Month, invoices: list[str]) -> str:
    """Return the hours that invoices bill."""
    lines = [line for each in invoices for line in month.api.get(each.removeprefix("/console/records")).data["lines"]]
    return next(line["quantity"] for line in lines if line["unit"] == "hours")


def pay(month: Month, invoice: str) -> None:
    with month.job("record a payment"):
        month.desk.follow("/console/records/payments/new")
        month.desk.send("/console/records/payments/new", press=f"amount_{invoice.rpartition('/')[2]}")
        month.says("1 payment recorded.")
    paid = month.api.get(invoice.removeprefix("/console/records")).data
    assert (paid["status"], paid["amount_paid"]) == ("paid", "1487.50")


def keep_a_surplus(month: Month, invoice: str, amount: str) -> None:
    """Record more than is due, which the form asks about, and pay the surplus back."""
    path = f"{invoice}/payment"
    month.desk.open(path)
    month.desk.send(path, amount=amount)
    month.says("is above the balance due.")
    month.desk.send(path, allow_surplus="yes")
    month.says("10.00 EUR is to be refunded.")


def invoice_of(month: Month, client: str, price: str) -> str:
    """Bill something without recorded work."""
    made = month.create("invoices", f"client_id={client}", **hosting(price))
    month.act("issue")
    return made


def hosting(price: str) -> dict[str, str]:
    return {"lines.0.description": "Hosting", "lines.0.unit_price": price}


def settle(month: Month, client: str, invoices: list[str], paid_too_much: str) -> None:
    """Pay two invoices at once, one with what is to be refunded on another, one early, and write one off."""
    desk = month.desk
    with month.job("record payments of two invoices"):
        desk.follow("/console/records/payments/new")
        for each in invoices:
            desk.send("/console/records/payments/new", press=f"amount_{each.rpartition('/')[2]}")
            month.says("1 payment recorded.")
    small, early, late = (invoice_of(month, client, price) for price in ("5", "1,000", "3"))
    month.act("payment", small, offset_invoice_id=paid_too_much.rpartition("/")[2], amount="5.95")
    month.act("refund", paid_too_much)
    month.says("Refund of 4.05 EUR recorded")
    month.act("payment", early, early_payment_discount="yes")
    month.says("23.80 EUR is its early-payment discount.")
    month.act("credit", early, what="amount", amount="119", reason="goodwill")
    month.act("write-off", late)
    month.says("3.57 EUR")


def cancel(month: Month, invoice: str) -> None:
    """Void an invoice, whose PDF says so; its work is to bill again."""
    assert "Void" not in month.pdf_text(invoice)
    before, _ = month.agree()
    month.act("void", invoice)
    assert "Void" in month.pdf_text(invoice)
    after, _ = month.agree()
    assert after - before == Decimal("2000.00")


def support(month: Month, client: str, assignee: str) -> None:
    """Answer a ticket, maintain and pause a site, and finish a task."""
    desk = month.desk
    ticket = month.create("tickets", f"client_id={client}", subject="The shop is slow")
    desk.open(ticket)
    desk.send(f"{ticket}/handle", assignee_id=assignee, priority="high")
    with month.job("answer and resolve a ticket"):
        desk.follow(ticket)
        desk.send(f"{ticket}/reply", body="It is fast again.", status="resolved")
        month.says("It is resolved now.")
    site = month.create("sites", f"client_id={client}", url="https://shop.example")
    month.act("maintenance", site, maintenance_until="2100-01-01T00:00")
    month.act("maintenance", site, maintenance_until="")
    month.act("pause", site)
    month.says("is paused.")
    task = month.create("tasks", title="Write the texts", due_date=month.api.today)
    with month.job("finish a task that is due"):
        desk.send(f"{task}/tick", press="done")
        month.says("Write the texts is done.")
    desk.send(f"{task}/tick")
    month.says("Write the texts is to do.")
    with month.job("finish a task in its list", "/console/records/tasks"):
        desk.send(f"{task}/tick", press="done")


def remind(month: Month, client: str, post: Post) -> None:
    """Turn reminders on; an invoice that is late gets one the day after, with its PDF."""
    desk, today = month.desk, date.fromisoformat(month.api.today)
    days = {"issue_date": f"{today - timedelta(20)}", "due_date": f"{today - timedelta(6)}"}
    month.create("invoices", f"client_id={client}", **hosting("70"), **days)
    month.act("issue")
    desk.open("/console/settings/reminders")
    desk.send("/console/settings/reminders", is_on="yes")
    month.says("Reminders have been on")
    with time_machine.travel(datetime.now(UTC) + timedelta(2), tick=False):
        for _ in range(2):  # the daily job, and what it starts
            Jobs(month.api.store, KINDS, lambda *_: None).run_once()
    post.send()
    assert str(post.server.got[-1].message["Subject"]).startswith("Reminder: invoice ")


def test_a_month_of_an_agency_needs_no_api_and_few_clicks(api: ApiClient, desk: Desk, post: Post) -> None:
    month = Month(api, desk, {job: most for job, (most, _) in CLICKS.items()})
    with api.operating() as tx:
        link = users.create_link(tx, api.admin_id)
    month.enter(f"/console/password?token={link.token}")
    desk.open("/console/settings")
    early = {"early_payment_discount_percent": "2", "early_payment_discount_days": "10"}
    desk.send("/console/settings", name="North Studio", city="Kiel", tax_rate="19", time_rounding_minutes="15", **early)
    month.says("saved")
    move_in(month)
    links = invite(month, post)
    with month.job("create a client with address and terms"):
        desk.follow("/console/records/clients/new")
        address = {"address_line1": "Markt 1", "postal_code": "24103", "city": "Kiel", "country": "DE"}
        client = month.save(
            "/console/records/clients/new", name="Nordlicht", email=EMAIL, **address, payment_terms_days="14"
        )
    client = client.rpartition("/")[2]
    project = month.create("projects", f"client_id={client}", name="Webshop", hourly_rate="110,50")
    other = month.create("clients", name="Südwind", country="DE").rpartition("/")[2]
    fee = {"billing_type": "fixed_fee", "fixed_fee": "2,000", "status": "completed"}
    month.create("projects", f"client_id={other}", name="Landing page", **fee)
    for each in links.values():
        desk.leave()
        month.enter(each)
        record_week(month, project.rpartition("/")[2])
    desk.leave()
    month.sign_in()
    time_work(month, project)
    spend(month, project.rpartition("/")[2])
    assert month.agree()[0] == Decimal("2562.83")
    sold = sell(month, quote(month, client))
    assert month.agree() == (Decimal("2562.83"), Decimal("1487.50")), "the fee of the project is billed"
    billed = bill_all(month)
    assert month.agree()[0] == 0
    assert hours_of(month, billed) == "4.75", "four entries are rounded up"
    pay(month, sold)
    extra = invoice_of(month, client, "100")
    keep_a_surplus(month, extra, "129")
    voided = billed.pop()
    others = [billed[0], send_invoice(month, client, post)]
    month.agree()
    settle(month, client, others, extra)
    month.agree()
    cancel(month, voided)
    support(month, client, next(iter(links)))
    remind(month, client, post)
    assert month.clicks.keys() == CLICKS.keys()
