"""The lines of a draft as a set: each is known by its id, wherever it stands (contract 1.4, sets of children)."""

import pytest

DESIGN = {"description": "Design", "quantity": "2", "unit_price": "800", "tax_rate": "19"}
BUILD = {"description": "Build", "quantity": "3", "unit_price": "500", "tax_rate": "19"}
BOTH = pytest.mark.parametrize("collection", ["/quotes", "/invoices"])


def draft(office, collection, *lines):
    """The path of a draft with these lines, and the lines as they were answered."""
    document = office.make(collection, lines=list(lines) or [DESIGN, BUILD])
    return f"{collection}/{document['id']}", document["lines"]


@BOTH
def test_lines_that_change_places_keep_their_ids_and_what_they_say(office, collection):
    path, (design, build) = draft(office, collection)
    changed = office.patch(path, {"lines": [build, design]}).data["lines"]
    stamps = ("id", "created_at", "description", "amount")
    assert [[line[name] for name in stamps] for line in changed] == [
        [line[name] for name in stamps] for line in (build, design)
    ]
    assert [line["position"] for line in changed] == [1, 2]
    assert office.delete(f"{path}/lines/{design['id']}").status == 204
    assert [line["description"] for line in office.get(path).data["lines"]] == ["Build"]


@BOTH
def test_a_line_named_by_its_id_keeps_what_is_not_said_of_it(office, collection):
    path, (design, build) = draft(office, collection)
    sent = [{"id": build["id"], "quantity": "4"}, {"id": design["id"]}]
    changed = office.patch(path, {"lines": sent}).data
    assert [line["description"] for line in changed["lines"]] == ["Build", "Design"]
    assert [line["amount"] for line in changed["lines"]] == ["2000.00", "1600.00"]
    assert changed["subtotal"] == "3600.00"


@BOTH
def test_a_line_without_an_id_is_new_and_one_that_is_left_out_is_deleted(office, collection):
    path, (design, build) = draft(office, collection)
    changed = office.patch(path, {"lines": [{**DESIGN, "description": "Launch"}, {"id": build["id"]}]}).data["lines"]
    assert [line["description"] for line in changed] == ["Launch", "Build"]
    assert changed[0]["id"] > build["id"]
    assert changed[1]["id"] == build["id"]
    assert office.delete(f"{path}/lines/{design['id']}").status == 404


@BOTH
def test_an_id_of_another_document_or_named_twice_is_refused_where_it_stands(office, stranger, collection):
    path, (design, build) = draft(office, collection)
    _, (other, _) = draft(office, collection)
    _, (foreign, _) = draft(stranger, collection)
    before = office.get(path).data
    for unknown in (other["id"], 10**9):
        answer = office.patch(path, {"lines": [{"id": design["id"]}, {"id": unknown}]})
        assert answer.errors == {"lines.1.id": [f"Line {unknown} is not here. Leave the id out for a new line."]}
    assert set(office.patch(path, {"lines": [{"id": foreign["id"] + 100}]}).errors) == {"lines.0.id"}
    twice = office.patch(path, {"lines": [{"id": build["id"]}, {"id": build["id"]}, {**DESIGN, "quantity": "x"}]})
    assert set(twice.errors) == {"lines.1.id", "lines.2.quantity"}
    assert "named twice" in twice.errors["lines.1.id"][0]
    assert set(office.create(collection, lines=[{"id": design["id"]}]).errors) == {"lines.0.id"}
    assert set(office.patch(path, {"lines": [{"id": "1"}]}).errors) == {"lines.0.id"}
    assert office.get(path).data == before


def test_work_stays_on_the_line_that_bills_it_when_lines_change_places(office):
    client = office.make("/clients", hourly_rate="100")["id"]
    entry = office.make("/time-entries", client_id=client, duration_minutes=90)["id"]
    other = office.make("/time-entries", client_id=client, duration_minutes=30)["id"]
    invoice = office.make("/invoices", client_id=client, lines=[DESIGN, {"time_entry_ids": [entry]}])
    path, (design, time) = f"/invoices/{invoice['id']}", invoice["lines"]
    assert (time["quantity"], time["unit_price"]) == ("1.5", "100.00")
    changed = office.patch(path, {"lines": [time, design]}).data["lines"]
    assert changed[0] == time | {"position": 1, "updated_at": changed[0]["updated_at"]}
    assert office.get(f"/time-entries/{entry}").data["invoice_line_id"] == time["id"]
    more = office.patch(path, {"lines": [{"id": time["id"], "time_entry_ids": [entry, other]}]}).data["lines"]
    assert [(line["id"], line["quantity"], line["amount"]) for line in more] == [(time["id"], "2", "200.00")]
    assert office.get(f"/time-entries/{other}").data["invoice_line_id"] == time["id"]


def test_a_quantity_or_price_that_is_not_that_of_the_work_is_refused(office):
    client = office.make("/clients", hourly_rate="100")["id"]
    entry = office.make("/time-entries", client_id=client, duration_minutes=90)["id"]
    path = f"/invoices/{office.make('/invoices', client_id=client)['id']}"
    answer = office.post(f"{path}/lines", {"time_entry_ids": [entry], "quantity": "8", "unit_price": "1"})
    assert answer.errors == {
        "quantity": ["Is that of the work: 1.5. Leave it out."],
        "unit_price": ["Is that of the work: 100.00. Leave it out."],
    }
    line = office.post(f"{path}/lines", {"time_entry_ids": [entry], "quantity": "1.50", "unit_price": 100}).data
    assert line["amount"] == "150.00"
    assert set(office.patch(path, {"lines": [{"id": line["id"], "quantity": "3"}]}).errors) == {"lines.0.quantity"}
    assert office.patch(path, {"lines": [line]}).data["lines"] == [line]


@BOTH
def test_null_lines_are_refused_and_an_empty_list_deletes_them(office, collection):
    path, lines = draft(office, collection)
    assert office.patch(path, {"lines": None}).errors == {"lines": ["Must be a list; send [] for none."]}
    assert office.get(path).data["lines"] == lines
    assert office.patch(path, {"lines": []}).data["lines"] == []
