"""The reports of the console: the figures of the API, beside those of a year before, as pages and as CSV files."""

import csv
import io
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from retainer.console.pages.report_pages import REPORTS
from retainer.values.exact import utcnow
from tests.console.visitor import Visitor, admin_of
from tests.databases import any_database
from tests.factories import ApiClient

pytestmark = any_database
TODAY = date.fromisoformat(utcnow()[:10])
YEAR = f"from={TODAY.year - 1}-01-01&to={TODAY.year - 1}-12-31"
"""The year in which `agency` has work; the year before has half of it."""


def bill(api: ApiClient, client: int, day: str, price: str, paid: str = "") -> None:
    """Issue an invoice on a day, and record a payment on the next."""
    lines = [{"description": "Design", "unit_price": price}]
    invoice = api.make("/invoices", client_id=client, issue_date=day, due_date=day, status="sent", lines=lines)
    if paid:
        next_day = (date.fromisoformat(day) + timedelta(days=1)).isoformat()
        answer = api.patch(f"/invoices/{invoice['id']}", {"record_payment": {"amount": paid, "paid_date": next_day}})
        assert answer.status == 200, answer


@pytest.fixture
def agency(api: ApiClient) -> dict[str, Any]:
    """Two clients with invoices in two years, a project with time, and an invoice in another currency."""
    last, before = TODAY.year - 1, TODAY.year - 2
    optik = api.make("/clients", name="Optik Weiß")["id"]
    bakery = api.make("/clients", name='=cmd|"/c calc"!A1')["id"]
    american = api.make("/clients", name="Harbor", currency="USD")["id"]
    bill(api, optik, f"{last}-03-10", "1000", paid="400")
    bill(api, bakery, f"{last}-03-31", "250.50")
    bill(api, optik, f"{last}-05-02", "600", paid="600")
    bill(api, optik, f"{before}-03-05", "500", paid="450")
    bill(api, american, f"{last}-04-04", "77")
    project = api.make("/projects", client_id=optik, name="Website", budget_minutes=600)["id"]
    for year, minutes in ((last, 300), (before, 120)):
        entry = {
            "project_id": project,
            "client_id": optik,
            "date": f"{year}-03-10",
            "duration_minutes": minutes,
            "hourly_rate": "90",
        }
        assert api.create("/time-entries", **entry, user_id=api.member_id).status == 201
    return {"optik": optik, "bakery": bakery, "project": project}


def read_csv(visitor: Visitor, report: str, query: str = YEAR, table: str = "") -> list[dict[str, str]]:
    page = visitor.get(f"/console/reports/{report}/{table or report}?{query}")
    assert page.status == 200, page.text
    assert page.headers["content-type"].startswith("text/csv")
    return list(csv.DictReader(io.StringIO(page.html.removeprefix("\ufeff"), newline="")))


def asked(api: ApiClient, report: str, **query: Any) -> Any:
    days = {"from": f"{TODAY.year - 1}-01-01", "to": f"{TODAY.year - 1}-12-31"}
    return api.get(f"/reports/{report}", days | query).data


