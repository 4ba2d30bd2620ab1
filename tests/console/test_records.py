"""The pages of single records: the figures of the API, threads, documents, uptime, and a fixed number of statements."""

import re
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from retainer.console.displays import DISPLAYS
from retainer.console.kinds import projects, tickets
from retainer.console.labels import field_label
from retainer.console.pages import record_pages
from retainer.console.reports.figures import DASH
from retainer.console.values import as_columns
from retainer.console.words import MINUS
from retainer.kernel.query import parameters
from retainer.outbound.leases import Places
from retainer.schema.sites import site_hours, site_incidents
from retainer.sites.monitor import schedule
from retainer.sites.monitor.schedule import CheckResult
from retainer.store.transaction import Transaction
from retainer.values.exact import as_instant, day_after
from tests.console.visitor import Fields, WebPage
from tests.databases import any_database
from tests.factories import ApiClient

pytestmark = any_database
EVIL = """x'"><zz>&zz;"""


def facts(page: WebPage) -> dict[str, str]:
    """The headline facts of a page by their labels."""
    (figures,) = (figures for figures in page.all("dl", "figures") if "wide" in figures["class"])
    found = {each.all("dt")[0].text: each.text for each in figures.all("div") if each.all("dt")}
    return {label: text.removeprefix(label).strip() for label, text in found.items()}


def section(page: WebPage, title: str) -> list[list[str]]:
    """The cells of the table with a heading."""
    (labelled,) = page.all("section div table", **{"aria-label": title})
    return [[cell.text for cell in row.all("th td")] for body in labelled.all("tbody")[:1] for row in body.all("tr")]


def money(amount: str, currency: str = "EUR") -> str:
    return f"{Decimal(amount):,f} {currency}"


@pytest.fixture
def client(api: ApiClient) -> dict[str, Any]:
    return api.make("/clients", name="Bergmann Optik", currency="EUR", tax_rate="19", payment_terms_days=14)


def invoice(api: ApiClient, client: dict[str, Any], *, days_ago: int = 0, **fields: Any) -> dict[str, Any]:
    """Issue an invoice of some days ago."""
    lines = [
        {"description": "Design", "quantity": "3", "unit_price": "100.00", "discount_percent": "10"},
        {"description": "Hosting", "quantity": "1", "unit_price": "50.00", "tax_rate": "7"},
    ]
    body = {"client_id": client["id"], "lines": lines, "issue_date": day_after(api.today, -days_ago), **fields}
    return api.patch(f"/invoices/{api.post('/invoices', body).data['id']}", {"status": "sent"}).data


def test_a_client_shows_what_the_reports_say_that_it_owes(api, visitor, client):
    project = api.make("/projects", client_id=client["id"], name="Website", budget_minutes=600)
    api.make(
        "/time-entries",
        client_id=client["id"],
        project_id=project["id"],
        duration_minutes=90,
        hourly_rate="80",
        billable=True,
    )
    late, paid = invoice(api, client, days_ago=60), invoice(api, client)
    api.patch(f"/invoices/{paid['id']}", {"record_payment": {"amount": "100"}})
    api.make("/tickets", client_id=client["id"], subject="Checkout is slow")
    other = api.make("/clients", name="Elbe Logistik")
    invoice(api, other)
    api.make("/tickets", client_id=other["id"])
    query = f"client_id={client['id']}"
    (row,) = api.get("/reports/revenue-by-client", f"{query}&from={day_after(api.today, -365)}").data["rows"]
    (work,) = api.get("/reports/project-profitability", query).data["totals"]
    page = visitor.get(f"/console/records/clients/{client['id']}")
    shown = facts(page)
    assert shown["Outstanding"] == money(row["outstanding"])
    assert shown["Overdue"] == f"{money(row['overdue'])} 1 invoice"
    assert Decimal(row["overdue"]) == Decimal(late["balance_due"]) > 0
    assert shown["To bill"] == money(work["to_bill_amount"])
    assert Decimal(work["unbilled_amount"]) == 120
    assert shown["Revenue"] == f"{money(row['revenue'])} before tax, all time"
    assert section(page, "Projects")[0][:2] == ["Website", "Active"]
    assert [cells[-3:-1] for cells in section(page, "Invoices")] == [
        [money(each["total"]), money(api.get(f"/invoices/{each['id']}").data["balance_due"])] for each in (paid, late)
    ]
    assert [(cells[1], cells[-1]) for cells in section(page, "Tickets")] == [("Us", "Open")]
    for query in ("status=open", "status=overdue"):
        assert f"/console/records/invoices?client_id={client['id']}&{query}" in page.links
    assert f"/console/records/clients/{client['id']}/bill" in page.links


