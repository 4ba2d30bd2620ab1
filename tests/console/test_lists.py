"""The lists of the console: they equal the API's lists, filter by filter, and so do their sums and their files."""

import csv
import io
import re
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from random import Random
from typing import Any
from urllib.parse import urlencode

import pytest
import time_machine

from retainer.api import RESOURCES
from retainer.console import names
from retainer.console.catalogue import LISTS as NAMES
from retainer.console.catalogue import Catalogue
from retainer.console.displays import DISPLAYS
from retainer.console.pages import list_files, list_pages
from retainer.kernel.query import parameters
from retainer.kernel.resource import Operation
from retainer.kernel.routes import Routes
from retainer.rollups import list_sums
from retainer.web.csv_files import BYTE_ORDER_MARK, safe
from tests.console.visitor import Visitor, WebPage, admin_of
from tests.contract import filled_lists
from tests.contract.cases import LISTS, statements_of
from tests.contract.filled_lists import Agency
from tests.contract.filler import NOW
from tests.contract.test_filters import refused
from tests.databases import only_sqlite
from tests.factories import ApiClient
from tests.length import TURN, sampled

KINDS = {
    name: kind for name, kind in Catalogue(Routes(RESOURCES).operations, "admin").kinds.items() if kind.parent is None
}
SHOWN = [operation for operation in LISTS if operation.path.strip("/") in NAMES]
COUNTED = {
    ("invoices", "total"): ("Issued", "status", {"sent", "partially_paid", "paid", "written_off"}),
    ("invoices", "balance_due"): ("Outstanding", "status", {"sent", "partially_paid"}),
    ("quotes", "total"): ("Open", "status", {"sent"}),
    ("payments", "amount"): ("Collected", "kind", {"payment", "refund"}),
}
"""The labels of sums that only add up records with some statuses, or of some kinds."""
REPEATED = {"name", "vendor"}
"""Filters of free text, whose commas are their own."""


pytestmark = pytest.mark.usefixtures("unlimited")
agency = filled_lists.agency


@pytest.fixture
def frozen() -> Iterator[None]:
    with time_machine.travel(NOW, tick=False):
        yield


def ids_of(page: WebPage) -> list[int]:
    """The ids of the records on a page, in order."""
    links = [head.all("a")[:1] for head in page.all("th", scope="row")]
    return [int(link["href"].rpartition("/")[2]) for found in links for link in found]


def totals_of(page: WebPage) -> list[str]:
    """The sums below a list, a text for each column with one."""
    return [cell.text for foot in page.all("tfoot") for cell in foot.all("td", "number")]


def file_of(page: WebPage) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    assert page.headers["content-type"].startswith("text/csv")
    return list(csv.DictReader(io.StringIO(page.html.removeprefix(BYTE_ORDER_MARK))))


def sum_of(rows: list[dict[str, Any]], field: str) -> str:
    """The sum of a field as a page shows it: hours, or the amount in each currency."""
    if field == "duration_minutes":
        minutes = sum(row[field] for row in rows)
        return f"{minutes // 60:,}:{minutes % 60:02} h" if minutes else ""
    found: dict[str, Decimal] = defaultdict(Decimal)
    for row in rows:
        if row[field] is not None:
            found[row["currency"]] += Decimal(row[field])
    codes = sorted(found, key=lambda code: (code != "EUR", code))
    return " ".join(f"{found[code]:,f} {code}" for code in codes).replace("-", "\u2212")


def sums_of(kind: str, rows: list[dict[str, Any]]) -> Iterator[str]:
    """The sums of a list as its page shows them: those of documents leave out what does not count."""
    for field in (each.field for each in DISPLAYS[kind].sums):
        label, by, counted = COUNTED.get((kind, field), ("", "", None))
        text = sum_of([row for row in rows if counted is None or row[by] in counted], field)
        if text:
            yield f"{text} {label}".strip()


def cell_of(value: Any) -> str:
    """What a file has for a value of the API."""
    text = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return str(safe(text)) if isinstance(value, str) and not re.fullmatch(r"-?\d+(\.\d+)?", value) else text


def sent(query: dict[str, str]) -> str:
    return urlencode({name: text.split(",") if name in REPEATED else text for name, text in query.items()}, doseq=True)


