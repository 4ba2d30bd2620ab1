"""Reminders of overdue invoices: each stage once, the latest alone, and never about what is settled or unwanted."""

import io

import pytest
import time_machine
from pypdf import PdfReader

from retainer.job_kinds import KINDS
from retainer.jobs.loop import Jobs
from retainer.mail import stages
from retainer.mail.stages import ReminderStage
from retainer.outbound import pause
from retainer.schema.mail import messages
from tests.contract.cases import another_process
from tests.databases import each_database

LINES = [{"description": "Design", "unit_price": "500"}]
ADDRESS = "rechnung@bergmann.example"
DAYS = (7, 21, 35)


@pytest.fixture(autouse=True)
def clock():
    """The first of March in the agency's Berlin, before six."""
    with time_machine.travel("2026-03-01T04:00:00Z", tick=False) as traveller:
        yield traveller


@pytest.fixture
def client(api):
    return api.make("/clients", name="Bergmann Optik", invoice_email=ADDRESS)["id"]


def turn_on(api, *days, is_on=True, **texts):
    with api.operating() as tx:
        found = [ReminderStage(days_after_due=each, **texts) for each in days or DAYS]
        return stages.set_reminders(tx, found, is_on=is_on)


def bill(api, client, due_date, **fields):
    fields = {"issue_date": "2026-01-01", "due_date": due_date, "lines": LINES, "status": "sent", **fields}
    return api.make("/invoices", client_id=client, **fields)["id"]


def do(api, clock, day):
    """Do what is due at six on a day: the daily job, and what it starts."""
    clock.move_to(f"{day}T06:00:00Z")
    reported = []
    for _ in range(2):
        Jobs(api.store, KINDS, lambda *found: reported.append(found)).run_once()
    assert reported == []


def sent(post):
    """The invoice and the stage of each reminder, oldest first."""
    return [(each["record_id"], each["stage"]) for each in post.messages(kind="reminder")]


@each_database
def test_each_stage_is_sent_once_with_the_invoice_and_what_is_open(api, post, client, clock):
    invoice = bill(api, client, "2026-03-01")
    turn_on(api)
    api.pay(invoice, amount="120.50")
    for day in ("2026-03-07", "2026-03-08", "2026-03-09", "2026-03-22", "2026-03-30", "2026-04-05", "2026-04-06"):
        do(api, clock, day)
        do(api, clock, day)
        post.send()
    assert sent(post) == [(invoice, 1), (invoice, 2), (invoice, 3)]
    first, second, _ = (got.message for got in sorted(post.server.got, key=lambda got: str(got.message["Subject"])))
    number = api.get(f"/invoices/{invoice}").data["number"]
    assert first["Subject"] == f"Reminder: invoice {number} from North"
    assert second["Subject"] == f"Second reminder: invoice {number} from North"
    assert first["Auto-Submitted"] == "auto-generated"
    assert "€379.50 of it is open" in first.get_body().get_content()
    (pdf,) = (part.get_payload(decode=True) for part in first.iter_attachments())
    assert number in PdfReader(io.BytesIO(pdf)).pages[0].extract_text()


@each_database
def test_the_database_refuses_a_second_message_of_a_stage(api, post, client, clock):
    invoice = bill(api, client, "2026-03-01")
    turn_on(api)
    do(api, clock, "2026-03-09")
    other = api.post(f"/invoices/{invoice}/send").data["messages"][0]["id"]
    with pytest.raises(api.store.engine.conflict), api.operating() as tx:
        tx.update_columns(messages, other, {"stage": 1})
    assert sent(post) == [(invoice, 1)]


def test_after_days_without_a_server_only_the_latest_stage_is_sent(api, post, client, clock):
    invoice = bill(api, client, "2026-03-01")
    turn_on(api)
    do(api, clock, "2026-03-23")
    do(api, clock, "2026-03-24")
    assert sent(post) == [(invoice, 2)], "the first counts as passed"
    do(api, clock, "2026-04-06")
    assert sent(post) == [(invoice, 2), (invoice, 3)]


