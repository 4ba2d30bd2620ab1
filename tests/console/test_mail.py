"""Sending documents from the console: the page shows the message as it arrives, and the record who got it."""

import pytest

from tests.mail.server import Post

LINES = [{"description": "Design", "unit_price": "100", "tax_rate": "19"}]


@pytest.fixture
def invoice(api):
    client = api.make("/clients", name="Bergmann Optik", email="info@bergmann.example", language="de")["id"]
    return api.make("/invoices", client_id=client, lines=LINES)


@pytest.fixture
def post(api):
    made = Post(api)
    yield made
    made.close()


def page_of(invoice, action=""):
    return f"/records/invoices/{invoice['id']}{action}"


def test_a_draft_is_issued_and_sent_as_its_page_has_shown(api, visitor, invoice, post):
    assert "Issue and send…" in visitor.get(f"/console{page_of(invoice)}").text
    page = visitor.get(f"/console{page_of(invoice, '/issue-and-send')}")
    assert "info@bergmann.example" in page.text
    assert "anbei erhalten Sie unsere Rechnung INV-" in page.text
    assert "119,00" in page.text
    assert api.get(f"/invoices/{invoice['id']}").data["status"] == "draft", "only a rehearsal"
    assert api.get("/messages").data == []
    done = visitor.submit(
        f"/console{page_of(invoice, '/issue-and-send')}",
        cc="boss@bergmann.example",
        message="{agency} sagt Danke für {number}",
    )
    number = api.get(f"/invoices/{invoice['id']}").data["number"]
    assert f"{number} is being sent to info@bergmann.example, boss@bergmann.example." in done.text
    assert post.send() == 2
    assert {got.recipient for got in post.server.got} == {"info@bergmann.example", "boss@bergmann.example"}
    assert f"North sagt Danke für {number}" in post.server.got[0].message.get_body().get_content()
    record = visitor.get(f"/console{page_of(invoice)}").text
    assert "Messages" in record
    assert "boss@bergmann.example" in record


def test_wrong_addresses_are_said_beside_their_field_and_nothing_is_issued(api, visitor, invoice):
    path = f"/console{page_of(invoice, '/issue-and-send')}"
    page = visitor.submit(path, to="info@bergmann.example, nobody", bcc="größe@x.example")
    assert page.status == 422
    assert "email address" in page.error_of("to")
    assert "letters before the @" in visitor.submit(path, bcc="größe@x.example").error_of("bcc")
    assert api.get(f"/invoices/{invoice['id']}").data["status"] == "draft"


def test_a_refused_address_is_on_the_record_and_on_today_until_it_is_sent_again(api, visitor, invoice, post):
    visitor.submit(f"/console{page_of(invoice, '/issue-and-send')}")
    post.server.answer = lambda step, _: "550 5.1.1 no such user" if step == "rcpt" else None
    post.send()
    assert "550 5.1.1 no such user" in visitor.get(f"/console{page_of(invoice)}").text
    assert "Mail that was not sent" in visitor.get("/console").text
    visitor.submit(f"/console{page_of(invoice, '/mail')}", to="other@bergmann.example")
    assert "Mail that was not sent" not in visitor.get("/console").text
    assert api.get("/messages").data[0]["to"] == "other@bergmann.example"


def test_without_a_mail_server_nothing_is_offered_and_the_page_says_what_to_do(api, visitor, invoice, monkeypatch):
    monkeypatch.setattr(api.store, "mail_from", "")
    record = visitor.get(f"/console{page_of(invoice)}").text
    assert "Issue and send…" not in record
    assert "Nobody gets a message. Download the PDF, and send it." in record
    assert "RETAINER_SMTP_URL" in visitor.get(f"/console{page_of(invoice, '/issue-and-send')}").text


def test_files_of_a_document_and_its_client_are_attached_where_they_are_chosen(api, visitor, invoice, post):
    path = f"/console{page_of(invoice, '/issue-and-send')}"
    assert "Attach files" not in visitor.get(path).text
    other = api.make("/clients")["id"]
    of_client, of_invoice, of_other = (
        api.create("/files", record=record, record_id=number, name=f"{record}.txt", content="bm90ZXM=").data["id"]
        for record, number in (("client", invoice["client_id"]), ("invoice", invoice["id"]), ("client", other))
    )
    boxes = {box["value"] for box in visitor.get(path).all("input", name="file_ids") if box["value"]}
    assert boxes == {str(of_client), str(of_invoice)}
    assert "no longer offered" in visitor.submit(path, file_ids=str(of_other)).error_of("file_ids")
    assert post.send() == 0
    visitor.submit(path, file_ids=str(of_invoice))
    post.send()
    (got,) = post.server.got
    assert [part.get_filename() for part in got.message.iter_attachments()][1:] == ["invoice.txt"]


def test_a_credit_note_is_sent_with_its_pdf_and_files_of_its_invoice(api, visitor, invoice, post):
    api.patch(f"/invoices/{invoice['id']}", {"status": "sent"})
    note = api.create(f"/invoices/{invoice['id']}/credit-notes", amount="11.90").data
    api.create("/files", record="invoice", record_id=invoice["id"], name="Note.txt", content="bm90ZXM=")
    path = f"/console/records/credit-notes/{note['id']}"
    assert "Send…" in visitor.get(path).text
    page = visitor.get(f"{path}/mail")
    assert "info@bergmann.example" in page.text
    assert "Note.txt, 5 bytes" in page.text
    assert "{link}" not in page.text
    assert "{link}" in visitor.get(f"/console{page_of(invoice, '/mail')}").text
    done = visitor.submit(f"{path}/mail")
    assert f"{note['number']} is being sent to info@bergmann.example." in done.text
    assert post.send() == 1
    (got,) = post.server.got
    assert [part.get_content_type() for part in got.message.iter_attachments()] == ["application/pdf"]
    assert "Messages" in visitor.get(path).text


def test_a_new_invoice_is_sent_from_its_page_or_by_hand_without_a_mail_server(api, visitor, monkeypatch):
    lines = [{"description": "Design", "unit_price": "500"}]

    def issue():
        path = f"/console/records/invoices/{api.make('/invoices', lines=lines)['id']}"
        return visitor.follow(visitor.submit(f"{path}/issue")).text

    assert "issued. To send it, use Send." in issue()
    monkeypatch.setattr(api.store, "mail_from", "")
    assert "issued. Download the PDF, and send it." in issue()