def test_a_client_with_two_currencies_shows_the_amounts_of_each(api, visitor, client):
    invoice(api, client)
    invoice(api, client, currency="USD")
    rows = section(visitor.get(f"/console/records/clients/{client['id']}"), "Amounts by currency")
    assert [row[:2] for row in rows] == [["EUR", "374.80 EUR"], ["USD", "374.80 USD"]]


def test_a_client_shows_the_refunds_that_it_is_owed(api, visitor, client):
    paid = invoice(api, client)
    path = f"/console/records/clients/{client['id']}"
    assert "To refund" not in facts(visitor.get(path))
    api.patch(f"/invoices/{paid['id']}", {"status": "paid"})
    api.post(f"/invoices/{paid['id']}/credit-notes", {"amount": "50.00"})
    page = visitor.get(path)
    assert facts(page)["To refund"] == "50.00 EUR"
    assert f"/console/records/invoices?client_id={client['id']}&has_refund_due=true" in page.links
    invoice(api, client, currency="USD")
    rows = section(visitor.get(path), "Amounts by currency")
    assert [row[3] for row in rows] == ["50.00 EUR", "0.00 USD"]
    api.patch(f"/invoices/{paid['id']}", {"record_refund": {"amount": "20"}})
    assert facts(visitor.get(path))["To refund"] == "30.00 EUR"
    payments = section(visitor.get(f"/console/records/invoices/{paid['id']}"), "Payments")
    assert {(row[1], row[-1]) for row in payments} == {("Payment", "374.80 EUR"), ("Refund", f"{MINUS}20.00 EUR")}


def test_an_invoice_is_shown_like_the_document(api, visitor, client):
    sent = invoice(api, client, days_ago=30)
    api.patch(f"/invoices/{sent['id']}", {"record_payment": {"amount": "74.80", "reference": "PAY-1"}})
    api.post(f"/invoices/{sent['id']}/credit-notes", {"amount": "50.00"})
    record = api.get(f"/invoices/{sent['id']}").data
    page = visitor.get(f"/console/records/invoices/{sent['id']}")
    assert section(page, "Lines") == [
        ["Design", "3", "100.00 EUR", "10%", "19%", "270.00 EUR"],
        ["Hosting", "1", "50.00 EUR", "0%", "7%", "50.00 EUR"],
    ]
    (sums,) = (sums.text for sums in page.all("dl", "sums"))
    assert sums == (
        f"Subtotal 320.00 EUR Tax 7% on 50.00 3.50 EUR Tax 19% on 270.00 51.30 EUR Total {record['total']} EUR "
        f"Paid {MINUS}74.80 EUR Credited {MINUS}50.00 EUR Balance due {record['balance_due']} EUR"
    )
    assert record["balance_due"] == "250.00"
    assert facts(page)["Balance due"] == "250.00 EUR"
    assert facts(page)["Due"].endswith("16 days late")
    (heading,) = page.all("h1")
    assert [badge.text for badge in heading.all("span", "badge")] == ["Overdue"], "without the status that it has"
    (payment,) = section(page, "Payments")
    assert "PAY-1" in payment[0]
    assert payment[1:] == ["Payment", "Bank transfer", "74.80 EUR"]
    assert section(page, "Credit notes")[0][-1] == "50.00 EUR"
    assert "Bergmann Optik" in page.text.partition("To")[2]
    assert f"/console/records/invoices/{sent['id']}/pdf" in page.links
    note = visitor.get(f"/console/records/credit-notes/{record['credit_notes'][0]['id']}")
    assert "Applied to the balance 50.00 EUR" in note.text
    assert section(note, "Lines")[0][-1].endswith(" EUR")
    assert f"/console/records/invoices/{sent['id']}" in note.links