def test_a_reminder_that_came_late_keeps_its_distance_to_the_next(api, post, client, clock):
    invoice = bill(api, client, "2026-03-01")
    turn_on(api)
    for day in ("2026-04-04", "2026-04-05", "2026-04-10"):  # 34, 35 and 40 days late: the server was off
        do(api, clock, day)
    assert sent(post) == [(invoice, 2)]
    do(api, clock, "2026-04-11")
    assert sent(post) == [(invoice, 2), (invoice, 3)]


@each_database
def test_of_the_reminders_that_wait_while_mail_is_paused_only_the_latest_is_sent(api, post, client, clock):
    invoice = bill(api, client, "2026-03-01")
    turn_on(api)
    pause.pause(api.store, pause.MAIL, "a backup was restored")
    for day in ("2026-03-08", "2026-03-22", "2026-04-05"):
        do(api, clock, day)
    pause.resume(api.store, pause.MAIL, lambda *_: None)
    assert post.send() == 1
    assert [(each["record_id"], each["stage"], each["status"]) for each in post.messages()] == [
        *((invoice, 1, "cancelled"), (invoice, 2, "cancelled"), (invoice, 3, "sent"))
    ]
    assert "later reminder" in post.messages()[0]["error"]


def test_a_reminder_that_waits_is_not_sent_once_it_would_be_wrong(api, post, client, clock):
    other = api.make("/clients", email="x@x.example")["id"]
    part_paid, moved, disputed, of_disputed, gone = (
        bill(api, each, "2026-03-01") for each in (client, client, client, other, client)
    )
    turn_on(api)
    do(api, clock, "2026-03-08")
    api.pay(part_paid, amount="120.50")
    api.patch(f"/invoices/{moved}", {"due_date": "2026-03-31"})
    api.patch(f"/invoices/{disputed}", {"reminders": False})
    api.patch(f"/clients/{other}", {"reminders": False})
    api.sql("UPDATE messages SET record_id = 999 WHERE record_id = $1", gone)
    assert post.send() == 0
    assert {each["record_id"]: each["error"] for each in post.messages()} == {
        part_paid: "The balance of the invoice changed before this reminder was sent.",
        moved: "The due date of the invoice was moved before this reminder was sent.",
        disputed: "Reminders were turned off before this one was sent.",
        of_disputed: "Reminders were turned off before this one was sent.",
        999: "The invoice was deleted before this reminder was sent.",
    }


def test_what_was_reached_before_reminders_were_turned_on_or_changed_is_not_sent(api, post, client, clock):
    old, newer = bill(api, client, "2026-01-15"), bill(api, client, "2026-02-20")
    turn_on(api)
    do(api, clock, "2026-03-05")
    assert sent(post) == [], "it is 49 and 13 days late: no stage was reached since"
    do(api, clock, "2026-03-13")
    assert sent(post) == [(newer, 2)]
    clock.move_to("2026-03-14T07:00:00Z")
    turn_on(api, 10, 40)
    do(api, clock, "2026-03-15")
    assert sent(post) == [(newer, 2)]
    clock.move_to("2026-03-16T07:00:00Z")
    turn_on(api, is_on=False)
    do(api, clock, "2026-04-30")
    assert sent(post) == [(newer, 2)]
    assert old not in dict(sent(post))


def test_new_texts_do_not_begin_again(api, post, client, clock):
    invoice = bill(api, client, "2026-03-01")
    turn_on(api)
    clock.move_to("2026-03-12T07:00:00Z")
    turn_on(api, subject_en="Still open: {number} {balance}")
    do(api, clock, "2026-03-12")
    assert sent(post) == [(invoice, 1)]
    number = api.get(f"/invoices/{invoice}").data["number"]
    assert post.messages()[0]["subject"] == f"Still open: {number} €500.00"


def test_nothing_is_sent_about_what_is_settled_unwanted_or_not_due(api, post, client, clock):
    quiet = api.make("/clients", name="Quiet", email="x@x.example", reminders=False)["id"]
    bill(api, quiet, "2026-03-01")
    bill(api, client, "2026-03-01", reminders=False)
    bill(api, client, "2026-03-01", status="draft")
    bill(api, client, "2026-03-09")
    paid, void, lost, credited = (bill(api, client, "2026-03-01") for _ in range(4))
    api.pay(paid, amount="500")
    api.make(f"/invoices/{credited}/credit-notes")
    for invoice, status in ((void, "void"), (lost, "written_off")):
        assert api.patch(f"/invoices/{invoice}", {"status": status}).status == 200
    assert api.patch(f"/invoices/{bill(api, client, '2026-03-01')}", {"reminders": False}).status == 200
    wanted = bill(api, client, "2026-03-01")
    turn_on(api)
    do(api, clock, "2026-03-10")
    assert sent(post) == [(wanted, 1)]


