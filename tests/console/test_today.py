"""Today: what needs attention, with figures that agree with the lists to which they link."""

import re
from datetime import date, timedelta
from html import unescape
from typing import Any

import pytest

from retainer.values.exact import instant_after, utcnow
from tests.console.visitor import WebPage
from tests.databases import any_database
from tests.factories import ApiClient

pytestmark = any_database


def cards(page: WebPage) -> dict[str, str]:
    """The text of each card by its title."""
    found = re.findall(r'<section class="card[^"]*">\s*<h2>(.*?)</h2>(.*?)</section>', page.html, re.DOTALL)
    return {unescape(title): " ".join(unescape(re.sub("<[^>]*>", " ", html)).split()) for title, html in found}


def figures(page: WebPage) -> list[tuple[str, str]]:
    """The figures of all cards with their links."""
    amounts = " ".join(re.findall(r'<p class="amounts">.*?</p>', page.html, re.DOTALL))
    return [(unescape(text), unescape(link)) for link, text in re.findall(r'<a href="([^"]*)">([^<]*)</a>', amounts)]


def busy(api: ApiClient) -> None:
    """Give an agency something in every card."""
    today = date.fromisoformat(utcnow()[:10])
    optik = api.make("/clients", name="Optik")["id"]
    lines = [{"description": "Design", "unit_price": "100", "tax_rate": "0"}]
    for days in (-40, -20, 0):
        day = (today + timedelta(days=days)).isoformat()
        issued: dict[str, Any] = {"issue_date": day, "due_date": day, "status": "sent", "lines": lines}
        api.make("/invoices", client_id=optik, **issued)
    api.make("/invoices", client_id=optik, lines=lines)
    api.make("/quotes", client_id=optik)
    api.make("/tasks", title="Proofread", due_date=today.isoformat())
    api.make("/tickets", subject="The shop is slow", client_id=optik)
    near = api.make("/projects", client_id=optik, name="Website", budget_minutes=100)["id"]
    far = api.make("/projects", client_id=optik, name="Shop", budget_minutes=1000)["id"]
    for project, minutes in ((near, 80), (far, 799)):
        entry = {"project_id": project, "client_id": optik, "date": today.isoformat(), "duration_minutes": minutes}
        api.make("/time-entries", **entry, hourly_rate="60", user_id=api.member_id)
    api.make("/expenses", client_id=optik, billable=True)
    site = api.make("/sites", url="https://optik.example", client_id=optik)["id"]
    api.sql("UPDATE sites SET ssl_expires_at = $1 WHERE id = $2", instant_after(utcnow(), timedelta(days=13)), site)


def test_today_shows_what_needs_attention(api, visitor):
    busy(api)
    shown = cards(visitor.get("/console"))
    assert shown["Overdue"] == "200.00 EUR 2 invoices Optik 200.00 EUR"
    assert shown["Due this week"].startswith("1 invoice 1 task")
    assert shown["Waiting for us"].startswith("1 ticket")
    assert "The shop is slow just now" in shown["Waiting for us"]
    assert shown["Sites"].startswith("1 certificate optik.example certificate expires in 13 days")
    assert shown["Over 80% of budget"] == "1 project Website 80%"
    assert shown["Unbilled work"].startswith("879.00 EUR 1 expense Shop 799.00 EUR Website 80.00 EUR")
    assert shown["Drafts"].startswith("1 invoice 1 quote")
    assert shown["Hours this week"].startswith("14:39 of ")


def test_each_count_is_that_of_the_list_to_which_it_links(api, visitor):
    busy(api)
    page = visitor.get("/console")
    counted = 0
    for text, link in figures(page):
        target = visitor.get(link)
        assert target.status == 200, link
        if number := re.match(r"(\d+) (invoice|quote|task|ticket|project|certificate|expense)s?$", text):
            assert re.search(rf"\b{number[1]}\b", target.text), (text, link)
            api_path = link.removeprefix("/console/records")
            assert api.get(api_path.partition("?")[0], api_path.partition("?")[2]).json["meta"]["total"] == int(
                number[1]
            )
            counted += 1
    assert counted >= 8


def test_a_new_account_is_told_what_to_do_first(api, visitor):
    page = visitor.get("/console")
    shown = cards(page)
    assert "Create your first client" in shown["Start here"]
    assert shown["Overdue"] == "No invoice is overdue."
    assert shown["Drafts"] == "There are no drafts."
    api.make("/clients")
    assert "Start here" not in cards(visitor.get("/console"))


def test_the_api_is_one_line(api, visitor):
    assert "The API is on . 1 active key, " in visitor.get("/console").text
    api.switch_api(on=False)
    assert "The API is off" in visitor.get("/console").text


@pytest.mark.parametrize(("percent", "names"), [(79, {"Shop", "Website"}), (80, {"Website"}), (81, set())])
def test_projects_are_filtered_by_their_used_budget(api, percent, names):
    busy(api)
    found = api.get("/projects", {"budget_used_percent_min": percent}).data
    assert {project["name"] for project in found} == names
