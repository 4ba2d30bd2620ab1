"""Every write of a quote or an invoice is answered with warnings, while the document can still change."""

from datetime import date, timedelta

import pytest
from tests.api.test_files import SETTINGS, set_account

LINE = {"description": "Design", "quantity": "1", "unit_price": "100", "tax_rate": "19"}


@pytest.fixture
def client(api):
    set_account(api, **SETTINGS, address_line1="Hafenstraße 12")
    address = {"address_line1": "Ring 1", "city": "Wien", "country": "AT"}
    return api.make("/clients", name="Atelier", **address, vat_number="none", currency="EUR")


def codes(answer):
    assert answer.status in {200, 201}, answer
    return [(warning["code"], warning["field"]) for warning in answer.json["meta"]["warnings"]]


NO_NUMBER = [("zero_rate_without_vat_number", "lines.0.tax_rate")]


@pytest.mark.parametrize("path", ["/quotes", "/invoices"])
def test_each_write_of_a_draft_has_the_warnings_of_its_state(api, client, path):
    untaxed = LINE | {"tax_rate": "0"}
    made = api.post(path, {"client_id": client["id"], "lines": [untaxed]})
    assert codes(made) == NO_NUMBER
    (warning,) = made.json["meta"]["warnings"]
    assert warning["message"].startswith("Atelier in Austria is billed without tax, and `none` is no VAT number.")
    own = f"{path}/{made.data['id']}"
    for write in (api.patch, api.put):
        assert codes(write(own, {"notes": "\u10e5"})) == [*NO_NUMBER, ("unprintable_characters", "notes")]
        assert codes(write(own, {"notes": None})) == NO_NUMBER
    assert codes(api.post(f"{own}/lines", LINE)) == NO_NUMBER
    assert codes(api.put(f"{path}/external:w-1", {"client_id": client["id"], "lines": [untaxed]})) == NO_NUMBER
    assert codes(api.put(f"{path}/external:w-1", {"lines": [LINE]})) == []
    assert "meta" not in api.get(own).json


@pytest.mark.parametrize("path", ["/quotes", "/invoices"])
def test_step_that_fixes_a_document_warns_and_later_writes_do_not(api, client, path):
    sent = api.post(path, {"client_id": client["id"], "lines": [LINE | {"tax_rate": "0"}], "status": "sent"})
    assert codes(sent) == NO_NUMBER
    assert codes(api.patch(f"{path}/{sent.data['id']}", {"notes": "New"})) == []
    draft = api.post(path, {"client_id": client["id"], "lines": [LINE | {"tax_rate": "0"}]})
    assert codes(api.patch(f"{path}/{draft.data['id']}", {"status": "sent"})) == NO_NUMBER


@pytest.mark.parametrize("status", ["accepted", "declined", "cancelled"])
def test_a_quote_that_is_decided_and_no_longer_sent_has_no_warnings(api, client, status):
    draft = api.post("/quotes", {"client_id": client["id"], "lines": [LINE], "issue_date": "2020-01-31"})
    assert codes(draft) == [("distant_issue_date", "issue_date")]
    assert codes(api.patch(f"/quotes/{draft.data['id']}", {"status": status})) == []


def test_warning_about_the_settings_has_no_field(api, client):
    set_account(api, country=None)
    warned = codes(api.post("/invoices", {"client_id": client["id"], "lines": [LINE]}))
    assert warned == [("no_einvoice", None)]
    assert codes(api.post("/quotes", {"client_id": client["id"], "lines": [LINE]})) == []


def test_date_is_compared_with_today(api, client):
    past = [("distant_issue_date", "issue_date"), ("due_date_past", "due_date")]
    for day, expected in (("2020-01-31", past), (None, [])):
        answer = api.post("/invoices", {"client_id": client["id"], "lines": [LINE], "issue_date": day})
        assert codes(answer) == expected


def test_an_invoice_with_a_date_before_that_of_the_preceding_one_is_warned_about(api, client):
    def sent(day, **members):
        body = {"client_id": client["id"], "lines": [LINE], "issue_date": day, "due_date": "2031-01-31", **members}
        answer = api.post("/invoices", body)
        warned = [each for each in answer.json["meta"]["warnings"] if each["code"] == "date_before_preceding_invoice"]
        return answer.data, warned

    today = api.make("/quotes", client_id=client["id"], lines=[LINE])["issue_date"]
    yesterday, earlier = (str(date.fromisoformat(today) - timedelta(days=days)) for days in (1, 2))
    assert sent(yesterday, status="sent")[1] == []
    assert sent(yesterday)[1] == []
    draft, warned = sent(earlier)
    number = f"INV-{yesterday[:4]}-0001"
    assert [(each["field"], number in each["message"]) for each in warned] == [("issue_date", True)]
    assert f"bears {yesterday}" in warned[0]["message"]
    assert sent(earlier, status="sent")[1] == warned
    assert sent(earlier)[1] == [], "the preceding one has the same date now"
    path = f"/invoices/{draft['id']}"
    assert "date_before_preceding_invoice" not in str(api.patch(path, {"issue_date": today}).json["meta"])


def test_the_invoices_of_another_year_are_another_series(api, client):
    body = {"client_id": client["id"], "lines": [LINE], "status": "sent"}
    api.post("/invoices", body)
    last_year = str(int(api.make("/invoices", **body)["issue_date"][:4]) - 1)
    warned = codes(api.post("/invoices", body | {"issue_date": f"{last_year}-12-30"}))
    assert "date_before_preceding_invoice" not in dict(warned)
