"""Today: what needs attention, with figures that agree with the lists to which they link."""

import itertools
import re
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from retainer.console.words import hours
from retainer.values.exact import instant_after, utcnow
from tests.console.visitor import WebPage
from tests.databases import any_database
from tests.factories import ApiClient

pytestmark = any_database


def cards(page: WebPage) -> dict[str, str]:
    """The text of each card by its title."""
    found = {card.all("h2")[0].text: card.text for card in page.all("section", "card")}
    return {title: text.removeprefix(title).strip() for title, text in found.items()}


def figures(page: WebPage) -> list[tuple[str, str]]:
    """The figures of all cards with their links."""
    return [(link.text, link["href"]) for amounts in page.all("p", "amounts") for link in amounts.all("a")]


def followed(page: WebPage) -> Iterator[tuple[str, str, str]]:
    """The links of all cards that have a figure: the title of the card, the figure, and the link."""
    for card in page.all("section", "card"):
        title = card.all("h2")[0].text
        for link in card.all("a"):
            if link.attributes.keys() == {"href"}:
                yield title, link.text.removeprefix("View all "), link["href"]
        for item in card.all("li"):
            for link, note in zip(item.all("a", "plain"), item.all("span", "quiet"), strict=False):
                yield title, note.text, link["href"]


def busy(api: ApiClient) -> None:
    """Give an agency something in every card."""
    today = date.fromisoformat(api.today)
    optik = api.make("/clients", name="Optik")["id"]
    lines = [{"description": "Design", "unit_price": "100", "tax_rate": "0"}]
    for days in (-40, -20, 0):
        day = (today + timedelta(days=days)).isoformat()
        issued: dict[str, Any] = {"issue_date": day, "due_date": day, "status": "sent", "lines": lines}
        api.make("/invoices", client_id=optik, **issued)
    api.make("/invoices", client_id=optik, lines=lines)
    owed = api.make("/invoices", client_id=optik, status="sent", lines=lines)
    api.pay(owed["id"])
    api.post(f"/invoices/{owed['id']}/credit-notes", {"amount": "30"})
    api.make("/quotes", client_id=optik)
    soon = {"valid_until": (today + timedelta(days=14)).isoformat(), "status": "sent", "lines": lines}
    api.make("/quotes", client_id=optik, title="Relaunch", **soon)
    accepted = api.make("/quotes", client_id=optik, title="Care plan", **soon)
    assert api.patch(f"/quotes/{accepted['id']}", {"status": "accepted"}).status == 200
    yesterday = (today - timedelta(days=1)).isoformat()
    api.make("/tasks", title="Back up", due_date=yesterday)
    api.make("/projects", client_id=optik, name="Late", due_date=yesterday)
    api.make("/tasks", title="Proofread", due_date=today.isoformat())
    api.make("/tickets", subject="The shop is slow", client_id=optik)
    near = api.make("/projects", client_id=optik, name="Website", budget_minutes=100)["id"]
    far = api.make("/projects", client_id=optik, name="Shop", budget_minutes=1000)["id"]
    api.make("/tasks", title="Test", due_date=yesterday, project_id=near)
    for project, minutes in ((near, 80), (far, 799)):
        entry = {"project_id": project, "client_id": optik, "date": today.isoformat(), "duration_minutes": minutes}
        api.make("/time-entries", **entry, hourly_rate="60", user_id=api.member_id)
    api.make("/expenses", client_id=optik, billable=True)
    site = api.make("/sites", url="https://optik.example", client_id=optik)["id"]
    api.sql("UPDATE sites SET ssl_expires_at = $1 WHERE id = $2", instant_after(utcnow(), timedelta(days=13)), site)


def more_than_fits(api: ApiClient) -> None:
    """Give cards more than they show, a second currency, and what must not be counted."""
    today = date.fromisoformat(api.today)
    tomorrow, long_ago = ((today + timedelta(days=days)).isoformat() for days in (1, -90))
    american = api.make("/clients", name="Harbor", currency="USD")["id"]
    lines = [{"description": "Design", "unit_price": "70", "tax_rate": "0"}]
    for _ in range(2):
        issued: dict[str, Any] = {"issue_date": long_ago, "due_date": long_ago, "status": "sent", "lines": lines}
        api.make("/invoices", client_id=american, **issued)
    for number in range(6):
        name = {"client_id": american, "name": f"Page {number}"}
        project = api.make("/projects", **name, budget_minutes=1, hourly_rate=None)["id"]
        entry = {"client_id": american, "project_id": project, "user_id": api.admin_id}
        api.make("/time-entries", **entry, date=long_ago, duration_minutes=50, hourly_rate=f"{60 + number}")
        api.make("/time-entries", **entry, date=tomorrow, duration_minutes=10, hourly_rate="60")
        api.make("/tickets", subject="Help", client_id=american)
        api.make("/tasks", title="Proofread", due_date=today.isoformat())
    fixed = api.make("/projects", client_id=american, name="Fixed", billing_type="fixed_fee", budget_minutes=1)["id"]
    entry = {"client_id": american, "project_id": fixed, "date": long_ago, "duration_minutes": 50}
    api.make("/time-entries", **entry, user_id=api.admin_id, hourly_rate="60")
    internal = {"date": long_ago, "duration_minutes": 45, "user_id": api.admin_id}
    api.make("/time-entries", **internal, hourly_rate="60", billable=True)
    api.make("/time-entries", **internal, billable=True)
    down = api.make("/sites", url="https://harbor.example", client_id=american)["id"]
    api.sql("UPDATE sites SET observed = 'down', down_since = $1 WHERE id = $2", utcnow(), down)


