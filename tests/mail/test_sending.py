"""Sending documents: a draft is issued with its message, and each recipient gets the document of that moment, once."""

import base64
import io
import random

import pytest
import time_machine
from pypdf import PdfReader

from tests.databases import slow_on_each
from tests.factories import SENT

LINES = [{"description": "Design", "unit_price": "500"}]
ADDRESS = "rechnung@bergmann.example"


@pytest.fixture
def invoice(api):
    client = api.make("/clients", name="Bergmann Optik", invoice_email=ADDRESS, email="info@bergmann.example")
    return api.make("/invoices", client_id=client["id"], lines=LINES)


def texts_of(message):
    """The text of a message, and the names and bytes of its attachments."""
    files = {part.get_filename(): part.get_payload(decode=True) for part in message.iter_attachments()}
    return message.get_body().get_content().replace("\r\n", "\n").strip(), files


@slow_on_each
def test_a_draft_is_issued_with_the_message_that_brings_it(api, post, invoice):
    answer = api.post(f"/invoices/{invoice['id']}/send")
    (queued,) = answer.data["messages"]
    issued = api.get(f"/invoices/{invoice['id']}").data
    assert (answer.status, issued["status"]) == (201, "sent")
    assert (queued["to"], queued["status"], queued["attempts"], queued["sent_at"]) == (ADDRESS, "queued", 0, None)
    assert (queued["kind"], queued["record"], queued["record_id"]) == ("invoice", "invoice", invoice["id"])
    assert (queued["client_id"], queued["user_id"]) == (invoice["client_id"], api.admin_id)
    assert queued["attachments"] == [
        {"name": f"{issued['number']}.pdf", "document": "pdf", "version": 1, "file_id": None}
    ]
    assert post.send() == 1
    (got,) = post.server.got
    message = got.message
    text, files = texts_of(message)
    assert (got.recipient, got.sender) == (ADDRESS, "mail@retainer.example")
    assert message["From"] == "North <mail@retainer.example>"
    assert (message["To"], message["Reply-To"], message["Cc"]) == (ADDRESS, "ana@north.example", None)
    assert message["Subject"] == f"Invoice {issued['number']} from North"
    assert f"our invoice {issued['number']} of €500.00" in text
    assert message["Auto-Submitted"] is None, "a person has sent it"
    (pdf,) = files.values()
    assert issued["number"] in PdfReader(io.BytesIO(pdf)).pages[0].extract_text()
    read = api.get(f"/messages/{queued['id']}").data
    assert (read["status"], read["attempts"], read["error"]) == ("sent", 1, None)
    assert read["sent_at"] is not None
    assert post.send() == 0
    assert len(post.server.got) == 1


def test_a_refusal_issues_nothing_and_sends_nothing(api, post, invoice):
    empty = api.make("/invoices", client_id=invoice["client_id"])
    refused = [
        (empty["id"], {}, {"status"}),
        (invoice["id"], {"to": ["jo@müller.example", "größe@müller.example"]}, {"to.1"}),
        (invoice["id"], {"subject": "Invoice\r\nBcc: all@example.com"}, {"subject"}),
        (invoice["id"], {"file_ids": [999]}, {"file_ids.0"}),
        (invoice["id"], {"attach": ["xml"]}, {"attach.0"}),
        (invoice["id"], {"to": ["nobody"], "cc": ["x"], "attach": ["doc"]}, {"to.0", "cc.0", "attach.0"}),
    ]
    for invoice_id, body, fields in refused:
        assert set(api.post(f"/invoices/{invoice_id}/send", body).errors) == fields
    assert {each["status"] for each in api.get("/invoices").data} == {"draft"}
    assert post.messages() == []


def test_without_an_address_a_person_has_to_name_one(api):
    client = api.make("/clients", name="Nowhere")["id"]
    path = f"/invoices/{api.make('/invoices', client_id=client, lines=LINES)['id']}/send"
    assert api.post(path).errors == {
        "to": ["This client has no email address. Add one to the client or to its primary contact, or send `to`."]
    }
    for change in (
        lambda: api.make("/external-contacts", client_id=client, email="primary@x.example", is_primary=True),
        lambda: api.patch(f"/clients/{client}", {"email": "general@x.example"}),
        lambda: api.patch(f"/clients/{client}", {"invoice_email": "bills@x.example"}),
    ):
        change()
        assert api.post(path).status == 201
    assert [each["to"] for each in api.get("/messages", {"sort": "created_at"}).data] == [
        *("primary@x.example", "general@x.example", "bills@x.example")
    ]


