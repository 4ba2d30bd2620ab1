from decimal import Decimal

import pytest
import time_machine

OF_PROJECTS = (
    "project_id project_name client_id client_name status billing_type budget_used_percent currency "
    "tracked_minutes billable_minutes billable_value revenue unbilled_amount to_bill_amount labour_cost expense_cost "
    "profit margin_percent missing_cost_rate_minutes unpriced_minutes"
)
WINTER = "2026-01-01", "2026-03-31"


@pytest.fixture(autouse=True)
def clock():
    with time_machine.travel("2026-03-18T10:00:00Z", tick=False) as traveller:
        yield traveller


def read(api, first=None, last=None, name="project-profitability", **query):
    days = {"from": first, "to": last}
    return api.get(f"/reports/{name}", {key: day for key, day in days.items() if day} | query).data


def format_rows(rows, *names):
    """What each row says of these members, or of all but ids, in one line."""
    chosen = [{name: value for name, value in row.items() if not name.endswith("_id")} for row in rows]
    return [" ".join(str(row[name]) for name in names or row) for row in chosen]


def new(api, collection, **members):
    return api.post(collection, members).data["id"]


def work(api, minutes, day="2026-03-02", **members):
    return new(api, "/time-entries", duration_minutes=minutes, date=day, **members)


def spend(api, amount, day="2026-03-02", **members):
    return new(api, "/expenses", amount=amount, date=day, **members)


def issue(api, client, *lines, day="2026-03-03", **members):
    """An invoice of lines, each with its net, its project, and 19 % tax."""
    items = [{"description": "A", "unit_price": net, "project_id": on, "tax_rate": "19"} for net, on in lines]
    needed = {"client_id": client, "status": "sent", "issue_date": day, "lines": items}
    return api.post("/invoices", needed | members).data


def set_cost(api, rate, since="0001-01-01", user=None):
    api.set_user(user or api.admin_id, {"cost_rate": Decimal(rate), "cost_rate_from": since})


@pytest.fixture
def client(api):
    return new(api, "/clients", name="Alder", hourly_rate="100")


@pytest.fixture
def agency(api, client):
    """Projects of two clients and an internal one, with time at a cost of 50.00 an hour, invoices and expenses."""
    ids = {"alder": client, "cedar": new(api, "/clients", name="Cedar", currency="USD", hourly_rate="80")}
    ids["blog"] = new(api, "/projects", name="Blog", client_id=client, billing_type="fixed_fee", status="planned")
    ids["shop"] = new(api, "/projects", name="Shop", client_id=client, budget_minutes=600)
    ids["app"] = new(api, "/projects", name="App", client_id=ids["cedar"], budget_amount="400")
    ids["wiki"] = new(api, "/projects", name="Wiki")
    new(api, "/projects", name="Idle", client_id=client)
    set_cost(api, "50")
    work(api, 120, project_id=ids["shop"])
    work(api, 60, project_id=ids["shop"], billable=False)
    work(api, 90, project_id=ids["shop"], user_id=api.member_id)
    work(api, 300, "2025-12-31", project_id=ids["shop"], billable=False)
    work(api, 30, client_id=client)
    work(api, 60, project_id=ids["app"])
    work(api, 60, project_id=ids["wiki"])
    spend(api, "119", project_id=ids["shop"], tax_rate="19")
    spend(api, "7", project_id=ids["shop"], currency="USD")
    spend(api, "15", client_id=ids["cedar"])
    sold = issue(api, client, ("500", ids["shop"]), ("250", None), project_id=ids["blog"])
    part = {"lines": [{"invoice_line_id": sold["lines"][0]["id"], "quantity": "0.2"}], "issue_date": "2026-03-31"}
    new(api, f"/invoices/{sold['id']}/credit-notes", **part)
    issue(api, client, ("50", None), day="2026-01-01")
    issue(api, client, ("9000", ids["shop"]), status="draft")
    void = issue(api, client, ("8000", ids["shop"]))
    assert api.patch(f"/invoices/{void['id']}", {"status": "void"}).status == 200
    issue(api, ids["cedar"], ("90", ids["app"]))
    return ids