def test_today_shows_what_needs_attention(api, visitor):
    busy(api)
    shown = cards(visitor.get("/console"))
    assert shown["Overdue"] == "200.00 EUR 2 invoices Optik 200.00 EUR"
    assert shown["To refund"] == "30.00 EUR 1 invoice Optik 30.00 EUR"
    assert shown["Due this week"].startswith("1 invoice 1 task")
    assert shown["Waiting for us"].startswith("1 ticket")
    assert "The shop is slow · Optik just now" in shown["Waiting for us"]
    assert shown["Sites"].startswith("1 certificate optik.example · Optik expires in 13 days")
    assert shown["Over 80% of budget"] == "1 project Website · Optik 80%"
    (row,) = api.get("/unbilled-work").data["rows"]
    assert (row["time"], Decimal(row["expenses"]) > 0) == ("879.00", True)
    to_bill = f"{Decimal(row['to_bill']):,f} EUR"
    assert shown["To bill"] == f"{to_bill} Optik {to_bill}"
    number = api.get("/quotes", "status=draft").data[0]["number"]
    assert shown["Drafts"] == f"1 invoice 1 quote Invoice · Optik 100.00 EUR Quote {number} · Optik 0.00 EUR"
    late = "1 project 2 tasks Project Late · Optik 1 day late Task Back up 1 day late Task Test · Website 1 day late"
    assert shown["Overdue work"] == late
    quotes = shown["Quotes"]
    assert quotes.startswith("1 quote to bill 1 quote to expire")
    assert "Care plan · Optik 100.00 EUR" in quotes
    assert "Relaunch · Optik until " in quotes
    assert shown["Hours this week"].startswith("14:39 of ")


def listed(api: ApiClient, link: str) -> list[dict[str, Any]]:
    """All records of the list to which a link of the console leads, from the API."""
    path, _, query = link.removeprefix("/console/records").partition("?")
    pages = itertools.takewhile(len, (api.get(path, f"{query}&per_page=100&page={n}").data for n in itertools.count(1)))
    return list(itertools.chain.from_iterable(pages))


def total_of(records: list[dict[str, Any]], field: str, currency: str) -> Decimal:
    return sum((Decimal(each[field]) for each in records if each["currency"] == currency), Decimal(0))


def counted(api: ApiClient, title: str, text: str, link: str) -> str:
    """What the figure or the note of a card must say about the list to which it links."""
    path = link.removeprefix("/console/records/").partition("?")[0]
    records = listed(api, link)
    if title == "Hours this week":
        return f"{hours(sum(each['duration_minutes'] for each in records))} of {text.partition(' of ')[2]}"
    if re.fullmatch(r"[\d,.]+ [A-Z]{3}", text):
        currency = text[-3:]
        field = "refund_due" if title == "To refund" else "balance_due" if path == "invoices" else "amount"
        assert {each["currency"] for each in records} == {currency}, link
        return f"{total_of(records, field, currency):,f} {currency}"
    if text.endswith("without a rate"):
        return f"{hours(sum(each['duration_minutes'] for each in records))} h without a rate"
    if text == "unbilled time" or text.endswith(" people"):
        return text
    count, _, noun = text.partition(" ")
    assert count.isdigit(), (title, text)
    return f"{len(records)} {noun}"


def test_each_figure_and_each_note_is_that_of_the_list_to_which_it_links(api, visitor):
    busy(api)
    more_than_fits(api)
    page = visitor.get("/console")
    seen = set()
    for title, text, link in followed(page):
        assert visitor.get(link).status == 200, link
        if "?" in link and link.startswith("/console/records/"):
            assert text == counted(api, title, text, link), (title, link)
            seen.add((title, re.sub(r"[\d,.:]+", "1", text)))
    assert {title for title, _ in seen} == {
        *("Overdue", "To refund", "Due this week", "Waiting for us", "Sites", "Hours this week", "Over 80% of budget"),
        *("To bill", "Drafts", "Overdue work", "Quotes"),
    }
    assert {text for _, text in seen} >= {"1 EUR", "1 USD", "1 h without a rate", "1 certificate", "1 site down"}