def test_each_recipient_gets_a_message_and_sees_all_but_blind_copies(api, post, invoice):
    to, cc, bcc = ["a@x.example", "b@x.example"], ["c@x.example", "A@x.example"], ["d@x.example"]
    body = {
        "to": to,
        "cc": cc,
        "bcc": bcc,
        "reply_to": "desk@north.example",
        "subject": "Ä",
        "message": "Zeile\n.\nEnde",
    }
    sent = api.post(f"/invoices/{invoice['id']}/send", body).data["messages"]
    assert [each["to"] for each in sent] == ["a@x.example", "b@x.example", "c@x.example", "d@x.example"]
    assert post.send() == 4
    assert sorted(got.recipient for got in post.server.got) == [each["to"] for each in sent]
    assert len({got.message_id for got in post.server.got}) == 4
    for got in post.server.got:
        message = got.message
        assert (message["To"], message["Cc"]) == (", ".join(to), ", ".join(cc))
        assert b"d@x.example" not in got.content
        assert (message["Subject"], message["Reply-To"]) == ("Ä", "desk@north.example")
        assert texts_of(message)[0] == "Zeile\n.\nEnde"


def test_a_document_is_sent_as_it_was_when_it_was_queued(api, post, invoice):
    api.post(f"/invoices/{invoice['id']}/send")
    api.patch(f"/invoices/{invoice['id']}", {"notes": "A later remark"})
    api.pay(invoice["id"], amount="500")
    api.post(f"/invoices/{invoice['id']}/send")
    assert [each["attachments"][0]["version"] for each in post.messages()] == [1, 2]
    post.send()
    texts = {}
    for got in post.server.got:
        (pdf,) = texts_of(got.message)[1].values()
        text = PdfReader(io.BytesIO(pdf)).pages[0].extract_text()
        texts["A later remark" in text] = text
    assert "This invoice is paid" in texts[True]
    assert "This invoice is paid" not in texts[False]


def test_quotes_and_credit_notes_are_sent_with_files_and_texts_of_their_language(api, post):
    client = api.make("/clients", name="Bergmann Optik", email="info@bergmann.example", language="de")["id"]
    quote = api.make("/quotes", client_id=client, lines=LINES)
    content = base64.b64encode(b"Plan").decode()
    file = api.make("/files", record="quote", record_id=quote["id"], name="Größe.txt", content=content)["id"]
    assert api.post(f"/quotes/{quote['id']}/send", {"file_ids": [file], "attach": []}).status == 201
    assert api.get(f"/quotes/{quote['id']}").data["status"] == "sent"
    billed = api.make("/invoices", client_id=client, **SENT)["id"]
    note = api.make(f"/invoices/{billed}/credit-notes")
    assert api.post(f"/credit-notes/{note['id']}/send").status == 201
    post.send()
    by_kind = {str(got.message["Subject"]).split()[0]: texts_of(got.message) for got in post.server.got}
    assert by_kind["Angebot"][1] == {"Größe.txt": b"Plan"}
    assert "unser Angebot" in by_kind["Angebot"][0]
    assert f"unsere Rechnungskorrektur {note['number']} über 500,00" in by_kind["Rechnungskorrektur"][0]
    assert [*by_kind["Rechnungskorrektur"][1]] == [f"{note['number']}.pdf"]
    assert [each["kind"] for each in post.messages(record="quote", record_id=quote["id"])] == ["quote"]


def test_files_that_a_key_cannot_read_are_not_sent_with_it(api, invoice):
    file = api.make("/files")["id"]  # of a client
    path, body = f"/invoices/{invoice['id']}/send", {"file_ids": [file]}
    assert api.post(path, body, key=api.new_key(["invoices:write"])).code == "missing_scope"
    assert api.post(path, body, key=api.new_key(["invoices:write", "clients:read"])).status == 201


def test_files_that_are_too_large_together_are_refused(api, invoice, monkeypatch):
    monkeypatch.setattr("retainer.mail.send.MAX_ATTACHED_BYTES", 10)
    content = base64.b64encode(b"123456").decode()
    files = [api.make("/files", content=content)["id"] for _ in range(2)]
    path = f"/invoices/{invoice['id']}/send"
    assert "18 MB" in api.post(path, {"file_ids": files}).errors["file_ids"][0]
    assert api.post(path, {"file_ids": files[:1]}).status == 201


