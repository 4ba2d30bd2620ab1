"""The PDF and the e-invoice of a document, which `Accept` chooses."""

import io
from xml.etree import ElementTree as ET

import facturx
import pypdf
import pytest
from testing.process import command, tell
from tests.databases import only_sqlite
from tests.documents.made import hostile_texts
from tests.documents.test_logo_files import png
from tests.documents.validators import broken_rules, values

from retainer.billing import files
from retainer.documents.einvoice import NAMESPACES
from retainer.values.texts import prints

PDF, XML = {"Accept": "application/pdf"}, {"Accept": "application/xml"}
LINE = {"description": "Design", "quantity": "10", "unit_price": "10", "tax_rate": "19"}  # 119.00 with tax
SETTINGS = {
    "legal_name": "Nordlicht Digital GmbH",
    "city": "Hamburg",
    "country": "DE",
    "vat_number": "DE123456788",
    "iban": "DE89370400440532013000",
    "document_language": "de",
}


def set_account(api, **settings):
    for name, value in settings.items():
        api.sql(f"UPDATE accounts SET {name} = $2 WHERE id = $1", api.account_id, value)


@pytest.fixture
def client(api):
    """A client of an agency that has all that an e-invoice needs."""
    set_account(api, **SETTINGS)
    return api.make("/clients", name="Bergmann Optik", country="DE", city="Ulm", currency="EUR")


def issued(api, client, **members):
    return api.make("/invoices", client_id=client["id"], status="sent", **({"lines": [LINE]} | members))


def text_of(answer):
    assert answer.headers["content-type"] == "application/pdf", answer
    reader = pypdf.PdfReader(io.BytesIO(answer.body))
    return " ".join(" ".join(page.extract_text() for page in reader.pages).replace("\u00a0", " ").split())


def test_invoice_as_pdf(api, client):
    invoice = issued(api, client)
    answer = api.get(f"/invoices/{invoice['id']}", headers=PDF)
    text = text_of(answer)
    for words in ("Nordlicht Digital GmbH", "Bergmann Optik", f"Rechnung {invoice['number']}", "119,00 €"):
        assert words in text
    assert answer.headers["content-disposition"] == f'inline; filename="{invoice["number"]}.pdf"'
    assert facturx.get_xml_from_pdf(answer.body)[0] == "factur-x.xml"


def test_invoice_as_xml_has_the_amounts_of_the_api(api, client):
    invoice = issued(api, client, lines=[LINE, LINE | {"unit_price": "3.333", "discount_percent": "7.5"}])
    answer = api.get(f"/invoices/{invoice['id']}", headers=XML)
    assert answer.headers["content-type"] == "application/xml"
    assert broken_rules(answer.body) == []
    assert [str(amount) for amount in values(answer.body, "DuePayableAmount")] == [invoice["total"]]
    assert facturx.get_xml_from_pdf(api.get(f"/invoices/{invoice['id']}", headers=PDF).body)[1] == answer.body


def test_credit_note_as_pdf_and_xml(api, client):
    invoice = issued(api, client)
    note = api.make(f"/invoices/{invoice['id']}/credit-notes", amount="50.00")
    assert f"Rechnungskorrektur {note['number']}" in text_of(api.get(f"/credit-notes/{note['id']}", headers=PDF))
    xml = api.get(f"/credit-notes/{note['id']}", headers=XML).body
    assert broken_rules(xml) == []
    assert (
        ET.fromstring(xml).find(".//ram:InvoiceReferencedDocument/ram:IssuerAssignedID", NAMESPACES).text
        == (invoice["number"])
    )


def test_quote_as_pdf_but_not_as_xml(api, client):
    quote = api.make("/quotes", client_id=client["id"], lines=[LINE])
    assert f"Angebot {quote['number']}" in text_of(api.get(f"/quotes/{quote['id']}", headers=PDF))
    assert api.get(f"/quotes/{quote['id']}", headers=XML).code == "not_acceptable"


