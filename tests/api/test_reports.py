import re
from datetime import datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace

import pytest
import time_machine
from testing.agencies import open_agency
from tests.contract.cases import statements_of
from tests.databases import any_database, each_database, only_sqlite
from tests.factories import ApiClient

from retainer.outbound.leases import Places
from retainer.sites.monitor import schedule
from retainer.sites.monitor.schedule import CheckResult

pytestmark = each_database

NOW = "2026-03-17T23:30:00.000000Z"  # in the agency's Berlin it is 18 March
ENDED, BEGUN = "2026-02-28T22:59:59.999999Z", "2026-02-28T23:00:00Z"  # the end of February there, and March
OPTIONS = {
    "overview": "from, to, currency, client_id",
    "revenue-by-client": "from, to, currency, client_id",
    "revenue-by-month": "from, to, currency, client_id",
    "utilisation": "from, to, currency, client_id, project_id, user_id, group_by",
    "project-profitability": "from, to, currency, client_id, project_id",
    "tax": "from, to, currency, client_id, by",
}
SUMS = "currency invoice_count invoiced credited revenue"
OF_CLIENTS = f"client_name {SUMS} share_percent tax collected outstanding overdue refund_due written_off"
OF_MONTHS = f"month {SUMS} tax collected expenses"
MONEY = (
    "currency invoiced credited revenue tax collected outstanding overdue overdue_count refund_due written_off "
    "expenses unbilled_time unbilled_expenses unbilled_milestones unbilled_fees unbilled_fixed_fees to_bill"
)


def at(moment):
    return time_machine.travel(moment, tick=False)


@pytest.fixture(autouse=True)
def clock():
    with at(NOW) as traveller:
        yield traveller


def ask(api, name, first=None, last=None, **query):
    days = {"from": first, "to": last}
    return api.get(f"/reports/{name}", {key: day for key, day in days.items() if day} | query)


def read(api, name, first="2026-01-01", last="2026-03-31", **query):
    return ask(api, name, first, last, **query).data


def format_rows(rows):
    """The names of the rows' members in a line, and each row in one; without ids, and discounts if there are none."""
    named = [{name: value for name, value in row.items() if not name.endswith("_id")} for row in rows]
    if all(Decimal(row.get("discounts", "0")) == 0 for row in named):
        named = [{name: value for name, value in row.items() if name != "discounts"} for row in named]
    return [*dict.fromkeys(" ".join(row) for row in named), *(" ".join(map(str, row.values())) for row in named)]


def new(api, collection, **members):
    return api.post(collection, members).data["id"]


def client_of(api, name="Alder", **members):
    return new(api, "/clients", name=name, **members)


def issue(api, client, net, day=None, tax="0", **members):
    line = {"description": "Design", "unit_price": net, "tax_rate": tax}
    needed = {"client_id": client, "issue_date": day, "status": "sent", "lines": [line]}
    return new(api, "/invoices", **needed | members)


def change(api, invoice, **members):
    return api.patch(f"/invoices/{invoice}", members).data


def pay(api, invoice, amount, day):
    return change(api, invoice, record_payment={"amount": amount, "paid_date": day})["payments"][-1]["id"]


def credit(api, invoice, gross, day):
    return new(api, f"/invoices/{invoice}/credit-notes", amount=gross, issue_date=day)


@pytest.fixture
def books(api):
    """What clients were billed in two currencies in winter, what they paid, and what does not count."""
    names = {"Alder": "EUR", "Birch": "EUR", "Cedar": "USD", "Dogwood": "EUR", "Elm": "EUR"}
    clients = {name: client_of(api, name, currency=currency) for name, currency in names.items()}
    alder, birch, cedar, dogwood, elm = clients.values()
    first = issue(api, alder, "1000", "2026-01-15", "19")  # due on 14 February
    credit(api, first, "119", "2026-02-03")
    pay(api, first, "595", "2026-02-20")
    issue(api, alder, "500", "2026-03-01", "19", due_date="2026-03-31")
    change(api, issue(api, alder, "8000", "2026-02-01"), status="void")
    change(api, issue(api, dogwood, "7000", "2026-02-01", currency="JPY"), status="void")
    change(api, issue(api, birch, "300", "2026-02-10"), status="written_off")
    issue(api, birch, "40", "2026-02-11", currency="USD")
    issue(api, cedar, "60", "2026-01-05")
    pay(api, issue(api, cedar, "60", "2025-12-31", "10"), "66", "2026-01-02")
    issue(api, elm, "20", "2025-11-11")
    for client in (alder, dogwood):
        issue(api, client, "9000", "2026-02-01", status="draft")
    new(api, "/expenses", client_id=alder, date="2026-02-05", amount="119", tax_rate="19")
    return SimpleNamespace(api=api, **clients)


