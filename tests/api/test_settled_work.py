"""Work that was billed outside of Retainer counts as billed, and is never billed again."""

import pytest
from tests.databases import each_database

from retainer.rollups import doctor

DAY = "2026-03-10"
PERIOD = {"from": "2026-03-01", "to": "2026-03-31"}
EVERYTHING = {"time": {}, "expenses": {}, "milestones": {}, "fees": {}, "fixed_fees": {}}


@pytest.fixture
def shop(api):
    return api.make("/projects", hourly_rate="60")


def work_of(api, shop, kind, **fields):
    required = {"/time-entries": {"duration_minutes": 60}, "/expenses": {"amount": "60.00"}}[kind]
    return api.create(kind, project_id=shop["id"], client_id=shop["client_id"], date=DAY, **required | fields)


def to_bill(api, shop):
    """Return what is to bill of a project, as each place that shows it says."""
    project = api.get(f"/projects/{shop['id']}").data
    rows = api.get("/reports/project-profitability", PERIOD).data["rows"]
    (of_project,) = (row for row in rows if row["project_id"] == shop["id"])
    (money,) = api.get("/reports/overview", PERIOD).data["money"]
    of_client = api.get(f"/clients/{shop['client_id']}/unbilled-work").data["rows"]
    preview = api.get(f"/projects/{shop['id']}/unbilled-work").data["rows"]
    shown = {
        *(project["to_bill_amount"], money["to_bill"], sum_of(row["to_bill"] for row in of_client)),
        sum_of(row["subtotal"] for row in preview),
    }
    return shown, project["unbilled_minutes"], of_project["unbilled_amount"]


def sum_of(amounts):
    return next(iter(amounts), "0.00")


@each_database
def test_settled_work_is_billed_without_an_invoice_and_is_not_to_bill(api, shop):
    for kind in ("/time-entries", "/expenses"):
        work = work_of(api, shop, kind, is_settled=True).data
        assert (work["is_settled"], work["billing_status"], work["invoice_id"]) == (True, "billed", None)
        assert [each["id"] for each in api.get(kind, {"billing_status": "billed"}).data] == [work["id"]]
        assert api.get(kind, {"billing_status": "unbilled"}).data == []
    assert to_bill(api, shop) == ({"0.00"}, 0, "0.00")
    assert doctor.inspect(api.store, repair=False) == []


@each_database
def test_settled_time_counts_in_utilisation_and_profitability(api, shop):
    work_of(api, shop, "/time-entries", is_settled=True)
    (row,) = (row for row in api.get("/reports/utilisation", PERIOD).data["rows"] if row["tracked_minutes"])
    assert (row["billable_minutes"], row["billable_value"]) == (60, "60.00")
    by_client = api.get("/reports/utilisation", PERIOD | {"client_id": shop["client_id"]}).data["totals"]
    assert by_client[0]["billable_value"] == "60.00"
    project = api.get(f"/projects/{shop['id']}").data
    assert (project["billable_minutes"], project["billable_amount"]) == (60, "60.00")


@each_database
def test_work_can_be_settled_and_unsettled_while_it_is_on_no_invoice(api, shop):
    for kind, minutes in (("/time-entries", 60), ("/expenses", 0)):
        work = work_of(api, shop, kind).data
        path = f"{kind}/{work['id']}"
        before = to_bill(api, shop)
        assert before[:2] == ({"60.00"}, minutes)
        for is_settled, status in ((True, "billed"), (False, "unbilled"), (True, "billed")):
            assert api.patch(path, {"is_settled": is_settled}).data["billing_status"] == status
            assert (to_bill(api, shop) == before) is not is_settled
            assert doctor.inspect(api.store, repair=False) == []
        assert api.delete(path).status == 204
    assert doctor.inspect(api.store, repair=False) == []


@each_database
def test_no_invoice_bills_settled_work(api, shop):
    fields = {"/time-entries": "time_entry_ids", "/expenses": "expense_ids"}
    for kind, field in fields.items():
        work = work_of(api, shop, kind, is_settled=True).data
        refused = api.create("/invoices", client_id=shop["client_id"], lines=[{field: [work["id"]]}])
        noun = kind[1:-1].replace("-", " ").replace("entrie", "entry")
        message = f"{noun.capitalize()} {work['id']} was billed outside of Retainer. Leave it out."
        assert (refused.code, refused.errors) == ("already_billed", {f"lines.0.{field}.0": [message]})
    asked = api.create("/invoices", client_id=shop["client_id"], unbilled_work=EVERYTHING)
    assert asked.code == "nothing_to_bill"
    by_project = {"time": {"project_ids": [shop["id"]]}}
    assert api.create("/invoices", client_id=shop["client_id"], unbilled_work=by_project).code == "nothing_to_bill"


def test_work_on_an_invoice_cannot_be_settled(api, shop):
    for kind, field in (("/time-entries", "time_entry_ids"), ("/expenses", "expense_ids")):
        work = work_of(api, shop, kind).data
        api.make("/invoices", client_id=shop["client_id"], lines=[{field: [work["id"]]}])
        refused = api.patch(f"{kind}/{work['id']}", {"is_settled": True})
        assert (refused.code, list(refused.errors)) == ("locked", ["is_settled"])


def test_only_billable_work_can_be_settled(api, shop):
    message = "Must be false for work that is not billable. Send false, or make the work billable."
    for kind in ("/time-entries", "/expenses"):
        assert work_of(api, shop, kind, is_settled=True, billable=False).errors == {"is_settled": [message]}
        settled = work_of(api, shop, kind, is_settled=True).data
        path = f"{kind}/{settled['id']}"
        assert api.patch(path, {"billable": False}).errors == {"is_settled": [message]}
        both = api.patch(path, {"billable": False, "is_settled": False}).data
        assert both["billing_status"] == "non_billable"


@each_database
def test_settled_time_needs_no_rate_and_no_fee_covers_it(api):
    client = api.make("/clients")["id"]
    care = api.make("/projects", client_id=client, billing_type="retainer", retainer_amount="900")
    plain = api.make("/projects", client_id=client)
    for project in (care, plain):
        work = work_of(api, project, "/time-entries", is_settled=True).data
        assert (work["billing_status"], work["amount"]) == ("billed", None)
    assert api.get("/time-entries", {"billing_status": "unpriced,covered"}).data == []
    assert api.get("/reports/overview", PERIOD).data["time"]["unpriced_minutes"] == 0
    left_out = [row["left_out"] for row in api.get(f"/clients/{client}/unbilled-work").data["rows"]]
    assert all(part["reason"] == "open_fee" for row in left_out for part in row)
    assert doctor.inspect(api.store, repair=False) == []