@pytest.mark.parametrize("accept", ["*/*", "text/html", "garbage", "application/json, application/pdf", "a" * 300])
def test_other_accepts_get_json(api, client, accept):
    invoice = issued(api, client)
    assert api.get(f"/invoices/{invoice['id']}", headers={"Accept": accept}).data["id"] == invoice["id"]


def test_draft_is_rendered_anew_each_time(api, client):
    invoice = api.make("/invoices", client_id=client["id"], lines=[LINE], notes="First")
    path = f"/invoices/{invoice['id']}"
    assert "First" in text_of(api.get(path, headers=PDF))
    api.patch(path, {"notes": "Second"})
    text = text_of(api.get(path, headers=PDF))
    assert "Second" in text
    assert "Entwurf" in text
    refused = api.get(path, headers=XML)
    assert refused.errors == {"Accept": ["A draft has no e-invoice: issue the invoice first."]}


def test_what_an_einvoice_lacks_is_said(api, client):
    set_account(api, country=None, vat_number=None)
    invoice = issued(api, client)
    path = f"/invoices/{invoice['id']}"
    missing = ["The agency has no country: add it in the console under Settings."]
    missing.append("The agency's VAT number is missing: correct it in the console under Settings.")
    assert api.get(path, headers=XML).errors == {"Accept": [*missing, files.ISSUED_WITHOUT]}
    assert "119,00 €" in text_of(api.get(path, headers=PDF))
    set_account(api, **SETTINGS)
    assert "credit the invoice, and issue it again" in api.get(path, headers=XML).json["message"]


def test_etag_tells_representations_apart(api, client):
    invoice = issued(api, client)
    path = f"/invoices/{invoice['id']}"
    tags = {api.get(path, headers=accept).headers["etag"] for accept in ({}, PDF, XML)}
    assert len(tags) == 3
    tag = api.get(path, headers=PDF).headers["etag"]
    assert api.get(path, headers=PDF | {"If-None-Match": tag}).status == 304
    assert api.get(path, headers=XML | {"If-None-Match": tag}).status == 200
    assert api.patch(path, {"notes": "New"}, headers={"If-Match": tag}).status == 412


def test_document_of_another_account_does_not_exist(api, other_tenant, client):
    invoice = issued(api, client)
    assert other_tenant.get(f"/invoices/{invoice['id']}", headers=PDF).status == 404


def test_scope_is_that_of_the_record(api, client):
    invoice = issued(api, client)
    key = api.new_key(["clients:read"])
    assert api.get(f"/invoices/{invoice['id']}", headers=PDF, key=key).code == "missing_scope"


def test_language_of_the_client(api, client):
    api.sql("UPDATE clients SET language = 'en' WHERE account_id = $1 AND id = $2", api.account_id, client["id"])
    assert "Amount due" in text_of(api.get(f"/invoices/{issued(api, client)['id']}", headers=PDF))


def test_time_that_is_billed_gives_the_service_period(api, client):
    for day in ("2026-02-03", "2026-02-20"):
        api.make("/time-entries", client_id=client["id"], date=day, duration_minutes=20, hourly_rate="100.00")
    invoice = issued(api, client, lines=[], unbilled_work={"time": {}})
    text = text_of(api.get(f"/invoices/{invoice['id']}", headers=PDF))
    assert "3.\u201320. Februar 2026" in text
    xml = api.get(f"/invoices/{invoice['id']}", headers=XML).body
    assert broken_rules(xml) == []
    (price,), (base,), (hours,) = (values(xml, name) for name in ("ChargeAmount", "BasisQuantity", "BilledQuantity"))
    assert str(hours * price / base) == invoice["subtotal"]  # 66.66, not 0.6667 hours at 100.00


def test_logo_is_printed(api, client):
    stamps = "2026-01-01T00:00:00.000000Z"
    ((logo_id,),) = api.sql(
        "INSERT INTO logos (account_id, created_at, updated_at, content, sha256) "
        "VALUES ($1, $2, $3, $4, $5) RETURNING id",
        *(api.account_id, stamps, stamps, png(), "x"),
    )
    plain = api.get(f"/invoices/{issued(api, client)['id']}", headers=PDF).body
    set_account(api, logo_id=logo_id)
    assert len(api.get(f"/invoices/{issued(api, client)['id']}", headers=PDF).body) != len(plain)