def test_a_project_has_a_row_for_each_currency_and_what_belongs_to_none_has_its_own(api, agency):
    found = read(api, *WINTER)
    assert list(found["rows"][0]) == OF_PROJECTS.split()
    members = [name for name in OF_PROJECTS.split() if name != "to_bill_amount" and not name.endswith("_id")]
    assert format_rows(found["rows"], *members) == [
        "Shop Alder active time_and_materials 95.0 EUR 270 210 350.00 400.00 350.00 150.00 100.00 150.00 37.5 90 0",
        "Blog Alder planned fixed_fee None EUR 0 0 0.00 250.00 0.00 0.00 0.00 250.00 100.0 0 0",
        "App Cedar active time_and_materials 20.0 USD 60 60 80.00 90.00 80.00 None 0.00 None None 0 0",
        "None None None None None EUR 30 30 50.00 50.00 50.00 25.00 0.00 25.00 50.0 0 0",
        "None None None None None USD 0 0 0.00 0.00 0.00 None 15.00 None None 0 0",
        "Shop Alder active time_and_materials 95.0 USD 0 0 0.00 0.00 0.00 None 7.00 None None 0 0",
        "Wiki None active non_billable None EUR 60 0 0.00 0.00 0.00 50.00 0.00 -50.00 None 0 0",
    ]
    expected = [agency.get(name) for name in ("shop", "blog", "app", None, None, "shop", "wiki")]
    assert [row["project_id"] for row in found["rows"]] == expected
    alder, cedar = agency["alder"], agency["cedar"]
    assert [row["client_id"] for row in found["rows"]] == [alder, alder, cedar, None, None, alder, None]
    assert list(found["totals"][0]) == OF_PROJECTS.split()[7:]
    assert format_rows(found["totals"], *members[5:]) == [
        "EUR 360 240 400.00 700.00 400.00 225.00 100.00 375.00 53.57 90 0",
        "USD 60 60 80.00 90.00 80.00 None 22.00 None None 0 0",
    ]
    assert [row["to_bill_amount"] for row in found["rows"][:2]] == ["450.00", "0.00"]
    clients = read(api, *WINTER, "revenue-by-client")["totals"]
    assert format_rows(clients, "currency", "revenue") == format_rows(found["totals"], "currency", "revenue")


@pytest.mark.parametrize(
    ("first", "last", "rows"),
    [
        (None, "2025-12-30", []),
        ("2025-12-31", "2025-12-31", ["Shop EUR 300 0.00 250.00 0.00 -250.00 None"]),
        ("2026-01-01", "2026-03-01", ["None EUR 0 50.00 0.00 0.00 50.00 100.0"]),
        ("2026-03-19", "2026-03-31", ["Shop EUR 0 -100.00 0.00 0.00 -100.00 None"]),
        (
            *("2026-03-02", "2026-03-02"),
            [
                "None EUR 30 0.00 25.00 0.00 -25.00 None",
                "None USD 0 0.00 None 15.00 None None",
                "App USD 60 0.00 None 0.00 None None",
                "Shop EUR 270 0.00 150.00 100.00 -250.00 None",
                "Shop USD 0 0.00 None 7.00 None None",
                "Wiki EUR 60 0.00 50.00 0.00 -50.00 None",
            ],
        ),
        (
            *(None, None),
            [
                "Shop EUR 570 500.00 400.00 100.00 0.00 0.0",
                "Blog EUR 0 250.00 0.00 0.00 250.00 100.0",
                "App USD 60 90.00 None 0.00 None None",
                "None EUR 30 50.00 25.00 0.00 25.00 50.0",
                "None USD 0 0.00 None 15.00 None None",
                "Shop USD 0 0.00 None 7.00 None None",
                "Wiki EUR 60 0.00 50.00 0.00 -50.00 None",
            ],
        ),
    ],
)
def test_time_invoices_credits_and_expenses_count_on_their_own_days(api, agency, first, last, rows):
    members = ("tracked_minutes", "revenue", "labour_cost", "expense_cost", "profit", "margin_percent")
    found = [row for row in read(api, first, last)["rows"] if any(has_figure(row[member]) for member in members[:4])]
    assert format_rows(found, "project_name", "currency", *members) == rows


def has_figure(value):
    """Whether a row has it in the period; others are there for what is to bill."""
    return bool(value) and Decimal(value) != 0


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ({"client_id": "alder"}, ["Shop EUR 400.00", "Blog EUR 250.00", "None EUR 50.00", "Shop USD 0.00"]),
        ({"client_id": "cedar"}, ["App USD 90.00", "None USD 0.00"]),
        ({"project_id": "shop"}, ["Shop EUR 400.00", "Shop USD 0.00"]),
        ({"project_id": "wiki"}, ["Wiki EUR 0.00"]),
        ({"currency": "USD"}, ["App USD 90.00", "None USD 0.00", "Shop USD 0.00"]),
        ({"currency": "USD", "project_id": "shop"}, ["Shop USD 0.00"]),
        ({"client_id": "cedar", "project_id": "shop"}, []),
        ({"currency": "KWD"}, []),
    ],
)
def test_profit_is_that_of_a_client_a_project_or_a_currency(api, agency, query, rows):
    found = read(api, *WINTER, **{name: agency.get(value, value) for name, value in query.items()})
    assert format_rows(found["rows"], "project_name", "currency", "revenue") == rows
    assert {total["currency"] for total in found["totals"]} == {row["currency"] for row in found["rows"]}


