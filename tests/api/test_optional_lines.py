"""Optional lines of quotes: beside the total until the client accepts them, and on no invoice unless accepted."""

import pytest
from tests.api.test_files import PDF, SETTINGS, set_account, text_of
from tests.databases import each_database

from retainer.doctor import documents

BASE = {"description": "Website", "unit_price": "1000", "tax_rate": "19"}
OPTION = {"description": "Photographs", "unit_price": "500", "tax_rate": "7", "is_optional": True}
TITLE = "Optional, nicht im Gesamtbetrag enthalten"


@pytest.fixture
def quote(api):
    set_account(api, **SETTINGS)
    client = api.make("/clients", name="Bergmann Optik", country="DE", city="Ulm", currency="EUR")
    lines = [BASE, OPTION, OPTION | {"description": "Texts"}]
    return api.make("/quotes", client_id=client["id"], title="Relaunch", lines=lines, status="sent")


def pdf(api, quote, version=None):
    return text_of(api.get(f"/quotes/{quote['id']}", {"version": version} if version else "", headers=PDF))


@each_database
def test_an_optional_line_is_beside_the_totals(api, quote):
    assert [line["is_optional"] for line in quote["lines"]] == [False, True, True]
    assert (quote["subtotal"], quote["total"]) == ("1000.00", "1190.00")
    assert [share["tax_rate"] for share in quote["tax_breakdown"]] == ["19"]
    text = pdf(api, quote)
    before, _, after = text.partition(TITLE)
    assert ("Website" in before, "Photographs" in before) == (True, False)
    assert ("Photographs" in after, "Texts" in after) == (True, True)
    with api.operating() as tx:
        assert list(documents.find(tx)) == []


@each_database
def test_accepted_optional_lines_become_ordinary(api, quote):
    chosen = quote["lines"][1]["id"]
    accepted = api.patch(f"/quotes/{quote['id']}", {"status": "accepted", "accepted_line_ids": [chosen]}).data
    assert [line["is_optional"] for line in accepted["lines"]] == [False, False, True]
    assert (accepted["subtotal"], accepted["total"]) == ("1500.00", "1725.00")
    assert [line["id"] for line in accepted["lines"]] == [line["id"] for line in quote["lines"]]
    assert accepted["document_version"] == 2
    first, second = (pdf(api, quote, version).partition(TITLE) for version in (1, 2))
    assert ("Photographs" in first[2], "Photographs" in second[0]) == (True, True)
    assert ("1.190,00" in first[0], "1.725,00" in second[0]) == (True, True)
    assert "Texts" in second[2]
    again = api.patch(f"/quotes/{quote['id']}", {"status": "accepted", "accepted_line_ids": [chosen]})
    assert (again.status, again.data["updated_at"]) == (200, accepted["updated_at"])
    with api.operating() as tx:
        assert list(documents.find(tx)) == []


def test_an_invoice_and_a_project_take_only_ordinary_lines(api, quote):
    chosen = quote["lines"][2]["id"]
    api.patch(f"/quotes/{quote['id']}", {"status": "accepted", "accepted_line_ids": [chosen]})
    invoice = api.post("/invoices", {"quote_id": quote["id"]}).data
    assert [line["description"] for line in invoice["lines"]] == ["Website", "Texts"]
    assert invoice["total"] == "1725.00"
    assert "is_optional" not in invoice["lines"][0]


def test_accepting_without_names_leaves_optional_lines_beside_the_total(api, quote):
    accepted = api.patch(f"/quotes/{quote['id']}", {"status": "accepted"}).data
    assert (accepted["total"], accepted["document_version"]) == ("1190.00", 1)
    invoice = api.post("/invoices", {"quote_id": quote["id"]}).data
    assert [line["description"] for line in invoice["lines"]] == ["Website"]


def test_a_draft_is_accepted_with_its_optional_lines_at_once(api, quote):
    path = f"/quotes/{api.make('/quotes', client_id=quote['client_id'], lines=[BASE, OPTION])['id']}"
    chosen = api.get(path).data["lines"][1]["id"]
    accepted = api.patch(path, {"status": "accepted", "accepted_line_ids": [chosen]}).data
    assert (accepted["total"], accepted["document_version"]) == ("1725.00", 1)


def test_what_cannot_be_accepted_is_refused(api, quote):
    path, chosen = f"/quotes/{quote['id']}", quote["lines"][1]["id"]
    other = api.make("/quotes", client_id=quote["client_id"], lines=[OPTION], status="sent")
    refused = api.patch(path, {"status": "accepted", "accepted_line_ids": [other["lines"][0]["id"]]})
    message = "Is no line of this quote. Name its optional lines by their ids."
    assert refused.errors == {"accepted_line_ids.0": [message]}
    early = api.patch(path, {"accepted_line_ids": [chosen]})
    message = "Must come with the status accepted, in the update that accepts the quote."
    assert early.errors == {"accepted_line_ids": [message]}
    empty = api.patch(f"/quotes/{other['id']}", {"status": "accepted"})
    assert empty.errors == {"accepted_line_ids": ["All lines are optional: name those that the client accepts."]}
    api.patch(path, {"status": "accepted"})
    assert api.patch(path, {"accepted_line_ids": [chosen]}).errors == {"accepted_line_ids": [message]}
    assert api.get(path).data["total"] == "1190.00"


def test_is_optional_is_locked_with_the_lines_of_a_sent_quote(api, quote):
    lines = [{"id": line["id"], "is_optional": False} for line in quote["lines"]]
    assert api.patch(f"/quotes/{quote['id']}", {"lines": lines}).code == "locked"
    added = api.post(f"/quotes/{quote['id']}/lines", OPTION)
    assert added.code == "locked"


def test_a_line_is_added_to_a_draft_as_optional(api, quote):
    draft = api.make("/quotes", client_id=quote["client_id"], lines=[BASE])
    answer = api.post(f"/quotes/{draft['id']}/lines", OPTION)
    assert answer.data["is_optional"] is True
    assert answer.json["meta"]["quote"]["total"] == "1190.00"