def test_countries_have_names_on_pages_and_codes_in_the_api(api, visitor, client):
    assert api.patch(f"/clients/{client['id']}", {"country": "DK"}).data["country"] == "DK"
    assert "Country Denmark" in visitor.get(f"/console/records/clients/{client['id']}").text
    sent = invoice(api, client)
    assert sent["client_snapshot"]["country"] == "DK"
    assert "Bergmann Optik Denmark" in visitor.get(f"/console/records/invoices/{sent['id']}").text


def test_a_phone_number_can_be_called_and_typed_with_the_keys_of_a_phone(api, visitor, client):
    api.patch(f"/clients/{client['id']}", {"phone": "+49 40 123"})
    path = f"/console/records/clients/{client['id']}"
    assert 'href="tel:+4940123"' in visitor.get(path).html
    (field,) = visitor.get(f"{path}/edit").all("input", name="phone")
    assert field["type"] == "tel"


def test_an_e_invoice_is_offered_only_where_there_is_one(api, visitor, client):
    sent = invoice(api, client)
    path = f"/console/records/invoices/{sent['id']}"
    assert f"{path}/xml" not in visitor.get(path).links
    assert visitor.get(f"{path}/xml").status == 422
    draft = api.make("/invoices", client_id=client["id"])
    page = visitor.get(f"/console/records/invoices/{draft['id']}")
    assert "There will be no e-invoice." in page.text
    assert "Balance due" not in page.text
    assert "Preview PDF" in page.text


def test_a_thread_is_in_order_and_tells_internal_notes_apart(api, visitor, client):
    contact = api.make("/external-contacts", client_id=client["id"], first_name="Sofie", email="s@optik.example")
    ticket = api.make("/tickets", contact_id=contact["id"], subject="Slow", description="Since Monday.")
    path = f"/tickets/{ticket['id']}/replies"
    api.post(path, {"body": "We look into it."})
    api.post(path, {"body": "The host is to blame.", "is_internal": True})
    assert "Waiting for" in visitor.get(f"/console/records/tickets/{ticket['id']}").text
    assert facts(visitor.get(f"/console/records/tickets/{ticket['id']}"))["Waiting for"] == "Sofie Lenz since just now"
    api.post(path, {"body": "Thank you!", "author_type": "contact"})
    page = visitor.get(f"/console/records/tickets/{ticket['id']}")
    assert facts(page)["Waiting for"] == "Us since just now"
    articles = page.all("article", "message")
    read = [(each.text.split(" ")[0], "Internal note" in each.text, "internal" in each["class"]) for each in articles]
    bodies = [body.text for each in articles for body in each.all("div p", "long")]
    assert bodies == ["Since Monday.", "We look into it.", "The host is to blame.", "Thank you!"]
    assert [marks[1:] for marks in read] == [(False, False), (False, False), (True, True), (False, False)]
    assert [name for name, *_ in read] == ["Sofie", "Ana", "Ana", "Sofie"]


def test_a_long_thread_shows_the_newest_messages_and_leads_to_the_older(api, visitor, monkeypatch):
    monkeypatch.setattr(tickets, "MESSAGES", 2)
    ticket = api.make("/tickets", subject="Long", description="The beginning")
    for number in range(5):
        api.post(f"/tickets/{ticket['id']}/replies", {"body": f"Reply {number}"})
    path = f"/console/records/tickets/{ticket['id']}"
    newest, first = visitor.get(path), visitor.get(f"{path}?page=1")
    assert "Reply 4" in newest.text
    assert "Reply 3" not in newest.text
    assert "The beginning" not in newest.text
    assert 'href="?page=2">Older messages' in newest.html
    assert re.search("The beginning.*Reply 0.*Reply 1", first.text)
    assert "Reply 2" not in first.text
    assert visitor.get(f"{path}?page=99").text.count("Reply 4") == 1


