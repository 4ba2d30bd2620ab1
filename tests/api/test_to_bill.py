"""To bill: one figure, the same on every page and in every list and report, and what the next invoices then bill."""

import random
from collections import Counter
from decimal import Decimal

import pytest
import time_machine
from tests.databases import each_database

from retainer.rollups import doctor

EVERYTHING = {"time": {}, "expenses": {}, "milestones": {}, "fees": {}, "fixed_fees": {}}
PARTS = ("time", "expenses", "milestones", "fees", "fixed_fees")
ZERO = Decimal("0.00")


@pytest.fixture(autouse=True)
def clock():
    with time_machine.travel("2026-11-25T12:00:00Z", tick=False) as traveller:
        yield traveller


def project_of(api, client, billing_type="fixed_fee", **fields):
    return api.make("/projects", client_id=client, billing_type=billing_type, **fields)["id"]


def milestone(api, project, amount, status="completed"):
    return api.make(f"/projects/{project}/milestones", amount=amount, status=status)["id"]


def of_client(api, client):
    return api.get(f"/clients/{client}/unbilled-work").data["rows"]


def of_project(api, project):
    return api.get(f"/projects/{project}").data["to_bill_amount"]


def bill(api, client, work=EVERYTHING, **fields):
    return api.create("/invoices", client_id=client, unbilled_work=work, **fields)


PROJECTS = [
    {"billing_type": "time_and_materials"},
    {"billing_type": "fixed_fee", "fixed_fee": "9000"},
    {"billing_type": "fixed_fee", "fixed_fee": "5000"},
    {"billing_type": "retainer", "retainer_amount": "450"},
    {"billing_type": "non_billable"},
]
STARTS = (None, "2026-09-15", "2026-12-01", "2025-12-31")


def add_projects(api, rng, client):
    for _ in range(6):
        money = rng.choice(PROJECTS)
        project = api.make("/projects", client_id=client, start_date=rng.choice(STARTS), **money)["id"]
        for _ in range(rng.randrange(4) if "fixed_fee" in money else 0):
            fields = {"name": "Part", "amount": f"{rng.randrange(300, 2000)}"}
            api.create(f"/projects/{project}/milestones", **fields, status=rng.choice(["open", "completed"]))
        yield project


def add_work(api, rng, client, projects):
    for _ in range(25):
        common = {"project_id": rng.choice(projects), "client_id": client, "date": f"2026-11-{rng.randrange(1, 30):02}"}
        common |= {"billable": rng.random() < 0.8}
        if rng.random() < 0.7:
            api.create("/time-entries", **common, duration_minutes=rng.randrange(1, 500))
        else:
            api.create("/expenses", **common, amount=f"{rng.randrange(1, 900)}")


def add_invoices(api, rng, client, projects):
    """Bill some of the work, and items of projects, on invoices that come to every kind of end."""
    for fate in ("draft", "sent", "void", "credited", "credited in part", "deleted"):
        line = {"project_id": rng.choice(projects), "unit_price": f"{rng.randrange(100, 4000)}", "description": "Part"}
        asked = {rng.choice(list(EVERYTHING)): {}}
        invoice = api.create("/invoices", client_id=client, lines=[line], unbilled_work=rng.choice([asked, None]))
        if invoice.status == 201:
            finish_invoice(api, invoice.data, fate)


def finish_invoice(api, invoice, fate):
    path, first = f"/invoices/{invoice['id']}", {"lines": [{"invoice_line_id": invoice["lines"][0]["id"]}]}
    if fate == "deleted":
        api.delete(path)
    elif fate != "draft":
        api.patch(path, {"status": "sent"})
    if fate == "void":
        api.patch(path, {"status": "void"})
    elif fate.startswith("credited"):
        api.create(f"{path}/credit-notes", **(first if fate.endswith("part") else {}))


def fill(api, rng):
    """Fill an account with work of every kind in every state, some of it on invoices; return the clients."""
    clients = [api.make("/clients", name=code, hourly_rate="93", currency=code)["id"] for code in ("CHF", "EUR", "JPY")]
    for client in clients:
        projects = [None, *add_projects(api, rng, client)]
        add_work(api, rng, client, projects)
        add_invoices(api, rng, client, projects)
        for project in projects[1:]:
            api.patch(f"/projects/{project}", {"status": rng.choice(["active", "completed", "planned", "on_hold"])})
    return clients


