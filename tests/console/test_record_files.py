"""Files on the pages of their records: how they come there, what a browser does with them, and how they go."""

from retainer.identity import audit
from retainer.identity.audit import AuditFilter
from retainer.kernel.uploads import MAX_FILE_BYTES, MAX_UPLOAD_BYTES
from tests.console.visitor import admin_of, user_of

PDF, PNG, HTML = b"%PDF-1.7 receipt", b"\x89PNG\r\n\x1a\n picture", b"<html><script>alert(1)</script>"


def files_of(api, **query):
    return api.get("/files", query).data


def test_a_file_is_added_on_the_page_of_its_record_and_deleted_there(api, visitor):
    client = api.make("/clients", name="Bergmann Optik")
    path = f"/console/records/clients/{client['id']}"
    assert 'enctype="multipart/form-data"' in visitor.get(path).html
    page = visitor.upload(f"{path}/files", PDF, name="file", file_name="Rahmenvertrag ä.pdf")
    assert page.location == f"{path}#files"
    (file,) = files_of(api, record="client", record_id=client["id"])
    assert (file["name"], file["size"], file["user_id"]) == ("Rahmenvertrag ä.pdf", len(PDF), api.admin_id)
    page = visitor.get(path)
    assert "Rahmenvertrag ä.pdf" in page.text
    assert "16 bytes" in page.text
    shown = visitor.get(f"{path}/files/{file['id']}/delete")
    assert "Rahmenvertrag ä.pdf is removed for good." in shown.text
    assert "Rahmenvertrag ä.pdf deleted." in visitor.submit(f"{path}/files/{file['id']}/delete").text
    assert files_of(api) == []
    with api.operating() as tx:
        entries = audit.list_entries(tx, AuditFilter(action="record changed")).entries
    assert [(entry.before, entry.after) for entry in entries] == [
        ({"file": "Rahmenvertrag ä.pdf"}, None),
        (None, {"file": "Rahmenvertrag ä.pdf"}),
    ]


def test_only_a_pdf_or_a_picture_opens_in_the_browser_and_nothing_runs(api, visitor):
    client = api.make("/clients")
    path = f"/console/records/clients/{client['id']}/files"
    for name, content in (("a.pdf", PDF), ("b.html", PNG), ("c.html", HTML)):
        visitor.upload(path, content, name="file", file_name=name)
    answers = [visitor.get(f"{path}/{file['id']}") for file in files_of(api)]
    assert [answer.headers["content-type"] for answer in answers] == [
        "application/pdf",
        "image/png",
        "application/octet-stream",
    ]
    assert [answer.headers["content-disposition"] for answer in answers] == [
        'inline; filename="a.pdf"',
        'inline; filename="b.html"',
        'attachment; filename="c.html"',
    ]
    assert {answer.headers["x-content-type-options"] for answer in answers} == {"nosniff"}
    assert [answer.headers.get("content-security-policy") for answer in answers] == [
        None,
        "default-src 'none'; sandbox",
        "default-src 'none'; sandbox",
    ]
    assert answers[2].html == HTML.decode()


def test_a_receipt_comes_with_its_expense(api, visitor):
    page = visitor.upload(
        "/console/records/expenses/new", b"\xff\xd8\xff photo", name="file", file_name="receipt.jpg", amount="12.50"
    )
    (expense,) = api.get("/expenses").data
    assert page.location == f"/console/records/expenses/{expense['id']}"
    (file,) = files_of(api, record="expense", record_id=expense["id"])
    assert (file["name"], file["media_type"]) == ("receipt.jpg", "image/jpeg")
    assert visitor.submit("/console/records/expenses/new", amount="7").status == 200, "without one it is made, too"
    refused = visitor.upload(
        "/console/records/expenses/new", PDF, name="file", file_name="receipt.jpg", amount="nothing"
    )
    assert (refused.status, "Choose receipt.jpg again: browsers do not keep it." in refused.text) == (422, True)
    assert (len(api.get("/expenses").data), len(files_of(api))) == (2, 1)


