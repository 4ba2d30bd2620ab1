"""Billing runs of more clients than one form bills: jobs make the drafts, issue them, send them and make the PDFs."""

import io
import zipfile
from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from retainer.batches import archives
from retainer.job_kinds import KINDS
from retainer.jobs import loop
from retainer.jobs.loop import Jobs
from retainer.outbound.leases import Places
from tests.databases import any_database, each_database

RUN = "/console/billing-run"
LINES = [{"description": "Design", "unit_price": "500"}]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Let jobs bill what a form could: three clients show what 300 would."""
    monkeypatch.setattr("retainer.console.pages.billing_run_pages.MAX_INVOICES", 1)


@pytest.fixture
def clients(api):
    made = [
        api.make("/clients", name=f"Client {letter}", currency="EUR", country="DE", email=f"{letter}@x.example")["id"]
        for letter in "ABC"
    ]
    for client in made:
        api.make("/time-entries", client_id=client, project_id=None, duration_minutes=90, hourly_rate="100")
    return made


def do(api):
    reported = []
    Jobs(api.store, KINDS, lambda *found: reported.append(found)).run_once()
    assert reported == []


def live(api):
    return [invoice for invoice in api.get("/invoices", {"per_page": 100}).data if invoice["status"] != "void"]


def issue(api, *clients):
    return [
        api.make("/invoices", client_id=client, currency="EUR", lines=LINES, status="sent")["id"] for client in clients
    ]


def path_of(ids):
    return f"{RUN}/invoices?ids={','.join(map(str, ids))}"


def files_of(visitor, link):
    page = visitor.get(link)
    assert page.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(page.content)) as archive:
        assert archive.testzip() is None
        assert all(archive.read(name).startswith(b"%PDF-") for name in archive.namelist())
        return archive.namelist()


def job_path(api):
    """The page of the newest job, as its button leads there."""
    ((job_id,),) = api.sql("SELECT max(id) FROM jobs WHERE kind <> 'daily'")
    return f"/console/jobs/{job_id}?follow=yes"


def make_archive(visitor, ids, once):
    return visitor.post(path_of(ids), {"step": "archive", "once": once})


@each_database
def test_what_is_to_bill_of_many_clients_becomes_issued_invoices_and_their_pdfs(api, visitor, clients):
    assert "0 of 3" in visitor.submit(RUN).text
    do(api)
    to_issue = visitor.get(job_path(api))
    assert sorted(invoice["client_id"] for invoice in live(api)) == clients
    assert {invoice["subtotal"] for invoice in live(api)} == {"150.00"}
    assert to_issue.location == path_of(sorted(invoice["id"] for invoice in live(api)))
    visitor.submit(to_issue.location, step="download")
    do(api)
    page = visitor.get(job_path(api))
    assert "6 of 6" in page.text
    (refresh,) = page.all("meta", **{"http-equiv": "refresh"})
    assert {invoice["status"] for invoice in live(api)} == {"sent"}
    numbers = sorted(f"{invoice['number']}.pdf" for invoice in live(api))
    assert files_of(visitor, refresh["content"].partition("url=")[2]) == numbers
    assert "Nothing to bill." in visitor.get(RUN).text
    assert api.get("/events").json["data"][-1]["user_id"] == api.admin_id


@any_database
def test_a_client_who_cannot_be_billed_is_left_out_with_the_reason(api, visitor, clients):
    visitor.submit(RUN)
    api.patch(f"/clients/{clients[0]}", {"status": "archived"})
    api.make("/invoices", client_id=clients[1], currency="EUR", unbilled_work={"time": {}}, status="sent")
    do(api)
    page = visitor.get(job_path(api))
    assert [row.texts[0] for row in page.all("tr")[1:]] == ["Client A", "Client B"]
    assert ": This client is archived." in page.text
    (link,) = [link for link in page.links if "/billing-run/invoices" in link]
    (draft,) = [invoice for invoice in live(api) if invoice["status"] == "draft"]
    assert (link, draft["client_id"]) == (path_of([draft["id"]]), clients[2])


@any_database
def test_work_goes_into_the_newest_draft_of_a_client_on_request(api, visitor, clients):
    draft = api.make("/invoices", client_id=clients[0], currency="EUR", lines=LINES)["id"]
    visitor.submit(RUN, into_drafts="yes")
    do(api)
    assert api.get(f"/invoices/{draft}").data["subtotal"] == "650.00"
    assert len(live(api)) == len(clients)


@any_database
def test_drafts_are_issued_and_sent_by_one_button_with_their_refusals(api, visitor, clients):
    api.patch(f"/clients/{clients[1]}", {"email": None})
    drafts = [api.make("/invoices", client_id=each, currency="EUR", lines=LINES)["id"] for each in clients]
    visitor.submit(path_of(drafts), step="send", invoice=[str(each) for each in drafts])
    do(api)
    page = visitor.get(job_path(api))
    assert [row.texts[0] for row in page.all("tr")[1:]] == ["Client B"]
    assert path_of(drafts) in page.links
    assert [api.get(f"/invoices/{each}").data["status"] for each in drafts] == ["sent", "draft", "sent"]
    assert {message["record_id"] for message in api.get("/messages").data} == {drafts[0], drafts[2]}


@any_database
def test_an_archive_goes_on_after_a_kill_and_has_each_document_once(api, visitor, clients):
    ids = issue(api, *clients)
    assert not [link for link in visitor.get(path_of(ids)).links if "/pdfs" in link]
    make_archive(visitor, ids, "1")
    (work,) = loop.DUE.claim(api.store, Places(1, ()), loop.LEASE)
    one = KINDS["archive"]._replace(make=lambda account, rows: KINDS["archive"].make(account, rows[:1]))
    assert loop.do_step(api.store, {"archive": one}, work)
    loop.release(api.store, work)
    do(api)
    link = next(link for link in visitor.get(job_path(api)).links if link.endswith("/file"))
    numbers = [api.get(f"/invoices/{each}").data["number"] for each in ids]
    assert files_of(visitor, link) == [f"{number}.pdf" for number in numbers]


@any_database
def test_an_account_keeps_one_archive_and_makes_one_at_a_time(api, visitor, person, clients):
    ids = issue(api, *clients)
    first = make_archive(visitor, ids, "1").location.partition("?")[0]
    assert "Only a job that was stopped or has failed can continue." in visitor.post(f"{first}/continue").text
    assert "Another job is making PDFs." in make_archive(visitor, ids, "2").text
    visitor.post(f"{first}/stop")
    second = make_archive(visitor, ids, "3").location.partition("?")[0]
    assert "was replaced by a newer one" in visitor.post(f"{first}/continue").text
    do(api)
    assert len(files_of(visitor, f"{second}/file")) == len(ids)
    assert person("member").get(f"{second}/file").status == 404
    make_archive(visitor, ids, "4")
    assert visitor.get(f"{second}/file").status == 404
    assert f"{second}/file" not in visitor.get(second).links


@any_database
def test_the_file_of_an_archive_is_for_readers_of_documents_and_kept_for_a_week(api, person, clients):
    manager = person("manager")
    made = make_archive(manager, issue(api, *clients), "1").location.partition("?")[0]
    do(api)
    assert len(files_of(manager, f"{made}/file")) == len(clients)
    api.sql("UPDATE users SET role = 'member' WHERE id = $1", manager.user_id)
    assert (manager.get(f"{made}/file").status, f"{made}/file" in manager.get(made).links) == (404, False)
    with time_machine.travel(datetime.now(UTC) + timedelta(days=8)):
        loop.refresh(api.store)
    assert api.sql("SELECT count(*) FROM job_pieces") == [(0,)]
    api.sql("UPDATE users SET role = 'manager' WHERE id = $1", manager.user_id)
    assert manager.get(f"{made}/file").status == 404


def test_an_archive_whose_file_was_replaced_does_not_continue(api, visitor, clients):
    ids = issue(api, *clients)
    first = make_archive(visitor, ids, "1").location.partition("?")[0]
    (work,) = loop.DUE.claim(api.store, Places(1, ()), loop.LEASE)
    assert loop.do_step(api.store, KINDS, work)
    visitor.post(f"{first}/stop")
    make_archive(visitor, ids, "2")
    do(api)
    assert "was replaced by a newer one" in visitor.post(f"{first}/continue").text


def test_no_two_files_of_an_archive_have_the_same_name():
    named = [("2024-1.pdf", b"a"), ("2024-1.PDF", b"b"), ("2024-1-2.pdf", b"c"), ("2024-1.pdf", b"d")]
    content = b"".join(archives.zip_of(iter(named)))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.namelist() == ["2024-1.pdf", "2024-1-2.PDF", "2024-1-2-2.pdf", "2024-1-3.pdf"]
        assert [archive.read(name) for name in archive.namelist()] == [b"a", b"b", b"c", b"d"]
