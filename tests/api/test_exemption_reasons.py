"""The reason for a zero rate on quotes and invoices: its default, its lock, and where it is copied and printed."""

import pytest
from tests.api.test_files import PDF, SETTINGS, XML, set_account, text_of
from tests.documents.validators import broken_rules, texts

LINE = {"description": "Course", "quantity": "1", "unit_price": "100", "tax_rate": "0"}
GERMAN, ENGLISH = "Steuerfrei nach § 4 Nr. 21 UStG", "Exempt under § 4 No. 21 UStG"
REASON = "ApplicableTradeTax/ram:ExemptionReason"


@pytest.fixture
def client(api):
    set_account(api, **SETTINGS, tax_exemption_reason_de=GERMAN, tax_exemption_reason_en=ENGLISH)
    return api.make("/clients", name="Bergmann Optik", country="DE", currency="EUR")


@pytest.mark.parametrize("path", ["/quotes", "/invoices"])
def test_new_document_has_the_reason_of_the_account_in_the_language_of_the_client(api, client, path):
    document = api.make(path, client_id=client["id"], lines=[LINE])
    assert document["tax_exemption_reason"] == GERMAN
    other = api.make("/clients", country="DE", language="en")
    assert api.make(path, client_id=other["id"])["tax_exemption_reason"] == ENGLISH
    own = api.make(path, client_id=client["id"], tax_exemption_reason="§ 4 Nr. 14 UStG")
    assert own["tax_exemption_reason"] == "§ 4 Nr. 14 UStG"
    cleared = api.patch(f"{path}/{own['id']}", {"tax_exemption_reason": None})
    assert cleared.data["tax_exemption_reason"] is None
    refused = api.post(path, {"client_id": client["id"], "tax_exemption_reason": "x" * 256})
    assert "tax_exemption_reason" in refused.errors


def test_reason_is_printed_and_stays_when_the_invoice_is_issued(api, client):
    invoice = api.make("/invoices", client_id=client["id"], lines=[LINE], status="sent")
    path = f"/invoices/{invoice['id']}"
    note = api.make(f"{path}/credit-notes")
    set_account(api, tax_exemption_reason_de="Another", is_small_business=True, document_language="en")
    assert api.patch(path, {"tax_exemption_reason": "Other"}).code == "locked"
    for issued in (path, f"/credit-notes/{note['id']}"):
        assert GERMAN in text_of(api.get(issued, headers=PDF))
        xml = api.get(issued, headers=XML).body
        assert texts(xml, REASON) == [GERMAN]
        assert broken_rules(xml) == []


def test_credit_note_takes_back_the_tax_of_its_invoice(api, client):
    set_account(api, is_small_business=True, tax_exemption_reason_de=None)
    invoice = api.make("/invoices", client_id=client["id"], lines=[LINE], status="sent")
    set_account(api, is_small_business=False)
    note = api.make(f"/invoices/{invoice['id']}/credit-notes")
    assert "§ 19 UStG" in text_of(api.get(f"/credit-notes/{note['id']}", headers=PDF))


def test_credit_note_for_a_client_outside_the_eu_has_the_category_of_its_invoice(api, client):
    set_account(api, tax_outside_eu="not_subject", tax_exemption_reason_de=None)
    abroad = api.make("/clients", name="Lakeside", country="US", currency="EUR", language="de")["id"]
    invoice = api.make("/invoices", client_id=abroad, lines=[LINE], status="sent")
    set_account(api, tax_outside_eu="exempt")
    note = api.make(f"/invoices/{invoice['id']}/credit-notes")
    for path in (f"/invoices/{invoice['id']}", f"/credit-notes/{note['id']}"):
        assert "Im Inland nicht steuerbar" in text_of(api.get(path, headers=PDF)), path


def test_quote_hands_its_reason_to_its_invoice_and_is_fixed_once_sent(api, client):
    quote = api.make("/quotes", client_id=client["id"], lines=[LINE], tax_exemption_reason="Why", status="accepted")
    assert api.patch(f"/quotes/{quote['id']}", {"tax_exemption_reason": "Other"}).code == "locked"
    assert "Why" in text_of(api.get(f"/quotes/{quote['id']}", headers=PDF))
    made = api.make("/invoices", quote_id=quote["id"], client_id=client["id"])
    assert made["tax_exemption_reason"] == "Why"


def test_new_lines_of_a_small_business_have_no_tax_unless_the_client_has_a_rate(api, client):
    set_account(api, is_small_business=True, tax_rate="19")
    line = {"description": "Course", "unit_price": "100"}
    invoice = api.make("/invoices", client_id=client["id"], lines=[line])
    assert invoice["lines"][0]["tax_rate"] == "0"
    assert api.make(f"/invoices/{invoice['id']}/lines", **line)["tax_rate"] == "0"
    taxed = api.make("/clients", tax_rate="7")
    assert api.make("/quotes", client_id=taxed["id"], lines=[line])["lines"][0]["tax_rate"] == "7"
