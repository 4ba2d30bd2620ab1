"""Files of records: who may read and change them, what they say of themselves, and what becomes of them."""

import base64
import gzip
import hashlib

import pytest
from tests.databases import any_database, each_database, only_postgresql
from tools.openapi import promised

from retainer.kernel.uploads import FORM, MAX_FILE_BYTES, TOO_MUCH, UNREADABLE
from retainer.schema.files import OF_RECORDS, PIECE_BYTES

pytestmark = each_database

PDF, PNG, JPEG = b"%PDF-1.7 receipt", b"\x89PNG\r\n\x1a\n picture", b"\xff\xd8\xff photo"
HTML = b"<html><script>alert(1)</script>"
LISTS = {
    "client": "/clients",
    "project": "/projects",
    "quote": "/quotes",
    "invoice": "/invoices",
    "expense": "/expenses",
    "ticket": "/tickets",
    "ticket_reply": "/tickets/{ticket_id}/replies",
}
SCOPES = {"client": "clients", "project": "projects", "expense": "expenses", "quote": "invoices", "invoice": "invoices"}
SENT = {"status": "sent", "lines": [{"description": "Design", "unit_price": "500"}]}


def body_of(record, record_id, content=PDF, name="Receipt.pdf"):
    encoded = base64.b64encode(content).decode()
    return {"record": record, "record_id": record_id, "name": name, "content": encoded}


def add(api, record, record_id, content=PDF, name="Receipt.pdf"):
    return api.post("/files", body_of(record, record_id, content, name)).data


def bytes_of(api, file, **options):
    return api.call("GET", f"/files/{file['id']}", headers={"Accept": "application/octet-stream"}, **options)


@pytest.mark.parametrize("record", OF_RECORDS)
def test_each_kind_of_record_has_files_with_the_bytes_that_were_sent(api, record):
    holder = api.create(api.at(LISTS[record])).data
    file = add(api, record, holder["id"])
    assert (file["record"], file["record_id"], file["name"]) == (record, holder["id"], "Receipt.pdf")
    assert (file["media_type"], file["size"], file["user_id"]) == ("application/pdf", len(PDF), api.admin_id)
    assert file["sha256"] == hashlib.sha256(PDF).hexdigest()
    assert api.get("/files", {"record": record, "record_id": holder["id"]}).data == [file]
    assert api.get(f"/files/{file['id']}").data == file
    assert bytes_of(api, file).body == PDF
    assert api.delete(f"/files/{file['id']}").status == 204
    assert api.get("/files", {"record": record, "record_id": holder["id"]}).data == []
    assert bytes_of(api, file).status == 404


@pytest.mark.parametrize("path", ["../../etc/Receipt.pdf", r"C:\Users\Ana\Receipt.pdf", "/Receipt.pdf"])
def test_the_name_of_a_file_has_no_path(api, path):
    client = api.usual("/clients")
    assert add(api, "client", client, name=path)["name"] == "Receipt.pdf"
    body = {"record": "client", "record_id": client, "name": "Receipts/", "content": "JVBERi0xLjcK"}
    assert api.post("/files", body).errors == {"name": ["Must be the name of a file, not of a folder."]}


def test_the_list_shows_the_files_of_the_record_that_it_is_asked_for(api):
    client, other = api.make("/clients"), api.make("/clients")
    expense = api.make("/expenses")
    files = [add(api, "client", client["id"], name=name) for name in ("Contract", "Größe.txt")]
    add(api, "client", other["id"])
    add(api, "expense", expense["id"])
    assert api.get("/files", {"record": "client", "record_id": client["id"]}).data == files
    assert {row["record"] for row in api.get("/files", {"record": "client,expense"}).data} == {"client", "expense"}
    assert [row["id"] for row in api.get("/files", {"q": "grosse"}).data] == [files[1]["id"]]


@pytest.mark.parametrize(
    ("content", "media_type"),
    [(PDF, "application/pdf"), (PNG, "image/png"), (JPEG, "image/jpeg"), (HTML, "application/octet-stream")],
)
def test_the_type_follows_from_the_first_bytes_and_bytes_are_never_a_page(api, content, media_type):
    file = add(api, "client", api.usual("/clients"), content, name="page.html")
    assert file["media_type"] == media_type
    answer = bytes_of(api, file)
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert answer.headers["content-disposition"].startswith(
        "attachment" if media_type == "application/octet-stream" else "inline"
    )


def test_a_name_in_any_script_reaches_the_client_that_saves_the_file(api):
    file = add(api, "client", api.usual("/clients"), HTML, name='Beleg "März"; 100%.html')
    disposition = bytes_of(api, file).headers["content-disposition"]
    assert disposition == (
        "attachment; filename=\"Beleg _M_rz__ 100_.html\"; filename*=UTF-8''Beleg%20%22M%C3%A4rz%22%3B%20100%25.html"
    )