@each_database
@pytest.mark.parametrize("seed", range(3))
def test_each_place_shows_the_same_figure_and_the_invoice_bills_it(api, seed):
    clients = fill(api, random.Random(seed))
    shown = {(row["client_id"], row["currency"]): row for row in api.get("/unbilled-work").data["rows"]}
    assert [row for client in clients for row in of_client(api, client)] == [
        shown[key] for key in sorted(shown, key=lambda key: clients.index(key[0]))
    ]
    overview = {row["currency"]: row for row in api.get("/reports/overview").data["money"]}
    report = api.get("/reports/project-profitability").data
    projects = api.get("/projects", {"per_page": 100}).data
    for name in (*PARTS, "to_bill"):
        for currency, money in overview.items():
            whole = sum((Decimal(row[name]) for (_, code), row in shown.items() if code == currency), ZERO)
            assert Decimal(money[name if name == "to_bill" else f"unbilled_{name}"]) == whole, (name, currency)
    for total in report["totals"]:
        rows = [row for row in report["rows"] if row["currency"] == total["currency"]]
        assert total["to_bill_amount"] == overview[total["currency"]]["to_bill"]
        assert Decimal(total["to_bill_amount"]) == sum(Decimal(row["to_bill_amount"]) for row in rows)
    by_project = Counter()
    for row in report["rows"]:
        by_project[row["project_id"], row["currency"]] += Decimal(row["to_bill_amount"])
    for project in projects:
        rows = api.get(f"/projects/{project['id']}/unbilled-work").data["rows"]
        preview = {row["currency"]: row["subtotal"] for row in rows}
        assert project["to_bill_amount"] == preview[project["currency"]]
        assert Decimal(project["to_bill_amount"]) == by_project[project["id"], project["currency"]]
    for (client, currency), row in shown.items():
        created = bill(api, client, currency=currency)
        if row["to_bill"] == ("0" if currency == "JPY" else "0.00"):
            assert created.code == "nothing_to_bill"
            continue
        assert created.data["subtotal"] == row["to_bill"]
        kinds = Counter()
        for line in created.data["lines"]:
            kinds[line["kind"]] += Decimal(line["amount"])
        assert [kinds[kind] for kind in ("time", "expense", "milestone", "fee", "item")] == [
            Decimal(row[name]) for name in PARTS
        ]
        in_others = [part for part in created.json["meta"]["left_out"] if part["reason"] == "other_currency"]
        assert {part["currency"] for part in in_others} <= {code for owner, code in shown if owner == client}
    assert {row["to_bill"] for row in api.get("/unbilled-work").data["rows"]} <= {"0", "0.00"}
    assert doctor.inspect(api.store, repair=False) == []


@pytest.fixture
def client(api):
    return api.make("/clients", currency="EUR", hourly_rate="100")["id"]


def fee(api, client, amount="9000", **fields):
    return api.make("/projects", client_id=client, billing_type="fixed_fee", fixed_fee=amount, **fields)["id"]


def finish(api, project):
    assert api.patch(f"/projects/{project}", {"status": "completed"}).status == 200


def shown_lines(invoice):
    return [(line["kind"], line["description"], line["amount"]) for line in invoice.data["lines"]]


def reasons(invoice):
    return [(part["reason"], part["count"], part["amount"]) for part in invoice.json["meta"]["left_out"]]


def test_a_fixed_fee_is_to_bill_once_its_project_is_completed(api, client):
    project = fee(api, client, name="Film")
    assert (of_project(api, project), reasons_of(of_client(api, client))) == ("0.00", [("open_fee", 1, "9000.00")])
    finish(api, project)
    assert of_project(api, project) == of_client(api, client)[0]["fixed_fees"] == "9000.00"
    assert shown_lines(bill(api, client)) == [("item", "Fixed fee, Film", "9000.00")]
    assert (of_project(api, project), of_client(api, client)) == ("0.00", [])


def reasons_of(rows):
    return [(part["reason"], part["count"], part["amount"]) for row in rows for part in row["left_out"]]


def test_the_fee_of_a_project_that_goes_on_is_billed_on_request(api, client):
    project, other = fee(api, client, name="Film"), fee(api, client)
    asked = bill(api, client, {"fixed_fees": {"project_ids": [project]}})
    assert shown_lines(asked) == [("item", "Fixed fee, Film", "9000.00")]
    nothing = bill(api, client, {"fixed_fees": {}})
    assert nothing.code == "nothing_to_bill"
    assert reasons_of(of_client(api, client)) == [("open_fee", 1, "9000.00")]
    finish(api, other)
    assert of_client(api, client)[0]["fixed_fees"] == "9000.00"