def test_the_hours_are_those_of_the_report_to_which_they_link(api, visitor):
    busy(api)
    (text, link) = next(each for each in figures(visitor.get("/console")) if each[0].endswith(" h"))
    query = link.partition("?")[2]
    total = api.get("/reports/utilisation", query).data["totals"][0]["tracked_minutes"]
    tracked, available = text.removesuffix(" h").split(" of ")
    assert tracked == hours(total)
    assert available in visitor.get(link).html.partition("<tfoot>")[2]


def test_the_most_urgent_come_first(api, visitor):
    busy(api)
    more_than_fits(api)
    shown = cards(visitor.get("/console"))
    used = [int(percent.replace(",", "")) for percent in re.findall(r"([\d,]+)%", shown["Over 80% of budget"])]
    assert used == sorted(used, reverse=True)
    assert used[0] == 6000
    figures_and_items = re.findall(r"[A-Z]{3}(?= |$)", shown["To bill"])
    own, others = figures_and_items[:2], figures_and_items[2:]
    assert (own, others) == (["EUR", "USD"], sorted(others)), "our own first"
    assert shown["Due this week"].count(" today") <= 5


def test_the_headline_is_the_money_of_the_lists_and_the_report_behind_it(api, visitor):
    busy(api)
    page = visitor.get("/console")
    collected, outstanding = page.all("dl", "headline")[0].all("a")
    overdue, *_ = next(card for card in page.all("section", "card") if card.text.startswith("Overdue 2")).all("a")
    assert [link.text for link in (collected, outstanding, overdue)] == ["100.00 EUR", "300.00 EUR", "200.00 EUR"]
    assert "100.00" in visitor.get(collected["href"]).text
    for link in (outstanding, overdue):
        assert link.text == f"{total_of(listed(api, link['href']), 'balance_due', 'EUR'):,f} EUR"


def test_a_cut_card_leads_to_all_its_records_and_hours_begin_with_the_largest_gap(api, visitor):
    busy(api)
    more_than_fits(api)
    shown = cards(visitor.get("/console"))
    assert shown["Due this week"].endswith("View all 7 tasks")
    assert shown["Waiting for us"].endswith("View all 7 tickets")
    assert "View all" not in shown["Drafts"]
    first, second = (api.get(f"/users/{user}").data["name"] for user in (api.admin_id, api.member_id))
    assert shown["Hours this week"].index(first) < shown["Hours this week"].index(second)


def test_a_new_account_is_told_what_to_do_first(api, visitor):
    page = visitor.get("/console")
    assert "Create a client" in cards(page)["Start here"]
    assert "/console/import" in {
        link for each in page.all("section", "start") for link in [a["href"] for a in each.all("a")]
    }
    assert (page.all("dl", "headline"), "No drafts." in page.text) == ([], False)
    client = api.make("/clients")["id"]
    visitor.submit("/console/settings", address_line1="1 Main Street")
    left = cards(visitor.get("/console"))["Start here"]
    assert [left.count(each) for each in ("settings", "Create a client", "Create an invoice")] == [0, 0, 1]
    api.make("/invoices", client_id=client)
    page = visitor.get("/console")
    shown = cards(page)
    assert "Start here" not in shown
    assert page.all("dl", "headline")[0].text.count("0.00 EUR") == 2
    assert shown.keys().isdisjoint({"Overdue", "To refund"}), "what needs nothing is one line"
    assert "No overdue invoices. No client is owed a refund." in page.text


def test_hours_of_the_week_leave_out_who_neither_works_nor_tracks_time(api, visitor):
    api.make("/time-entries", user_id=api.admin_id, date=api.today)
    api.set_user(api.member_id, {"weekly_capacity_minutes": 0})
    api.make("/invoices")
    assert "Max Member" not in cards(visitor.get("/console"))["Hours this week"]


def test_the_api_is_one_line(api, visitor):
    assert "The API is on . 1 active key, " in visitor.get("/console").text
    api.switch_api(on=False)
    assert "The API is off" in visitor.get("/console").text


@pytest.mark.parametrize(("percent", "names"), [(79, {"Shop", "Website"}), (80, {"Website"}), (81, set())])
def test_projects_are_filtered_by_their_used_budget(api, percent, names):
    busy(api)
    found = api.get("/projects", {"budget_used_percent_min": percent}).data
    assert {project["name"] for project in found} == names
