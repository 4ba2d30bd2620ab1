"""The reports of the console: the figures of the API, beside those of a year before, as pages and as CSV files."""

import csv
import io
import re
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine

from retainer.console.reports.building import meaning_of
from retainer.console.reports.controls import a_year_before
from retainer.console.reports.declarations import REPORTS
from retainer.console.reports.figures import CHARTED, FIGURES, fact
from retainer.reports.common import Period
from retainer.reports.revenue import RevenueByClient
from tests.console.visitor import Visitor, admin_of
from tests.databases import any_database, today
from tests.factories import ApiClient

pytestmark = any_database
YEAR = f"from={today().year - 1}-01-01&to={today().year - 1}-12-31"
"""The year in which `agency` has work; the year before has half of it."""


def bill(api: ApiClient, client: int, day: str, price: str, paid: str = "") -> None:
    """Issue an invoice on a day, and record a payment on the next."""
    lines = [{"description": "Design", "unit_price": price}]
    invoice = api.make("/invoices", client_id=client, issue_date=day, due_date=day, status="sent", lines=lines)
    if paid:
        next_day = (date.fromisoformat(day) + timedelta(days=1)).isoformat()
        answer = api.patch(f"/invoices/{invoice['id']}", {"record_payment": {"amount": paid, "paid_date": next_day}})
        assert answer.status == 200, answer


def owe(api: ApiClient, client: int, amount: str) -> None:
    """Credit a part of a paid invoice of last year, within that year."""
    (paid,) = api.get("/invoices", f"client_id={client}&status=paid").data
    body = {"amount": amount, "issue_date": f"{today().year - 1}-06-01"}
    assert api.post(f"/invoices/{paid['id']}/credit-notes", body).status == 201


@pytest.fixture
def agency(api: ApiClient) -> dict[str, Any]:
    """Two clients with invoices in two years, a project with time, and an invoice in another currency."""
    last, before = today().year - 1, today().year - 2
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
    """Return the rows of a report's file, of one of its tables if a title is given; with decimal points."""
    page = visitor.get(f"/console/reports/{report}/csv?{query}")
    assert page.status == 200, page.text
    assert page.headers["content-type"].startswith("text/csv")
    text = page.html.removeprefix("\ufeff")
    is_comma = ";" in text.partition("\n")[0]
    rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=";" if is_comma else ","))
    if is_comma:
        rows = [{name: re.sub(r"^(-?\d+),(\d+)$", r"\1.\2", each) for name, each in row.items()} for row in rows]
    return [row for row in rows if not table or row["Table"] == table]


def entry_of(agency: dict[str, Any], day: str, minutes: int) -> dict[str, Any]:
    return {"project_id": agency["project"], "client_id": agency["optik"], "date": day, "duration_minutes": minutes}


def asked(api: ApiClient, report: str, **query: Any) -> Any:
    days = {"from": f"{today().year - 1}-01-01", "to": f"{today().year - 1}-12-31"}
    return api.get(f"/reports/{report}", days | query).data


