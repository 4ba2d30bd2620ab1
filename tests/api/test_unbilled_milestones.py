"""Completed milestones are billed with all unbilled work of a client, each once."""

import pytest

ALL = {"milestones": {}}


@pytest.fixture
def client(api):
    return api.make("/clients", hourly_rate="100")["id"]


@pytest.fixture
def project(api, client):
    return project_of(api, client)


def project_of(api, client, **members):
    return api.make("/projects", client_id=client, billing_type="fixed_fee", fixed_fee="9000", **members)["id"]


def milestone(api, project, name="Launch", amount="3000", status="completed"):
    return api.make(f"/projects/{project}/milestones", name=name, amount=amount, status=status)["id"]


def bill(api, client, work=ALL):
    return api.create("/invoices", client_id=client, unbilled_work=work)


def shown(invoice):
    return [(line["description"], line["milestone_id"], line["amount"]) for line in invoice["lines"]]


def test_each_completed_milestone_becomes_a_line_in_the_order_of_completion(api, client, project):
    second = milestone(api, project, "Launch", status="open")
    first = milestone(api, project, "Design", "1500")
    api.patch(f"/projects/{project}/milestones/{second}", {"status": "completed"})
    invoice = bill(api, client).data
    assert shown(invoice) == [("Design", first, "1500.00"), ("Launch", second, "3000.00")]
    assert {line["kind"] for line in invoice["lines"]} == {"milestone"}
    assert api.get(f"/projects/{project}/milestones").data[0]["invoice_id"] == invoice["id"]


def test_what_cannot_be_billed_is_no_line(api, client, project):
    milestone(api, project, status="open")
    milestone(api, project, amount=None)
    milestone(api, project_of(api, api.make("/clients")["id"]))
    milestone(api, project_of(api, client, is_template=True))
    billed = milestone(api, project)
    api.make("/invoices", client_id=client, lines=[{"milestone_id": billed}])
    assert bill(api, client).code == "nothing_to_bill"


def test_a_milestone_is_billed_once_and_again_after_its_invoice_is_void(api, client, project):
    ready = milestone(api, project)
    invoice = bill(api, client).data
    assert bill(api, client).code == "nothing_to_bill"
    api.patch(f"/invoices/{invoice['id']}", {"status": "sent"})
    api.patch(f"/invoices/{invoice['id']}", {"status": "void"})
    assert [of_line for _, of_line, _ in shown(bill(api, client).data)] == [ready]


def test_only_milestones_of_the_named_projects_are_billed(api, client, project):
    milestone(api, project)
    other = project_of(api, client)
    wanted = milestone(api, other)
    foreign = project_of(api, api.make("/clients")["id"])
    named = bill(api, client, {"milestones": {"project_ids": [other]}}).data
    assert [of_line for _, of_line, _ in shown(named)] == [wanted]
    refused = bill(api, client, {"milestones": {"project_ids": [foreign, 999]}})
    fields = {f"unbilled_work.milestones.project_ids.{position}" for position in (0, 1)}
    assert refused.errors.keys() == fields


def test_milestones_follow_time_and_expenses_on_one_invoice(api, client, project):
    ready = milestone(api, project)
    shop = api.make("/projects", client_id=client)["id"]
    entry = api.make("/time-entries", project_id=shop, client_id=None, duration_minutes=60)["id"]
    expense = api.make("/expenses", project_id=shop, client_id=None, amount="10")["id"]
    invoice = bill(api, client, {"time": {}, "expenses": {}, "milestones": {}}).data
    assert [line["kind"] for line in invoice["lines"]] == ["time", "expense", "milestone"]
    ids = [(line["time_entry_ids"], line["expense_ids"], line["milestone_id"]) for line in invoice["lines"]]
    assert ids == [([entry], [], None), ([], [expense], None), ([], [], ready)]


def test_a_draft_takes_the_milestones_that_lines_do_not_name_and_keeps_its_own(api, client, project):
    named, other = milestone(api, project, "Design"), milestone(api, project, "Launch")
    draft = api.make("/invoices", client_id=client, lines=[{"milestone_id": named}])
    body = {"lines": [{"milestone_id": named}], "unbilled_work": ALL}
    changed = api.patch(f"/invoices/{draft['id']}", body).data
    assert [of_line for _, of_line, _ in shown(changed)] == [named, other]
    again = api.patch(f"/invoices/{draft['id']}", {"unbilled_work": ALL, "lines": []}).data
    assert {of_line for _, of_line, _ in shown(again)} == {named, other}


def test_a_milestone_is_billed_only_in_its_currency(api, client, project):
    milestone(api, project)
    api.patch(f"/clients/{client}", {"currency": "USD"})
    assert api.create("/invoices", client_id=client, currency="EUR", unbilled_work=ALL).status == 422
    assert api.get(f"/projects/{project}/milestones").data[0]["currency"] == "USD"
    assert bill(api, client).data["currency"] == "USD"


def test_an_empty_request_names_what_can_be_billed(api, client):
    assert "milestones" in bill(api, client, {}).errors["unbilled_work"][0]