@any_database
@pytest.mark.parametrize(
    ("name", "default_first", "before"),
    [
        ("overview", "2026-03-01", "2024-02-01"),
        ("revenue-by-client", "2026-01-01", "2024-01-01"),
        ("revenue-by-month", "2025-03-01", "2023-02-01"),
        ("utilisation", "2026-03-01", "2024-02-01"),
        ("project-profitability", None, None),
    ],
)
def test_a_report_without_dates_has_its_usual_days(books, name, default_first, before):
    parts = {"money", "time", "clients", "projects", "tasks", "quotes", "tickets", "sites"}
    for sent, first, last in ((None, default_first, "2026-03-18"), ("2024-02-29", before, "2024-02-29")):
        answer = ask(books.api, name, None, sent)
        assert answer.data["period"] == {"from": first, "to": last, "timezone": "Europe/Berlin"}
        assert answer.json == {"data": answer.data, "meta": {"generated_at": NOW}}
        assert set(answer.data) == {"period"} | (parts if name == "overview" else {"rows", "totals"})
        assert ask(books.api, name, first, last).data == answer.data


AFTER = "Must not be after the last day of the period, "


@any_database
@pytest.mark.parametrize(
    ("query", "errors"),
    [
        ({"from": "2023-12-31", "to": "2026-12-31"}, {"from": "The period has 1097 days. At most 1096"}),
        ({"from": "2026-03-19"}, {"from": f"{AFTER}2026-03-18. That is today, unless"}),
        ({"from": "2026-02-02", "to": "2026-02-01"}, {"from": f"{AFTER}2026-02-01."}),
        ({"from": "2026-02-29", "to": "yesterday"}, {"from": "date", "to": "date"}),
        ({"currency": "EURO", "client_id": "-"}, {"currency": "ISO 4217", "client_id": "number"}),
    ],
)
def test_days_that_cannot_be_reported_are_refused_with_a_sentence(api, query, errors):
    for name in OPTIONS:
        answer = api.get(f"/reports/{name}", query)
        assert (answer.code, set(answer.errors)) == ("validation_failed", set(errors)), name
        assert all(message in answer.errors[field][0] for field, message in errors.items()), answer
        assert ask(api, name, "2024-01-01", "2026-12-31").status == 200


@any_database
@pytest.mark.parametrize(("name", "options"), OPTIONS.items())
def test_a_report_takes_its_own_parameters_alone_and_the_scope_of_reports(api, name, options):
    unknown = ask(api, name, page=1)
    message = f"Unknown parameter. Valid are: {options}."
    assert (unknown.code, unknown.errors) == ("unknown_parameter", {"page": [message]})
    read_only, others = (api.new_key([scope]) for scope in ("reports:read", "invoices:read"))
    assert api.get(f"/reports/{name}", key=read_only).status == 200
    refused = api.get(f"/reports/{name}", key=others)
    assert (refused.status, refused.json["required_scope"]) == (403, "reports:read")


def test_what_another_agency_has_is_never_counted_and_its_ids_find_nothing(books, other_tenant):
    project = new(books.api, "/projects", name="Shop", client_id=books.Alder)
    new(books.api, "/time-entries", project_id=project, duration_minutes=60)
    theirs = {"client_id": books.Alder, "project_id": project, "user_id": books.api.admin_id}
    found = {}
    for name, options in OPTIONS.items():
        found[name] = read(other_tenant, name)
        for limit in {"client_id", "project_id"}.intersection(options.split(", ")):
            assert read(other_tenant, name, **{limit: theirs[limit]}) == found[name]
    for name in ("revenue-by-client", "project-profitability", "tax"):
        assert found[name]["rows"] == []
    assert found["tax"]["input_rows"] == []
    assert format_rows(found["overview"]["money"])[1:] == [
        "USD 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00"
    ]
    assert {row["invoice_count"] for row in found["revenue-by-month"]["rows"]} == {0}
    assert {row["tracked_minutes"] for row in found["utilisation"]["rows"]} == {0}
    nobody = read(other_tenant, "utilisation", user_id=theirs["user_id"])
    assert (nobody["rows"], nobody["totals"][0]["available_minutes"]) == ([], 0)


