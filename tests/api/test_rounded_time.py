"""Rounded time: invoices may bill other hours than were recorded, and say so; the entries stay as they are."""

import pytest


@pytest.fixture
def client(api):
    return api.make("/clients", currency="EUR", hourly_rate="100")["id"]


@pytest.fixture
def entries(api, client):
    return [
        api.make("/time-entries", client_id=client, project_id=None, duration_minutes=minutes)["id"]
        for minutes in (7, 20, 61)
    ]


def bill(api, client, rounding=None):
    return api.create("/invoices", client_id=client, unbilled_work={"time": {"rounding": rounding}})


def quantities(invoice):
    return [(line["quantity"], line["recorded_quantity"], line["amount"]) for line in invoice.data["lines"]]


@pytest.mark.parametrize(
    ("rounding", "quantity", "amount"),
    [
        ({"minutes": 15}, "2", "200.00"),  # 15 + 30 + 75
        ({"minutes": 15, "each": "line"}, "1.5", "150.00"),  # 88 minutes
        ({"minutes": 15, "to": "nearest"}, "1.25", "125.00"),  # 0 + 15 + 60
        ({"minutes": 6, "to": "nearest", "each": "line"}, "1.5", "150.00"),
        ({"minutes": 1}, "1.4667", "146.67"),
        (None, "1.4667", "146.67"),
    ],
)
def test_hours_are_rounded_as_the_request_says(api, client, entries, rounding, quantity, amount):
    assert quantities(bill(api, client, rounding)) == [(quantity, "1.4667", amount)]
    assert [api.get(f"/time-entries/{entry}").data["duration_minutes"] for entry in entries] == [7, 20, 61]


@pytest.mark.parametrize(
    ("rounding", "field"),
    [
        ({"minutes": 0}, "minutes"),
        ({"minutes": "15"}, "minutes"),
        ({"minutes": None}, "minutes"),
        ({}, "minutes"),
        ({"minutes": 15, "to": "down"}, "to"),
        ({"minutes": 15, "each": "day"}, "each"),
    ],
)
def test_rounding_that_cannot_be_read_is_named_and_nothing_is_billed(api, client, entries, rounding, field):
    refused = api.post("/invoices", {"client_id": client, "unbilled_work": {"time": {"rounding": rounding}}})
    assert refused.errors.keys() == {f"unbilled_work.time.rounding.{field}"}
    assert api.get("/invoices").data == []


def test_the_account_says_how_hours_are_rounded(api, client, entries):
    api.set_account({"time_rounding_minutes": 30, "time_rounding_each": "line"})
    assert quantities(bill(api, client)) == [("1.5", "1.4667", "150.00")]


def test_hours_that_would_be_rounded_to_nothing_are_billed_as_recorded(api, client):
    api.make("/time-entries", client_id=client, project_id=None, duration_minutes=7)
    assert quantities(bill(api, client, {"minutes": 15, "to": "nearest"})) == [("0.1167", "0.1167", "11.67")]


def test_rounded_lines_do_not_mix_rates(api, client, entries):
    api.make("/time-entries", client_id=client, project_id=None, duration_minutes=50, hourly_rate="60")
    assert quantities(bill(api, client, {"minutes": 60})) == [("4", "1.4667", "400.00"), ("1", "0.8333", "60.00")]


def test_the_hours_of_a_line_can_be_changed(api, client, entries):
    draft = bill(api, client).data
    line = draft["lines"][0]
    path = f"/invoices/{draft['id']}"
    changed = api.patch(path, {"lines": [{"id": line["id"], "quantity": "1.5"}]})
    assert quantities(changed) == [("1.5", "1.4667", "150.00")]
    assert changed.data["subtotal"] == "150.00"
    kept = api.patch(path, {"lines": [{"id": line["id"], "description": "Work"}]})
    assert quantities(kept) == [("1.5", "1.4667", "150.00")]
    fewer = api.patch(path, {"lines": [{"id": line["id"], "time_entry_ids": entries[:2]}]})
    assert quantities(fewer) == [("0.45", "0.45", "45.00")]


@pytest.mark.parametrize("quantity", ["0", "-1"])
def test_hours_are_more_than_0(api, client, entries, quantity):
    line = {"time_entry_ids": entries, "quantity": quantity}
    refused = api.create("/invoices", client_id=client, lines=[line])
    assert refused.errors == {"lines.0.quantity": ["Must be more than 0. The recorded hours are 1.4667."]}


def test_hours_of_several_rates_cannot_be_changed(api, client, entries):
    other = api.make("/time-entries", client_id=client, project_id=None, duration_minutes=50, hourly_rate="60")["id"]
    line = {"time_entry_ids": [*entries, other], "quantity": "3"}
    refused = api.create("/invoices", client_id=client, lines=[line])
    assert refused.errors.keys() == {"lines.0.quantity"}