def test_a_site_shows_its_days_incidents_and_response_times(api, visitor):
    site = api.make(
        "/sites",
        url="https://optik.example",
        wp_version="6.7",
        wp_update_version="6.8",
        plugins=[
            {"slug": "shop", "name": "Shop", "version": "1.0", "update_version": "1.1"},
            {"slug": "seo", "version": "2.0"},
        ],
    )
    with api.operating() as tx:
        today, account = tx.today, tx.actor.account_id
        now = datetime.fromisoformat(tx.now)
        hour = f"{day_after(today, -3)}T12"
        tx.insert_rows(
            site_hours,
            [
                (account, site["id"], hour, 9, 3, 10, 2500),
                (account, site["id"], f"{day_after(today, -2)}T12", 12, 0, 12, 1200),
            ],
        )
        tx.insert_rows(
            site_incidents,
            [
                (account, site["id"], f"{hour}:00:00.000000Z", f"{hour}:15:00.000000Z", "The site answered 503."),
                (account, site["id"], as_instant(now - timedelta(hours=2)), None, "The site cannot be reached."),
            ],
        )
    page = visitor.get(f"/console/records/sites/{site['id']}")
    assert "87.5% in 90 days, 1 day with a failed check" in page.text
    bars = page.html.partition('<svg class="days tall"')[2].partition("</svg>")[0]
    assert (bars.count("<g>"), bars.count('class="good"'), bars.count('class="bad"')) == (90, 1, 1)
    assert section(page, "Days with a failed check")[0][1:] == ["75.0%", "3", "12"]
    assert [row[1:] for row in section(page, "Incidents")] == [
        ["Down for 2 hours", "The site cannot be reached."],
        ["15 minutes", "The site answered 503."],
    ]
    assert [row[1] for row in section(page, "Response times")] == ["100 ms", "250 ms"]
    assert section(page, "Plugins") == [["Shop", "1.0", "1.1", "Active", "No"], ["seo", "2.0", DASH, "Active", "No"]]
    (in_list,) = visitor.get("/console/records/sites").all("td", **{"data-label": "Updates"})
    assert ("Updates 2 " in page.text, in_list.text) == (True, "2"), "one of a plugin, and one of WordPress"


def test_sites_in_trouble_come_first_and_paused_ones_last(api, visitor):
    states = [("up", 99_000, True), ("down", 99_900, True), ("unknown", None, True), ("up", 98_000, False)]
    for observed, uptime, monitored in states:
        site = api.make("/sites", name=f"{observed} {uptime}", monitoring_enabled=monitored)["id"]
        shares = f"observed = '{observed}', uptime_30d = {uptime or 'NULL'}"
        api.sql(f"UPDATE sites SET {shares} WHERE id = {site}")
    page = visitor.get("/console/records/sites")
    heads, shares = page.all("th", scope="row"), re.findall(r"[0-9.]+%", page.text)
    assert shares == ["99.9%", "99.0%", "98.0%"], "as many decimals in each row"
    assert [head.text.split()[0] for head in heads] == ["down", "unknown", "up", "up"]
    assert "98000" in heads[-1].text


def test_a_site_whose_first_check_failed_is_checked_again_before_it_is_down(api, visitor):
    site = api.make("/sites", url="https://optik.example")["id"]
    pages = [f"/console/records/sites/{site}", "/console/records/sites"]
    for failures in (1, 2):
        (due,) = schedule.DUE.claim(api.store, Places(10, ()), timedelta(minutes=1))
        schedule.save_result(api.store, due, CheckResult(is_up=False, error="The site answered 503."))
        for page in map(visitor.get, pages):
            assert ("Checking again" in page.text, "0%" in page.text) == (failures == 1, failures == 2)
        api.sql("UPDATE sites SET next_check_at = '2020-01-01T00:00:00.000000Z'")