def test_days_begin_in_the_accounts_zone(api, clock):
    clock.move_to("2026-03-31T10:59:59Z")
    agency = open_agency(api.store, "East", "agency", timezone="Pacific/Auckland")
    tenant = ApiClient(api.app, api.contract_checker, agency)
    new(tenant, "/time-entries", client_id=client_of(tenant), duration_minutes=5)
    clock.move_to("2026-03-31T11:00:00Z")  # 1 April in Auckland, and still 31 March in UTC
    client = client_of(tenant)
    new(tenant, "/time-entries", client_id=client, duration_minutes=7)
    issue(tenant, client, "10")
    for query, day, expected in (
        ({}, "2026-04-01", (7, 1, "10.00")),
        ({"first": "2026-03-01", "last": "2026-03-31"}, "2026-03-31", (5, 1, "0.00")),
    ):
        found = ask(tenant, "overview", **query).data
        assert (found["period"]["to"], found["period"]["timezone"]) == (day, "Pacific/Auckland")
        counted = found["time"]["tracked_minutes"], found["clients"]["new"], found["money"][0]["revenue"]
        assert counted == expected
    assert ask(tenant, "revenue-by-month").data["rows"][-1]["month"] == "2026-04"


def test_revenue_by_client_has_a_row_for_each_client_and_currency_the_largest_first(books):
    found = read(books.api, "revenue-by-client", last="2026-03-18")
    assert format_rows(found["rows"]) == [
        OF_CLIENTS,
        "Alder EUR 2 1500.00 100.00 1400.00 82.35 266.00 595.00 1071.00 476.00 0.00 0.00",
        "Birch EUR 1 300.00 0.00 300.00 17.65 0.00 0.00 0.00 0.00 0.00 300.00",
        "Cedar USD 1 60.00 0.00 60.00 60.0 0.00 66.00 60.00 60.00 0.00 0.00",
        "Birch USD 1 40.00 0.00 40.00 40.0 0.00 0.00 40.00 40.00 0.00 0.00",
        "Elm EUR 0 0.00 0.00 0.00 0.0 0.00 0.00 20.00 20.00 0.00 0.00",
    ]
    assert [row["client_id"] for row in found["rows"]] == [getattr(books, row["client_name"]) for row in found["rows"]]
    assert format_rows(found["totals"]) == [
        OF_CLIENTS.removeprefix("client_name "),
        "EUR 3 1800.00 100.00 1700.00 100.0 266.00 595.00 1091.00 496.00 0.00 300.00",
        "USD 2 100.00 0.00 100.00 100.0 0.00 66.00 100.00 100.00 0.00 0.00",
    ]


def test_revenue_by_month_has_every_month_in_each_currency(books):
    found = read(books.api, "revenue-by-month", "2025-12-31", "2026-03-01")
    assert format_rows(found["rows"]) == [
        OF_MONTHS,
        "2025-12 EUR 0 0.00 0.00 0.00 0.00 0.00 0.00",
        "2025-12 USD 1 60.00 0.00 60.00 6.00 0.00 0.00",
        "2026-01 EUR 1 1000.00 0.00 1000.00 190.00 0.00 0.00",
        "2026-01 USD 1 60.00 0.00 60.00 0.00 66.00 0.00",
        "2026-02 EUR 1 300.00 100.00 200.00 -19.00 595.00 100.00",
        "2026-02 USD 1 40.00 0.00 40.00 0.00 0.00 0.00",
        "2026-03 EUR 1 500.00 0.00 500.00 95.00 0.00 0.00",
        "2026-03 USD 0 0.00 0.00 0.00 0.00 0.00 0.00",
    ]
    assert format_rows(found["totals"]) == [
        OF_MONTHS.removeprefix("month "),
        "EUR 3 1800.00 100.00 1700.00 266.00 595.00 100.00",
        "USD 3 160.00 0.00 160.00 6.00 66.00 0.00",
    ]
    days = read(books.api, "revenue-by-month", "2026-02-04", "2026-02-10")
    assert format_rows(days["rows"])[1:] == ["2026-02 EUR 1 300.00 0.00 300.00 0.00 0.00 100.00"]


