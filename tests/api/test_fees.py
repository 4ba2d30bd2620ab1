"""Fees cover the hours of their projects, credits reduce what was invoiced, and revenue keeps its project."""

import pytest

from retainer.errors import Refusal

DAY = "2026-03-10"


@pytest.fixture
def client(api):
    return api.make("/clients", hourly_rate="100")["id"]


def project_of(api, client, billing_type, **members):
    fee = {"fixed_fee": {"fixed_fee": "5000"}, "retainer": {"retainer_amount": "900"}}.get(billing_type, {})
    return api.make("/projects", client_id=client, billing_type=billing_type, **fee, **members)["id"]


def hours(api, client, project, minutes=60, **members):
    entry = api.make(
        "/time-entries", client_id=client, project_id=project, duration_minutes=minutes, date=DAY, **members
    )
    return entry["id"]


def unbilled(api, project):
    row = api.get(f"/projects/{project}").data
    return row["unbilled_minutes"], row["unbilled_amount"]


def of_reports(api, project):
    """Return the unbilled figures of the overview and the profitability report."""
    period = {"from": "2026-03-01", "to": "2026-03-31"}
    (money,) = api.get("/reports/overview", period).data["money"]
    rows = api.get("/reports/project-profitability", period).data["rows"]
    return money["unbilled_time"], next(row["unbilled_amount"] for row in rows if row["project_id"] == project)


@pytest.mark.parametrize("billing_type", ["fixed_fee", "retainer"])
def test_hours_that_a_fee_covers_are_billed_only_on_request(api, client, billing_type):
    covered = project_of(api, client, billing_type)
    open_project = project_of(api, client, "time_and_materials")
    inside, outside = hours(api, client, covered, 90), hours(api, client, open_project)
    alone = api.make("/time-entries", client_id=client, duration_minutes=30, date=DAY)["id"]
    assert unbilled(api, covered) == (0, "0.00")
    assert unbilled(api, open_project) == (60, "100.00")
    assert of_reports(api, covered) == ("150.00", "0.00")
    assert api.get(f"/projects/{covered}").data["billable_amount"] == "150.00"
    everything = api.make("/invoices", client_id=client, unbilled_work={"time": {"group_by": "entry"}})
    assert sorted(entry for line in everything["lines"] for entry in line["time_entry_ids"]) == [outside, alone]
    named = api.make("/invoices", client_id=client, unbilled_work={"time": {"project_ids": [covered]}})
    assert [line["time_entry_ids"] for line in named["lines"]] == [[inside]]
    assert unbilled(api, covered) == (0, "0.00")
    assert api.delete(f"/invoices/{named['id']}").status == 204
    assert unbilled(api, covered) == (0, "0.00")
    by_hand = api.make("/invoices", client_id=client, lines=[{"time_entry_ids": [inside]}])
    assert by_hand["subtotal"] == "150.00"
    again = api.create("/invoices", client_id=client, unbilled_work={"time": {}})
    assert again.code == "nothing_to_bill"


def test_another_billing_type_counts_the_hours_again(api, client):
    project = project_of(api, client, "time_and_materials")
    hours(api, client, project)
    hours(api, client, project, 30, billable=False)
    api.make("/invoices", client_id=client, lines=[{"time_entry_ids": [hours(api, client, project, 15)]}])
    path = f"/projects/{project}"
    for billing_type, expected in (("retainer", (0, "0.00")), ("time_and_materials", (60, "100.00"))):
        api.patch(path, {"billing_type": billing_type})
        assert unbilled(api, project) == expected
        assert of_reports(api, project) == (expected[1], expected[1])
    hours(api, client, project)
    assert unbilled(api, project) == (120, "200.00")