def test_a_project_shows_what_the_next_invoice_would_bill(api, visitor, client):
    retainer = {"billing_type": "retainer", "retainer_amount": "900"}
    project = api.make("/projects", client_id=client["id"], hourly_rate="80", **retainer)["id"]
    own = {"client_id": client["id"], "project_id": project}
    api.make("/time-entries", **own, duration_minutes=90)
    api.make("/expenses", **own, amount="50")
    page = visitor.get(f"/console/records/projects/{project}")
    assert section(page, "Next invoice") == [["Expenses", "1", "50.00 EUR"], ["Retainer", "1 month", "900.00 EUR"]]
    assert "Left out: 1:30 h that the fee covers." in page.text
    work = {"time": {}, "expenses": {}, "fees": {}}
    api.make("/invoices", client_id=client["id"], unbilled_work=work)
    page = visitor.get(f"/console/records/projects/{project}")
    assert "Next invoice" not in page.text


def test_a_project_shows_its_budget_tasks_and_people(api, visitor, client, monkeypatch):
    project = api.make("/projects", client_id=client["id"], budget_minutes=600, budget_amount="1000", hourly_rate="80")
    api.make("/tasks", project_id=project["id"], title="Draft", estimated_minutes=120)
    done = api.make("/tasks", project_id=project["id"], title="Launch", status="done")
    api.post(f"/projects/{project['id']}/milestones", {"name": "Design approved"})
    for user_id, minutes, day in ((api.admin_id, 240, "2026-03-02"), (api.member_id, 90, "2026-03-03")):
        entry = {"user_id": user_id, "duration_minutes": minutes, "date": day, "task_id": done["id"]}
        assert api.post("/time-entries", entry).status == 201
    record = api.get(f"/projects/{project['id']}").data
    page = visitor.get(f"/console/records/projects/{project['id']}")
    shown = facts(page)
    assert shown["Budget used"] == f"{Decimal(str(record['budget_used_percent'])):.1f}%"
    assert shown["Tracked time"] == "5:30 h 5:30 h billable"
    assert shown["To bill"] == money(record["to_bill_amount"]) == "440.00 EUR"
    assert section(page, "Budget") == [
        ["Amount", "1,000.00 EUR", "440.00 EUR", "560.00 EUR"],
        ["Time", "10:00 h", "5:30 h", "4:30 h"],
    ]
    assert section(page, "Tasks by status") == [["To do", "1", "2:00 h"], ["Done", "1", DASH]]
    assert [row[1:] for row in section(page, "People")] == [["4:00 h", "2 Mar 2026"], ["1:30 h", "3 Mar 2026"]]
    assert section(page, "Milestones")[0][0] == "Design approved"
    assert "newest" not in page.text
    assert "latest" not in page.text
    monkeypatch.setattr(projects, "NEWEST_ENTRIES", 1)
    monkeypatch.setattr(record_pages, "SHOWN", 1)
    page = visitor.get(f"/console/records/projects/{project['id']}")
    assert [row[1:] for row in section(page, "People")] == [["1:30 h", "3 Mar 2026"]]
    assert "since 3 Mar 2026" in page.text
    assert "Tasks 1 of 2" in page.text
    assert "Time entries latest 1" in page.text


def test_small_records_show_their_fields_once_with_names_and_units(api, visitor, client):
    project = api.make("/projects", client_id=client["id"], name="Website")
    entry = api.make(
        "/time-entries",
        client_id=client["id"],
        project_id=project["id"],
        duration_minutes=75,
        description="Call",
        hourly_rate="80",
    )
    expense = api.make(
        "/expenses", client_id=client["id"], amount="119", tax_rate="19", vendor="Copy shop", date="2026-02-01"
    )
    time = visitor.get(f"/console/records/time-entries/{entry['id']}")
    shown = facts(time)
    assert (shown["Time"], shown["Project"], shown["Billing status"]) == ("1:15 h", "Website", "Unbilled")
    assert shown["Amount"] == "100.00 EUR"
    assert time.title.startswith("Call")
    spent = visitor.get(f"/console/records/expenses/{expense['id']}")
    assert (facts(spent)["Net"], facts(spent)["Day"]) == ("100.00 EUR", "1 Feb 2026")
    assert spent.text.count("Copy shop") == 1, "the heading"
    assert "History" in spent.text


