"""Selected records of a list are changed together: by one job, as the person who asked."""

import io
import zipfile

import time_machine

from retainer.job_kinds import KINDS
from retainer.jobs.loop import Jobs
from tests.console.visitor import admin_of
from tests.databases import any_database, each_database


def do(api):
    reported = []
    Jobs(api.store, KINDS, lambda *found: reported.append(found)).run_once()
    assert reported == []


def apply(api, visitor, kind, change, *ids):
    """Select records of a list and change them; return the page of the job once it has ended."""
    page = visitor.get(f"/console/records/{kind}")
    assert change in {each["value"] for each in page.all("option")}
    assert {str(each) for each in ids} <= {each["value"] for each in page.all("input", name="record")}
    started = visitor.post(f"/console/records/{kind}/change", {"change": change, "record": [str(each) for each in ids]})
    assert started.location.startswith("/console/jobs/"), started.text
    do(api)
    return visitor.get(started.location)


@each_database
def test_selected_clients_are_archived_as_the_person_who_asked(api, visitor):
    first, second, third = (api.make("/clients", name=name)["id"] for name in ("Ahorn", "Birke", "Zeder"))
    page = apply(api, visitor, "clients", "status=archived", first, third)
    assert "Mark as archived: 2 clients" in page.text
    assert "2 of 2" in page.text
    assert [api.get(f"/clients/{each}").data["status"] for each in (first, second, third)] == [
        *("archived", "active", "archived")
    ]
    event = api.get("/events").json["data"][-1]
    assert (event["type"], event["user_id"], event["key_id"]) == ("client.archived", api.admin_id, None)
    assert visitor.get("/console/audit").text.count("record changed client") == 2


@any_database
def test_a_record_that_refuses_the_change_is_left_out_with_its_reason(api, visitor):
    client = api.make("/clients", hourly_rate="100")["id"]
    billed, free = (api.make("/time-entries", client_id=client, description=text)["id"] for text in ("Old", "New"))
    line = {"time_entry_ids": [billed]}
    api.make("/invoices", client_id=client, lines=[line], status="sent")
    page = apply(api, visitor, "time-entries", "billable=no", billed, free)
    assert "1 of 2" in page.text
    (row,) = [row for row in page.all("tr") if "invoice" in row.text]
    assert row.text.startswith("Old")
    assert [api.get(f"/time-entries/{each}").data["billable"] for each in (billed, free)] == [True, False]


@any_database
def test_tasks_are_assigned_and_tagged(api, visitor):
    tag, other = api.make("/tags", name="Urgent")["id"], api.make("/tags")["id"]
    tasks = [api.make("/tasks", tag_ids=[other])["id"], api.make("/tasks")["id"]]
    apply(api, visitor, "tasks", f"assignee_id={api.member_id}", *tasks)
    apply(api, visitor, "tasks", f"add_tag={tag}", *tasks)
    apply(api, visitor, "tasks", f"remove_tag={other}", *tasks)
    found = [api.get(f"/tasks/{each}").data for each in tasks]
    assert [(task["assignee_id"], task["tag_ids"]) for task in found] == 2 * [(api.member_id, [tag])]
    apply(api, visitor, "tasks", "assignee_id=", tasks[0])
    assert api.get(f"/tasks/{tasks[0]}").data["assignee_id"] is None


@any_database
def test_a_record_that_was_deleted_meanwhile_is_left_out(api, visitor):
    gone, stays = api.make("/clients")["id"], api.make("/clients")["id"]
    sent = {"change": "status=archived", "record": [str(gone), str(stays), "999999"]}
    path = visitor.post("/console/records/clients/change", sent).location
    assert api.delete(f"/clients/{gone}").status == 204
    do(api)
    page = visitor.get(path)
    assert "1 of 2" in page.text
    assert "It was deleted meanwhile." in page.text


@any_database
def test_a_form_without_a_change_or_a_record_shows_its_list_again(api, visitor):
    client = api.make("/clients", name="Ahorn")["id"]
    api.make("/clients", name="Birke")
    path = "/console/records/clients/change?q=ahorn"
    for sent in (
        {"change": "", "record": str(client)},
        {"change": "status=archived"},
        {"change": "name=x", "record": "1"},
    ):
        page = visitor.post(path, sent)
        assert (page.status, "Ahorn" in page.text, "Birke" in page.text) == (422, True, False)
    many = {"change": "status=archived", "record": [str(each) for each in range(1, 102)]}
    assert "at most 100" in visitor.post(path, many).text
    assert api.sql("SELECT count(*) FROM jobs") == [(0,)]


@any_database
def test_members_change_no_records_together(api, person):
    member = person("member")
    api.make("/tasks", assignee_id=member.user_id)
    assert member.get("/console/records/tasks").all("input", name="record") == []
    sent = {"change": "status=done", "record": "1"}
    assert member.post("/console/records/tasks/change", sent).status == 404


@any_database
def test_a_person_whose_role_changed_meanwhile_changes_nothing_more(api, person):
    manager = person("manager")
    client = api.make("/clients")["id"]
    path = manager.post(
        "/console/records/clients/change", {"change": "status=archived", "record": str(client)}
    ).location
    api.set_user(manager.user_id, {"role": "member"})
    do(api)
    assert api.get(f"/clients/{client}").data["status"] == "active"
    assert "no longer includes it" in manager.get(path).text