def test_without_a_mail_server_nothing_is_queued_and_the_answer_says_what_to_do(api, invoice, monkeypatch):
    monkeypatch.setattr(api.store, "mail_from", "")
    answer = api.post(f"/invoices/{invoice['id']}/send")
    assert (answer.code, answer.errors) == ("mail_not_configured", {"mail": [answer.json["message"]]})
    assert "RETAINER_SMTP_URL" in answer.json["message"]
    assert api.get(f"/invoices/{invoice['id']}").data["status"] == "draft"


def test_an_account_sends_as_many_messages_a_day_as_its_plan_includes(both, invoice):
    api, other = both
    api.store.limits = {**api.store.limits, "messages": dict.fromkeys(api.store.limits["files"], 3)}
    path = f"/invoices/{invoice['id']}/send"
    assert api.post(path, {"to": ["a@x.example", "b@x.example"]}).status == 201
    assert "its plan includes 3" in api.post(path, {"to": ["a@x.example", "b@x.example"]}).errors["to"][0]
    assert api.post(path).status == 201
    assert other.create("/invoices/{invoice_id}/send").status == 201


def test_a_message_outlives_its_quote_and_is_not_sent_without_it(api, post):
    quote = api.make("/quotes", client_id=api.make("/clients", email="info@bergmann.example")["id"], lines=LINES)["id"]
    api.post(f"/quotes/{quote}/send")
    api.delete(f"/quotes/{quote}")
    assert post.send() == 0
    (message,) = post.messages()
    assert (message["status"], message["error"]) == ("cancelled", "The quote was deleted before this message was sent.")


def test_an_invoice_that_was_voided_while_its_message_waited_is_not_sent(api, post, invoice):
    path = f"/invoices/{invoice['id']}"
    api.post(f"{path}/send")
    api.patch(path, {"status": "void"})
    assert post.send() == 0
    (message,) = post.messages()
    assert (message["status"], message["error"]) == (
        *("cancelled", "The invoice was voided before this message was sent."),
    )
    assert api.post(f"{path}/send").status == 201, "a person can still send it, with the word across its pages"
    assert post.send() == 1


def test_umlauts_in_a_domain_are_sent_as_name_servers_know_them(api, post, invoice):
    body = {"to": ["jo@müller.example"], "cc": ["al@straße.example"], "reply_to": "me@größe.example"}
    assert [each["to"] for each in api.post(f"/invoices/{invoice['id']}/send", body).data["messages"]] == [
        *("jo@müller.example", "al@straße.example")
    ]
    post.send()
    assert {got.recipient for got in post.server.got} == {"jo@xn--mller-kva.example", "al@xn--strae-oqa.example"}
    for got in post.server.got:
        assert b"To: jo@xn--mller-kva.example\r\nCc: al@xn--strae-oqa.example\r\n" in got.content
        assert b"Reply-To: me@xn--gre-6ka8i.example\r\n" in got.content


def test_files_arrive_as_they_are_whatever_their_size(api, post):
    contents = {f"{size}.bin": random.randbytes(size) for size in (1, 2, 56, 57, 58, 58368, 58369, 300_000)}
    quote = api.make("/quotes", lines=LINES)["id"]
    files = [
        api.make("/files", record="quote", record_id=quote, name=name, content=base64.b64encode(content).decode())["id"]
        for name, content in contents.items()
    ]
    body = {"to": ["jo@x.example"], "attach": [], "file_ids": files, "message": "Zeile\n.\n.Ende " + "x" * 2000}
    assert api.post(f"/quotes/{quote}/send", body).status == 201
    post.send()
    (got,) = post.server.got
    assert texts_of(got.message) == (body["message"], contents)
    assert post.server.announced == [len(got.content)]
    assert max(map(len, got.content.split(b"\r\n"))) <= 998, "RFC 5322, 2.1.1"


