"""Time without a rate is never billed at zero, and time that a fee covers is not unbilled."""

from types import SimpleNamespace

import pytest

from retainer.rollups import doctor

DAY = "2026-03-10"
PERIOD = {"from": "2026-03-01", "to": "2026-03-31"}
STATUSES = ("non_billable", "covered", "unpriced", "unbilled", "billed")


@pytest.fixture
def world(api):
    """A client without a rate, with time of each billing status; each has its own minutes."""
    client = api.make("/clients")["id"]
    shop = api.make("/projects", client_id=client, name="Shop")["id"]
    care = api.make("/projects", client_id=client, name="Care", billing_type="retainer", retainer_amount="900")["id"]

    def worked(minutes, project=shop, **members):
        body = {"project_id": project, "duration_minutes": minutes, "date": DAY, "client_id": client}
        return api.make("/time-entries", **body | members)

    entries = {
        "non_billable": worked(1, billable=False),
        "covered": worked(2, care, hourly_rate="60"),
        "unpriced": worked(4),
        "unbilled": worked(8, hourly_rate="60"),
        "billed": worked(16, hourly_rate="60"),
    }
    ids = {status: entry["id"] for status, entry in entries.items()}
    api.make("/invoices", client_id=client, lines=[{"time_entry_ids": [ids["billed"]]}])
    return SimpleNamespace(api=api, client=client, shop=shop, care=care, ids=ids, worked=worked, made=entries)


def entry_of(world, status):
    return world.api.get(f"/time-entries/{world.ids[status]}").data


def bill(world, **members):
    return world.api.create("/invoices", client_id=world.client, **members)


def of_reports(world):
    """Return the unbilled figures of the overview and of the profitability report for both projects."""
    overview = world.api.get("/reports/overview", PERIOD).data
    (money,) = overview["money"]
    rows = world.api.get("/reports/project-profitability", PERIOD).data
    of_projects = [
        (row["unbilled_amount"], row["unpriced_minutes"])
        for project in (world.shop, world.care)
        for row in rows["rows"]
        if row["project_id"] == project
    ]
    (total,) = rows["totals"]
    assert total["unpriced_minutes"] == overview["time"]["unpriced_minutes"]
    return money["unbilled_time"], overview["time"]["unpriced_minutes"], of_projects


@pytest.mark.parametrize("status", STATUSES)
def test_each_entry_shows_its_billing_status_and_lists_filter_by_it(world, status):
    assert entry_of(world, status)["billing_status"] == status
    found = world.api.get("/time-entries", {"billing_status": status}).data
    assert [entry["id"] for entry in found] == [world.ids[status]]
    assert entry_of(world, status)["amount"] == {"non_billable": "0.00", "unpriced": None}.get(
        status, f"{entry_of(world, status)['duration_minutes']}.00"
    )


def test_a_rate_of_zero_is_a_rate(world):
    entry = world.worked(32, hourly_rate="0")
    assert (entry["amount"], entry["billing_status"]) == ("0.00", "unbilled")


def test_sums_follow_when_time_at_a_rate_of_zero_is_no_longer_billable(world):
    """Its amount stays 0: only `billable` says that its minutes are to be billed no more."""
    entry = world.worked(32, hourly_rate="0")
    for billable, minutes in ((True, 40), (False, 8), (True, 40)):
        world.api.patch(f"/time-entries/{entry['id']}", {"billable": billable})
        assert world.api.get(f"/projects/{world.shop}").data["unbilled_minutes"] == minutes
        assert doctor.inspect(world.api.store, repair=False) == []


def test_covered_time_needs_no_rate(world):
    assert world.worked(32, world.care)["billing_status"] == "covered"
    free = world.worked(64, billable=False)
    assert (free["billing_status"], free["amount"], free["hourly_rate"]) == ("non_billable", "0.00", None)


def test_unpriced_time_becomes_unbilled_with_a_rate_and_back(world):
    path = f"/time-entries/{world.ids['unpriced']}"
    priced = world.api.patch(path, {"hourly_rate": "60"}).data
    assert (priced["billing_status"], priced["amount"]) == ("unbilled", "4.00")
    assert of_reports(world) == ("12.00", 0, [("12.00", 0), ("0.00", 0)])
    again = world.api.patch(path, {"hourly_rate": None}).data
    assert (again["billing_status"], again["amount"]) == ("unpriced", None)
    assert of_reports(world) == ("8.00", 4, [("8.00", 4), ("0.00", 0)])