def test_the_number_of_statements_does_not_depend_on_the_number_of_rows(api, visitor, client, monkeypatch):
    ran: list[object] = []
    run = Transaction.execute

    def execute(tx: Transaction, statement: Any, values: Any) -> Any:
        ran.append(statement)
        return run(tx, statement, values)

    def statements(path: str) -> int:
        visitor.get(path)
        ran.clear()
        visitor.get(path)
        return len(ran)

    monkeypatch.setattr(Transaction, "execute", execute)
    project = api.make("/projects", client_id=client["id"])
    ticket = api.make("/tickets", client_id=client["id"])
    sent = invoice(api, client)
    paths = [
        f"/console/records/{kind}/{each['id']}"
        for kind, each in (("clients", client), ("projects", project), ("tickets", ticket), ("invoices", sent))
    ]

    def add() -> None:
        for user_id in (api.admin_id, api.member_id):
            task = api.post("/tasks", {"title": "Task", "project_id": project["id"], "assignee_id": user_id}).data
            api.post("/time-entries", {"task_id": task["id"], "user_id": user_id, "duration_minutes": 15})
            api.post(f"/tickets/{ticket['id']}/replies", {"body": "Yes"})
            api.patch(f"/invoices/{sent['id']}", {"record_payment": {"amount": "1"}})
            invoice(api, client)
            api.make("/tickets", client_id=client["id"], assignee_id=user_id)
            api.make("/projects", client_id=client["id"])

    add()
    before = [statements(path) for path in paths]
    add()
    add()
    assert [statements(path) for path in paths] == before
    assert max(before) < 30


def test_the_declarations_name_fields_and_tables_that_exist(api):
    kinds = {kind.name: kind for kind in api.app.site.pages["console"].__self__.catalogues["admin"].kinds.values()}
    assert DISPLAYS.keys() == kinds.keys() - {"replies"}
    for name, display in DISPLAYS.items():
        fields, query = kinds[name].record.__struct_fields__, kinds[name].listing.query
        shown = as_columns(display.columns)
        named = {each.field for each in shown if not each.load} | {each.detail for each in shown if each.detail}
        assert {*named, *(display.facts if isinstance(display.facts, tuple) else ())} <= {*fields}, name
        assert {each.field for each in display.sums} <= {each.field for each in shown}
        assert {*display.filters} <= parameters(query).keys()
        assert {*kinds[name].table.info["named_by"]} <= {*fields}


def test_labels_are_words_that_people_use():
    fields = {name: field_label(name) for name in ("client_id", "due_date", "wp_version", "paid_at", "tag_ids")}
    assert fields == {
        "client_id": "Client",
        "due_date": "Due",
        "wp_version": "WordPress version",
        "paid_at": "Paid",
        "tag_ids": "Tags",
    }


def test_the_budget_of_a_completed_project_warns_of_nothing(api, visitor, client):
    project = api.make("/projects", client_id=client["id"], budget_minutes=60)
    api.make("/time-entries", client_id=client["id"], project_id=project["id"], duration_minutes=90)
    path = f"/console/records/projects/{project['id']}"
    assert 'class="bad" width="100"' in visitor.get(path).html
    api.patch(f"/projects/{project['id']}", {"status": "completed"})
    page = visitor.get(path)
    assert "150.0%" in page.text
    assert 'class="bad"' not in page.html