NONE = "0.00 0.00 0.00"


def test_the_money_of_the_overview_is_that_of_the_other_reports(books):
    assert format_rows(read(books.api, "overview", last="2026-03-18")["money"]) == [
        MONEY,
        f"EUR 1800.00 100.00 1700.00 266.00 595.00 1091.00 496.00 2 0.00 300.00 100.00 0.00 100.00 {NONE} 100.00",
        "USD 100.00 0.00 100.00 0.00 66.00 100.00 100.00 2 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00",
    ]
    for first, last, expected in (
        ("2026-01-01", "2026-03-31", {"EUR": "1700.00", "USD": "100.00"}),
        ("2025-12-31", "2026-02-10", {"EUR": "1200.00", "USD": "120.00"}),
        ("2026-02-01", "2026-02-10", {"EUR": "200.00"}),
    ):
        for name in OPTIONS.keys() - {"utilisation"}:
            found = read(books.api, name, first, last)
            sums = found["money"] if name == "overview" else found["totals"]
            revenue = {row["currency"]: row["net" if name == "tax" else "revenue"] for row in sums}
            assert {code: net for code, net in revenue.items() if net != "0.00"} == expected, name


def test_hours_that_a_fee_covers_are_neither_unbilled_nor_unpriced(api):
    client = client_of(api)
    for billing_type in ("time_and_materials", "fixed_fee", "retainer"):
        project = new(api, "/projects", client_id=client, name=billing_type, billing_type=billing_type)
        work = {"project_id": project, "date": "2026-03-02", "duration_minutes": 60}
        for rate in ("90", None):
            new(api, "/time-entries", **work, hourly_rate=rate)
    found = read(api, "overview")
    assert (found["money"][0]["unbilled_time"], found["time"]["unpriced_minutes"]) == ("90.00", 60)
    assert found["time"]["billable_minutes"] == 360


@pytest.mark.parametrize(
    ("client", "currency", "by_client", "by_month", "money"),
    [
        ("", "USD", ["Cedar 60.0", "Birch 40.0"], ["60.00", "40.00", "0.00"], ["USD 100.00 0.00"]),
        (
            *("Birch", "", ["Birch 100.0", "Birch 100.0"]),
            *(["0.00", "0.00", "300.00", "40.00", "0.00", "0.00"], ["EUR 300.00 0.00", "USD 40.00 0.00"]),
        ),
        ("Alder", "EUR", ["Alder 100.0"], ["1000.00", "-100.00", "500.00"], ["EUR 1400.00 100.00"]),
        ("Dogwood", "", [], ["0.00"] * 3, ["EUR 0.00 0.00"]),
        ("", "JPY", [], ["0"] * 3, ["JPY 0 0"]),
    ],
)
def test_the_money_of_a_client_or_in_a_currency_is_told_alone(books, client, currency, by_client, by_month, money):
    limits = {"client_id": client and getattr(books, client), "currency": currency}
    clients, months, overview = (
        read(books.api, name, **{limit: value for limit, value in limits.items() if value})
        for name in ("revenue-by-client", "revenue-by-month", "overview")
    )
    assert [f"{row['client_name']} {row['share_percent']}" for row in clients["rows"]] == by_client
    assert [row["revenue"] for row in months["rows"]] == by_month
    assert [f"{row['currency']} {row['revenue']} {row['expenses']}" for row in overview["money"]] == money


def test_thirteen_months_are_told_even_when_nothing_happened(api):
    found = ask(api, "revenue-by-month").data
    months = [f"2025-{month:02}" for month in range(3, 13)] + ["2026-01", "2026-02", "2026-03"]
    assert format_rows(found["rows"])[1:] == [f"{month} EUR 0 0.00 0.00 0.00 0.00 0.00 0.00" for month in months]
    assert format_rows(found["totals"])[1:] == ["EUR 0 0.00 0.00 0.00 0.00 0.00 0.00"]