@pytest.mark.parametrize(("field", "wrong"), [("name", ""), ("name", "receipts/"), ("content", "")])
def test_a_missing_record_is_named_together_with_what_else_is_wrong(api, field, wrong):
    refused = api.post("/files", body_of("client", 999) | {field: wrong})
    assert refused.errors.keys() == {field, "record_id"}
    assert refused.errors["record_id"] == ["There is no such client in this account."]


def test_a_file_of_several_pieces_comes_back_whole(api):
    content = bytes(range(256)) * (2 * PIECE_BYTES // 256) + b"the end"
    file = add(api, "client", api.usual("/clients"), content)
    assert (file["size"], bytes_of(api, file).body == content) == (len(content), True)
    unchanged = bytes_of(api, file).headers["etag"]
    again = api.call(
        "GET",
        f"/files/{file['id']}",
        headers={"Accept": "*/*;q=0.1, application/octet-stream", "If-None-Match": unchanged},
    )
    assert again.status == 304


@pytest.mark.parametrize("record", SCOPES)
def test_a_key_needs_the_scope_of_the_record(api, record):
    holder = api.create(api.at(LISTS[record])).data
    file = add(api, record, holder["id"])
    reads, writes = (api.new_key([f"{SCOPES[record]}:{use}"]) for use in ("read", "write"))
    query = {"record": record, "record_id": holder["id"]}
    assert api.get("/files", query, key=reads).data == [file]
    assert bytes_of(api, file, key=reads).status == api.get(f"/files/{file['id']}", key=reads).status == 200
    for key in (writes, api.new_key(["sites:read", "sites:write"])):
        for answer in (api.get("/files", query, key=key), bytes_of(api, file, key=key)):
            assert (answer.code, answer.json["required_scope"]) == ("missing_scope", f"{SCOPES[record]}:read")
    for answer in (
        api.post("/files", body_of(record, holder["id"]), key=reads),
        api.delete(f"/files/{file['id']}", key=reads),
    ):
        assert (answer.code, answer.json["required_scope"]) == ("missing_scope", f"{SCOPES[record]}:write")
    assert api.get("/files", key=reads).code == "missing_scope"
    assert api.post("/files", body_of(record, holder["id"]), key=writes).status == 201
    assert api.delete(f"/files/{file['id']}", key=writes).status == 204


def test_a_file_of_another_account_does_not_exist(api, other_tenant):
    client = other_tenant.make("/clients")
    file = add(other_tenant, "client", client["id"])
    for answer in (api.get(f"/files/{file['id']}"), bytes_of(api, file), api.delete(f"/files/{file['id']}")):
        assert answer.status == 404
    assert api.get("/files", {"ids": file["id"]}).data == api.get("/files", {"record_id": client["id"]}).data == []
    refused = api.post("/files", body_of("client", client["id"])).errors
    assert refused == api.post("/files", body_of("client", 987_654_321)).errors
    assert refused == {"record_id": ["There is no such client in this account."]}
    assert bytes_of(other_tenant, file).body == PDF


def test_the_files_of_an_issued_document_stay(api):
    for path, record in (("/invoices", "invoice"), ("/quotes", "quote")):
        issued = api.create(path, **SENT).data
        file = add(api, record, issued["id"])
        answer = api.delete(f"/files/{file['id']}")
        assert (answer.status, answer.code) == (422, "locked")
        assert "was issued" in answer.errors["record_id"][0]
        assert bytes_of(api, file).body == PDF


def test_a_member_changes_only_the_files_of_their_own_expenses(api):
    key = api.new_key(["expenses:read", "expenses:write"], user_id=api.member_id)
    expense = api.make("/expenses")
    file = add(api, "expense", expense["id"])
    assert api.post("/files", body_of("expense", expense["id"]), key=key).code == "not_owner"
    assert api.delete(f"/files/{file['id']}", key=key).code == "not_owner"
    own = api.post("/expenses", {"amount": "5"}, key=key).data
    assert api.post("/files", body_of("expense", own["id"]), key=key).status == 201


def test_a_file_goes_with_its_record(api):
    client = api.make("/clients")
    project = api.create("/projects", client_id=client["id"]).data
    ticket = api.make("/tickets")
    reply = api.post(f"/tickets/{ticket['id']}/replies", {"body": "See the picture."}).data
    files = [add(api, "project", project["id"]), add(api, "ticket_reply", reply["id"], PNG)]
    api.delete(f"/projects/{project['id']}")
    api.delete(f"/tickets/{ticket['id']}")
    assert [api.get(f"/files/{file['id']}").status for file in files] == [404, 404]
    assert api.get("/files").json["meta"]["total"] == 0


def test_a_file_changes_its_record_and_is_announced_with_it(api):
    client = api.make("/clients")
    latest = api.get("/events").json["meta"]["latest"]
    file = add(api, "client", client["id"])
    changed = api.get(f"/clients/{client['id']}").data
    assert changed["updated_at"] > client["updated_at"]
    api.delete(f"/files/{file['id']}")
    events = api.get("/events", {"after": latest}).data
    assert [(event["type"], event["record_id"], event["fields"]) for event in events] == [
        ("client.updated", client["id"], ["files"])
    ] * 2


def test_all_faults_of_a_file_are_told_at_once(api):
    errors = api.post("/files", {"record": "site", "record_id": 0, "name": "", "content": "?"}).errors
    assert errors.keys() == {"record", "record_id", "name", "content"}
    assert "Base64" in errors["content"][0]
    assert "no bytes" in api.post("/files", body_of("client", api.usual("/clients"), b"")).errors["content"][0]
    assert api.post("/files", {}).errors.keys() == errors.keys()


def test_a_request_that_is_sent_again_adds_no_second_file(api):
    body = body_of("client", api.usual("/clients"))
    first, again = (api.post("/files", body, headers={"Idempotency-Key": "receipt-1"}) for _ in range(2))
    assert (first.data, again.headers["idempotency-replayed"]) == (again.data, "true")
    assert api.get("/files").json["meta"]["total"] == 1


def send_form(api, content, *, file_name="Foto.jpg", head=None, headers=None, **fields):
    """Send a file as a form; `head` replaces what is said about the file."""
    head = f'; filename="{file_name}"\r\nContent-Type: text/html' if head is None else head
    parts = [f'name="{name}"\r\n\r\n{value}\r\n'.encode() for name, value in fields.items()]
    parts.append(f'name="content"{head}\r\n\r\n'.encode() + content + b"\r\n")
    body = b"".join(b"--limit\r\nContent-Disposition: form-data; " + part for part in parts) + b"--limit--\r\n"
    sent = {"Content-Type": "multipart/form-data; boundary=limit", **(headers or {})}
    return api.call("POST", "/files", raw=body, headers=sent)


@pytest.mark.parametrize("size", [9, 900_000, 1_100_000, MAX_FILE_BYTES])
def test_a_form_brings_a_file_of_up_to_25_mib(api, size):
    content = (JPEG + bytes(range(256)) * (size // 256 + 1))[:size]
    file = send_form(api, content, record="client", record_id=api.usual("/clients")).data
    assert (file["name"], file["size"], file["media_type"]) == ("Foto.jpg", size, "image/jpeg")
    assert hashlib.sha256(bytes_of(api, file).body).hexdigest() == hashlib.sha256(content).hexdigest()
    named = send_form(api, content[:9], record="client", record_id=api.usual("/clients"), name="Other.jpg").data
    assert named["name"] == "Other.jpg"


def test_the_document_describes_the_form_as_it_is_taken(api):
    content = promised()["paths"]["/files"]["post"]["requestBody"]["content"]
    schemas = promised()["components"]["schemas"]
    body, form = (schemas[content[each]["schema"]["$ref"].rpartition("/")[2]] for each in ("application/json", FORM))
    assert form["properties"].keys() == body["properties"].keys()
    assert (form["properties"]["content"]["format"], form["additionalProperties"]) == ("binary", False)
    required = {"record": "client", "record_id": api.usual("/clients"), "content": PDF}
    assert form["required"] == [*required]
    assert send_form(api, **required).status == 201
    for name in ("record", "record_id"):
        fields = {key: value for key, value in required.items() if key != name}
        assert send_form(api, **fields).errors == {name: ["Is required."]}
    assert send_form(api, **required, size=3).errors.keys() == {"size"}


def test_what_is_larger_than_a_file_may_be_is_refused_and_nothing_is_stored(api):
    usual = {"record": "client", "record_id": api.usual("/clients")}
    large = bytes(MAX_FILE_BYTES + 128 * 1024)
    answer = send_form(api, large, **usual)
    assert (answer.status, answer.json["message"]) == (413, "The file is larger than 25 MiB.")
    assert send_form(api, large[: MAX_FILE_BYTES + 1], **usual).errors == {"content": ["Is larger than 25 MiB."]}
    elsewhere = {"Content-Type": "multipart/form-data; boundary=limit"}
    assert api.call("POST", "/tags", raw=large[:2_000_000], headers=elsewhere).status == 413
    assert api.post("/files", body_of("client", usual["record_id"], large[:1_000_000])).status == 413
    assert api.get("/files").json["meta"]["total"] == 0


def test_all_faults_of_a_form_are_told_at_once(api):
    errors = send_form(api, b"", record="site", record_id="x", file_name="x" * 200).errors
    assert errors.keys() == {"record", "record_id", "name", "content"}
    for raw in (b"--limit", b"", b"--other\r\n\r\n--other--"):
        answer = api.call("POST", "/files", raw=raw, headers={"Content-Type": "multipart/form-data; boundary=limit"})
        assert answer.status in {400, 422}, answer


def test_a_form_with_two_files_or_a_field_twice_is_refused_instead_of_losing_one(api):
    usual = {"record": "client", "record_id": api.usual("/clients")}
    part = b'--limit\r\nContent-Disposition: form-data; name="%b"%b\r\n\r\n%b\r\n'
    file = part % (b"content", b'; filename="a.txt"', b"a")
    fields = b"".join(part % (name.encode(), b"", str(value).encode()) for name, value in usual.items())
    other = part % (b"other", b'; filename="b.txt"', b"b")
    for more, said in (
        (file, "more than one file"),
        (other, "more than one file"),
        (part % (b"record", b"", b"expense"), "record more than once"),
    ):
        raw = fields + file + more + b"--limit--\r\n"
        answer = api.call("POST", "/files", raw=raw, headers={"Content-Type": "multipart/form-data; boundary=limit"})
        assert (answer.status, said in answer.json["message"]) == (400, True), answer
    assert send_form(api, PDF, **usual, name="2026").data["name"] == "2026"
    assert api.get("/files").json["meta"]["total"] == 1


SENT_NAMES = {
    '"B\u00fccher.txt"': "B\u00fccher.txt",
    "B\u00fccher 2026.txt": "B\u00fccher 2026.txt",
    '"a%22b%25.txt"': 'a"b%25.txt',
    '"../../etc/passwd"': "passwd",
    r'"C:\scans\a.pdf"': "a.pdf",
    "\"=?utf-8?B?QsO8Y2hlci50eHQ=?=\"; filename*=utf-8''B%C3%BCcher.txt": "B\u00fccher.txt",
    "\"x\"; filename*=iso-8859-1'de'B%FCcher.txt": "B\u00fccher.txt",
}
"""What clients send as the name of a file, and the name that they mean."""


def send_part(api, disposition, *headers, content=b"hello", sent=None):
    """Send a form whose file is described by the rest of its disposition, and by other headers."""
    usual = {"record": "client", "record_id": api.usual("/clients")}
    return send_form(api, content, head="\r\n".join([disposition, *headers]), headers=sent, **usual)


@any_database
@pytest.mark.parametrize("sent", SENT_NAMES)
def test_the_name_of_a_file_is_read_as_its_client_meant_it_without_its_path(api, sent):
    assert send_part(api, f"; filename={sent}").data["name"] == SENT_NAMES[sent]


@any_database
def test_a_file_whose_bytes_would_not_be_those_that_were_meant_is_refused(api):
    named = '; filename="a.txt"'
    compressed = send_part(api, named, content=gzip.compress(b"hello"), sent={"Content-Encoding": "gzip"})
    assert (compressed.status, "without Content-Encoding" in compressed.json["message"]) == (415, True)
    encoded = send_part(api, named, "Content-Transfer-Encoding: base64", content=b"aGVsbG8=")
    assert (encoded.status, "Content-Transfer-Encoding" in encoded.json["message"]) == (415, True)
    text = send_part(api, "", content=b"test")
    assert (text.status, "Send it as a file" in text.json["message"]) == (400, True)
    assert send_part(api, named, content=b"").errors == {"content": ["This file has no bytes. Send another one."]}
    assert send_part(api, f'; filename="{"x" * 9000}"').json["message"] == TOO_MUCH
    assert send_part(api, "; filename*=utf-8''%FC.txt").json["message"] == UNREADABLE
    assert api.get("/files").json["meta"]["total"] == 0
    assert send_part(api, named, "Content-Transfer-Encoding: binary", sent={"Content-Encoding": "identity"}).data


@only_postgresql
def test_a_server_without_a_folder_for_temporary_files_says_so(api, monkeypatch):
    usual = {"record": "client", "record_id": api.usual("/clients")}
    file = send_form(api, bytes(2 << 20), **usual).data
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    for answer in (send_form(api, bytes(2 << 20), **usual), bytes_of(api, file)):
        assert (answer.status, "no room for this file" in answer.json["message"]) == (503, True)
    monkeypatch.undo()
    assert send_form(api, bytes(2 << 20), **usual).status == 201


def test_a_form_that_is_sent_again_adds_no_second_file(api):
    usual = {"record": "client", "record_id": api.usual("/clients"), "headers": {"Idempotency-Key": "photo-1"}}
    first, again = (send_form(api, JPEG * 300_000, **usual) for _ in range(2))
    assert (first.data, again.headers["idempotency-replayed"]) == (again.data, "true")
    assert send_form(api, JPEG * 300_001, **usual).code == "idempotency_key_reused"
    assert api.get("/files").json["meta"]["total"] == 1