def test_a_credited_amount_is_shared_by_the_projects_of_the_invoice(api, agency):
    sold = issue(
        api, agency["alder"], ("300", agency["shop"]), ("100", None), day="2026-02-01", project_id=agency["blog"]
    )
    unknown = issue(api, agency["alder"], ("200", agency["shop"]), ("200", None), day="2026-02-01")
    for invoice, credit, shares in (
        (sold, {"amount": "119"}, ["Shop 425.00", "None 200.00", "Blog 75.00"]),
        (unknown, {"amount": "59.50"}, ["Shop 400.00", "None 175.00", "Blog 75.00"]),
        (sold, {}, ["None 175.00", "Shop 175.00", "Blog 0.00"]),
    ):
        new(api, f"/invoices/{invoice['id']}/credit-notes", **credit, issue_date="2026-02-28")
        assert format_rows(read(api, "2026-02-01", "2026-02-28")["rows"], "project_name", "revenue") == shares


def test_labour_costs_the_rate_of_its_day_also_when_set_afterwards(api, client):
    work(api, 60, "2026-02-28", client_id=client)
    work(api, 60, "2026-03-01", client_id=client)
    entry = f"/time-entries/{work(api, 60, '2026-03-02', client_id=client)}"

    def cost(*days):
        (row,) = format_rows(read(api, *days)["rows"], "labour_cost", "profit", "missing_cost_rate_minutes")
        assert format_rows(read(api, *days)["totals"], "labour_cost", "profit", "missing_cost_rate_minutes") == [row]
        return row

    assert cost() == "0.00 0.00 180"
    for rate, since, user, expected in (
        ("30", "2026-03-01", api.admin_id, "60.00 -60.00 60"),
        ("50", "2026-03-02", api.admin_id, "80.00 -80.00 60"),
        ("20", "0001-01-01", api.admin_id, "100.00 -100.00 0"),
        ("40", "2026-03-01", api.admin_id, "110.00 -110.00 0"),
        ("99", "2026-03-03", api.admin_id, "110.00 -110.00 0"),
        ("70", "0001-01-01", api.member_id, "110.00 -110.00 0"),
        ("0", "2026-03-01", api.admin_id, "70.00 -70.00 0"),
    ):
        set_cost(api, rate, since, user)
        assert cost() == expected
    assert cost("2026-02-01", "2026-02-28") == "20.00 -20.00 0"
    assert cost("2026-03-02", "2026-03-02") == "50.00 -50.00 0"
    for members, expected in (
        ({"duration_minutes": 30}, "45.00 -45.00 0"),
        ({"user_id": api.member_id}, "55.00 -55.00 0"),
        ({"date": "2026-02-01"}, "55.00 -55.00 0"),
        ({"user_id": api.admin_id}, "30.00 -30.00 0"),
    ):
        assert api.patch(entry, members).status == 200
        assert cost() == expected
    api.delete(entry)
    assert cost() == "20.00 -20.00 0"


@pytest.mark.parametrize(
    ("currency", "rate", "minutes", "cost"),
    [
        ("EUR", "1.50", [1], "0.03"),
        ("EUR", "1.50", [1, 1], "0.05"),
        ("EUR", "0.29", [1], "0.00"),
        ("JPY", "50", [90], "75"),
        ("JPY", "30", [1], "1"),
        ("KWD", "1", [20], "0.333"),
    ],
)
def test_labour_cost_is_rounded_once_for_each_row_to_the_digits_of_the_account(api, currency, rate, minutes, cost):
    api.set_account({"currency": currency})
    project = new(api, "/projects", name="Wiki")
    set_cost(api, rate)
    for duration in minutes:
        work(api, duration, project_id=project)
    (row,) = read(api)["rows"]
    assert (row["labour_cost"], row["profit"].lstrip("-")) == (cost, cost)


def test_work_is_unbilled_until_a_line_takes_it_and_again_when_the_line_is_gone(api, client):
    for day, billable in (("2026-03-01", True), ("2026-03-01", False), ("2026-02-28", True)):
        common = {"client_id": client, "billable": billable}
        entry = work(api, 90, day, **common)
        spend(api, "50", day, **common, markup_percent="10")

    nothing = ("0.00", "0.00", "0.00")

    def unbilled():
        (money,) = read(api, "2026-03-01", "2026-03-18", "overview")["money"]
        (total,) = read(api, "2026-03-01", "2026-03-18")["totals"]
        assert total["to_bill_amount"] == money["to_bill"]
        return total["unbilled_amount"], money["unbilled_time"], money["unbilled_expenses"]

    def bill():
        invoice = new(api, "/invoices", client_id=client, unbilled_work={"time": {}, "expenses": {}})
        assert unbilled() == nothing
        return f"/invoices/{invoice}"

    free = ("150.00", "300.00", "110.00")
    assert unbilled() == free
    api.delete(bill())
    assert unbilled() == free
    invoice = bill()
    api.patch(invoice, {"lines": [{"time_entry_ids": [entry]}]})
    assert unbilled() == ("150.00", "150.00", "110.00")
    api.delete(invoice)
    for end in (lambda path: api.patch(path, {"status": "void"}), lambda path: api.post(f"{path}/credit-notes")):
        invoice = bill()
        assert api.patch(invoice, {"status": "sent"}).status == 200
        assert unbilled() == nothing
        assert end(invoice).status in {200, 201}
        assert unbilled() == free