@pytest.mark.parametrize(
    ("net", "paid", "expected"),
    [
        ("1005", "6", "JPY 1005 0 1005 101 6 1100 1100 1 0 0 1005 15 1005 0 0 0 1020"),
        (
            *("1.005", "0.006"),
            "KWD 1.005 0.000 1.005 0.101 0.006 1.100 1.100 1 0.000 0.000 1.005 15.000 1.005 0.000 0.000 0.000 16.005",
        ),
    ],
)
def test_money_has_the_digits_of_its_currency(api, net, paid, expected):
    client = client_of(api, currency=expected[:3], hourly_rate="10")
    pay(api, issue(api, client, net, "2026-01-15", "10"), paid, "2026-01-16")
    new(api, "/expenses", client_id=client, amount=net, date="2026-01-20")
    new(api, "/time-entries", client_id=client, duration_minutes=90, date="2026-01-31")
    (money,) = read(api, "overview")["money"]
    assert format_rows([money])[1] == expected
    for name in ("revenue-by-client", "revenue-by-month"):
        for row in (read(api, name)["rows"][0], *read(api, name)["totals"]):
            assert row == row | {member: value for member, value in money.items() if member in row}


@pytest.mark.parametrize(
    ("other", "shares"),
    [("50", [None, None]), ("100", [None, None]), ("200", [200.0, -100.0]), ("400", [133.33, -33.33])],
)
def test_a_share_is_null_when_all_clients_together_brought_in_nothing_or_less(api, other, shares):
    credit(api, issue(api, client_of(api), "100", "2025-12-01"), "100", "2026-01-01")
    issue(api, client_of(api), other, "2026-01-01")
    found = read(api, "revenue-by-client")
    assert [row["share_percent"] for row in found["rows"]] == shares
    assert [total["share_percent"] for total in found["totals"]] == [shares[0] and 100.0]


def test_clients_that_brought_in_the_same_stand_by_their_names_and_then_by_their_ids(api):
    clients = [client_of(api, name) for name in ("zinc", "amber", "Amber", "Beryl")]
    for client, net in zip(clients, ("5", "5", "5", "7"), strict=True):
        issue(api, client, net, "2026-01-01")
    rows = read(api, "revenue-by-client")["rows"]
    assert [row["client_id"] for row in rows] == [clients[place] for place in (3, 1, 2, 0)]


def test_outstanding_and_overdue_are_those_at_the_end_of_the_last_day(api, clock):
    client = client_of(api)
    due = issue(api, client, "1000", "2026-01-10", "19", due_date="2026-01-31")
    lost = issue(api, client, "100", "2026-02-01", due_date="2026-02-28")
    is_lost = True
    issue(api, client, "700", "2026-01-01", status="draft")
    change(api, issue(api, client, "500", "2026-02-01", due_date="2026-02-01"), status="void")
    pay(api, due, "190", "2026-02-10")
    credit(api, due, "119", "2026-03-05")
    clock.move_to("2026-03-31T10:00:00Z")
    change(api, lost, status="written_off")
    clock.move_to("2026-06-30T10:00:00Z")
    last = pay(api, due, "881", "2026-04-20")

    def at_the_end_of(day):
        (money,) = read(api, "overview", "2025-01-01", day)["money"]
        for row in read(api, "revenue-by-client", "2025-01-01", day)["totals"]:
            assert row == row | {name: money[name] for name in ("collected", "outstanding", "overdue", "written_off")}
        assert money["written_off"] == ("100.00" if is_lost and day >= "2026-03-31" else "0.00")
        return " ".join(str(money[name]) for name in ("collected", "outstanding", "overdue", "overdue_count"))

    for day, expected in (
        ("2026-01-09", "0.00 0.00 0.00 0"),
        ("2026-01-10", "0.00 1190.00 0.00 0"),
        ("2026-01-31", "0.00 1190.00 0.00 0"),
        ("2026-02-01", "0.00 1290.00 1190.00 1"),
        ("2026-02-10", "190.00 1100.00 1000.00 1"),
        ("2026-02-28", "190.00 1100.00 1000.00 1"),
        ("2026-03-01", "190.00 1100.00 1100.00 2"),
        ("2026-03-04", "190.00 1100.00 1100.00 2"),
        ("2026-03-05", "190.00 981.00 981.00 2"),
        ("2026-03-30", "190.00 981.00 981.00 2"),
        ("2026-03-31", "190.00 881.00 881.00 1"),
        ("2026-04-19", "190.00 881.00 881.00 1"),
        ("2026-04-20", "1071.00 0.00 0.00 0"),
        ("2026-12-31", "1071.00 0.00 0.00 0"),
    ):
        assert at_the_end_of(day) == expected, day
    api.remove_payment(last)
    (april,) = read(api, "overview", "2026-04-01", "2026-04-30")["money"]
    assert april["written_off"] == "0.00"
    pay(api, lost, "40", "2026-05-01")
    is_lost = False
    credit(api, due, "881", "2026-07-31")
    for day, expected in (
        ("2026-04-20", "190.00 981.00 981.00 2"),
        ("2026-05-01", "230.00 941.00 941.00 2"),
        ("2026-07-30", "230.00 941.00 941.00 2"),
        ("2026-07-31", "230.00 60.00 60.00 1"),
    ):
        assert at_the_end_of(day) == expected, day


