"""Papers: what an issued document says is stored when it is issued; later changes of it are versions."""

import pytest
from tests.api.test_files import LINE, PDF, SETTINGS, XML, issued, set_account, text_of
from tests.databases import each_database
from tests.documents.validators import texts

from retainer.billing import files

SETTLED = {
    "paid": ("Diese Rechnung ist bezahlt", {"status": "paid"}),
    "written_off": ("Diese Rechnung wurde ausgebucht", {"status": "written_off"}),
}


@pytest.fixture
def client(api):
    """A client of an agency that has all that an e-invoice needs."""
    set_account(api, **SETTINGS)
    return api.make("/clients", name="Bergmann Optik", country="DE", city="Ulm", currency="EUR")


def pdf(api, path, version=None):
    return text_of(api.get(path, {"version": version} if version else "", headers=PDF))


@each_database
def test_a_paper_does_not_depend_on_who_reads_it_first(api, client):
    read, unread = (f"/invoices/{issued(api, client)['id']}" for _ in range(2))
    pdf(api, read)
    api.get(read, headers=XML)
    for path in (read, unread):
        api.patch(path, {"purchase_order": "PO-77", "due_date": "2031-01-02"})
    number = api.get(read).data["number"], api.get(unread).data["number"]
    assert pdf(api, read).replace(number[0], "N") == pdf(api, unread).replace(number[1], "N")
    assert "PO-77" in pdf(api, unread)
    assert "PO-77" not in pdf(api, unread, version=1)
    for path in (read, unread):
        assert texts(api.get(path, headers=XML).body, "BuyerOrderReferencedDocument/ram:IssuerAssignedID") == ["PO-77"]


def test_an_issued_paper_ignores_later_changes_of_the_client_and_the_settings(api, client):
    invoice = issued(api, client)
    note = api.make(f"/invoices/{invoice['id']}/credit-notes", amount="50.00")
    quote = api.make("/quotes", client_id=client["id"], lines=[LINE], status="sent")
    paths = [f"/invoices/{invoice['id']}", f"/credit-notes/{note['id']}", f"/quotes/{quote['id']}"]
    tags = [api.get(path, headers=PDF).headers["etag"] for path in paths]
    set_account(api, legal_name="Another GmbH", iban="DE02120300000000202051", document_color="#ff0000")
    api.patch(f"/clients/{client['id']}", {"name": "Another client", "city": "Bonn", "language": "en"})
    for path, tag in zip(paths, tags, strict=True):
        assert api.get(path, headers=PDF | {"If-None-Match": tag}).status == 304
        text = text_of(api.get(path, headers=PDF))
        assert "Nordlicht Digital GmbH" in text
        assert "Another" not in text


def test_the_tag_of_a_draft_changes_with_what_it_prints(api, client):
    draft = api.make("/invoices", client_id=client["id"], lines=[LINE])
    path = f"/invoices/{draft['id']}"
    tag = api.get(path, headers=PDF).headers["etag"]
    assert api.get(path, headers=PDF | {"If-None-Match": tag}).status == 304
    api.patch(f"/clients/{client['id']}", {"name": "Another client"})
    answer = api.get(path, headers=PDF | {"If-None-Match": tag})
    assert answer.status == 200
    assert "Another client" in text_of(answer)


def test_a_change_of_what_is_printed_is_a_version_that_says_so(api, client):
    invoice = issued(api, client)
    path = f"/invoices/{invoice['id']}"
    first = api.get(path, headers=PDF).body
    contact = api.make("/external-contacts", client_id=client["id"], first_name="Ada", last_name="Berg")
    assert invoice["document_version"] == 1
    assert api.patch(path, {"contact_id": contact["id"]}).data["document_version"] == 2
    assert api.patch(path, {"notes": "Danke"}).data["document_version"] == 3
    for change in ({"notes": "Danke"}, {"external_id": "x-1"}, {"record_payment": {"amount": "19.00"}}):
        assert api.patch(path, change).data["document_version"] == 3
    text = pdf(api, path, version=3)
    for words in ("Version 3 vom", "Sie ersetzt die frühere Fassung.", "z. Hd. Ada Berg", "Danke"):
        assert words in text
    assert "Danke" not in pdf(api, path, version=2)
    assert api.get(path, "version=1", headers=PDF).body == first


