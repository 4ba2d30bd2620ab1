"""Mail servers that refuse, stall and die: no message is lost, none is sent twice, and people see why one failed."""

import base64
import ssl
import subprocess
import threading
from contextlib import ExitStack
from datetime import timedelta

import pytest
import time_machine
from testing.agencies import open_agency
from testing.process import PATIENCE, until

from retainer.identity import closing
from retainer.mail.sender import loop, relay, schedule
from retainer.outbound import pause
from tests.console.visitor import admin_of
from tests.contract.cases import another_process
from tests.databases import slow_on_each
from tests.factories import ApiClient
from tests.mail.server import CUT, LOSE, STALL, STEPS, MailServer, Post
from tests.skips import find_program

ADDRESS = "rechnung@bergmann.example"


def queue(api, count=1, to=ADDRESS):
    """Queue messages that bring no document, so that drawing does not take time."""
    quote = api.make("/quotes", lines=[{"description": "Design", "unit_price": "500"}])["id"]
    for number in range(count):
        api.post(f"/quotes/{quote}/send", {"to": [to], "attach": [], "subject": f"No. {number}"})


def states(post):
    return [(each["status"], each["attempts"]) for each in post.messages()]


@slow_on_each
@pytest.mark.parametrize("step", STEPS)
def test_what_the_server_is_too_busy_for_is_tried_again_until_it_takes_it(api, post, clock, step):
    queue(api)
    post.server.answer = lambda at, _: ("451 busy" if at != "body" else CUT) if at == step else None
    assert post.send() == 1
    (message,) = post.messages()
    assert (message["status"], message["attempts"]) == ("queued", 1)
    assert message["error"]
    assert post.send() == 0, "it waits"
    clock.shift(timedelta(minutes=1, seconds=1))
    post.server.answer = lambda *_: None
    assert post.send() == 1
    assert states(post) == [("sent", 2)]
    assert post.messages()[0]["error"] is None
    assert len(post.server.got) == 1


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("trouble", [CUT, STALL])
def test_a_server_that_stalls_or_hangs_up_loses_nothing(api, post, clock, monkeypatch, step, trouble):
    queue(api)
    post.server.answer = lambda at, _: trouble if at == step else None
    with monkeypatch.context() as hasty:
        for name in ("STEP_SECONDS", "END_SECONDS"):
            hasty.setattr(relay, name, 0.3)
        post.send()
    assert states(post) == [("queued", 1)]
    assert post.messages()[0]["error"] == relay.UNREACHABLE
    (notice,) = post.notices
    assert notice.startswith("The mail server 127.0.0.1 accepted no message.")
    post.server.answer = lambda *_: None
    clock.shift(timedelta(minutes=1, seconds=1))
    post.send()
    assert states(post) == [("sent", 2)]
    assert len(post.server.got) == 1


def test_a_message_whose_acceptance_was_lost_is_sent_again_under_the_same_id(api, post, clock):
    queue(api)
    post.server.answer = lambda at, _: LOSE if at == "end" else None
    post.send()
    post.server.answer = lambda *_: None
    clock.shift(timedelta(minutes=2))
    post.send()
    assert len(post.server.got) == 2
    assert len({got.message_id for got in post.server.got}) == 1
    assert post.server.got[0].message_id.endswith("@retainer.example>")


@slow_on_each
def test_a_refused_address_fails_at_once_and_the_others_get_theirs(api, post):
    quote = api.make("/quotes", lines=[{"description": "Design", "unit_price": "500"}])["id"]
    api.post(f"/quotes/{quote}/send", {"to": ["gone@x.example", "here@x.example"], "attach": []})
    post.server.answer = lambda step, to: "550 5.1.1 no such user" if (step, to[:4]) == ("rcpt", "gone") else None
    assert post.send() == 2
    assert "gone@x.example" in admin_of(api).get("/console").html, "what the other one got does not hide it"
    gone, here = post.messages()
    assert (gone["status"], gone["attempts"], gone["sent_at"]) == ("failed", 1, None)
    assert gone["error"] == "The mail server refuses this address: 550 5.1.1 no such user"
    assert (here["status"], here["error"]) == ("sent", None)
    assert [got.recipient for got in post.server.got] == ["here@x.example"]