def test_revenue_by_month_has_the_figures_of_the_api_beside_the_year_before(api, visitor, agency):
    rows = read_csv(visitor, "revenue-by-month")
    assert len(rows) == 12
    months = [row for row in asked(api, "revenue-by-month")["rows"] if row["currency"] == "EUR"]
    assert [Decimal(row["Invoiced (EUR)"]) for row in rows] == [Decimal(row["invoiced"]) for row in months]
    assert [Decimal(row["Collected (EUR)"]) for row in rows] == [Decimal(row["collected"]) for row in months]
    for number, row in enumerate(rows, 1):
        end = (date(today().year - 1, number, 28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)
        totals = asked(api, "revenue-by-client", to=end.isoformat(), currency="EUR")["totals"]
        assert Decimal(row["Outstanding (EUR)"]) == Decimal(totals[0]["outstanding"] if totals else "0"), row
    march = rows[2]
    assert march["Month"] == f"Mar {today().year - 1}"
    assert march["Invoiced (EUR)"] == "1250.50"
    assert march["Revenue, year before (EUR)"] == "500.00"
    text = visitor.get(f"/console/reports/revenue-by-month?{YEAR}").text
    assert "1,850.50" in text
    assert "Other currencies: USD" in text
    assert "77.00" in visitor.get(f"/console/reports/revenue-by-month?{YEAR}&currency=USD").text


def test_revenue_by_client_has_the_figures_of_the_api_and_runs_no_formula(api, visitor, agency):
    rows = read_csv(visitor, "revenue-by-client")
    assert [row["Client"] for row in rows] == ["Optik Weiß", """'=cmd|"/c calc"!A1"""]
    assert [row["Revenue (EUR)"] for row in rows] == ["1600.00", "250.50"]
    assert [row["Revenue, year before (EUR)"] for row in rows] == ["500.00", "0.00"]
    reported = [row for row in asked(api, "revenue-by-client")["rows"] if row["currency"] == "EUR"]
    assert [Decimal(row["Overdue (EUR)"]) for row in rows] == [Decimal(row["overdue"]) for row in reported]
    page = visitor.get(f"/console/reports/revenue-by-client?{YEAR}&client_id={agency['bakery']}")
    assert "1,600.00" not in page.text
    assert "=cmd|&#34;/c calc&#34;!A1" in page.html
    owe(api, agency["optik"], "60")
    owed = {row["Client"]: row["To refund (EUR)"] for row in read_csv(visitor, "revenue-by-client")}
    assert owed == {"Optik Weiß": "60.00", """'=cmd|"/c calc"!A1""": "0.00"}


def test_a_client_with_revenue_only_a_year_before_is_in_the_table(api, visitor, agency):
    query = f"from={today().year}-01-01&to={today()}"
    rows = {row["Client"]: row for row in read_csv(visitor, "revenue-by-client", query)}
    assert rows["Optik Weiß"]["Revenue (EUR)"] == "0.00"
    assert Decimal(rows["Optik Weiß"]["Outstanding (EUR)"]) == 650


def test_utilisation_has_the_figures_of_the_api_and_the_target(api, visitor, agency):
    rows = {row["Person"]: row for row in read_csv(visitor, "utilisation", table="Utilisation by person")}
    reports = [row for row in asked(api, "utilisation")["rows"] if row["user_id"] == api.member_id]
    assert list(rows) == [row["user_name"] for row in reports]
    for reported in reports:
        row = rows[reported["user_name"]]
        assert int(row["Billable time (minutes)"]) == reported["billable_minutes"]
        assert int(row["Available time (minutes)"]) == reported["available_minutes"]
        assert Decimal(row["Target (%)"]) == Decimal(str(reported["target_percent"]))
        assert Decimal(row["Billable utilisation (%)"]) == Decimal(str(reported["billable_utilisation_percent"]))
    page = visitor.get(f"/console/reports/utilisation?{YEAR}")
    assert page.html.count('class="mark"') == len(rows) + 1
    assert "Billable utilisation by month" in page.text


@pytest.mark.parametrize(("start", "end"), [("02-10", "05-09"), ("01-01", "12-31"), ("03-10", "03-10")])
def test_utilisation_by_month_has_the_figures_of_a_report_about_each_month(api, visitor, agency, start, end):
    year = today().year - 1
    first, last = f"{year}-{start}", f"{year}-{end}"
    retired = api.create("/time-entries", **entry_of(agency, f"{year}-04-01", 60), user_id=api.member_id)
    assert retired.status == 201
    months = [f"{year}-{month:02}" for month in range(int(start[:2]), int(end[:2]) + 1)]
    for client in ("", str(agency["optik"])):
        query = f"from={first}&to={last}&client_id={client}"
        if len(months) == 1:
            assert "by month" not in visitor.get(f"/console/reports/utilisation?{query}").text
            continue
        rows = read_csv(visitor, "utilisation", query, table="Utilisation by month")
        assert len(rows) == len(months)
        for month, row in zip(months, rows, strict=True):
            begins = date.fromisoformat(f"{month}-01")
            ends = (begins + timedelta(days=31)).replace(day=1) - timedelta(days=1)
            days = {"from": max(first, begins.isoformat()), "to": min(last, ends.isoformat())}
            limits = {"client_id": client} if client else {}
            (total,) = asked(api, "utilisation", **days, **limits, user_id=api.member_id)["totals"]
            assert int(row["Available time (minutes)"]) == total["available_minutes"], month
            assert int(row["Tracked time (minutes)"]) == total["tracked_minutes"], month
            assert int(row["Billable time (minutes)"]) == total["billable_minutes"], month
            assert Decimal(row["Time at billing rates (EUR)"]) == Decimal(total["billable_value"]), month
            assert row["Billable utilisation (%)"] == str(total["billable_utilisation_percent"]), month


def test_who_left_counts_as_available_only_in_months_with_their_time(api, visitor, agency):
    year = today().year - 1
    api.sql("UPDATE users SET is_active = $1 WHERE id = $2", False, api.member_id)
    rows = {row["Person"]: row for row in read_csv(visitor, "utilisation", table="Utilisation by month")}
    march, april = (int(rows[f"{name} {year}"]["Available time (minutes)"]) for name in ("Mar", "Apr"))
    for month, shown in (("03", march), ("04", april)):
        days = {"from": f"{year}-{month}-01", "to": f"{year}-{month}-30"}
        days["to"] = days["to"].replace("03-30", "03-31")
        assert asked(api, "utilisation", **days, user_id=api.member_id)["totals"][0]["available_minutes"] == shown
    assert march > april


def test_a_person_without_time_a_year_before_has_no_figure_for_it(api, visitor, agency):
    year = today().year
    query = f"from={year - 2}-01-01&to={year - 2}-12-31"
    rows = read_csv(visitor, "utilisation", query)
    assert {row["Billable utilisation, year before (%)"] for row in rows} == {""}
    page = visitor.get(f"/console/reports/utilisation?{query}")
    assert "No data a year ago" in page.text
    assert "A year before" not in page.html.partition("<figcaption>")[2].partition("</figcaption>")[0]


def test_a_figure_of_a_year_ago_is_the_same_above_a_table_and_in_it(api, visitor, agency):
    """A sum of nothing is 0 in both places."""
    year = today().year - 1
    page = visitor.get(f"/console/reports/revenue-by-client?from={year}-05-01&to={year}-05-31")
    (table,) = page.all("table")
    (column,) = [place for place, each in enumerate(table.all("th", scope="col")) if "year before" in each.text]
    before = table.all("tfoot")[0].all("td")[column - 1].text
    assert before == "0.00"
    revenue = next(each for each in page.all("div") if [term.text for term in each.all("dt")] == ["Revenue"])
    assert f"{before} a year ago" in revenue.text


def test_profitability_has_value_cost_margin_and_budget(api, visitor, agency):
    rows = {row["Project"]: row for row in read_csv(visitor, "profitability")}
    (reported,) = [row for row in asked(api, "project-profitability")["rows"] if row["project_name"] == "Website"]
    website = rows["Website"]
    assert website["Time at billing rates (EUR)"] == "450.00"
    assert website["Budget used (%)"] == "70.0"
    assert Decimal(website["Cost (EUR)"]) == Decimal(reported["labour_cost"]) + Decimal(reported["expense_cost"])
    assert Decimal(website["Profit (EUR)"]) == Decimal(reported["profit"])
    assert Decimal(rows["Without a project"]["Revenue (EUR)"]) == Decimal("1850.50")


def test_what_is_written_off_stands_beside_what_is_outstanding(api, visitor, agency):
    (invoice,) = api.get("/invoices", f"client_id={agency['bakery']}").data
    assert api.patch(f"/invoices/{invoice['id']}", {"status": "written_off"}).status == 200
    query = f"from={today().year - 1}-01-01&to={api.today}"
    by_client = {row["Client"]: row["Written off (EUR)"] for row in read_csv(visitor, "revenue-by-client", query)}
    assert by_client == {"Optik Weiß": "0.00", """'=cmd|"/c calc"!A1""": invoice["total"]}
    overview = {row["Figure"]: row["This period"] for row in read_csv(visitor, "overview", query)}
    assert overview["Written off (EUR)"] == invoice["total"]
    page = visitor.get(f"/console/reports/overview?{query}").text
    assert "Written off Unpaid amount of the invoices written off in the period" in page


def test_tax_has_the_figures_of_the_api_by_issue_by_payment_and_of_expenses(api, visitor, agency):
    api.set_account({"country": "DE", "vat_number": "DE136695976"})
    last = today().year - 1
    swiss = api.make("/clients", name="Zoll", country="CH", tax_rate="0")["id"]
    bill(api, swiss, f"{last}-05-03", "70")
    german = api.make("/clients", name="Bäcker", country="DE", tax_rate="19")["id"]
    bill(api, german, f"{last}-05-04", "100", paid="59.50")
    (paid,) = api.get("/invoices", f"client_id={german}").data
    credit = {"amount": "71.40", "issue_date": f"{last}-05-06"}
    assert api.post(f"/invoices/{paid['id']}/credit-notes", credit).status == 201
    refund = {"record_refund": {"amount": "11.90", "paid_date": f"{last}-05-07"}}
    assert api.patch(f"/invoices/{paid['id']}", refund).status == 200
    expense = {"description": "Fonts", "date": f"{last}-07-01", "amount": "119", "tax_rate": "19"}
    assert api.create("/expenses", **expense).status == 201
    issued, by_payment = (asked(api, "tax", by=by, currency="EUR") for by in ("issue", "payment"))
    tables = {
        ("Invoices and credit notes by rate", "Net (EUR)", "Tax (EUR)"): issued["rows"],
        ("Payments and refunds by rate", "Paid, net (EUR)", "Tax paid by clients (EUR)"): by_payment["rows"],
        ("Input tax by rate", "Expenses (EUR)", "Input tax (EUR)"): issued["input_rows"],
    }
    for (title, net, tax), reported in tables.items():
        rows = read_csv(visitor, "tax", table=title)
        assert [(row[net], row[tax]) for row in rows] == [(row["net"], row["tax"]) for row in reported], title
        others = {name for _, *names in tables for name in names} - {net, tax}
        assert {row[name] for row in rows for name in others} == {""}
    rates = [row["Rate"] for row in read_csv(visitor, "tax", table="Invoices and credit notes by rate")]
    assert rates == ["19%", "Not subject to tax"]
    refunded = read_csv(visitor, "tax", table="Payments and refunds by rate")[0]
    assert (refunded["Refunded, net (EUR)"], refunded["Tax refunded (EUR)"], refunded["Refunds"]) == (
        "10.00",
        "1.90",
        "1",
    )
    page = visitor.get(f"/console/reports/tax?{YEAR}")
    foot = page.html.partition("<tfoot>")[2].partition("</tfoot>")[0]
    (total,) = issued["totals"]
    assert f"{Decimal(total['tax']):,}" in foot
    assert "\u2013" in foot, "documents with several rates cannot be added up"


def test_tax_is_about_the_last_full_month_unless_days_are_chosen(visitor):
    first = (today().replace(day=1) - timedelta(days=1)).replace(day=1)
    page = visitor.get("/console/reports/tax")
    (chosen,) = [link.text for link in page.all("a") if "aria-current" in link and "from=" in link["href"]]
    assert chosen == "Last month"
    assert f'value="{first}"' in page.html


@pytest.mark.parametrize(
    ("day", "first", "last"), [("2027-01-04", "2026-10-01", "2026-12-31"), ("2027-05-31", "2027-01-01", "2027-03-31")]
)
def test_the_last_quarter_can_be_chosen_as_tax_returns_need_it(api, day, first, last):
    with time_machine.travel(f"{day}T12:00:00Z", tick=False):
        page = admin_of(api).get("/console/reports/tax")
        (link,) = [each["href"] for each in page.all("a") if each.text == "Last quarter"]
    assert f"from={first}&to={last}" in link


def test_the_heading_of_a_figure_sorts_a_report_and_its_file(api, visitor, agency):
    small = api.make("/projects", client_id=agency["optik"], name="Small")["id"]
    expense = {"description": "Fonts", "date": f"{today().year - 1}-07-01", "amount": "5000", "project_id": small}
    assert api.create("/expenses", **expense, client_id=agency["optik"]).status == 201
    page = visitor.get(f"/console/reports/profitability?{YEAR}")
    (heading,) = [head for head in page.all("th") if head.text == "Profit"]
    falling = visitor.get(f"/console/reports/profitability{heading.all('a')[0]['href']}")
    (again,) = [head for head in falling.all("th") if head.text.startswith("Profit ") and "aria-sort" in head]
    assert again["aria-sort"] == "descending"
    rising = f"/console/reports/profitability{again.all('a')[0]['href']}"
    profits = [Decimal(row["Profit (EUR)"]) for row in read_csv(visitor, "profitability", rising.partition("?")[2])]
    assert profits == sorted(profits)
    assert len(set(profits)) > 1
    (body,) = visitor.get(rising).all("tbody")
    assert body.all("tr")[0].all("span", "bad")[0].text.startswith("\u22125,000")


def test_the_overview_has_the_figures_of_the_api_and_links_to_lists(api, visitor, agency):
    owe(api, agency["optik"], "60")
    rows = {row["Figure"]: row for row in read_csv(visitor, "overview")}
    (money,) = [each for each in asked(api, "overview")["money"] if each["currency"] == "EUR"]
    for name in ("invoiced", "collected", "outstanding", "overdue"):
        assert Decimal(rows[f"{name.capitalize()} (EUR)"]["This period"]) == Decimal(money[name])
    assert Decimal(rows["To refund (EUR)"]["This period"]) == Decimal(money["refund_due"]) == 60
    unbilled = rows["Unbilled time (EUR)"]
    assert Decimal(unbilled["This period"]) == Decimal(money["unbilled_time"]) == 630
    assert unbilled["A year before"] == ""
    page = visitor.get(f"/console/reports/overview?{YEAR}&client_id={agency['optik']}")
    lists = [link for link in page.links if link.startswith("/console/records/") and "?" in link]
    assert [visitor.get(link).status for link in lists] == [200] * 20


@pytest.mark.parametrize("report", REPORTS)
def test_a_csv_file_has_the_rows_and_columns_of_its_table(visitor, agency, report):
    page = visitor.get(f"/console/reports/{report}?{YEAR}")
    tables = page.all("table")
    (link,) = [link for link in page.links if link.startswith(f"/console/reports/{report}/")]
    bodies = [body for table in tables for body in table.all("tbody")]
    shown = [row.all("th td") for body in bodies for row in body.all("tr")]
    header, *rows = csv.reader(io.StringIO(visitor.get(link).html.removeprefix("\ufeff"), newline=""))
    if report in {"overview", "tax"}:  # its page leaves out tables without any figure
        rows = [row for row in rows if f"<h2>{row[0]}</h2>\n<div" in page.html]
    assert len(rows) == len(shown) > 0
    for row, cells in zip(rows, shown, strict=True):
        label, *values = row[1:] if len(tables) > 1 else row
        assert label.removeprefix("'").partition(" (")[0] in cells[0].texts
        assert len(row) == len(header)
        assert len(values) >= len(cells) - 1


@pytest.mark.parametrize(
    ("first", "last", "first_before", "last_before"),
    [
        ("2026-03-01", "2026-03-15", "2025-03-01", "2025-03-15"),
        ("2025-02-01", "2025-02-28", "2024-02-01", "2024-02-29"),
        ("2025-02-01", "2025-02-27", "2024-02-01", "2024-02-27"),
        ("2024-02-01", "2024-02-29", "2023-02-01", "2023-02-28"),
        ("2024-02-29", "2024-02-29", "2023-02-28", "2023-02-28"),
        ("2024-01-01", "2024-12-31", "2023-01-01", "2023-12-31"),
        ("9999-12-01", "9999-12-31", "9998-12-01", "9998-12-31"),
    ],
)
def test_the_year_before_has_the_same_days_and_whole_months_stay_whole(first, last, first_before, last_before):
    before = a_year_before(Period(first, last, "Europe/Berlin"))
    assert (before.from_, before.to) == (first_before, last_before)


@pytest.mark.parametrize(
    ("now", "before", "kind", "expected"),
    [
        (Decimal("150.00"), Decimal("100.00"), "money", ("150.00", "100.00 a year ago", "+50%")),
        (Decimal("50.00"), Decimal("100.00"), "money", ("50.00", "100.00 a year ago", "\u221250%")),
        (Decimal("1000.00"), Decimal("100.00"), "money", ("1,000.00", "100.00 a year ago", "+900%")),
        (Decimal("1000.01"), Decimal("100.00"), "money", ("1,000.01", "100.00 a year ago", "")),
        (Decimal("100.00"), Decimal("0.00"), "money", ("100.00", "0.00 a year ago", "")),
        (Decimal("100.00"), Decimal("-10.00"), "money", ("100.00", "\u221210.00 a year ago", "")),
        (Decimal("-5.00"), Decimal("10.00"), "money", ("\u22125.00", "10.00 a year ago", "\u2212150%")),
        (Decimal("-100.01"), Decimal("10.00"), "money", ("\u2212100.01", "10.00 a year ago", "")),
        (None, Decimal("10.00"), "money", ("\u2013", "10.00 a year ago", "")),
        (Decimal("10.00"), None, "money", ("10.00", "No data a year ago", "")),
        (Decimal(80), Decimal("72.5"), "percent", ("80.0%", "72.5% a year ago", "+7.5 points")),
        (Decimal(80), Decimal(0), "percent", ("80.0%", "0.0% a year ago", "+80.0 points")),
        (Decimal(80), None, "percent", ("80.0%", "No data a year ago", "")),
        (0, 0, "count", ("0", "0 a year ago", "")),
    ],
)
def test_a_change_is_given_only_where_it_says_something(now, before, kind, expected):
    shown = fact("Revenue", now, before, kind)
    assert (shown.value.text, shown.note) == (expected[0], " · ".join(filter(None, expected[1:])))


def test_revenue_by_month_is_invoiced_less_credited_and_its_share_is_whole(api, visitor, agency):
    owe(api, agency["optik"], "60")
    june = read_csv(visitor, "revenue-by-month")[5]
    assert (june["Credited (EUR)"], june["Revenue (EUR)"]) == ("60.00", "-60.00")
    page = visitor.get(f"/console/reports/revenue-by-month?{YEAR}")
    assert "Revenue “Invoiced” less “Credited”." in page.text
    time = visitor.get(f"/console/reports/utilisation?{YEAR}").text
    assert "“Tracked time” in percent of “Available time”; none if that is 0." in time
    total = visitor.get(f"/console/reports/revenue-by-client?{YEAR}").html.partition("<tfoot>")[2]
    assert "100.0%" in total


def test_capacity_begins_on_the_day_a_person_was_added_or_first_tracked_time(api, visitor):
    monday = today() - timedelta(days=today().weekday() + 7)
    query = f"from={monday}&to={monday + timedelta(days=6)}"
    (available,) = [row for row in read_csv(visitor, "overview", query) if row["Figure"].startswith("Available")]
    assert available["This period"] == "0"
    entry = {"date": f"{monday + timedelta(days=3)}", "duration_minutes": 60, "user_id": api.member_id}
    assert api.create("/time-entries", project_id=api.make("/projects", name="Website")["id"], **entry).status == 201
    (available,) = [row for row in read_csv(visitor, "overview", query) if row["Figure"].startswith("Available")]
    assert available["This period"] == "960"
    assert "No data a year ago" in visitor.get(f"/console/reports/overview?{query}").text
    (person,) = read_csv(visitor, "utilisation", query)
    assert person["Available time (minutes)"] == "960"


def test_net_and_gross_amounts_never_share_an_axis():
    gross = {"overdue", "refund_due"}
    gross |= {name for name in FIGURES if "including tax" in meaning_of(name, (RevenueByClient,))}
    for declared in REPORTS.values():
        for chart in declared.charts:
            drawn = set(CHARTED.get(chart.subjects, chart.series))
            assert drawn <= gross or not drawn & gross, chart.title
    assert len(gross) == 5


def test_a_margin_below_a_whole_loss_and_an_unbilled_year_before_are_no_figures(api, visitor, agency):
    small = api.make("/projects", client_id=agency["optik"], name="Small")["id"]
    day = f"{today().year - 1}-07-01"
    line = {"description": "Design", "unit_price": "10", "project_id": small}
    api.make("/invoices", client_id=agency["optik"], issue_date=day, due_date=day, status="sent", lines=[line])
    expense = {"description": "Fonts", "date": day, "amount": "50", "project_id": small, "client_id": agency["optik"]}
    assert api.create("/expenses", **expense).status == 201
    rows = {row["Project"]: row for row in read_csv(visitor, "profitability")}
    assert (rows["Small"]["Profit (EUR)"], rows["Small"]["Margin (%)"]) == ("-40.00", "")
    fact = visitor.get(f"/console/reports/profitability?{YEAR}").text.partition("To bill")[2]
    assert not fact.lstrip().partition(" ")[2].startswith("180.00 a year ago")


@pytest.mark.parametrize("report", REPORTS)
def test_an_empty_account_has_reports_that_say_so(visitor, report):
    page = visitor.get(f"/console/reports/{report}")
    assert page.status == 200
    assert page.title == f"{REPORTS[report].title} · Retainer"
    assert page.text.count("Nothing in this period. Reports add up") == 1
    assert (page.all("table"), page.all("figure"), "0.00" in page.text) == ([], [], False)


def test_a_table_without_any_figure_says_so(api, visitor):
    api.make("/clients")
    page = visitor.get("/console/reports/overview")
    assert [table["aria-label"] for table in page.all("div", "table")] == ["Work and sales", "Right now"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("from=2026-02-30", "2026-02-30"),
        ("from=2026-03-02&to=2026-03-01", "Must not be after the last day of the period, 1 Mar 2026."),
        ("from=2001-01-01&to=2026-03-01", "The period has 9191 days. At most 1096 are possible: choose a later day."),
        ("from=0001-03-01&to=0002-02-01", "Must be from 1 Jan 1970"),
        ("currency=XXQ", "currency"),
        ("client_id=x", "whole number"),
    ],
)
def test_an_invalid_control_is_refused_in_the_form_and_in_the_file(visitor, query, message):
    page = visitor.get(f"/console/reports/revenue-by-month?{query}")
    assert page.status == 422
    assert message in page.text
    assert 'aria-invalid="true"' in page.html
    assert visitor.get(f"/console/reports/revenue-by-month/csv?{query}").status == 422