@any_database
def test_drafts_are_issued_and_sent_together(api, visitor, monkeypatch):
    lines = [{"description": "Design", "unit_price": "500"}]
    client = api.make("/clients", email="office@ahorn.example")["id"]
    drafts = [api.make("/invoices", client_id=client, lines=lines)["id"] for _ in range(2)]
    monkeypatch.setattr(api.store, "mail_from", "")
    offered = {each["value"] for each in visitor.get("/console/records/invoices").all("option")}
    assert {"status=sent", "send"} & offered == {"status=sent"}
    apply(api, visitor, "invoices", "status=sent", drafts[0])
    monkeypatch.undo()
    apply(api, visitor, "invoices", "send", *drafts)
    assert {api.get(f"/invoices/{each}").data["status"] for each in drafts} == {"sent"}
    assert [message["record_id"] for message in api.get("/messages", {"sort": "created_at"}).data] == drafts


@any_database
def test_each_list_offers_what_people_do_with_several_of_its_records(api, visitor):
    tag = api.make("/tags", name="Care plan")["id"]
    changed = {
        "external-contacts": ("status=inactive", {"status": "inactive"}),
        "projects": (f"manager_id={api.member_id}", {"manager_id": api.member_id}),
        "sites": ("monitoring_enabled=no", {"monitoring_enabled": False}),
        "quotes": ("status=declined", {"status": "declined"}),
    }
    for kind, (change, after) in changed.items():
        made = api.make(f"/{kind}")["id"]
        page = apply(api, visitor, kind, change, made)
        assert "1 of 1" in page.text, page.text
        if kind in {"external-contacts", "projects", "sites"}:
            apply(api, visitor, kind, f"add_tag={tag}", made)
            after |= {"tag_ids": [tag]}
        assert api.get(f"/{kind}/{made}").data.items() >= after.items()
    assert "Mark as inactive: 1 contact" in visitor.get("/console/jobs").text
    project = api.make("/projects")["id"]
    apply(api, visitor, "projects", "status=archived", project)
    assert api.get(f"/projects/{project}").data["status"] == "archived"


@any_database
def test_the_pdfs_of_a_filtered_list_or_a_selection_are_one_file(api, visitor):
    lines = [{"description": "Design", "unit_price": "500"}]
    days = ("2025-12-31", "2026-01-02", "2026-02-03")
    old, first, last = (api.make("/invoices", lines=lines, status="sent", issue_date=day) for day in days)
    api.make("/invoices", lines=lines)
    note = api.create(f"/invoices/{last['id']}/credit-notes", amount="10").data

    def archived(path, **form):
        started = visitor.post(f"/console/records/{path}", form)
        assert started.location.startswith("/console/jobs/"), started.text
        do(api)
        file = visitor.get(f"{started.location.partition('?')[0]}/file")
        with zipfile.ZipFile(io.BytesIO(file.content)) as archive:
            return archive.namelist()

    listed = archived("invoices/change?issue_date_from=2026-01-01&sort=number", change="all_pdfs")
    assert listed == [f"{each['number']}.pdf" for each in (first, last)]
    assert archived("invoices/change", change="pdfs", record=[str(old["id"])]) == [f"{old['number']}.pdf"]
    assert archived("credit-notes/change", change="all_pdfs") == [f"{note['number']}.pdf"]
    refused = visitor.post("/console/records/invoices/change?status=draft", {"change": "all_pdfs"})
    assert (refused.status, "All of these are drafts. Issue them first." in refused.text) == (422, True)


@any_database
def test_the_file_of_a_job_has_the_day_of_the_account_in_its_name(api):
    api.set_account({"timezone": "Europe/Berlin"})
    with time_machine.travel("2027-01-14T23:30:00Z", tick=False):
        lines, visitor = [{"description": "Design", "unit_price": "500"}], admin_of(api)
        invoice = api.make("/invoices", lines=lines, status="sent")
        form = {"change": "pdfs", "record": [str(invoice["id"])]}
        path = visitor.post("/console/records/invoices/change", form).location.partition("?")[0]
        do(api)
        file = visitor.get(f"{path}/file")
    assert file.headers["content-disposition"] == 'attachment; filename="documents-2027-01-15.zip"'


@any_database
def test_quotes_and_credit_notes_are_sent_together(api, visitor):
    client = api.make("/clients", email="office@ahorn.example")["id"]
    lines = [{"description": "Design", "unit_price": "500"}]
    quotes = [api.make("/quotes", client_id=client, lines=lines)["id"] for _ in range(2)]
    invoice = api.make("/invoices", client_id=client, lines=lines, status="sent")["id"]
    notes = [api.create(f"/invoices/{invoice}/credit-notes", amount="10").data["id"] for _ in range(2)]
    apply(api, visitor, "quotes", "send", *quotes)
    apply(api, visitor, "credit-notes", "send", *notes)
    assert {api.get(f"/quotes/{each}").data["status"] for each in quotes} == {"sent"}
    sent = [(message["record"], message["record_id"]) for message in api.get("/messages", {"sort": "created_at"}).data]
    assert sent == [*(("quote", each) for each in quotes), *(("credit_note", each) for each in notes)]