@pytest.mark.parametrize(
    ("step", "reply", "error"),
    [
        ("data", "554 no", "The mail server refuses the message: 554 no"),
        ("end", "554 5.7.1 looks like spam", "The mail server refuses the message: 554 5.7.1 looks like spam"),
        ("mail", "552 too large", "The mail server takes no message of this size: too large"),
    ],
)
def test_a_refused_message_fails_at_once_and_says_why(api, post, step, reply, error):
    queue(api)
    post.server.answer = lambda at, _: reply if at == step else None
    post.send()
    assert [(each["status"], each["error"]) for each in post.messages()] == [("failed", error)]


@pytest.mark.parametrize(("step", "reply"), [("mail", "550 sender not allowed"), ("rcpt", "530 sign in first")])
def test_what_is_wrong_with_our_settings_fails_no_message_and_tells_the_operator(api, post, step, reply):
    queue(api, 3)
    post.server.answer = lambda at, _: reply if at == step else None
    post.send()
    assert states(post) == [("queued", 1)] * 3
    assert {each["error"] for each in post.messages()} == {relay.NO_SERVICE}, "people cannot change it"
    assert post.notices == [f"The mail server 127.0.0.1 accepted no message. It answers {reply}"]


def test_after_two_days_a_message_fails_with_the_last_error(api, post, clock):
    queue(api)
    post.server.close()
    attempts = 0
    for _ in range(60):
        attempts += post.send()
        clock.shift(timedelta(hours=1, seconds=1))
    (message,) = post.messages()
    assert (message["status"], message["attempts"]) == ("failed", attempts)
    assert message["error"] == f"It was tried for two days. The last error: {relay.UNREACHABLE}"
    assert 12 <= attempts <= 20


def test_a_message_that_cannot_be_made_is_given_up_after_two_days(api, post, clock):
    queue(api)
    queue(api)
    api.sql("UPDATE messages SET standing = '{' WHERE id = 1")
    for _ in range(60):
        post.mailer().run_once()
        clock.shift(timedelta(hours=1, seconds=1))
    broken, sound = post.messages()
    assert (broken["status"], broken["attempts"]) == ("failed", 0)
    assert broken["error"] == f"It was tried for two days. The last error: {loop.ACCIDENT}"
    assert sound["status"] == "sent"
    assert 12 <= len(post.failures) <= 20
    assert {what for what, _ in post.failures} == {"sending mail (1 of account 1)"}
    assert loop.ACCIDENT in admin_of(api).get(f"/console/records/quotes/{broken['record_id']}").text
    assert ADDRESS in admin_of(api).get("/console").text


@slow_on_each
def test_a_message_is_not_sent_twice_if_the_database_is_away_when_it_was_accepted(api, post, monkeypatch):
    monkeypatch.setattr(loop, "SAVING_PAUSES", (0.2,) * 50)
    queue(api)
    outage, mailer = ExitStack(), post.mailer()

    def answer(step, _):
        if step == "end":
            outage.enter_context(api.databases.out_of_reach(api.app))

    post.server.answer = answer
    monkeypatch.setattr(mailer, "report", lambda *_: outage.close())
    with outage:
        mailer.run_once()
    assert states(post) == [("sent", 1)]
    assert len(post.server.got) == 1


def test_while_mail_is_paused_or_the_account_suspended_nothing_is_sent(api, post):
    queue(api)
    pause.pause(api.store, pause.MAIL, "a rehearsal")
    assert post.send() == 0
    pause.resume(api.store, pause.MAIL, lambda *_: None)
    with api.operating() as tx:
        closing.suspend(tx, "unpaid")
    assert post.send() == 0
    with api.operating() as tx:
        closing.resume(tx)
    assert post.send() == 1


def test_a_pause_that_begins_while_documents_are_drawn_stops_the_message(api, post, monkeypatch):
    queue(api)
    real = loop.write

    def write(*arguments):
        pause.pause(api.store, pause.MAIL, "at the last moment")
        return real(*arguments)

    monkeypatch.setattr(loop, "write", write)
    assert post.send() == 0
    assert states(post) == [("queued", 0)]
    assert post.server.got == []