def test_money_is_read_from_its_rows(books):
    """Whatever writes a row, no stored sum of money can differ from it."""
    before = read(books.api, "overview", "2026-01-01")["money"][0]
    for change_of_row in (
        "UPDATE invoices SET subtotal = subtotal + 100 WHERE currency = 'EUR'",
        "UPDATE credit_notes SET subtotal = subtotal + 100",
        "UPDATE payments SET amount = amount + 100 WHERE currency = 'EUR'",
    ):
        books.api.sql(change_of_row)
    after = read(books.api, "overview", "2026-01-01")["money"][0]
    more = {name: int(Decimal(after[name]) - Decimal(before[name])) for name in ("invoiced", "credited", "collected")}
    assert more == {"invoiced": 3, "credited": 1, "collected": 1}, "the void one and the drafts do not count"


@only_sqlite
def test_a_report_finds_money_in_indexes(books):
    with statements_of(books.api) as ran:
        books.api.get("/reports/revenue-by-client", {"from": "2026-01-01", "to": "2026-01-31"})
    plans = []
    for text in (text for text in ran if "FROM invoices" in text or "FROM payments" in text):
        places = [None] * max(map(int, re.findall(r"\?(\d+)", text)))
        plans += [step for *_, step in books.api.sql(f"EXPLAIN QUERY PLAN {text}", *places)]
    read_by = [step.partition(" USING ")[2] for step in plans if step.startswith("SEARCH")]
    assert {step.partition(" (")[0] for step in read_by} == {
        *(
            "COVERING INDEX invoices_by_issue_date",
            "COVERING INDEX payments_by_day",
            "COVERING INDEX invoices_unsettled",
        ),
        *("INDEX credit_notes_by_account_id_issue_date", "INTEGER PRIMARY KEY"),
    }
    (collected,) = (text for text in ran if text.startswith("SELECT payments.client_id"))
    assert "invoices" not in collected, "a payment knows its client"


def test_a_refund_is_due_from_the_credit_on_and_lowers_what_was_collected_on_its_day(api, clock):
    client = client_of(api)
    invoice = issue(api, client, "100", "2026-01-10", "19")
    clock.move_to("2026-06-30T10:00:00Z")
    pay(api, invoice, "119", "2026-01-20")
    credit(api, invoice, "50", "2026-02-05")
    change(api, invoice, record_refund={"amount": "30", "paid_date": "2026-03-02"})
    names = ("collected", "outstanding", "refund_due")

    def figures(first, last):
        (money,) = read(api, "overview", first, last)["money"]
        for name in ("revenue-by-client", "revenue-by-month"):
            for row in read(api, name, first, last)["totals"]:
                assert row == row | {member: money[member] for member in names if member in row}
        return [money[name] for name in names]

    assert figures("2026-01-01", "2026-01-19") == ["0.00", "119.00", "0.00"]
    assert figures("2026-01-01", "2026-02-04") == ["119.00", "0.00", "0.00"]
    assert figures("2026-02-05", "2026-02-28") == ["0.00", "0.00", "50.00"]
    assert figures("2026-03-01", "2026-03-31") == ["-30.00", "0.00", "20.00"]
    assert figures("2026-01-01", "2026-12-31") == ["89.00", "0.00", "20.00"]
    refund = api.get("/payments", {"kind": "refund"}).data[0]["id"]
    api.remove_payment(refund)
    assert figures("2026-01-01", "2026-12-31") == ["119.00", "0.00", "50.00"]