def test_a_version_that_a_document_does_not_have_is_refused(api, client):
    path = f"/invoices/{issued(api, client)['id']}"
    message = "Is no version of this document. Its document_version is the newest."
    assert api.get(path, "version=2", headers=PDF).errors == {"version": [message]}
    draft = api.make("/invoices", client_id=client["id"], lines=[LINE])["id"]
    assert api.get(f"/invoices/{draft}", "version=1", headers=PDF).errors == {"version": [message]}
    advice = "Is only for other forms than JSON. Send Accept: application/pdf or application/xml."
    assert api.get(path, "version=1").errors == {"version": [advice]}


def test_a_void_invoice_says_so_and_asks_for_nothing(api, client):
    invoice = issued(api, client)
    path = f"/invoices/{invoice['id']}"
    original = api.get(path, headers=PDF).body, api.get(path, headers=XML).body
    api.patch(path, {"status": "void"})
    text = pdf(api, path)
    assert "Storniert" in text
    for words in ("überweisen", "DE89", "IBAN", "Scannen"):
        assert words not in text
    refused = api.get(path, headers=XML)
    assert (refused.status, refused.json["message"]) == (406, files.VOID)
    assert tuple(api.get(path, "version=1", headers=accept).body for accept in (PDF, XML)) == original


@pytest.mark.parametrize("status", SETTLED)
def test_a_settled_invoice_does_not_ask_for_payment(api, client, status):
    sentence, change = SETTLED[status]
    path = f"/invoices/{issued(api, client)['id']}"
    assert "Bitte überweisen Sie 119,00 €" in pdf(api, path)
    api.patch(path, change)
    text = pdf(api, path)
    assert sentence in text
    assert "überweisen" not in text
    assert api.get(path, headers=XML).status == 200


def test_an_invoice_that_is_credited_in_full_or_paid_in_part_says_what_is_due(api, client):
    credited, partly = (f"/invoices/{issued(api, client)['id']}" for _ in range(2))
    api.make(f"{credited}/credit-notes")
    assert "vollständig gutgeschrieben" in pdf(api, credited)
    api.patch(partly, {"record_payment": {"amount": "19.00"}})
    text = pdf(api, partly)
    assert "Von 119,00 € sind noch 100,00 € offen." in text
    assert "Rechnungsbetrag" not in text


@pytest.mark.parametrize(("status", "word"), [("declined", "Abgelehnt"), ("cancelled", "Zurückgezogen")])
def test_a_quote_that_is_over_says_so_and_asks_for_no_signature(api, client, status, word):
    quote = api.make("/quotes", client_id=client["id"], lines=[LINE], status="sent")
    path = f"/quotes/{quote['id']}"
    assert "unterschreiben" in pdf(api, path)
    api.patch(path, {"status": status})
    assert word in pdf(api, path)
    assert "unterschreiben" not in pdf(api, path)


def test_a_quote_that_is_sent_again_is_a_new_version(api, client):
    quote = api.make("/quotes", client_id=client["id"], lines=[LINE], status="sent")
    path = f"/quotes/{quote['id']}"
    api.patch(path, {"status": "cancelled"})
    assert api.patch(path, {"status": "draft"}).data["document_version"] is None
    lines = [LINE | {"description": "Other design"}]
    assert api.patch(path, {"lines": lines, "status": "sent"}).data["document_version"] == 2
    assert "Other design" in pdf(api, path)
    assert "Other design" not in pdf(api, path, version=1)