def test_revenue_by_month_has_the_figures_of_the_api_beside_the_year_before(api, visitor, agency):
    rows = read_csv(visitor, "revenue-by-month")
    assert len(rows) == 12
    months = [row for row in asked(api, "revenue-by-month")["rows"] if row["currency"] == "EUR"]
    assert [Decimal(row["Invoiced (EUR)"]) for row in rows] == [Decimal(row["invoiced"]) for row in months]
    assert [Decimal(row["Collected (EUR)"]) for row in rows] == [Decimal(row["collected"]) for row in months]
    for number, row in enumerate(rows, 1):
        end = (date(TODAY.year - 1, number, 28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)
        totals = asked(api, "revenue-by-client", to=end.isoformat(), currency="EUR")["totals"]
        assert Decimal(row["Outstanding (EUR)"]) == Decimal(totals[0]["outstanding"] if totals else "0"), row
    march = rows[2]
    assert march["Month"] == f"Mar {TODAY.year - 1}"
    assert march["Invoiced (EUR)"] == "1250.50"
    assert march["Invoiced, year before (EUR)"] == "500.00"
    text = visitor.get(f"/console/reports/revenue-by-month?{YEAR}").text
    assert "1,850.50" in text
    assert "View USD" in text
    assert "77.00" in visitor.get(f"/console/reports/revenue-by-month?{YEAR}&currency=USD").text


def test_revenue_by_client_has_the_figures_of_the_api_and_runs_no_formula(api, visitor, agency):
    rows = read_csv(visitor, "revenue-by-client")
    assert [row["Client"] for row in rows] == ["Optik Weiß", """'=cmd|"/c calc"!A1"""]
    assert [row["Revenue (EUR)"] for row in rows] == ["1600.00", "250.50"]
    assert [row["Year before (EUR)"] for row in rows] == ["500.00", "0.00"]
    reported = [row for row in asked(api, "revenue-by-client")["rows"] if row["currency"] == "EUR"]
    assert [Decimal(row["Overdue (EUR)"]) for row in rows] == [Decimal(row["overdue"]) for row in reported]
    page = visitor.get(f"/console/reports/revenue-by-client?{YEAR}&client_id={agency['bakery']}")
    assert "1,600.00" not in page.text
    assert "=cmd|&#34;/c calc&#34;!A1" in page.html


def test_a_client_with_revenue_only_a_year_before_is_in_the_table(api, visitor, agency):
    query = f"from={TODAY.year}-01-01&to={TODAY}"
    rows = {row["Client"]: row for row in read_csv(visitor, "revenue-by-client", query)}
    assert rows["Optik Weiß"]["Revenue (EUR)"] == "0.00"
    assert Decimal(rows["Optik Weiß"]["Outstanding (EUR)"]) == 650


def test_utilisation_has_the_figures_of_the_api_and_the_target(api, visitor, agency):
    rows = {row["Person"]: row for row in read_csv(visitor, "utilisation")}
    for reported in asked(api, "utilisation")["rows"]:
        row = rows[reported["user_name"]]
        assert int(row["Billable (minutes)"]) == reported["billable_minutes"]
        assert int(row["Available (minutes)"]) == reported["available_minutes"]
        assert Decimal(row["Target (%)"]) == Decimal(str(reported["target_percent"]))
        assert Decimal(row["Billable utilisation (%)"]) == Decimal(str(reported["billable_utilisation_percent"]))
    page = visitor.get(f"/console/reports/utilisation?{YEAR}")
    assert page.html.count('class="mark"') == len(rows) + 1
    assert "Billable utilisation by month" in page.text


def test_profitability_has_value_cost_margin_and_budget(api, visitor, agency):
    rows = {row["Project"]: row for row in read_csv(visitor, "profitability")}
    (reported,) = [row for row in asked(api, "project-profitability")["rows"] if row["project_name"] == "Website"]
    website = rows["Website"]
    assert website["Value of the time (EUR)"] == "450.00"
    assert website["Budget used (%)"] == "70.0"
    assert Decimal(website["Cost (EUR)"]) == Decimal(reported["labour_cost"]) + Decimal(reported["expense_cost"])
    assert Decimal(website["Profit (EUR)"]) == Decimal(reported["profit"])
    assert Decimal(rows["Without a project"]["Revenue (EUR)"]) == Decimal("1850.50")


def test_the_overview_has_the_figures_of_the_api_and_links_to_lists(api, visitor, agency):
    rows = {row["Money"]: row for row in read_csv(visitor, "overview", table="overview-money")}
    (money,) = [each for each in asked(api, "overview")["money"] if each["currency"] == "EUR"]
    for name in ("invoiced", "collected", "outstanding", "overdue", "unbilled_time"):
        shown = rows[name.replace("_", " ").capitalize()]
        assert Decimal(shown["This period (EUR)"]) == Decimal(money[name])
    page = visitor.get(f"/console/reports/overview?{YEAR}&client_id={agency['optik']}")
    lists = [link for link in page.links if link.startswith("/console/records/") and "?" in link]
    assert len(lists) == 11
    assert [visitor.get(link).status for link in lists] == [200] * 11


@pytest.mark.parametrize("report", REPORTS)
def test_an_empty_account_has_reports_that_say_so(visitor, report):
    page = visitor.get(f"/console/reports/{report}")
    assert page.status == 200
    assert page.title == f"{REPORTS[report].title} · Retainer"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("from=2026-02-30", "2026-02-30"),
        ("from=2026-03-02&to=2026-03-01", "Must not be after to, which is 2026-03-01."),
        ("from=2001-01-01&to=2026-03-01", "at most 1096 are possible"),
        ("currency=XXQ", "currency"),
        ("client_id=x", "whole number"),
    ],
)
def test_an_invalid_control_is_refused_in_the_form_and_in_the_file(visitor, query, message):
    page = visitor.get(f"/console/reports/revenue-by-month?{query}")
    assert page.status == 422
    assert message in page.text
    assert 'aria-invalid="true"' in page.html
    assert visitor.get(f"/console/reports/revenue-by-month/revenue-by-month?{query}").status == 422


def test_reports_exist_only_by_their_names(visitor):
    for path in ("nothing", "overview/revenue-by-month", "nothing/nothing"):
        assert visitor.get(f"/console/reports/{path}").status == 404


def test_reports_never_show_another_account(both):
    north, south = both
    client = north.make("/clients", name="Optik Weiß")["id"]
    bill(north, client, f"{TODAY.year - 1}-03-10", "1000")
    visitor = admin_of(south)
    for report in REPORTS:
        page = visitor.get(f"/console/reports/{report}?{YEAR}&client_id={client}")
        assert page.status == 422
        assert "There is no client with this id." in page.text
        assert "Optik" not in page.html
        assert "1,000.00" not in page.html