def test_what_is_due_in_a_hundred_years_is_not_overdue_until_it_is_due_earlier(api):
    invoice = issue(api, client_of(api), "100", "2026-01-10", due_date="2125-12-31")

    def receivables():
        (money,) = read(api, "overview")["money"]
        return money["outstanding"], money["overdue"], money["overdue_count"]

    assert receivables() == ("100.00", "0.00", 0)
    change(api, invoice, due_date="2026-03-31")
    assert receivables() == ("100.00", "0.00", 0)
    change(api, invoice, due_date="2026-03-30")
    assert receivables() == ("100.00", "100.00", 1)


@pytest.fixture
def clients(api):
    with at(ENDED):
        return client_of(api), client_of(api)


def counts(api, clients, part, last=None):
    """What the overview counts of each of two clients, where the same has happened, and hence of both and of none."""
    asked = [{"client_id": client} for client in (client_of(api, status="archived"), *clients)]
    none, one, other, both = (ask(api, "overview", None, last, **query).data[part] for query in (*asked, {}))
    ratios = {name for name in one if name.startswith(("win", "median"))}
    assert other == one
    assert both == {name: count if name in ratios else 2 * count for name, count in one.items()}
    assert none == {name: None if name in ratios else 0 for name in one}
    return " ".join(map(str, one.values()))


def test_clients_are_active_now_and_new_in_the_period(api):
    for moment, status in ((ENDED, "active"), (BEGUN, "prospect"), (BEGUN, "archived"), (NOW, "active")):
        with at(moment):
            last = client_of(api, status=status)
    for query, expected in (
        ({}, [2, 3]),
        ({"last": "2026-03-17"}, [2, 2]),
        ({"last": "2026-02-28"}, [2, 1]),
        ({"client_id": last}, [1, 1]),
    ):
        assert list(ask(api, "overview", **query).data["clients"].values()) == expected


def test_completed_projects_are_neither_over_budget_nor_overdue(api, clients):
    for client in clients:
        for status, due, minutes in (
            ("active", "2026-03-17", 61),
            ("active", "2026-03-18", 60),
            ("active", None, 1),
            ("planned", "2026-03-17", 1),
            ("on_hold", "2026-03-17", 61),
            ("on_hold", "2026-03-01", 1),
            ("completed", "2026-03-17", 61),
        ):
            project = new(api, "/projects", client_id=client, name="Shop", budget_minutes=60, due_date=due)
            new(api, "/time-entries", project_id=project, duration_minutes=minutes)
            api.patch(f"/projects/{project}", {"status": status})
        new(api, "/projects", client_id=client, name="Usual", is_template=True, due_date="2026-03-17")
    assert counts(api, clients, "projects") == "3 2 4"


def test_tasks_are_open_and_overdue_now_and_completed_in_the_period(api, clients):
    for client in clients:
        for status, due, moment in (
            ("todo", "2026-03-17", NOW),
            ("in_progress", "2026-03-18", NOW),
            ("in_review", None, NOW),
            ("done", "2026-03-17", ENDED),
            ("done", "2026-03-17", BEGUN),
            ("done", None, NOW),
            ("cancelled", None, NOW),
        ):
            task = new(api, "/tasks", client_id=client, title="Texts", due_date=due)
            with at(moment):
                api.patch(f"/tasks/{task}", {"status": status})
        template = new(api, "/projects", client_id=client, name="Usual", is_template=True)
        for status in ("todo", "done"):
            new(api, "/tasks", project_id=template, title="Texts", due_date="2026-03-17", status=status)
    assert counts(api, clients, "tasks") == "3 1 2"
    assert counts(api, clients, "tasks", "2026-03-17") == "3 1 1"


def test_quotes_are_counted_in_the_period_of_each_step(api, clients):
    for client in clients:
        for steps in (
            [(ENDED, "sent")],
            [(ENDED, "sent"), (BEGUN, "accepted")],
            [(BEGUN, "sent"), (NOW, "accepted")],
            [(BEGUN, "sent"), (BEGUN, "declined")],
            [(BEGUN, "accepted")],
            [(BEGUN, "sent"), (NOW, "declined"), (NOW, "draft")],
        ):
            with at(ENDED):
                line = {"description": "Design", "unit_price": "5"}
                quote = new(api, "/quotes", client_id=client, lines=[line])
            for moment, status in steps:
                with at(moment):
                    assert api.patch(f"/quotes/{quote}", {"status": status}).status == 200
    for last, expected in ((None, "2 3 1 75.0"), ("2026-03-17", "2 2 1 66.67"), ("2026-02-28", "2 0 0 None")):
        assert counts(api, clients, "quotes", last) == expected


