"""Retainers whose months the daily job bills, each once, as a draft or issued."""

import pytest
from tests.api.test_unbilled_fees import months, retainer
from tests.databases import any_database, each_database

from retainer.job_kinds import KINDS
from retainer.jobs.jobs import list_troubled
from retainer.jobs.loop import Jobs
from retainer.outbound import pause

pytestmark = pytest.mark.usefixtures("clock")


def do(api, clock, moment):
    """Do what is due at a moment: the daily job, and what it starts."""
    clock.move_to(moment)
    reported = []
    for _ in range(2):
        Jobs(api.store, KINDS, lambda *found: reported.append(found)).run_once()
    assert reported == []


def invoices(api):
    found = [api.get(f"/invoices/{row['id']}").data for row in api.get("/invoices", {"sort": "created_at"}).data]
    return [(invoice["status"], months(invoice)) for invoice in found]


@each_database
def test_each_month_is_billed_once_on_its_first_morning_and_missed_days_do_no_harm(api, client, clock):
    retainer(api, client, start_date="2026-10-05", auto_invoice="issue")
    retainer(api, client, start_date="2026-10-05", auto_invoice="draft", name="Care")
    retainer(api, client, start_date="2026-10-05", name="By hand")
    do(api, clock, "2026-10-31T23:40:00Z")
    first = [("sent", ["2026-10", "2026-11"]), ("draft", ["2026-10", "2026-11"])]
    assert sorted(invoices(api)) == sorted(first)
    do(api, clock, "2026-11-02T05:00:00Z")
    do(api, clock, "2026-11-30T05:00:00Z")
    do(api, clock, "2026-12-01T04:59:00Z")
    assert sorted(invoices(api)) == sorted(first), "it is before six"
    do(api, clock, "2027-01-03T05:00:00Z")
    later = [("sent", ["2026-12", "2027-01"]), ("draft", ["2026-12", "2027-01"])]
    assert sorted(invoices(api)) == sorted(first + later)
    (job,) = {job["title"] for job in jobs_of(api) if "2027-01" in job["title"]}
    assert job == "Invoices of retainers, 2027-01"


def jobs_of(api):
    return [{"title": title} for (title,) in api.sql("SELECT title FROM jobs WHERE kind <> 'daily'")]


@any_database
def test_nothing_is_issued_while_mail_is_paused_as_after_a_restore(api, client, clock):
    retainer(api, client, start_date="2026-11-01", auto_invoice="issue")
    retainer(api, client, start_date="2026-11-01", auto_invoice="draft", name="Care")
    pause.pause(api.store, pause.MAIL, "restored from a backup")
    do(api, clock, "2026-10-31T23:40:00Z")
    assert invoices(api) == [("draft", ["2026-11"])]
    pause.resume(api.store, pause.MAIL, lambda *_: None)
    do(api, clock, "2026-11-02T05:00:00Z")
    assert sorted(invoices(api)) == [("draft", ["2026-11"]), ("sent", ["2026-11"])]


@any_database
def test_a_month_whose_draft_was_deleted_or_invoice_voided_is_not_billed_again(api, client, clock):
    retainer(api, client, start_date="2026-11-01", auto_invoice="issue")
    retainer(api, client, start_date="2026-11-01", auto_invoice="draft")
    do(api, clock, "2026-10-31T23:40:00Z")
    for row in api.get("/invoices").data:
        path = f"/invoices/{row['id']}"
        gone = api.delete(path) if row["status"] == "draft" else api.patch(path, {"status": "void"})
        assert gone.status in {200, 204}
    do(api, clock, "2026-11-02T05:00:00Z")
    assert invoices(api) == [("void", ["2026-11"])]