def queries(agency: Agency, operation: Operation) -> Iterator[dict[str, str]]:
    """A query without filters, and for each filter one with it."""
    model, random = agency.lists[operation], Random(operation.path)
    yield {}
    for name in sampled(model.filters, start=len(operation.path)):
        text = str(random.choice(model.tried(name, random)))
        query = model.complete({name: text})
        if text and not refused(query):
            yield query


@only_sqlite
@pytest.mark.parametrize("operation", sampled(SHOWN, 3, TURN), ids=str)
def test_a_list_its_sums_and_its_file_equal_the_list_of_the_api(agency, frozen, operation):
    visitor, kind = admin_of(agency.api), operation.path.strip("/")
    for query in queries(agency, operation):
        rows, total = agency.ask(operation, query | {"per_page": "100"})
        page = visitor.get(f"/console/records/{kind}?{sent(query)}&per_page=100")
        assert page.status == 200
        if KINDS[kind].reading:
            assert ids_of(page) == [row["id"] for row in rows], query
        assert f"{total:,} " in page.text if total else "match" in page.text or "yet" in page.text, query
        pages = [
            rows,
            *(agency.ask(operation, query | {"per_page": "100", "page": n})[0] for n in range(2, 1 - -total // 100)),
        ]
        every = [row for each in pages for row in each]
        if rows:
            assert totals_of(page) == [*sums_of(kind, every)], query
        file = file_of(visitor.get(f"/console/records/{kind}/csv?{sent(query)}"))
        assert len(file) == total, query
        found = {name: [row[name] for row in every if row[name] is not None] for name in (every or [{}])[0]}
        plain = [name for name, values in found.items() if values and not isinstance(values[0], list | dict)]
        assert [[line[name] for name in plain] for line in file] == [
            [cell_of(row[name]) for name in plain] for row in every
        ], query


@only_sqlite
@pytest.mark.parametrize("operation", sampled(SHOWN, 3, TURN), ids=str)
def test_the_heads_of_columns_sort_as_the_api_does(agency, frozen, operation):
    visitor, kind = admin_of(agency.api), operation.path.strip("/")
    links = [link["href"] for link in visitor.get(f"/console/records/{kind}?page=1").all("a", "sort")]
    assert links
    for link in links:
        sort = link.partition("sort=")[2]
        page = visitor.get(f"{link}&per_page=100")
        rows, _ = agency.ask(operation, {"sort": sort, "per_page": "100"})
        if KINDS[kind].reading:
            assert ids_of(page) == [row["id"] for row in rows], sort
        assert 'aria-sort="' in page.html


@only_sqlite
@pytest.mark.parametrize("operation", sampled(SHOWN, 3, TURN), ids=str)
def test_the_form_of_a_list_says_what_was_asked_for(agency, frozen, operation):
    visitor, kind = admin_of(agency.api), operation.path.strip("/")
    (shown,) = visitor.get(f"/console/records/{kind}").all("form", "filters")
    controls = {control["name"] for control in shown.all("input select") if control["name"]}
    references = {"contact_id", "ids", "invoice_id", "milestone_id", "parent_id", "quote_id", "site_id", "task_id"}
    assert parameters(operation.query).keys() - references - {"ticket_id"} <= controls
    for name in controls - {"sort", "q"}:
        query = agency.lists[operation].complete({name: str(agency.lists[operation].tried(name, Random(1))[0])})
        page = visitor.get(f"/console/records/{kind}?{sent(query)}")
        assert page.status == 200, query
        (again,) = page.all("form", "filters")
        assert "Clear" in [link.text for link in again.all("a", href=f"/console/records/{kind}")]
        chosen = [
            option for each in again.all("select", name=name) for option in each.all("option") if "selected" in option
        ]
        assert any(control["value"] for control in [*again.all("input", name=name), *chosen]), query


def test_every_kind_of_record_has_a_list_in_the_navigation(visitor):
    assert KINDS.keys() == {*NAMES}
    page = visitor.get("/console")
    assert {f"/console/records/{name}" for name in NAMES} <= set(page.links)


@pytest.mark.parametrize("kind", NAMES)
def test_a_list_of_many_takes_as_many_statements_as_a_list_of_one(api, visitor, kind):
    def statements() -> int:
        with statements_of(api) as seen:
            assert visitor.get(f"/console/records/{kind}").status == 200
        return len(seen)

    api.make(f"/{kind}")
    statements()  # the first request also finds the account of its session
    one = statements()
    for _ in range(6):
        api.make(f"/{kind}")
    assert statements() == one


@pytest.mark.parametrize("kind", NAMES)
def test_an_empty_list_says_what_it_is_for_and_what_to_do(visitor, kind):
    page, shown = visitor.get(f"/console/records/{kind}"), KINDS[kind]
    assert page.text.partition(f"{shown.purpose} No {shown.plural} yet.")[2].strip()
    assert (page.all("nav", "views"), page.all("form", "filters")) == ([], [])
    assert "match these filters" in visitor.get(f"/console/records/{kind}?q=nothing").text


def test_a_list_names_the_filter_that_it_cannot_apply(api, visitor):
    api.make("/clients", name="Optik")
    for query, sentence in (
        ("status=odd", "Must be one of: Prospect, Active, Archived."),
        ("statsu=active", "Unknown filter. Did you mean Status? Search"),
        ("created_since=2026-02-30", "Must be a date"),
    ):
        page = visitor.get(f"/console/records/clients?{query}")
        assert page.status == 422
        assert sentence in page.text
        assert ids_of(page) == [], "a list without its filter would be wrong"
        assert visitor.get(f"/console/records/clients/csv?{query}").status == 422


@pytest.mark.parametrize(
    ("language", "text", "found"),
    [
        *(("de", "1.000", 2), ("de", "99,50", 3), ("de", "1.000,50", 2), ("de", "1.000,51", 1)),
        *(("en", "1,000", 2), ("en", "99.50", 3), ("en", "1,000.50", 2), ("en", "1000.51", 1)),
    ],
)
def test_filters_read_amounts_as_forms_do(api, visitor, language, text, found):
    api.set_account({"document_language": language})
    for amount in ("99.50", "1000.50", "1234.56"):
        api.make("/expenses", amount=amount)
    page = visitor.get(f"/console/records/expenses?{urlencode({'amount_min': text})}")
    assert (page.status, len(ids_of(page))) == (200, found), page.text
    assert [control["value"] for control in page.all("input", name="amount_min")] == [text]
    file = visitor.get(f"/console/records/expenses/csv?{urlencode({'amount_min': text})}")
    assert file.html.count("\r\n") == found + 1


def test_a_filter_by_an_amount_asks_back_as_a_form_does(api, visitor):
    page = visitor.get("/console/records/expenses?amount_min=1.000&amount_max=soon")
    assert page.status == 422
    assert page.error_of("amount_min") == "Can be read in two ways. Write 1000 or 1.00."
    assert page.error_of("amount_max") == "Must be a number, like 1,000.50."


def test_a_day_limits_by_the_instant_at_which_it_begins(api, visitor):
    client = api.make("/clients")
    api.set_account({"timezone": "Europe/Berlin"})
    api.sql("UPDATE clients SET created_at = $1 WHERE id = $2", "2026-03-10T23:30:00.000000Z", client["id"])
    day = "2026-03-11"
    assert ids_of(visitor.get(f"/console/records/clients?created_since={day}")) == [client["id"]]
    assert ids_of(visitor.get(f"/console/records/clients?created_before={day}")) == []
    assert ids_of(visitor.get("/console/records/clients?created_before=2026-03-12")) == [client["id"]]
    assert f'value="{day}"' in visitor.get(f"/console/records/clients?created_since={day}").html


def test_next_leads_through_all_pages(api, visitor):
    made = {api.make("/clients", name=f"Client {number}")["id"] for number in range(3)}
    seen, path = [], "/console/records/clients?per_page=1"
    while path:
        page = visitor.get(path)
        seen += ids_of(page)
        following = {link["href"] for link in page.all("a", rel="next")}
        assert len(following) < 2, "the links above and below the list are the same"
        path = "".join(following)
    assert len(seen) == 3
    assert set(seen) == made


def test_references_lead_to_the_pages_of_records_and_people(api, visitor):
    entry = api.make("/time-entries", user_id=api.member_id)
    page = visitor.get("/console/records/time-entries")
    for path in (f"/console/people/{api.member_id}", f"/console/records/clients/{entry['client_id']}"):
        assert path in page.links
        assert visitor.get(path).status == 200


def test_a_filter_by_too_many_records_asks_for_the_id(api, visitor, monkeypatch):
    monkeypatch.setattr(names, "MAX_CHOICES", 1)
    client = api.make("/clients", name="Optik")
    assert '<select id="client_id"' in visitor.get("/console/records/projects?q=x").html
    api.make("/clients")
    project = api.make("/projects", client_id=client["id"])
    api.make("/projects")
    page = visitor.get(f"/console/records/projects?client_id={client['id']}")
    assert "Client (ID)" in page.text
    assert f'<input id="client_id" name="client_id" value="{client["id"]}"' in page.html
    assert ids_of(page) == [project["id"]]


def test_a_filter_of_a_link_stays_until_it_is_removed(api, visitor):
    invoice = api.make("/invoices", status="sent", lines=[{"description": "Design", "unit_price": "500"}])
    api.make("/time-entries")
    page = visitor.get(f"/console/records/time-entries?invoice_id={invoice['id']}")
    assert f"Invoice: {invoice['number']}" in page.text
    assert f'<input type="hidden" name="invoice_id" value="{invoice["id"]}">' in page.html
    (removal,) = (link["href"] for link in page.all("a", "button") if link.text.startswith("Invoice: "))
    assert len(ids_of(visitor.get(removal))) == 1


def test_a_file_runs_no_formula_and_says_how_many_records_it_has(api, visitor, monkeypatch):
    api.make("/clients", name='=HYPERLINK("https://evil.example")')
    api.make("/clients", name="Optik")
    file = visitor.get("/console/records/clients/csv?sort=id")
    assert [row["name"] for row in file_of(file)] == ['\'=HYPERLINK("https://evil.example")', "Optik"]
    assert "first" not in file.headers["content-disposition"]
    for module in (list_pages, list_files):
        monkeypatch.setattr(module, "MAX_ROWS", 1)
    file = visitor.get("/console/records/clients/csv")
    assert len(file_of(file)) == 1
    assert "-first-1.csv" in file.headers["content-disposition"]
    assert "The CSV file has the first 1, in this order." in visitor.get("/console/records/clients").text


def test_a_file_has_the_names_of_what_its_records_refer_to(api, visitor):
    client = api.make("/clients", name="Optik")
    api.make("/projects", client_id=client["id"])
    (row,) = file_of(visitor.get("/console/records/projects/csv"))
    assert (row["client_id"], row["client"], row["is_template"]) == (str(client["id"]), "Optik", "false")


def test_too_many_rows_are_not_added_up_unless_totals_are_stored(api, visitor, monkeypatch):
    monkeypatch.setattr(list_sums, "MAX_SUMMED", 0)
    entry = api.make("/time-entries", duration_minutes=90)
    api.make("/expenses")
    assert "Sums are shown for up to" in visitor.get("/console/records/expenses").text
    stored = ("", "user_id=me", f"client_id={entry['client_id']}&date_from={entry['date']}", "project_id=none")
    for query in stored:
        assert totals_of(visitor.get(f"/console/records/time-entries?{query}"))[0] == "1:30 h", query
    assert "Sums are shown for up to" in visitor.get("/console/records/time-entries?billable=true").text


def test_a_filtered_list_is_counted_and_every_page_is_reached(api, visitor, monkeypatch):
    for module in (list_pages, list_sums):
        monkeypatch.setattr(module, "MAX_SUMMED", 2)
    expected = [api.make("/expenses", billable=True)["id"] for _ in range(5)][::-1]
    path, found = "/console/records/expenses?billable=true&per_page=1", []
    page = visitor.get(path)
    assert "5 expenses, 1 to 1 on this page. Sums are shown for up to 2 records" in page.text
    assert "Page 1 of 5" in page.text
    while page:
        found += ids_of(page)
        following = page.all("a", rel="next")
        last, page = page, visitor.get(following[0]["href"]) if following else None
    assert found == expected
    assert "5 expenses, 5 to 5 on this page" in last.text


def test_a_client_shows_what_is_due_on_its_open_invoices(api, visitor):
    client = api.make("/clients", name="Optik")
    lines = [{"description": "Design", "unit_price": "500", "tax_rate": "0"}]
    api.make("/invoices", client_id=client["id"], status="sent", lines=lines)
    api.make("/invoices", client_id=client["id"], lines=lines)
    page = visitor.get("/console/records/clients")
    assert "500.00" in page.text
    assert f"/console/records/invoices?client_id={client['id']}&status=open" in page.links


def test_a_list_of_another_account_is_empty(both: tuple[ApiClient, ApiClient]):
    north, south = both
    client = north.make("/clients", name="Optik")
    project = north.make("/projects", client_id=client["id"])
    visitor: Visitor = admin_of(south)
    assert "Optik" not in visitor.get("/console/records/clients").html
    assert "Optik" not in visitor.get(f"/console/records/projects?client_id={client['id']}").html
    assert project["name"] not in visitor.get(f"/console/records/tasks?project_id={project['id']}").html
    assert file_of(visitor.get("/console/records/clients/csv")) == []


def test_what_a_list_of_invoices_says_is_outstanding_is_what_the_overview_says(api, visitor):
    lines = [{"description": "Design", "unit_price": "100", "tax_rate": "0"}]
    sent, void, lost = (api.make("/invoices", status="sent", lines=lines) for _ in range(3))
    api.make("/invoices", lines=lines)
    api.patch(f"/invoices/{void['id']}", {"status": "void"})
    api.patch(f"/invoices/{lost['id']}", {"status": "written_off"})
    api.make("/invoices", status="sent", lines=lines, client_id=api.make("/clients", currency="DKK")["id"])
    report = api.get("/reports/overview").data
    row = next(row for row in report["money"] if row["currency"] == sent["currency"])
    total, outstanding = totals_of(visitor.get("/console/records/invoices"))
    amount = f"{Decimal(row['outstanding']):,f} {sent['currency']}"
    assert " ".join(outstanding.split()) == f"{amount} 100.00 DKK Outstanding", "its own currency first"
    assert total.split()[0] == "200.00"


def test_a_list_begins_with_its_first_view_and_the_others_are_one_link_away(api, visitor):
    late, done = api.make("/tasks", due_date="2026-01-02"), api.make("/tasks", status="done")
    page = visitor.get("/console/records/tasks")
    assert ids_of(page) == [late["id"]]
    views = {link.text.split()[0]: link for link in page.all("nav", "views")[0].all("a")}
    assert [link.text for link in views.values()] == ["Open 1", "Overdue 1", "Mine", "Done 1", "All"]
    assert views["Open"]["aria-current"] == "page"
    every = visitor.get(views["All"]["href"])
    assert ids_of(every) == [done["id"], late["id"]]
    assert [link.text for link in every.all("nav", "views")[0].all("a", **{"aria-current": "page"})] == ["All"]
    assert ids_of(visitor.get(views["Done"]["href"])) == [done["id"]]


def test_documents_are_listed_and_found_by_their_day_and_templates_have_a_tab(api, visitor):
    client = api.make("/clients", name="Optik")["id"]
    days = ["2026-03-05", "2026-03-07", "2026-03-06"]
    made = {day: api.make("/invoices", client_id=client, issue_date=day)["id"] for day in days}
    newest_first = [made[day] for day in sorted(days, reverse=True)]
    assert ids_of(visitor.get("/console/records/invoices")) == newest_first
    found = re.findall(r"/console/records/invoices/([0-9]+)", visitor.get("/console/search?q=optik").html)
    assert [*dict.fromkeys(map(int, found))] == newest_first
    template, other = api.make("/projects", is_template=True)["id"], api.make("/projects")["id"]
    page = visitor.get("/console/records/projects")
    (tab,) = [link for link in page.all("nav", "views")[0].all("a") if link.text.startswith("Templates")]
    assert (ids_of(page), ids_of(visitor.get(tab["href"])), tab.text) == ([other], [template], "Templates 1")


def test_a_draft_invoice_owes_nothing(api, visitor):
    lines = [{"description": "Design", "unit_price": "100", "tax_rate": "0"}]
    api.make("/invoices", status="sent", lines=lines)
    api.make("/invoices", lines=lines)
    rows = [row for body in visitor.get("/console/records/invoices").all("tbody") for row in body.all("tr")]
    due = {row.all("span", "badge")[0].text: row.all("td", **{"data-label": "Balance due"})[0].text for row in rows}
    assert due == {"Open": "100.00 EUR", "Draft": ""}


def test_a_page_of_a_longer_list_prints_no_sums(api, visitor):
    lines = [{"description": "Design", "unit_price": "100"}]
    for _ in range(2):
        api.make("/invoices", status="sent", lines=lines)
    for size, is_partial in ((1, True), (2, False)):
        (table,) = visitor.get(f"/console/records/invoices?per_page={size}").all("table")
        assert ("partial" in table["class"].split()) == is_partial


def test_an_overdue_invoice_says_how_late_it_is_and_nothing_else(api, visitor):
    lines = [{"description": "Design", "unit_price": "100"}]
    invoice = api.make("/invoices", issue_date="2026-01-01", due_date="2026-01-02", status="sent", lines=lines)
    days = api.get(f"/invoices/{invoice['id']}").data["days_overdue"]
    text = visitor.get("/console/records/invoices").text.partition("Balance due")[2]
    assert f"Overdue {days} days late" in text
    assert "Sent" not in text


def test_a_tag_leads_to_the_records_that_have_it(api, visitor):
    tag = api.make("/tags", name="Waiting")
    client = api.make("/clients", tag_ids=[tag["id"]])
    api.make("/clients")
    page = visitor.get("/console/records/tags")
    path = f"/console/records/clients?tag_id={tag['id']}"
    assert path in page.links
    assert ids_of(visitor.get(path)) == [client["id"]]
    assert path in visitor.get(f"/console/records/clients/{client['id']}").links


def test_the_choice_of_a_currency_begins_with_those_that_are_used(api, visitor):
    api.make("/invoices", client_id=api.make("/clients", currency="ISK")["id"])
    for path in ("/console/records/invoices", "/console/records/invoices/new"):
        (choice,) = visitor.get(path).all("select", name="currency")
        codes = [option["value"] for option in choice.all("option") if option["value"]]
        assert codes[:2] == ["EUR", "ISK"], path
        assert codes[2:4] == ["AED", "AFN"], path
        assert {"XXX", "XTS", "XAU", "XDR", "CHW", "USN"}.isdisjoint(codes), "nobody bills in them"
        assert {"XAF", "XCD", "XPF", "CHF", "USD"} <= {*codes}


def test_an_empty_account_can_create_records_and_sees_no_filters(api, visitor):
    page = visitor.get("/console/records/invoices")
    assert ("/console/records/clients/new" in page.links, "Search and filter" in page.text) == (True, False)
    assert "No clients yet. Create the first client" in visitor.get("/console/records/invoices/new").text
    assert "/console/records/payments/new" not in page.links
    empty = {kind: visitor.get(f"/console/records/{kind}") for kind in ("clients", "time-entries", "quotes")}
    assert [kind for kind in empty if "import" in empty[kind].all("p", "empty")[0].text] == ["clients", "time-entries"]
    api.make("/invoices")
    assert "Search and filter" in visitor.get("/console/records/invoices").text
    assert "No clients yet." not in visitor.get("/console/records/invoices/new").text


def test_the_address_of_a_site_is_shown_below_a_name_that_is_another(api, visitor):
    for url, name in (("https://own.example/", ""), ("https://named.example/", "Kiosk")):
        api.make("/sites", url=url, **({"name": name} if name else {}))
    text = visitor.get("/console/records/sites").text
    assert [text.count(each) for each in ("own.example", "named.example", "Kiosk")] == [1, 1, 1]


def test_an_empty_view_has_no_filters_to_clear(api, visitor):
    api.make("/tasks", status="done")
    page = visitor.get("/console/records/tasks")
    assert ("No tasks in “Open”." in page.text, "Clear the filters" in page.text) == (True, False)
