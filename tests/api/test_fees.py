"""Fees cover the hours of their projects, credits take back what was invoiced, and revenue keeps its project."""

import pytest

from retainer.errors import Refusal
from retainer.identity import accounts

DAY = "2026-03-10"


@pytest.fixture
def client(office):
    return office.make("/clients", hourly_rate="100")["id"]


def project_of(office, client, billing_type, **members):
    fee = {"fixed_fee": {"fixed_fee": "5000"}, "retainer": {"retainer_amount": "900"}}.get(billing_type, {})
    return office.make("/projects", client_id=client, billing_type=billing_type, **fee, **members)["id"]


def hours(office, client, project, minutes=60, **members):
    entry = office.make(
        "/time-entries", client_id=client, project_id=project, duration_minutes=minutes, date=DAY, **members
    )
    return entry["id"]


def unbilled(office, project):
    row = office.get(f"/projects/{project}").data
    return row["unbilled_minutes"], row["unbilled_amount"]


def of_reports(office, project):
    """What the overview and the profitability report say that is unbilled."""
    period = {"from": "2026-03-01", "to": "2026-03-31"}
    (money,) = office.get("/reports/overview", period).data["money"]
    rows = office.get("/reports/project-profitability", period).data["rows"]
    return money["unbilled_time"], next(row["unbilled_amount"] for row in rows if row["project_id"] == project)


@pytest.mark.parametrize("billing_type", ["fixed_fee", "retainer"])
def test_hours_that_a_fee_covers_are_not_unbilled_and_billed_only_when_they_are_asked_for(office, client, billing_type):
    covered = project_of(office, client, billing_type)
    open_project = project_of(office, client, "time_and_materials")
    inside, outside = hours(office, client, covered, 90), hours(office, client, open_project)
    alone = office.make("/time-entries", client_id=client, duration_minutes=30, date=DAY)["id"]
    assert unbilled(office, covered) == (0, "0.00")
    assert unbilled(office, open_project) == (60, "100.00")
    assert of_reports(office, covered) == ("150.00", "0.00")
    assert office.get(f"/projects/{covered}").data["billable_amount"] == "150.00"
    everything = office.make("/invoices", client_id=client, unbilled_work={"time": {"group_by": "entry"}})
    assert sorted(entry for line in everything["lines"] for entry in line["time_entry_ids"]) == [outside, alone]
    named = office.make("/invoices", client_id=client, unbilled_work={"time": {"project_ids": [covered]}})
    assert [line["time_entry_ids"] for line in named["lines"]] == [[inside]]
    assert unbilled(office, covered) == (0, "0.00")
    assert office.delete(f"/invoices/{named['id']}").status == 204
    assert unbilled(office, covered) == (0, "0.00")
    by_hand = office.make("/invoices", client_id=client, lines=[{"time_entry_ids": [inside]}])
    assert by_hand["subtotal"] == "150.00"
    again = office.create("/invoices", client_id=client, unbilled_work={"time": {}})
    assert again.code == "nothing_to_bill"


def test_another_billing_type_counts_the_hours_again(office, client):
    project = project_of(office, client, "time_and_materials")
    hours(office, client, project)
    hours(office, client, project, 30, billable=False)
    office.make("/invoices", client_id=client, lines=[{"time_entry_ids": [hours(office, client, project, 15)]}])
    path = f"/projects/{project}"
    for billing_type, expected in (("retainer", (0, "0.00")), ("time_and_materials", (60, "100.00"))):
        office.patch(path, {"billing_type": billing_type})
        assert unbilled(office, project) == expected
        assert of_reports(office, project) == (expected[1], expected[1])
    hours(office, client, project)
    assert unbilled(office, project) == (120, "200.00")


