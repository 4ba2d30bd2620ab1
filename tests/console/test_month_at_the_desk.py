"""A month of an agency through forms alone, without script: from the first link to a credit, a ticket and a site."""

import re
from typing import Any

from retainer.identity.people import password_links
from tests.console.visitor import PASSWORD, Fields, Visitor, WebPage
from tests.factories import ApiClient


class Desk:
    """A person who opens pages, and fills in the forms that they have."""

    def __init__(self, visitor: Visitor) -> None:
        self.visitor = visitor

    def create(self, kind: str, query: str = "", **fields: str) -> str:
        """Create a record with its form; return its path, which the next page is at."""
        path = f"/console/records/{kind}/new"
        form = dict(Fields(self.visitor.get(f"{path}?{query}").html).forms[path])
        sent = self.visitor.post(path, form | fields)
        assert sent.status == 303, sent.text
        return sent.location

    def act(self, record: str, action: str, **fields: Any) -> WebPage:
        """Open an action that the record offers, and confirm it as its preview shows it."""
        path = f"{record}/{action}"
        assert path in self.visitor.get(record).links, f"{record} does not offer {action}"
        page = self.visitor.submit(path, **fields)
        if "check it, then confirm" in page.text:
            page = self.visitor.follow(self.visitor.post(path, Fields(page.html).forms[path]))
        assert 'role="status"' in page.html, page.text
        return page


def test_a_month_of_an_agency_needs_no_api_and_no_script(api: ApiClient) -> None:
    with api.operating() as tx:
        link = password_links.create(tx, api.admin_id)
    visitor = Visitor(api.app)
    visitor.submit(
        f"/console/password?token={link.token}", action="/console/password", password=PASSWORD, again=PASSWORD
    )
    visitor.sign_in("ana@north.example")
    desk = Desk(visitor)
    assert "saved" in visitor.submit("/console/settings", name="North Studio", city="Kiel").text.lower()
    added = visitor.submit("/console/people/new", name="Mia Müller", email="mia@north.example", role="member")
    member = re.search(r"/console/people/(\d+)", added.html)
    assert member, added.text

    client = desk.create("clients", name="Nordlicht", city="Kiel", tax_rate="19")
    client_id = client.rpartition("/")[2]
    project = desk.create("projects", f"client_id={client_id}", name="Webshop", hourly_rate="110,50")
    project_id = project.rpartition("/")[2]
    for minutes in ("1:30", "90m"):
        desk.create("time-entries", f"project_id={project_id}", duration_minutes=minutes, description="Workshop")
    assert "Draft created." in desk.act(project, "bill").text
    draft = "/console" + re.search(r"/records/invoices/\d+", visitor.get(project).html)[0]
    assert "issued." in desk.act(draft, "issue").text

    line = {"lines.0.description": "Relaunch", "lines.0.quantity": "1", "lines.0.unit_price": "1,000.00"}
    quote = desk.create("quotes", f"client_id={client_id}", title="Relaunch", **line)
    desk.act(quote, "accept", accepted_by="Eva")
    converted = next(found for found in visitor.get(quote).links if "/invoices/new?quote_id=" in found)
    invoice = desk.create("invoices", converted.partition("?")[2])
    assert "issued." in desk.act(invoice, "issue").text
    assert "1,190.00 EUR recorded" in desk.act(invoice, "payment", amount="1,190.00").text
    desk.act(invoice, "credit", what="amount", amount="190", reason="goodwill")
    assert "Refund of 190.00 EUR recorded" in desk.act(invoice, "refund").text
    assert visitor.get("/console/records/payments").text.count("1,190.00 EUR") == 1

    ticket = desk.create("tickets", f"client_id={client_id}", subject="The shop is slow")
    visitor.submit(ticket, action=f"{ticket}/handle", assignee_id=member[1], priority="high")
    replied = visitor.submit(ticket, action=f"{ticket}/reply", body="We are on it.", status="pending")
    assert "It is pending now." in replied.text
    site = desk.create("sites", f"client_id={client_id}", url="https://shop.example")
    desk.act(site, "maintenance", maintenance_until="2100-01-01T00:00")
    desk.act(site, "maintenance", maintenance_until="")
    assert "is paused." in desk.act(site, "pause").text
    (totals,) = api.get("/reports/revenue-by-client").data["totals"]
    assert (totals["invoiced"], totals["outstanding"]) == ("1331.50", "394.49")