def test_a_credit_reduces_what_was_invoiced_for_a_project(api, client):
    project = project_of(api, client, "time_and_materials")
    line = {"description": "Design", "unit_price": "100", "tax_rate": "20", "project_id": project}
    invoice = api.make("/invoices", client_id=client, lines=[line], status="sent")
    path = f"/invoices/{invoice['id']}"
    assert api.get(f"/projects/{project}").data["invoiced_amount"] == "100.00"
    api.post(f"{path}/credit-notes", {"amount": "30"})
    api.patch(path, {"status": "paid"})
    api.post(f"{path}/credit-notes", {"amount": "60"})
    figures = ("total", "amount_paid", "amount_credited", "balance_due", "refund_due")
    assert [api.get(path).data[name] for name in figures] == ["120.00", "90.00", "90.00", "0.00", "60.00"]
    assert api.get(f"/projects/{project}").data["invoiced_amount"] == "25.00"
    api.post(f"{path}/credit-notes", {})
    assert [api.get(path).data[name] for name in figures] == ["120.00", "90.00", "120.00", "0.00", "90.00"]
    assert api.get(f"/projects/{project}").data["invoiced_amount"] == "0.00"


def test_lines_by_user_and_task_never_mix_projects(api, client):
    projects = [project_of(api, client, "time_and_materials", name=name) for name in ("Shop", "Blog")]
    entries = {project: hours(api, client, project) for project in projects}
    for group_by in ("user", "task"):
        invoice = api.make("/invoices", client_id=client, unbilled_work={"time": {"group_by": group_by}})
        assert {line["project_id"]: line["time_entry_ids"] for line in invoice["lines"]} == {
            project: [entry] for project, entry in entries.items()
        }
        assert [line["description"].rpartition(", ")[2] for line in invoice["lines"]] == ["Shop", "Blog"]
        api.delete(f"/invoices/{invoice['id']}")


def test_an_invoice_inherits_the_project_and_subject_of_its_quote_but_not_its_texts(api, client):
    texts = {"title": "Relaunch", "notes": "Thank you", "terms": "14 days"}
    line = {"description": "Design", "unit_price": "100", "tax_rate": "0"}
    quote = api.make("/quotes", client_id=client, lines=[line], status="accepted", **texts)["id"]
    project = api.post("/projects", {"quote_id": quote}).data["id"]
    invoice = api.post("/invoices", {"quote_id": quote, "status": "sent"}).data
    assert [invoice[name] for name in ("project_id", "subject", "notes", "terms")] == [
        project, "Relaunch", None, None,
    ]  # fmt: skip
    assert api.get(f"/projects/{project}").data["invoiced_amount"] == "100.00"


def test_a_quote_needs_a_line_to_be_sent_or_accepted(api):
    quote = api.make("/quotes")["id"]
    for status in ("sent", "accepted"):
        answer = api.patch(f"/quotes/{quote}", {"status": status})
        assert answer.errors == {"status": [f"A quote without lines cannot be {status}. Add a line first."]}
        assert set(api.create("/quotes", status=status).errors) == {"status"}
    assert api.patch(f"/quotes/{quote}", {"status": "declined"}).data["status"] == "declined"


@pytest.mark.parametrize(
    "pattern", ["R{YY}-{00000}", "R-{MM}-{000}", "R-{0000}-{", "R}{0000}", "{number}-{0}", "R-{YYYY}"]
)
def test_a_pattern_of_numbers_with_an_unknown_placeholder_is_refused(api, pattern):
    from retainer.cli.common import changes  # noqa: PLC0415
    from retainer.identity.accounts import AccountDetails  # noqa: PLC0415

    with pytest.raises(Refusal) as refusal:
        changes(AccountDetails, {"invoice_number_pattern": pattern})
    (message,) = refusal.value.members["errors"]["invoice_number_pattern"]
    assert "{0000}" in message
    assert "{YYYY}" in message
    assert changes(AccountDetails, {"invoice_number_pattern": "R{YYYY}-{00000}"})


def test_numbers_of_clients_can_restart_each_year(api):
    api.set_account({"client_number_pattern": "K-{YYYY}-{000}"})
    year = api.get("/me").data["server"]["time"][:4]
    assert api.make("/clients")["number"] == f"K-{year}-001"
