"""The lines of a draft as a set: each is identified by its id, not by its position."""

import pytest

DESIGN = {"description": "Design", "quantity": "2", "unit_price": "800", "tax_rate": "19"}
BUILD = {"description": "Build", "quantity": "3", "unit_price": "500", "tax_rate": "19"}
BOTH = pytest.mark.parametrize("collection", ["/quotes", "/invoices"])


def draft(api, collection, *lines):
    """Return the path of a draft with these lines, and its lines."""
    document = api.make(collection, lines=list(lines) or [DESIGN, BUILD])
    return f"{collection}/{document['id']}", document["lines"]


@BOTH
def test_lines_that_change_places_keep_their_ids_and_fields(api, collection):
    path, (design, build) = draft(api, collection)
    changed = api.patch(path, {"lines": [build, design]}).data["lines"]
    stamps = ("id", "created_at", "description", "amount")
    assert [[line[name] for name in stamps] for line in changed] == [
        [line[name] for name in stamps] for line in (build, design)
    ]
    assert [line["position"] for line in changed] == [1, 2]
    assert api.delete(f"{path}/lines/{design['id']}").status == 204
    assert [line["description"] for line in api.get(path).data["lines"]] == ["Build"]


@BOTH
def test_a_line_named_by_its_id_keeps_the_omitted_fields(api, collection):
    path, (design, build) = draft(api, collection)
    sent = [{"id": build["id"], "quantity": "4"}, {"id": design["id"]}]
    changed = api.patch(path, {"lines": sent}).data
    assert [line["description"] for line in changed["lines"]] == ["Build", "Design"]
    assert [line["amount"] for line in changed["lines"]] == ["2000.00", "1600.00"]
    assert changed["subtotal"] == "3600.00"


@BOTH
def test_a_line_without_an_id_is_new_and_an_omitted_line_is_deleted(api, collection):
    path, (design, build) = draft(api, collection)
    changed = api.patch(path, {"lines": [{**DESIGN, "description": "Launch"}, {"id": build["id"]}]}).data["lines"]
    assert [line["description"] for line in changed] == ["Launch", "Build"]
    assert changed[0]["id"] > build["id"]
    assert changed[1]["id"] == build["id"]
    assert api.delete(f"{path}/lines/{design['id']}").status == 404


@BOTH
def test_an_unknown_or_repeated_id_is_refused_at_its_path(api, other_tenant, collection):
    path, (design, build) = draft(api, collection)
    _, (other, _) = draft(api, collection)
    _, (foreign, _) = draft(other_tenant, collection)
    before = api.get(path).data
    for unknown in (other["id"], 10**9):
        answer = api.patch(path, {"lines": [{"id": design["id"]}, {"id": unknown}]})
        assert answer.errors == {"lines.1.id": [f"Line {unknown} is not here. Omit the id for a new line."]}
    assert set(api.patch(path, {"lines": [{"id": foreign["id"] + 100}]}).errors) == {"lines.0.id"}
    twice = api.patch(path, {"lines": [{"id": build["id"]}, {"id": build["id"]}, {**DESIGN, "quantity": "x"}]})
    assert set(twice.errors) == {"lines.1.id", "lines.2.quantity"}
    assert "named twice" in twice.errors["lines.1.id"][0]
    assert set(api.create(collection, lines=[{"id": design["id"]}]).errors) == {"lines.0.id"}
    assert set(api.patch(path, {"lines": [{"id": "1"}]}).errors) == {"lines.0.id"}
    assert api.get(path).data == before


def test_work_stays_on_the_line_that_bills_it_when_lines_change_places(api):
    client = api.make("/clients", hourly_rate="100")["id"]
    entry = api.make("/time-entries", client_id=client, duration_minutes=90)["id"]
    other = api.make("/time-entries", client_id=client, duration_minutes=30)["id"]
    invoice = api.make("/invoices", client_id=client, lines=[DESIGN, {"time_entry_ids": [entry]}])
    path, (design, time) = f"/invoices/{invoice['id']}", invoice["lines"]
    assert (time["quantity"], time["unit_price"]) == ("1.5", "100.00")
    changed = api.patch(path, {"lines": [time, design]}).data["lines"]
    assert changed[0] == time | {"position": 1, "updated_at": changed[0]["updated_at"]}
    assert api.get(f"/time-entries/{entry}").data["invoice_line_id"] == time["id"]
    more = api.patch(path, {"lines": [{"id": time["id"], "time_entry_ids": [entry, other]}]}).data["lines"]
    assert [(line["id"], line["quantity"], line["amount"]) for line in more] == [(time["id"], "2", "200.00")]
    assert api.get(f"/time-entries/{other}").data["invoice_line_id"] == time["id"]


def test_a_price_other_than_that_of_the_work_is_refused(api):
    client = api.make("/clients", hourly_rate="100")["id"]
    entry = api.make("/time-entries", client_id=client, duration_minutes=90)["id"]
    path = f"/invoices/{api.make('/invoices', client_id=client)['id']}"
    answer = api.post(f"{path}/lines", {"time_entry_ids": [entry], "quantity": "8", "unit_price": "1"})
    assert answer.errors == {"unit_price": ["Is that of the work: 100.00. Leave it out."]}
    line = api.post(f"{path}/lines", {"time_entry_ids": [entry], "quantity": "1.50", "unit_price": 100}).data
    assert line["amount"] == "150.00"
    assert set(api.patch(path, {"lines": [{"id": line["id"], "unit_price": "3"}]}).errors) == {"lines.0.unit_price"}
    assert api.patch(path, {"lines": [line]}).data["lines"] == [line]


@BOTH
def test_null_lines_are_refused_and_an_empty_list_deletes_them(api, collection):
    path, lines = draft(api, collection)
    assert api.patch(path, {"lines": None}).errors == {"lines": ["Must be a list; send [] for none."]}
    assert api.get(path).data["lines"] == lines
    assert api.patch(path, {"lines": []}).data["lines"] == []