def test_an_invoice_that_is_paid_while_its_reminder_is_made_or_waits_gets_none(api, post, client, clock, monkeypatch):
    first, second = bill(api, client, "2026-03-01"), bill(api, client, "2026-03-01")
    turn_on(api)
    kind = KINDS["reminders"]

    def next_rows(*found):
        rows = kind.next_rows(*found)
        if rows and api.get(f"/invoices/{first}").data["balance_due"] != "0.00":
            another_process(api).pay(first, amount="500")
        return rows

    monkeypatch.setattr("tests.mail.test_reminders.KINDS", {**KINDS, "reminders": kind._replace(next_rows=next_rows)})
    do(api, clock, "2026-03-08")
    assert sent(post) == [(second, 1)]
    api.pay(second, amount="500")
    assert post.send() == 0
    (message,) = post.messages()
    assert (message["status"], message["error"]) == ("cancelled", "The invoice was paid before this reminder was sent.")


def test_stages_that_change_while_reminders_are_made_hold_for_those_that_follow(api, post, client, clock, monkeypatch):
    bill(api, client, "2026-03-01")
    turn_on(api)
    kind = KINDS["reminders"]

    def next_rows(*found):
        rows = kind.next_rows(*found)
        if rows:
            turn_on(another_process(api), 30)
        return rows

    monkeypatch.setattr("tests.mail.test_reminders.KINDS", {**KINDS, "reminders": kind._replace(next_rows=next_rows)})
    do(api, clock, "2026-03-08")
    assert sent(post) == []
    ((status, refused),) = api.sql("SELECT status, refused FROM jobs WHERE kind = 'reminders'")
    assert (status, refused) == ("done", 0)


def test_a_client_without_an_address_is_named_and_reminded_once_it_has_one(api, post, client, clock):
    nowhere = api.make("/clients", name="Nowhere")["id"]
    without, other = bill(api, nowhere, "2026-03-01"), bill(api, client, "2026-03-01")
    turn_on(api)
    do(api, clock, "2026-03-08")
    assert sent(post) == [(other, 1)]
    ((name, message),) = api.sql("SELECT name, message FROM job_refusals")
    assert name.endswith(", Nowhere")
    assert "has no email address" in message
    api.patch(f"/clients/{nowhere}", {"email": "info@nowhere.example"})
    do(api, clock, "2026-03-09")
    assert sent(post) == [(other, 1), (without, 1)]


def test_texts_and_amounts_are_in_the_language_of_the_client(api, post, clock):
    client = api.make("/clients", name="Bergmann Optik", email=ADDRESS, language="de")["id"]
    bill(api, client, "2026-03-01")
    turn_on(api)
    do(api, clock, "2026-03-08")
    (message,) = post.messages()
    assert message["subject"].startswith("Zahlungserinnerung: Rechnung ")
    spaced = message["message"].replace("\N{NO-BREAK SPACE}", " ")
    assert "am 1. März 2026 fällig, und 500,00 € sind noch offen" in spaced


def test_the_reminders_of_one_account_are_nothing_to_another(both, clock):
    api, other = both
    turn_on(api)
    for each in both:
        bill(each, each.make("/clients", email="info@x.example")["id"], "2026-03-01")
    do(api, clock, "2026-03-08")
    assert [each["stage"] for each in api.get("/messages").data] == [1]
    assert other.get("/messages").data == []


def test_without_a_mail_server_nothing_is_queued_and_nothing_refused(api, post, client, clock, monkeypatch):
    monkeypatch.setattr(api.store, "mail_from", "")
    bill(api, client, "2026-03-01")
    turn_on(api)
    do(api, clock, "2026-03-08")
    assert sent(post) == []
    assert api.sql("SELECT kind FROM jobs WHERE kind <> 'daily'") == []