def test_what_facts_and_blocks_have_shown_is_not_listed_again(api, visitor, client):
    sent = invoice(api, client, subject="Relaunch", external_id="X-1")
    page = visitor.get(f"/console/records/invoices/{sent['id']}")
    rest = page.text.partition("More details")[2].partition("History")[0]
    assert "External ID X-1" in rest
    assert not re.search("Subtotal|Total|Relaunch|Currency|Due", rest)
    project = api.make("/projects", client_id=client["id"], description="Build it.")
    assert visitor.get(f"/console/records/projects/{project['id']}").text.count("Build it.") == 1


def test_lines_of_documents_have_units_and_tables_repeat_nothing_of_their_page(api, visitor, client):
    lines = [{"description": "Support", "quantity": each, "unit": "month", "unit_price": "9"} for each in ("1", "-2")]
    quote = api.make("/quotes", client_id=client["id"], lines=[*lines, {"description": "Design", "unit_price": "90"}])
    page = visitor.get(f"/console/records/quotes/{quote['id']}")
    assert [row[1] for row in section(page, "Lines")] == ["1 month", f"{MINUS}2 months", "1"]
    project = api.make("/projects", client_id=client["id"], name="Website")
    api.make("/tasks", project_id=project["id"], title="Draft")
    page = visitor.get(f"/console/records/projects/{project['id']}")
    assert section(page, "Tasks")[0][0] == "Draft", "without the project and the client"


def test_a_missing_record_says_what_may_have_happened_to_it(api, visitor):
    page = visitor.get("/console/records/clients/999")
    assert (page.status, "It may have been deleted." in page.text, "id in the path" in page.text) == (404, True, False)


def test_a_member_is_not_told_that_the_task_of_a_colleague_was_deleted(api, person):
    task = api.make("/tasks", title="Of a colleague")
    page = person("member").get(f"/console/records/tasks/{task['id']}")
    assert (page.status, "This task does not exist, or it is not yours." in page.text) == (404, True)


def test_an_open_task_is_ticked_off_where_it_is_listed_and_that_is_undone(api, visitor):
    project = api.make("/projects")["id"]
    task = api.make("/tasks", title="Texts", project_id=project, status="in_progress", due_date=api.today)["id"]
    tick = f"/console/records/tasks/{task}/tick"
    for path in ("/console", "/console/records/tasks?assignee_id=none", f"/console/records/projects/{project}"):
        page = visitor.follow(visitor.submit(path, action=tick, status="done"))
        assert ("Texts is done." in page.text, tick in page.html) == (True, True), "with its undo"
        assert api.get(f"/tasks/{task}").data["status"] == "done"
        undone = visitor.follow(visitor.follow(visitor.post(tick, Fields(page.html).forms[tick])))
        assert "Texts is in progress." in undone.text
        assert api.get(f"/tasks/{task}").data["status"] == "in_progress"
    api.patch(f"/tasks/{task}", {"status": "cancelled"})
    assert tick not in visitor.get(f"/console/records/projects/{project}").html


def test_a_member_ticks_off_no_task_of_a_colleague(api, person):
    task, visitor = api.make("/tasks", title="Of a colleague")["id"], person("member")
    assert visitor.post(f"/console/records/tasks/{task}/tick", {"status": "done"}).status == 404
    assert api.get(f"/tasks/{task}").data["status"] == "todo"
    own = api.make("/tasks", title="Mine", assignee_id=visitor.user_id)["id"]
    page = visitor.submit("/console/records/tasks", action=f"/console/records/tasks/{own}/tick", status="done")
    assert ("Mine is done." in page.text, api.get(f"/tasks/{own}").data["status"]) == (True, "done")


def test_a_site_that_no_check_has_reached_says_so(api, visitor):
    site = api.make("/sites")["id"]
    assert "Not checked yet" in visitor.get(f"/console/records/sites/{site}").text
    assert "Not checked yet" in visitor.get("/console/records/sites").text


