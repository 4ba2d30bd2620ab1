"""The preview of a project's next invoice: it equals the invoice that a run creates."""

from decimal import Decimal

import pytest
import time_machine
from tests.databases import each_database

RUN = {"time": {}, "expenses": {}, "milestones": {}, "fees": {}, "fixed_fees": {}}


@pytest.fixture(autouse=True)
def clock():
    with time_machine.travel("2026-11-25T12:00:00Z", tick=False) as traveller:
        yield traveller


@pytest.fixture
def client(api):
    return api.make("/clients", currency="EUR", hourly_rate="99.99")["id"]


def project_of(api, client, billing_type, **fields):
    return api.make("/projects", client_id=client, billing_type=billing_type, start_date="2026-09-15", **fields)["id"]


def filled(api, client, billing_type, **fields):
    """Return a project with time that is billable, unpriced and not billable, expenses and milestones."""
    project = project_of(api, client, billing_type, **fields)
    own = {"client_id": client, "project_id": project}
    for minutes in (20, 50):
        api.make("/time-entries", **own, duration_minutes=minutes)
    api.make("/time-entries", **own, duration_minutes=7, billable=False)
    for amount in ("10.01", "20"):
        api.make("/expenses", **own, amount=amount, markup_percent="15")
    for status in ("completed", "open"):
        amount = "1500" if billing_type == "fixed_fee" else None
        api.make(f"/projects/{project}/milestones", amount=amount, status=status)
    return project


def preview(api, project):
    return api.get(f"/projects/{project}/unbilled-work").data


def sum_of(lines, kind):
    return f"{sum((Decimal(line['amount']) for line in lines if line['kind'] == kind), Decimal('0.00'))}"


@each_database
@pytest.mark.parametrize(
    ("billing_type", "fields"),
    [
        ("time_and_materials", {}),
        ("fixed_fee", {"fixed_fee": "9000"}),
        ("retainer", {"retainer_amount": "900"}),
        ("non_billable", {}),
    ],
)
def test_the_preview_equals_the_invoice_that_is_then_created(api, client, billing_type, fields):
    project = filled(api, client, billing_type, **fields)
    shown = preview(api, project)
    assert (shown["project_id"], shown["client_id"]) == (project, client)
    (row,) = shown["rows"]
    created = api.create("/invoices", client_id=client, unbilled_work=RUN)
    lines = created.data["lines"] if created.status == 201 else []
    assert row["subtotal"] == (created.data["subtotal"] if lines else "0.00")
    for name, kind in (("time", "time"), ("expenses", "expense"), ("milestones", "milestone"), ("fees", "fee")):
        assert row[name]["amount"] == sum_of(lines, kind)
    assert row["time"]["count"] == sum(len(line["time_entry_ids"]) for line in lines)
    assert row["expenses"]["count"] == sum(len(line["expense_ids"]) for line in lines)
    assert row["milestones"]["count"] == sum(line["kind"] == "milestone" for line in lines)
    assert row["fees"]["months"] == [line["fee_month"] for line in lines if line["kind"] == "fee"]
    if lines:
        assert row["left_out"] == created.json["meta"]["left_out"]
    (after,) = preview(api, project)["rows"]
    assert (after["subtotal"], after["time"]["count"], after["fees"]["months"]) == ("0.00", 0, [])
    assert after["left_out"] == row["left_out"]


def test_what_is_left_out_is_counted_by_reason(api, client):
    covered = project_of(api, client, "retainer", retainer_amount="900")
    api.make("/time-entries", client_id=client, project_id=covered, duration_minutes=45)
    (row,) = preview(api, covered)["rows"]
    assert row["left_out"] == [{"reason": "covered", "count": 1, "minutes": 45, "currency": "EUR", "amount": "74.99"}]
    assert row["time"] == {"count": 0, "minutes": 0, "amount": "0.00"}
    assert row["fees"] == {"months": ["2026-09", "2026-10", "2026-11"], "amount": "2700.00"}
    without_rate = api.make("/clients", currency="EUR", hourly_rate=None)["id"]
    unpriced = project_of(api, without_rate, "time_and_materials")
    api.make("/time-entries", client_id=without_rate, project_id=unpriced, duration_minutes=30, hourly_rate=None)
    (row,) = preview(api, unpriced)["rows"]
    assert row["left_out"] == [{"reason": "unpriced", "count": 1, "minutes": 30, "currency": "EUR", "amount": None}]


def test_work_in_another_currency_is_a_row_of_its_own(api, client):
    project = filled(api, client, "time_and_materials")
    api.make("/expenses", client_id=client, project_id=project, amount="5", currency="USD")
    rows = preview(api, project)["rows"]
    assert [(row["currency"], row["expenses"]["count"]) for row in rows] == [("EUR", 2), ("USD", 1)]
    dollars = api.make("/invoices", client_id=client, currency="USD", unbilled_work=RUN)
    assert dollars["subtotal"] == rows[1]["subtotal"]


def test_only_the_work_of_the_project_counts(api, client):
    project = filled(api, client, "time_and_materials")
    before = preview(api, project)
    filled(api, client, "time_and_materials", name="Another")
    filled(api, client, "retainer", retainer_amount="900", name="Care")
    assert preview(api, project) == before


def test_internal_projects_and_templates_bill_nothing(api, client):
    internal = api.make("/projects", client_id=None)["id"]
    template = project_of(api, client, "retainer", retainer_amount="900", is_template=True)
    for project, owner in ((internal, None), (template, client)):
        shown = preview(api, project)
        assert (shown["client_id"], [row["subtotal"] for row in shown["rows"]]) == (owner, ["0.00"])


def test_a_project_of_another_account_is_not_found(api, client, other_tenant):
    project = project_of(api, client, "time_and_materials")
    assert other_tenant.get(f"/projects/{project}/unbilled-work").code == "not_found"