def test_the_service_period_covers_all_that_is_billed(api, client):
    project = api.make("/projects", client_id=client["id"], billing_type="fixed_fee", fixed_fee="500.00")["id"]
    stage = api.make(f"/projects/{project}/milestones", name="Stage", amount="500.00", status="completed")
    entry = api.make("/time-entries", client_id=client["id"], date="2025-03-02", duration_minutes=60, hourly_rate="90")
    work = [{"time_entry_ids": [entry["id"]]}, {"milestone_id": stage["id"]}]
    draft = api.make("/invoices", client_id=client["id"], lines=work)
    assert (draft["service_from"], draft["service_to"]) == (None, None)
    assert "Leistungszeitraum" in pdf(api, f"/invoices/{draft['id']}")
    invoice = api.patch(f"/invoices/{draft['id']}", {"status": "sent"}).data
    assert (invoice["service_from"], invoice["service_to"]) == ("2025-03-02", invoice["issue_date"])
    assert "2. März 2025" in pdf(api, f"/invoices/{draft['id']}")


def test_a_service_period_can_be_sent_and_is_fixed_once_issued(api, client):
    days = {"service_from": "2026-01-05", "service_to": "2026-01-31"}
    invoice = issued(api, client, **days)
    path = f"/invoices/{invoice['id']}"
    assert "5.\u201331. Januar 2026" in pdf(api, path)
    xml = api.get(path, headers=XML).body.decode()
    assert "20260105" in xml
    assert "20260131" in xml
    assert "locked" in api.patch(path, {"service_to": "2026-02-01"}).json["code"]
    wrong = api.create("/invoices", client_id=client["id"], service_from="2026-02-01", service_to="2026-01-01")
    assert set(wrong.errors) == {"service_to"}


def test_a_document_that_was_issued_before_facts_were_stored_keeps_its_files(api, client):
    invoice = issued(api, client)
    path, now = f"/invoices/{invoice['id']}", invoice["sent_at"]
    api.sql("DELETE FROM document_versions WHERE account_id = $1", api.account_id)
    drawn = pdf(api, path)
    assert "119,00 €" in drawn
    api.sql(
        "INSERT INTO issued_documents (account_id, created_at, updated_at, invoice_id, pdf, xml)"
        " VALUES ($1, $2, $3, $4, $5, $6)",
        *(api.account_id, now, now, invoice["id"], b"%PDF-stored", b"<stored/>"),
    )
    assert api.get(path, headers=PDF).body == b"%PDF-stored"
    assert api.get(path, headers=XML).body == b"<stored/>"
    assert api.patch(path, {"notes": "Neu"}).data["document_version"] == 2
    assert "Version 2 vom" in pdf(api, path)
    assert api.get(path, "version=1", headers=PDF).body == b"%PDF-stored"


def test_a_footer_that_is_empty_in_a_language_is_that_of_the_other(api, client):
    set_account(api, document_footer_de="Geschäftsführerin: Ada Berg", document_footer_en=None)
    api.patch(f"/clients/{client['id']}", {"language": "en"})
    invoice, quote = issued(api, client), api.make("/quotes", client_id=client["id"], lines=[LINE])
    for path in (f"/invoices/{invoice['id']}", f"/quotes/{quote['id']}"):
        assert "Geschäftsführerin: Ada Berg" in pdf(api, path)
    set_account(api, document_footer_en="Managing director: Ada Berg")
    assert "Managing director: Ada Berg" in pdf(api, f"/quotes/{quote['id']}")
    assert "Geschäftsführerin: Ada Berg" in pdf(api, f"/invoices/{invoice['id']}")


def test_an_issued_paper_keeps_its_reason_without_tax(api, client):
    set_account(api, country="FR", vat_number="FR25064285364", is_small_business=True)
    api.patch(f"/clients/{client['id']}", {"country": "FR", "language": "en"})
    path = f"/invoices/{issued(api, client, lines=[LINE | {'tax_rate': '0'}])['id']}"
    facts = api.sql("SELECT facts FROM document_versions WHERE account_id = $1", api.account_id)
    assert "TVA non applicable, art. 293 B du CGI" in str(facts)
    assert "TVA non applicable, art. 293 B du CGI" in pdf(api, path)
    assert texts(api.get(path, headers=XML).body, "ExemptionReason") == ["TVA non applicable, art. 293 B du CGI"]