def test_hostile_texts_pass_the_api_and_stay_texts(api, client):
    texts = [text for text in hostile_texts() if prints(text) and "\u0301" * 31 not in text]
    api.patch(f"/clients/{client['id']}", {"name": "#panic() <b>\u202eevil", "city": "$x$ \\ ]]>"})
    invoice = issued(api, client, subject="*#include*", lines=[LINE | {"description": text} for text in texts])
    text = text_of(api.get(f"/invoices/{invoice['id']}", headers=PDF))
    for words in ("#panic() <b>evil", "$x$ \\ ]]>", "*#include*", "<script>alert(1)</script>"):
        assert words in text
    xml = api.get(f"/invoices/{invoice['id']}", headers=XML).body
    assert broken_rules(xml) == []
    assert len(ET.fromstring(xml).findall(".//ram:LineID", NAMESPACES)) == len(texts) > 190


@only_sqlite
def test_command_writes_the_same_files(api, client, tmp_path):
    invoice = issued(api, client)
    database = {"RETAINER_DATABASE_URL": f"sqlite:///{api.path}"}
    said = tell(tmp_path, "pdf", "invoice", invoice["id"], **database)
    assert said["file"] == f"{invoice['number']}.pdf"
    content = (tmp_path / said["file"]).read_bytes()
    assert content == api.get(f"/invoices/{invoice['id']}", headers=PDF).body
    tell(tmp_path, "pdf", "invoice", invoice["id"], "--xml", "--output", "invoice.xml", **database)
    assert (tmp_path / "invoice.xml").read_bytes() == api.get(f"/invoices/{invoice['id']}", headers=XML).body


@only_sqlite
def test_command_says_what_an_einvoice_lacks(api, client, tmp_path):
    quote = api.make("/quotes", client_id=client["id"], lines=[LINE])
    database = {"RETAINER_DATABASE_URL": f"sqlite:///{api.path}"}
    result = command(tmp_path, "pdf", "quote", quote["id"], "--xml", **database)
    assert (result.status, result.out, result.err) == (1, "", "There is no e-invoice. A quote has no e-invoice.\n")


LONG_TEXT = "Documentation of the international communication infrastructure. " * 30


def test_a_document_that_takes_too_long_says_what_can_be_done_about_it(api, client, monkeypatch):
    monkeypatch.setattr(files, "MAX_SECONDS", 0.02)
    lines = [LINE | {"description": LONG_TEXT}] * 200
    draft = api.make("/invoices", client_id=client["id"], lines=lines)
    answer = api.get(f"/invoices/{draft['id']}", headers=PDF)
    assert (answer.status, answer.json["code"]) == (422, "validation_failed")
    what = "This document takes more than 0.02 seconds of processor time."
    assert answer.errors == {"Accept": [f"{what} Shorten its texts."]}
    api.patch(f"/invoices/{draft['id']}", {"status": "sent"})
    fixed = "It is issued, so its texts are fixed: credit the invoice, and issue it again with shorter ones."
    answer = api.get(f"/invoices/{draft['id']}", headers=PDF)
    assert answer.errors == {"Accept": [f"{what} {fixed}"]}
    monkeypatch.undo()
    assert api.get(f"/invoices/{draft['id']}", headers=PDF).status == 200, "the server goes on"


def test_a_credit_of_an_amount_is_described_once_in_the_language_of_the_client(api, client):
    invoice = issued(api, client)
    path = f"/invoices/{invoice['id']}/credit-notes"
    note = api.make(path, amount="50.00", description="Nachlass wegen Verzug")
    assert [line["description"] for line in note["lines"]] == [f"Korrektur zu Rechnung {invoice['number']}"]
    text = text_of(api.get(f"/credit-notes/{note['id']}", headers=PDF))
    assert text.count("Nachlass wegen Verzug") == 1
    api.patch(f"/clients/{client['id']}", {"language": "en"})
    other = api.make(path, amount="10.00")
    assert [line["description"] for line in other["lines"]] == [f"Credit on invoice {invoice['number']}"]