@pytest.mark.parametrize(("last", "minutes", "expected"), [
    (None, (10, 3), "4 2 5 3 7"),
    (None, (40, 3, 10), "5 2 6 3 10"),
    ("2026-03-17", (), "1 2 3 3 None"),
])  # fmt: skip
def test_tickets_of_a_period_and_the_median_of_first_answers(api, clock, clients, last, minutes, expected):
    for client in clients:
        for opened, status, answered in (
            (ENDED, "open", None),
            (ENDED, "resolved", 999),
            (ENDED, "pending", None),
            (BEGUN, "closed", None),
            (NOW, "open", None),
            *((BEGUN, "on_hold", duration) for duration in minutes),
        ):
            moment = datetime.fromisoformat(opened)
            with at(moment):
                ticket = f"/tickets/{new(api, '/tickets', subject='Slow', client_id=client)}"
            with at(moment + timedelta(minutes=answered or 1)):
                api.post(f"{ticket}/replies", {"body": "Yes", "is_internal": answered is None})
                api.post(f"{ticket}/replies", {"body": "And now?", "author_type": "contact"})
                api.patch(ticket, {"status": status})
    assert counts(api, clients, "tickets", last) == expected


def test_sites_are_up_down_or_unknown_now_or_in_the_total_alone(api, clock, clients):
    def place(host, **members):
        urls = {client: f"https://{host}{client}.example" for client in clients}
        return [f"/sites/{new(api, '/sites', client_id=client, url=url, **members)}" for client, url in urls.items()]

    updates = {"plugins": [{"slug": "woo", "version": "1", "update_version": "2"}]}
    place("up", **updates)
    place("down", **updates)
    place("up-too", wp_version="6.7", wp_update_version="6.8")
    out = place("down-too"), place("up-again")
    for hour in (1, 2):
        clock.move_to(datetime.fromisoformat(NOW) + timedelta(hours=hour))
        taken = schedule.DUE.claim(api.store, Places(200, ()), timedelta(minutes=1))
        for due in taken:
            schedule.save_result(api.store, due, CheckResult(is_up="up" in due.url))
    place("new")
    for paths, members in zip(
        out, ({"monitoring_enabled": False}, {"maintenance_until": "2027-01-01T00:00:00Z"}), strict=True
    ):
        assert [api.patch(path, members).status for path in paths] == [200, 200]
    assert counts(api, clients, "sites") == "6 2 1 1 3"


def test_equal_rows_are_in_order_of_name_and_id_and_equal_groups_in_that_of_id(api):
    day, names = api.today, ("Birch", "Alder", "Alder")
    clients = [api.make("/clients", name=name, hourly_rate="60")["id"] for name in names]
    projects = [api.make("/projects", name="Shop", client_id=client)["id"] for client in clients]
    tasks = [api.make("/tasks", title="Texts", project_id=project)["id"] for project in projects]
    api.set_user(api.member_id, {"name": "Ana Admin"})
    for client, project, task in reversed([*zip(clients, projects, tasks, strict=True)]):
        api.make(
            "/invoices",
            client_id=client,
            project_id=project,
            status="sent",
            lines=[{"description": "Logo", "unit_price": "100"}],
        )
        work = {"date": day, "duration_minutes": 60, "user_id": api.member_id}
        assert api.post("/time-entries", work | {"task_id": task}).status == 201
    birch, *alders = clients

    def rows_of(report, **query):
        return api.get(f"/reports/{report}", {"from": day, "to": day} | query).data["rows"]

    assert [row["client_id"] for row in rows_of("revenue-by-client")] == [*alders, birch]
    assert [row["project_id"] for row in rows_of("project-profitability")][:3] == projects
    assert [row["user_id"] for row in rows_of("utilisation")] == [api.admin_id, api.member_id]
    for group_by, ids in (("client", clients), ("task", tasks)):
        _, member = rows_of("utilisation", group_by=group_by)
        assert [group["id"] for group in member["groups"]] == ids