def test_unbilled_figures_exclude_covered_and_unpriced_time(world):
    for project, expected in ((world.shop, (8, "8.00")), (world.care, (0, "0.00"))):
        row = world.api.get(f"/projects/{project}").data
        assert (row["unbilled_minutes"], row["unbilled_amount"]) == expected
    assert of_reports(world) == ("8.00", 4, [("8.00", 4), ("0.00", 0)])
    of_client = world.api.get("/reports/overview", PERIOD | {"client_id": world.client}).data
    assert (of_client["money"][0]["unbilled_time"], of_client["time"]["unpriced_minutes"]) == ("8.00", 4)


def test_a_fee_can_begin_and_stop_covering_hours_without_a_rate(world):
    world.api.patch(f"/projects/{world.shop}", {"billing_type": "retainer"})
    assert entry_of(world, "unpriced")["billing_status"] == "covered"
    assert of_reports(world) == ("0.00", 0, [("0.00", 0), ("0.00", 0)])
    world.api.patch(f"/projects/{world.shop}", {"billing_type": "time_and_materials"})
    assert world.api.get(f"/projects/{world.shop}").data["unbilled_minutes"] == 8
    assert of_reports(world) == ("8.00", 4, [("8.00", 4), ("0.00", 0)])


def test_unbilled_work_bills_priced_time_and_counts_the_rest(world):
    world.worked(32)
    answer = bill(world, unbilled_work={"time": {}})
    assert [line["time_entry_ids"] for line in answer.data["lines"]] == [[world.ids["unbilled"]]]
    assert answer.json["meta"]["left_out"] == [
        {"reason": "covered", "count": 1, "minutes": 2, "currency": "EUR", "amount": "2.00"},
        {"reason": "unpriced", "count": 2, "minutes": 36, "currency": "EUR", "amount": None},
    ]
    assert entry_of(world, "unpriced")["billing_status"] == "unpriced"
    assert answer.data["subtotal"] == "8.00"


def test_a_named_project_is_billed_although_a_fee_covers_it_but_not_without_a_rate(world):
    world.worked(32, world.care)
    answer = bill(world, unbilled_work={"time": {"project_ids": [world.care]}})
    assert [line["time_entry_ids"] for line in answer.data["lines"]] == [[world.ids["covered"]]]
    unpriced = {"reason": "unpriced", "count": 1, "minutes": 32, "currency": "EUR", "amount": None}
    assert answer.json["meta"]["left_out"] == [unpriced]


def test_an_update_counts_what_it_left_out_only_if_it_requests_work(world):
    draft = bill(world, lines=[{"description": "Design", "unit_price": "500"}])
    assert draft.json["meta"]["left_out"] == []
    path = f"/invoices/{draft.data['id']}"
    added = world.api.patch(path, {"unbilled_work": {"time": {"to": DAY}}})
    assert [entry["reason"] for entry in added.json["meta"]["left_out"]] == ["covered", "unpriced"]
    assert world.api.patch(path, {"notes": "Thank you"}).json["meta"]["left_out"] == []


def test_dates_limit_left_out_time_as_well_as_billed_time(world):
    world.worked(32, date="2026-03-20")
    answer = bill(world, unbilled_work={"time": {"to": "2026-03-19"}})
    assert [entry["minutes"] for entry in answer.json["meta"]["left_out"]] == [2, 4]


def test_a_refusal_explains_why_all_work_is_left_out(world):
    bill(world, unbilled_work={"time": {}})
    refused = bill(world, unbilled_work={"time": {}})
    assert refused.code == "nothing_to_bill"
    (message,) = refused.errors["unbilled_work"]
    assert "Left out: 2 min that a fee covers (" in message
    assert "), 4 min without a rate (" in message


def test_a_line_cannot_name_hours_without_a_rate(world):
    refused = bill(world, lines=[{"time_entry_ids": [world.ids["unbilled"], world.ids["unpriced"]]}])
    assert refused.code == "validation_failed"
    assert "no rate" in refused.errors["lines.0.time_entry_ids.1"][0]
    assert "hourly_rate" in refused.errors["lines.0.time_entry_ids.1"][0]
    assert bill(world, lines=[{"time_entry_ids": [world.ids["covered"]]}]).data["subtotal"] == "2.00"