def test_uptime_has_one_decimal_everywhere_and_is_100_only_without_a_failed_check(api, visitor):
    site = api.make("/sites", monitoring_enabled=True)["id"]
    api.sql(
        "UPDATE sites SET observed = 'up', uptime_24h = 42105, uptime_7d = 99999, uptime_30d = 100000 "
        f"WHERE id = {site}"
    )
    text = visitor.get(f"/console/records/sites/{site}").text
    assert all(each in text for each in ("42.1%", "99.9%", "100.0%"))
    assert "100.0%" in visitor.get("/console/records/sites").text


def test_more_details_leave_out_what_says_nothing(api, visitor):
    page = visitor.get(f"/console/records/tasks/{api.make('/tasks', billable=False)['id']}")
    (details,) = [each for each in page.all("section") if each.text.startswith("More details")]
    assert ("Billable No" in details.text, "Subtasks" in details.text) == (True, False)


def test_a_void_or_changed_invoice_offers_the_paper_as_it_was_first_issued(api, visitor):
    line = {"description": "Design", "unit_price": "100"}
    invoice = api.make("/invoices", status="sent", lines=[line])
    page = f"/console/records/invoices/{invoice['id']}"
    assert "PDF as first issued" not in visitor.get(page).text
    first = visitor.get(f"{page}/pdf").html
    api.patch(f"/invoices/{invoice['id']}", {"notes": "Thank you"})
    assert "PDF as first issued" in visitor.get(page).text
    assert visitor.get(f"{page}/pdf?version=1").html == first != visitor.get(f"{page}/pdf").html
    api.patch(f"/invoices/{invoice['id']}", {"status": "void"})
    assert "E-invoice (XML)" not in visitor.get(page).text


def test_an_invoice_whose_credit_notes_cover_its_total_reads_credited(api, visitor, client):
    def badges(page):
        return [badge.text for badge in page.all("span", "badge")]

    lines = [{"description": "Design", "unit_price": "100"}]
    credited, partly, paid, free = (
        api.make("/invoices", client_id=client["id"], status="sent", lines=each)
        for each in (lines, lines, lines, [lines[0] | {"unit_price": "0"}])
    )
    api.post(f"/invoices/{credited['id']}/credit-notes", {})
    api.post(f"/invoices/{partly['id']}/credit-notes", {"amount": "10"})
    rest = api.get(f"/invoices/{partly['id']}").data["balance_due"]
    for each, amount in ((partly, rest), (paid, paid["total"])):
        api.patch(f"/invoices/{each['id']}", {"record_payment": {"amount": amount}})
    words = {credited["id"]: "Credited", partly["id"]: "Paid", paid["id"]: "Paid"}
    assert {api.get(f"/invoices/{number}").data["status"] for number in words} == {"paid"}
    for number, word in words.items():
        (heading,) = visitor.get(f"/console/records/invoices/{number}").all("h1")
        assert badges(heading) == [word]
    of_free = visitor.get(f"/console/records/invoices/{free['id']}").all("h1")
    assert "Credited" not in of_free[0].text, "a total of 0 is no credit"
    assert badges(visitor.get("/console/records/invoices?status=paid&sort=id"))[:3] == ["Credited", "Paid", "Paid"]
    assert "Credited" in badges(visitor.get(f"/console/records/clients/{client['id']}"))
    assert "· Credited ·" in visitor.get(f"/console/search?q={credited['number']}").text


def test_a_site_at_an_address_that_is_never_checked_says_so_once_it_is_saved(api, visitor):
    form = {"url": "http://10.0.0.5/", "monitoring_enabled": "yes", "once": "1"}
    page = visitor.follow(visitor.post("/console/records/sites/new", form))
    said = "This server does not check 10.0.0.5, which is not a public address."
    assert said in page.text
    (site,) = api.get("/sites").data
    api.patch(f"/sites/{site['id']}", {"monitoring_enabled": False})
    assert said not in visitor.get(f"/console/records/sites/{site['id']}").text
    for url in ("http://127.0.0.1/", "https://optik.example"):  # the operator allows the first one here
        other = api.make("/sites", url=url)["id"]
        assert "does not check" not in visitor.get(f"/console/records/sites/{other}").text