def test_the_longest_period_is_compared_with_as_many_days_in_spite_of_a_leap_day(visitor):
    page = visitor.get("/console/reports/revenue-by-month?from=2024-12-31&to=2027-12-31")
    assert page.status == 200
    assert "31 Dec 2024 to 31 Dec 2027, compared with 1 Jan 2024 to 31 Dec 2026" in page.text


def test_reports_exist_only_by_their_names(visitor):
    for path in ("nothing", "overview/revenue-by-month", "nothing/csv"):
        assert visitor.get(f"/console/reports/{path}").status == 404


def test_reports_never_show_another_account(both):
    north, south = both
    client = north.make("/clients", name="Optik Weiß")["id"]
    bill(north, client, f"{today().year - 1}-03-10", "1000")
    visitor = admin_of(south)
    for report in REPORTS:
        page = visitor.get(f"/console/reports/{report}?{YEAR}&client_id={client}")
        assert page.status == 422
        assert "This client does not exist. Choose another." in page.text
        assert "Optik" not in page.html
        assert "1,000.00" not in page.html


def test_hours_in_another_currency_are_told_beside_the_totals(api, visitor):
    home = api.make("/projects", hourly_rate="100")
    abroad_client = api.make("/clients", currency="USD")["id"]
    abroad = api.make("/projects", client_id=abroad_client, hourly_rate="60")["id"]
    api.make("/time-entries", client_id=home["client_id"], project_id=home["id"], duration_minutes=60)
    api.make("/time-entries", client_id=abroad_client, project_id=abroad, duration_minutes=90)
    people = visitor.get("/console/reports/utilisation").text
    assert "1:30 of the billable hours are in USD, and in no amount of this report." in people
    projects = visitor.get("/console/reports/profitability").text
    assert "1:30 hours are on projects in USD, and are not in this report." in projects