@pytest.mark.parametrize(
    "name",
    [
        *(
            "Grüße & Größe",
            "Agentur 🎨 👩‍👩‍👧",
            "שלום עולם",
            'Müller, "Meier" <Sohn> (GmbH); a@b',
            'a\\b"c\\',
            "x" * 190,
            "ä" * 190,
        ),
        *(".hidden", "{number} {client} {} {0} %s", "=?utf-8?q?=41?="),
    ],
)
def test_any_name_is_read_in_each_header_as_it_was_written(api, post, name):
    api.set_account({"name": name})
    client = api.make("/clients", name=name)["id"]
    file_name = name.replace("\\", "")
    file = api.make("/files", record="client", record_id=client, name=file_name, content="cGxhbg==")["id"]
    quote = api.make("/quotes", client_id=client, lines=LINES)["id"]
    body = {"to": ["jo@x.example"], "subject": "{agency}", "message": "{client}", "attach": [], "file_ids": [file]}
    assert api.post(f"/quotes/{quote}/send", body).status == 201
    post.send()
    (got,) = post.server.got
    (sender,) = got.message["From"].addresses
    (attached,) = got.message.iter_attachments()
    assert attached.get_filename().replace("\u200b", "").replace(" ", "") == file_name.replace(" ", "")
    read = [sender.display_name, got.message["Subject"], got.message.get_body().get_content()]
    assert {each.replace("\u200b", "").replace(" ", "").strip() for each in read} == {name.replace(" ", "")}
    assert sender.addr_spec == "mail@retainer.example"
    assert got.content.isascii(), "servers without SMTPUTF8 take it"


def test_no_name_brings_headers_of_its_own(api, post):
    evil = "=?utf-8?q?=0d=0aBcc:_eve@x.example=0d=0a=0d=0aBODY?="
    api.set_account({"name": evil})
    client = api.make("/clients", name=evil)
    content = base64.b64encode(b"plan").decode()
    file = {"record": "client", "record_id": client["id"], "name": evil, "content": content}
    files = [api.post("/files", file).data["id"]]
    quote = api.make("/quotes", client_id=client["id"], lines=[{"description": "Design", "unit_price": "500"}])["id"]
    body = {"to": ["jo@x.example"], "subject": "For {client}", "attach": [], "file_ids": files}
    assert api.post(f"/quotes/{quote}/send", body).status == 201
    post.send()
    (got,) = post.server.got
    assert got.message.keys().count("Bcc") == 0
    assert not [line for line in got.content.splitlines() if line.startswith((b"Bcc", b"BODY"))], got.content
    (attached,) = got.message.iter_attachments()
    for shown in (got.message["Subject"], got.message["From"].addresses[0].display_name, attached.get_filename()):
        read = shown.replace("\u200b", "").replace(" ", "")  # Python's library folds long names at a space
        assert evil in read, "people read the name as it is"
    refused = api.post(f"/quotes/{quote}/send", {"to": ["=?utf-8?q?=0d=0aX?=@x.example"]}).errors
    assert refused.keys() == {"to.0"}


def test_a_list_without_recipients_is_not_the_client(api, invoice):
    path = f"/invoices/{invoice['id']}/send"
    assert api.post(path, {"to": []}).errors == {"to": ["Must have 1 to 20 entries; this has 0."]}
    assert (api.get("/messages").data, api.get(f"/invoices/{invoice['id']}").data["status"]) == ([], "draft")
    assert api.post(path, {"to": None}).status == 201, "null is the default, like a field that is omitted"


def test_messages_are_found_by_the_days_of_the_account_on_which_they_were_created(api, invoice):
    api.set_account({"timezone": "Asia/Tokyo"})
    path, to = f"/invoices/{invoice['id']}/send", "{}@lindner.example"
    moments = {"first": "2026-03-01T14:59:59Z", "second": "2026-03-01T15:00:00Z", "third": "2026-03-02T14:59:59Z"}
    for name, moment in moments.items():
        with time_machine.travel(moment, tick=False):
            assert api.post(path, {"to": [to.format(name)]}).status == 201

    def found(**query):
        return [each["to"].partition("@")[0] for each in api.get("/messages", {"sort": "created_at"} | query).data]

    assert found(created_from="2026-03-02") == ["second", "third"]
    assert found(created_to="2026-03-01") == ["first"]
    assert found(created_from="2026-03-02", created_to="2026-03-02") == ["second", "third"]
    assert found(created_to="2026-03-02", created_before=moments["second"]) == ["first"]
    assert found(created_from="2026-03-01", created_since=moments["third"]) == ["third"]
    assert api.get("/messages", {"created_from": "2026-03-02", "created_to": "2026-03-01"}).errors.keys() == {
        "created_to"
    }


def test_the_message_of_one_account_is_nothing_to_another(api, other_tenant, invoice):
    api.post(f"/invoices/{invoice['id']}/send")
    (message,) = api.get("/messages").data
    assert other_tenant.get("/messages").data == []
    assert other_tenant.get(f"/messages/{message['id']}").status == 404
    assert api.get("/messages", key=api.new_key(["clients:read"])).code == "missing_scope"
