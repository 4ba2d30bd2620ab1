"""A month of an agency in the console alone, with and without script, from the first link to a ticket and a site."""

import re
from collections.abc import Iterator

import pytest

from retainer.identity.people import users
from tests.browser.desks import Desk, DeskWithoutScript, DeskWithScript
from tests.console.serving import serving
from tests.console.visitor import PASSWORD
from tests.databases import only_sqlite
from tests.factories import ApiClient
from tests.length import first

pytestmark = only_sqlite
TEAM = ("Mia Müller", "Jo Winter", "Ada Brandt")


@pytest.fixture(params=first(["without script", "with script"]))
def desk(request: pytest.FixtureRequest, api: ApiClient) -> Iterator[Desk]:
    if request.param == "without script":
        yield DeskWithoutScript(api.app)
        return
    browser = request.getfixturevalue("browser")
    browser.show()
    with serving(api.app) as site:
        browser.get(site)
        browser.delete_all_cookies()
        yield DeskWithScript(browser, site)


def found(pattern: str, desk: Desk) -> str:
    """Return what the page has of a pattern's group, or of the whole pattern."""
    match = re.search(pattern, desk.html)
    assert match, f"no {pattern} on {desk.path}: {desk.text}"
    return match[match.re.groups]


def enter(desk: Desk, link: str) -> None:
    """Set the password with a link; who does so is signed in."""
    desk.open(link)
    desk.send("/console/password", password=PASSWORD, again=PASSWORD)


def create(desk: Desk, kind: str, query: str = "", **fields: str) -> str:
    """Create a record with its form; return its path, which the next page is at."""
    path = f"/console/records/{kind}/new"
    desk.open(f"{path}?{query}")
    desk.send(path, **fields)
    assert 'role="status"' in desk.html, desk.text
    return desk.path


def act(desk: Desk, record: str, action: str, **fields: str) -> None:
    """Open an action that the record offers, and confirm it as its preview shows it."""
    path = f"{record}/{action}"
    desk.open(record)
    assert f'href="{path}"' in desk.html, f"{record} does not offer {action}"
    desk.open(path)
    desk.send(path, **fields)
    if "check it, then confirm" in desk.text:
        desk.send(path)
    assert 'role="status"' in desk.html, desk.text


def invite(desk: Desk) -> dict[str, str]:
    """Add the team; return the link of each person, by the id."""
    links = {}
    for name in TEAM:
        desk.open("/console/people/new")
        desk.send("/console/people/new", name=name, email=f"{name.split()[0].lower()}@north.example", role="member")
        person = found(r"/console/people/(\d+)", desk)
        links[person] = found(r"/console/password\?token=[\w-]+", desk)
    return links


def record_week(desk: Desk, project: str) -> None:
    """Record an hour and a half, and try a timer; a member sees no settings."""
    row = f"project_id-{project}"
    desk.open("/console/week")
    desk.send("/console/week", press="add", row=row)
    desk.send("/console/week", **{found(rf'name="({row}\.[\d-]+)"', desk): "1:30"})
    assert "Week saved." in desk.text
    desk.send("/console/week/timer", press="start", work=row, description="Workshop")
    desk.send("/console/week/timer", press="discard")
    assert "Nothing was recorded." in desk.text
    desk.open("/console/settings")
    assert "does not include this page" in desk.text


def bill(desk: Desk, project: str) -> None:
    act(desk, project, "bill")
    assert "Draft created." in desk.text
    desk.open(project)
    draft = found(r"/console/records/invoices/\d+", desk)
    act(desk, draft, "issue")
    assert "issued." in desk.text


def sell(desk: Desk, client: str) -> None:
    """Turn a quote into an invoice that is paid, and credited and refunded in part."""
    line = {"lines.0.description": "Relaunch", "lines.0.quantity": "1", "lines.0.unit_price": "1,000.00"}
    quote = create(desk, "quotes", f"client_id={client}", title="Relaunch", **line)
    act(desk, quote, "send")
    act(desk, quote, "accept", accepted_by="Eva")
    act(desk, quote, "invoice")
    invoice = desk.path
    act(desk, invoice, "issue")
    act(desk, invoice, "payment", amount="1,190.00")
    assert "1,190.00 EUR recorded" in desk.text
    act(desk, invoice, "credit", what="amount", amount="190", reason="goodwill")
    act(desk, invoice, "refund")
    assert "Refund of 190.00 EUR recorded" in desk.text
    desk.open("/console/records/payments")
    assert desk.text.count("1,190.00 EUR") == 1


def support(desk: Desk, client: str, assignee: str) -> None:
    """Answer a ticket, and maintain and pause a site."""
    ticket = create(desk, "tickets", f"client_id={client}", subject="The shop is slow")
    desk.open(ticket)
    desk.send(f"{ticket}/handle", assignee_id=assignee, priority="high")
    desk.open(ticket)
    desk.send(f"{ticket}/reply", body="We are on it.", status="pending")
    assert "It is pending now." in desk.text
    site = create(desk, "sites", f"client_id={client}", url="https://shop.example")
    act(desk, site, "maintenance", maintenance_until="2100-01-01T00:00")
    act(desk, site, "maintenance", maintenance_until="")
    act(desk, site, "pause")
    assert "is paused." in desk.text


def test_a_month_of_an_agency_needs_no_api(api: ApiClient, desk: Desk) -> None:
    with api.operating() as tx:
        link = users.create_link(tx, api.admin_id)
    enter(desk, f"/console/password?token={link.token}")
    desk.open("/console/settings")
    desk.send("/console/settings", name="North Studio", city="Kiel")
    assert "saved" in desk.text.lower()
    links = invite(desk)
    client = create(desk, "clients", name="Nordlicht", city="Kiel", tax_rate="19").rpartition("/")[2]
    project = create(desk, "projects", f"client_id={client}", name="Webshop", hourly_rate="110,50")
    for each in links.values():
        desk.leave()
        enter(desk, each)
        record_week(desk, project.rpartition("/")[2])
    desk.leave()
    desk.open("/console/sign-in")
    desk.send("/console/sign-in", email="ana@north.example", password=PASSWORD)
    bill(desk, project)
    sell(desk, client)
    support(desk, client, next(iter(links)))
    (totals,) = api.get("/reports/revenue-by-client").data["totals"]
    assert (totals["invoiced"], totals["outstanding"]) == ("1497.25", "591.73")