def test_a_credit_takes_back_what_was_invoiced_of_a_project_and_what_was_paid_can_be_refunded(office, client):
    project = project_of(office, client, "time_and_materials")
    line = {"description": "Design", "unit_price": "100", "tax_rate": "20", "project_id": project}
    invoice = office.make("/invoices", client_id=client, lines=[line], status="sent")
    path = f"/invoices/{invoice['id']}"
    assert office.get(f"/projects/{project}").data["invoiced_amount"] == "100.00"
    office.post(f"{path}/credit-notes", {"amount": "30"})
    office.patch(path, {"status": "paid"})
    office.post(f"{path}/credit-notes", {"amount": "60"})
    figures = ("total", "amount_paid", "amount_credited", "balance_due", "refund_due")
    assert [office.get(path).data[name] for name in figures] == ["120.00", "90.00", "90.00", "0.00", "60.00"]
    assert office.get(f"/projects/{project}").data["invoiced_amount"] == "25.00"
    office.post(f"{path}/credit-notes", {})
    assert [office.get(path).data[name] for name in figures] == ["120.00", "90.00", "120.00", "0.00", "90.00"]
    assert office.get(f"/projects/{project}").data["invoiced_amount"] == "0.00"


def test_lines_by_user_and_task_never_mix_projects(office, client):
    projects = [project_of(office, client, "time_and_materials", name=name) for name in ("Shop", "Blog")]
    entries = {project: hours(office, client, project) for project in projects}
    for group_by in ("user", "task"):
        invoice = office.make("/invoices", client_id=client, unbilled_work={"time": {"group_by": group_by}})
        assert {line["project_id"]: line["time_entry_ids"] for line in invoice["lines"]} == {
            project: [entry] for project, entry in entries.items()
        }
        assert [line["description"].rpartition(", ")[2] for line in invoice["lines"]] == ["Shop", "Blog"]
        office.delete(f"/invoices/{invoice['id']}")


def test_a_quote_that_became_a_project_gives_its_invoice_that_project_its_notes_and_its_terms(office, client):
    said = {"title": "Relaunch", "notes": "Thank you", "terms": "14 days"}
    line = {"description": "Design", "unit_price": "100", "tax_rate": "0"}
    quote = office.make("/quotes", client_id=client, lines=[line], status="accepted", **said)["id"]
    project = office.post("/projects", {"quote_id": quote}).data["id"]
    invoice = office.post("/invoices", {"quote_id": quote, "status": "sent"}).data
    assert [invoice[name] for name in ("project_id", "subject", "notes", "terms")] == [
        project, "Relaunch", "Thank you", "14 days",
    ]  # fmt: skip
    assert office.get(f"/projects/{project}").data["invoiced_amount"] == "100.00"


def test_a_quote_needs_a_line_to_be_sent_or_accepted(office):
    quote = office.make("/quotes")["id"]
    for status in ("sent", "accepted"):
        answer = office.patch(f"/quotes/{quote}", {"status": status})
        assert answer.errors == {"status": [f"A quote without lines cannot be {status}. Add a line first."]}
        assert set(office.create("/quotes", status=status).errors) == {"status"}
    assert office.patch(f"/quotes/{quote}", {"status": "declined"}).data["status"] == "declined"


@pytest.mark.parametrize(
    "pattern", ["R{YY}-{00000}", "R-{MM}-{000}", "R-{0000}-{", "R}{0000}", "{number}-{0}", "R-{YYYY}"]
)
def test_a_pattern_of_numbers_with_an_unknown_placeholder_is_refused(office, pattern):
    from retainer.cli.common import changes  # noqa: PLC0415
    from retainer.identity.accounts import AccountDetails  # noqa: PLC0415

    with pytest.raises(Refusal) as refusal:
        changes(AccountDetails, {"invoice_number_pattern": pattern})
    (sentence,) = refusal.value.members["errors"]["invoice_number_pattern"]
    assert "{0000}" in sentence
    assert "{YYYY}" in sentence
    assert changes(AccountDetails, {"invoice_number_pattern": "R{YYYY}-{00000}"})


def test_the_numbers_of_clients_begin_anew_each_year_too_if_that_is_wanted(office):
    accounts.set_account(office.store, office.account_id, {"client_number_pattern": "K-{YYYY}-{000}"})
    year = office.get("/me").data["server"]["time"][:4]
    assert office.make("/clients")["number"] == f"K-{year}-001"