@any_database
def test_a_month_that_was_billed_by_hand_is_left_out(api, client, clock):
    project = retainer(api, client, start_date="2026-11-01", auto_invoice="issue")
    api.make("/invoices", client_id=client, lines=[{"project_id": project, "fee_month": "2026-11"}])
    do(api, clock, "2026-10-31T23:40:00Z")
    assert invoices(api) == [("draft", ["2026-11"])]
    do(api, clock, "2026-12-01T05:00:00Z")
    assert invoices(api)[1:] == [("sent", ["2026-12"])]


@any_database
def test_a_refused_invoice_is_said_and_tried_again_the_next_day_and_others_are_made(api, client, clock):
    closed = api.make("/clients")["id"]
    retainer(api, closed, start_date="2026-11-01", auto_invoice="draft", name="Closed")
    retainer(api, client, start_date="2026-11-01", auto_invoice="draft", name="Open")
    assert api.patch(f"/clients/{closed}", {"status": "archived"}).status == 200
    do(api, clock, "2026-10-31T23:40:00Z")
    assert invoices(api) == [("draft", ["2026-11"])]
    ((name, message),) = api.sql("SELECT name, message FROM job_refusals")
    assert name == "Closed, Bergmann Optik"
    assert "archived" in message
    assert api.patch(f"/clients/{closed}", {"status": "active"}).status == 200
    do(api, clock, "2026-11-01T05:00:00Z")
    assert invoices(api) == 2 * [("draft", ["2026-11"])]


@any_database
def test_only_a_retainer_that_is_no_template_is_billed_automatically(api, client):
    project = retainer(api, client, auto_invoice="draft")
    changed = api.patch(f"/projects/{project}", {"billing_type": "time_and_materials", "retainer_amount": None})
    assert changed.errors.keys() == {"auto_invoice"}
    template = {"billing_type": "retainer", "is_template": True, "name": "Care"}
    assert api.create("/projects", auto_invoice="draft", **template).errors.keys() == {"auto_invoice"}


@any_database
def test_an_invoice_is_issued_and_sent_in_one_and_the_reply_reaches_an_admin(api, clock):
    client = api.make("/clients", name="Bergmann Optik", invoice_email="bills@bergmann.example")["id"]
    retainer(api, client, start_date="2026-11-01", auto_invoice="send")
    do(api, clock, "2026-10-31T23:40:00Z")
    assert invoices(api) == [("sent", ["2026-11"])]
    (message,) = api.get("/messages").data
    assert (message["to"], message["record"], message["user_id"]) == ("bills@bergmann.example", "invoice", None)
    assert message["reply_to"] == "ana@north.example"
    assert message["attachments"][0]["document"] == "pdf"
    do(api, clock, "2026-11-01T06:00:00Z")
    assert len(api.get("/messages").data) == 1


@any_database
@pytest.mark.parametrize("lacks", ["an address", "a mail server", "messages of the plan"])
def test_what_cannot_be_sent_stays_a_draft_and_today_says_so_until_monday(api, clock, monkeypatch, lacks):
    fields = {} if lacks == "an address" else {"email": "info@bergmann.example"}
    retainer(api, api.make("/clients", name="Bergmann Optik", **fields)["id"], auto_invoice="send")
    if lacks == "a mail server":
        monkeypatch.setattr(api.store, "mail_from", "")
    elif lacks == "messages of the plan":
        limits = {**api.store.limits, "messages": dict.fromkeys(api.store.limits["files"], 0)}
        monkeypatch.setattr(api.store, "limits", limits)
    do(api, clock, "2026-10-31T23:40:00Z")
    ((status, _),) = invoices(api)
    assert status == "draft"
    assert api.get("/messages").data == []
    ((name, sentence),) = api.sql("SELECT name, message FROM job_refusals")
    assert name.endswith(", Bergmann Optik")
    assert sentence.startswith("Its invoice was not sent, and is a draft.")
    do(api, clock, "2026-11-02T12:00:00Z")
    assert len(invoices(api)) == 1, "the month is billed"
    with api.operating() as tx:
        (job,) = list_troubled(tx, 5)
    assert (job.title, job.refused) == ("Invoices of retainers, 2026-11", 1)