@slow_on_each
def test_several_senders_send_each_message_once(api, post):
    queue(api, 20)
    other = another_process(api)
    senders = [Post(each, post.server) for each in (api, other, other)]
    threads = [threading.Thread(target=each.send) for each in senders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert states(post) == [("sent", 1)] * 20
    assert len({got.message_id for got in post.server.got}) == len(post.server.got) == 20


def test_what_a_clock_that_was_ahead_has_put_off_is_sent_now(api, post):
    queue(api)
    post.server.answer = lambda *_: "451 busy"
    with time_machine.travel("2031-01-01T00:00:00Z", tick=False):
        queue(api)
        post.send()
    post.server.answer = lambda *_: None
    post.send()
    assert {status for status, _ in states(post)} == {"sent"}


def test_a_restored_backup_sends_nothing_that_was_queued_in_it(api, post):
    queue(api, 2)
    assert schedule.cancel_queued(api.store, "It has probably arrived.") == 2
    assert post.send() == 0
    assert [(each["status"], each["error"]) for each in post.messages()] == [
        *[("cancelled", "It has probably arrived.")] * 2
    ]


def test_a_stopped_sender_ends_its_dialogue_and_leaves_the_message_queued(api, post, monkeypatch):
    monkeypatch.setattr("retainer.outbound.loop.DRAIN_SECONDS", 0.1)
    stalled = threading.Event()

    def answer(step, _):
        if step != "data":
            return None
        stalled.set()
        return STALL

    post.server.answer = answer
    queue(api)
    mailer = post.mailer()
    mailer.start()
    assert stalled.wait(PATIENCE)
    mailer.stop()
    assert states(post) == [("queued", 1)]
    assert post.server.got == []


def test_mail_of_two_accounts_that_stalls_leaves_a_connection_for_a_third(both, post, monkeypatch):
    monkeypatch.setattr("retainer.outbound.loop.DRAIN_SECONDS", 0.1)
    for name in ("STEP_SECONDS", "BEGIN_SECONDS"):
        monkeypatch.setattr(relay, name, 10 * PATIENCE)  # until the mailer is stopped
    api, _ = both
    third = ApiClient(api.app, api.contract_checker, open_agency(api.store, "West", "enterprise"))
    stalled = threading.Semaphore(0)

    def answer(step, to):
        if step != "rcpt" or to != ADDRESS:
            return None
        stalled.release()
        return STALL

    post.server.answer = answer
    for each in both:
        queue(each, 20)
    mailer = post.mailer()
    mailer.start()
    try:
        assert all(stalled.acquire(timeout=PATIENCE) for _ in range(3))
        queue(third, to="jo@other.example")
        until(lambda: post.server.got, "it does not wait for the others")
    finally:
        mailer.stop()
    assert [got.recipient for got in post.server.got] == ["jo@other.example"]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for this machine that has signed itself, and its key."""
    folder = tmp_path_factory.mktemp("certificate")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "key.pem", "-days", "9")
    names = ("-subj", "/CN=Mail", "-addext", "subjectAltName=IP:127.0.0.1")
    command = [find_program("openssl"), "req", "-x509", *key, "-out", "mail.pem", *names]
    subprocess.run(command, cwd=folder, capture_output=True, check=True, timeout=60)
    return folder / "mail.pem", folder / "key.pem"


def secure(api, certificate, *, is_tls=False):
    """A mail server with a certificate and users, and a mailer that signs in to it over TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    server = MailServer(context=context, is_tls=is_tls, user="me")
    return Post(api, server, f"smtp{'s' * is_tls}://me%40x.example:p%2Fw@127.0.0.1:{server.port}")


@pytest.mark.parametrize("is_tls", [False, True])
def test_mail_is_sent_over_tls_to_a_server_whose_certificate_is_trusted(api, certificate, monkeypatch, is_tls):
    queue(api)
    post = secure(api, certificate, is_tls=is_tls)
    post.send()
    assert states(post) == [("queued", 1)]
    assert "Its certificate is not valid: self-signed certificate." in post.notices[0]
    assert post.server.signed_in == [], "no password is shown to it"
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    queue(api)
    post.send()
    assert states(post) == [("queued", 1), ("sent", 1)]
    assert base64.b64decode(post.server.signed_in[0]) == b"\0me@x.example\0p/w"
    post.close()


def test_a_server_without_tls_gets_no_mail_unless_the_setting_says_so(api):
    queue(api)
    server = MailServer()
    post = Post(api, server, f"smtp://127.0.0.1:{server.port}")
    post.send()
    assert states(post) == [("queued", 1)]
    assert "It offers no TLS" in post.notices[0]
    assert server.got == []
    post.close()