def test_deposits_and_milestones_count_against_the_fee_and_time_does_not(api, client):
    project = fee(api, client, name="Film")
    milestone(api, project, "2000")
    milestone(api, project, "1500", "open")
    api.make("/time-entries", project_id=project, client_id=client, duration_minutes=600)
    deposit = {"description": "Deposit", "unit_price": "3000", "project_id": project}
    api.make("/invoices", client_id=client, lines=[deposit])
    finish(api, project)
    (row,) = of_client(api, client)
    assert (row["milestones"], row["fixed_fees"], row["to_bill"]) == ("2000.00", "2500.00", "4500.00")
    assert [line[1:] for line in shown_lines(bill(api, client))] == [
        ("Launch", "2000.00"),
        ("Remaining fixed fee, Film", "2500.00"),
    ]


@pytest.mark.parametrize("fate", ["void", "credited", "deleted"])
def test_what_is_void_or_credited_or_deleted_can_be_billed_again(api, client, fate):
    project = fee(api, client)
    finish(api, project)
    made = bill(api, client).data
    finish_invoice(api, made, fate)
    assert of_project(api, project) == "9000.00"
    assert doctor.inspect(api.store, repair=False) == []


def accepted_quote(api, client, amount="13512"):
    line = {"description": "Website", "unit_price": amount}
    quote = api.make("/quotes", client_id=client, title="Website", lines=[line])["id"]
    api.patch(f"/quotes/{quote}", {"status": "sent"})
    api.patch(f"/quotes/{quote}", {"status": "accepted"})
    return quote


@pytest.mark.parametrize("is_first", [True, False])
def test_the_invoice_of_a_quote_counts_against_the_fee_of_its_project(api, client, is_first):
    quote = accepted_quote(api, client)
    if is_first:
        api.create("/invoices", quote_id=quote, client_id=client)
    created = api.post("/projects", {"quote_id": quote})
    assert (created.data["billing_type"], created.data["fixed_fee"]) == ("fixed_fee", "13512.00")
    project = created.data["id"]
    if not is_first:
        assert reasons_of(of_client(api, client)) == [("open_fee", 1, "13512.00")]
        api.create("/invoices", quote_id=quote, client_id=client)
    api.make("/time-entries", project_id=project, client_id=client, duration_minutes=360)
    milestone(api, project, "4000")
    finish(api, project)
    assert of_project(api, project) == "0.00"
    nothing = bill(api, client)
    assert nothing.code == "nothing_to_bill"
    assert "1 milestones whose fixed fee other lines bill already" in nothing.json["message"] + str(nothing.errors)


def test_a_project_from_a_quote_can_be_billed_by_time_within_its_budget(api, client):
    quote = accepted_quote(api, client)
    project = api.post("/projects", {"quote_id": quote, "billing_type": "time_and_materials"}).data
    assert (project["fixed_fee"], project["budget_amount"]) == (None, "13512.00")


def test_work_of_days_to_come_is_billed_only_if_a_day_is_named(api, client):
    for day in ("2026-11-25", "2026-11-26"):
        api.make("/time-entries", client_id=client, project_id=None, date=day, duration_minutes=60)
    assert of_client(api, client)[0]["to_bill"] == "100.00"
    assert bill(api, client, {"time": {"to": "2026-11-30"}}).data["subtotal"] == "200.00"


def test_a_draft_takes_later_work_in_once(api, client):
    project = fee(api, client, name="Film")
    finish(api, project)
    draft = bill(api, client).data
    again = api.patch(f"/invoices/{draft['id']}", {"unbilled_work": EVERYTHING})
    assert again.code == "nothing_to_bill"
    api.make("/time-entries", client_id=client, project_id=None, duration_minutes=60)
    more = api.patch(f"/invoices/{draft['id']}", {"unbilled_work": EVERYTHING})
    assert [line["amount"] for line in more.data["lines"]] == ["9000.00", "100.00"]
    whole = api.patch(f"/invoices/{draft['id']}", {"lines": [], "unbilled_work": EVERYTHING})
    assert sorted(line["amount"] for line in whole.data["lines"]) == ["100.00", "9000.00"]