def test_a_form_without_a_file_says_so(api, visitor):
    path = f"/console/records/clients/{api.make('/clients')['id']}/files"
    for file_name in ("", "empty.txt"):
        page = visitor.upload(path, b"", name="file", file_name=file_name)
        assert (page.status, "Choose a file that is not empty." in page.text) == (422, True)


def test_a_file_that_is_too_large_is_refused_on_a_page(api, visitor):
    path = f"/console/records/clients/{api.make('/clients')['id']}/files"
    page = visitor.upload(path, bytes(MAX_FILE_BYTES + 1), name="file", file_name="film.mp4")
    assert (page.status, "Is larger than 25 MiB." in page.text) == (422, True)
    assert "Choose film.mp4 again" not in page.text
    page = visitor.upload(path, bytes(MAX_UPLOAD_BYTES), name="file", file_name="film.mp4")
    assert (page.status, "The file is larger than 25 MiB." in page.text) == (413, True)
    assert page.headers["content-type"].startswith("text/html")
    assert files_of(api) == []


def test_a_file_that_is_sent_after_the_session_has_ended_leads_back_to_its_form(api, visitor):
    path = f"/console/records/clients/{api.make('/clients')['id']}/files"
    visitor.cookies.clear()
    for size in (9, 2 << 20):
        page = visitor.upload(path, bytes(size), name="file", file_name="photo.jpg")
        assert page.location == f"/console/sign-in?next={path.removeprefix('/console')}"
        assert "Your session has ended, and nothing was changed." in visitor.follow(page).text
    assert visitor.sign_in("ana@north.example", next=path.removeprefix("/console")).location == path
    assert files_of(api) == []


def test_the_files_of_replies_are_on_the_page_of_their_ticket(api, visitor):
    ticket, other = api.make("/tickets"), api.make("/tickets")
    reply = api.post(f"/tickets/{ticket['id']}/replies", {"body": "See the picture."}).data
    file = api.create("/files", record="ticket_reply", record_id=reply["id"], name="picture.png").data
    path = "/console/records/tickets/{}/files/{}"
    assert "picture.png" in visitor.get(f"/console/records/tickets/{ticket['id']}").text
    assert visitor.get(path.format(ticket["id"], file["id"])).status == 200
    assert visitor.get(path.format(other["id"], file["id"])).status == 404
    assert visitor.get(f"/console/records/clients/{api.usual('/clients')}/files/{file['id']}").status == 404


def test_a_file_of_another_account_is_not_found(both):
    api, other = both
    file = other.create("/files").data
    own = api.make("/clients")
    visitor = admin_of(api)
    for client in (own["id"], file["record_id"]):
        path = f"/console/records/clients/{client}/files/{file['id']}"
        assert visitor.get(path).status == visitor.get(f"{path}/delete").status == 404


def test_a_member_sees_the_files_of_what_they_may_change(api):
    project = api.make("/projects")
    task = api.create("/tasks", project_id=project["id"], assignee_id=api.member_id).data
    own = api.create("/expenses", user_id=api.member_id).data
    others = api.create("/expenses").data
    for record, held in (("project", project), ("expense", own), ("expense", others)):
        api.create("/files", record=record, record_id=held["id"], name=f"{record} {held['id']}.pdf")
    visitor = user_of(api, api.member_id)
    assert task["project_id"] == project["id"]
    assert ".pdf" not in visitor.get(f"/console/records/projects/{project['id']}").text
    assert f"expense {own['id']}.pdf" in visitor.get(f"/console/records/expenses/{own['id']}").text
    statuses = [
        visitor.get(f"/console/records/{path}").status
        for path in (
            f"projects/{project['id']}/files/1",
            f"expenses/{own['id']}/files/2",
            f"expenses/{others['id']}/files/3",
        )
    ]
    assert statuses == [404, 200, 404]


def test_the_files_of_an_issued_invoice_stay(api, visitor):
    lines = [{"description": "Design", "unit_price": "500"}]
    invoice = api.create("/invoices", status="sent", lines=lines).data
    path = f"/console/records/invoices/{invoice['id']}/files"
    visitor.upload(path, PDF, name="file", file_name="order.pdf")
    page = visitor.submit(f"{path}/1/delete")
    assert (page.status, "was issued, so it stays" in page.text) == (422, True)
    assert len(files_of(api)) == 1
