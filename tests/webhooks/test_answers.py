"""What a receiver asks for and how it answers: `Retry-After`, 410, and responses whose bodies break off."""

from datetime import UTC, timedelta
from email.utils import format_datetime
from ipaddress import ip_network

import pytest
import time_machine

from retainer.events.sender import schedule
from retainer.events.sender.loop import Sender
from retainer.outbound import pause
from retainer.values.exact import as_instant
from tests.contract.filler import NOW
from tests.databases import any_database, only_sqlite
from tests.monitor.test_probe import HEAD, FakeSite, endless
from tests.webhooks.receiver import Hooked

START = NOW.astimezone(UTC)


@pytest.fixture
def hook(api):
    made = Hooked(api)
    yield made
    made.receiver.close()


@pytest.fixture
def clock():
    with time_machine.travel(START, tick=False) as traveller:
        yield traveller


def after(**span):
    return as_instant(START + timedelta(**span))


@any_database
@pytest.mark.parametrize(
    ("asked", "due"),
    [
        ("120", {"seconds": 120}),
        (format_datetime(START + timedelta(minutes=3), usegmt=True), {"minutes": 3}),
        ("1", {"seconds": 5}),
        (format_datetime(START - timedelta(minutes=3), usegmt=True), {"seconds": 5}),
        ("99999999", {"hours": 2, "seconds": 5}),
        ("soon", {"seconds": 5}),
        ("-1", {"seconds": 5}),
    ],
)
def test_a_receiver_that_asks_for_time_gets_up_to_two_hours_more_than_the_pause(api, hook, clock, asked, due):
    hook.receiver.fail(429)
    hook.receiver.headers = {"Retry-After": asked}
    api.make("/tags")
    assert hook.send() == 1
    assert hook.deliveries()[0]["next_attempt_at"] == after(**due)
    hook.receiver.recover()
    clock.shift(timedelta(**due) - timedelta(seconds=1))
    assert hook.send() == 0
    clock.shift(timedelta(seconds=1))
    assert hook.send() == 1
    assert hook.deliveries()[0]["status"] == "delivered"


@any_database
@pytest.mark.parametrize(("status", "sent"), [(429, 1), (503, 2)])
def test_an_event_that_arrives_ends_the_pauses_of_others_but_those_of_a_limit(api, hook, clock, status, sent):
    hook.receiver.fail(status)
    hook.receiver.headers = {"Retry-After": "120"}
    api.make("/tags")
    hook.send()
    hook.receiver.recover()
    clock.shift(timedelta(seconds=10))
    api.make("/tags")
    assert hook.send() + hook.send() == sent


@any_database
def test_deliveries_of_a_webhook_that_is_not_active_have_no_next_attempt(api, hook, clock):
    def next_attempts():
        return [each["next_attempt_at"] for each in hook.deliveries(status="pending")]

    hook.receiver.fail(503)
    for _ in range(2):
        api.make("/tags")
    hook.send()
    assert next_attempts() == [after(seconds=5)] * 2
    api.patch(hook.path, {"status": "paused"})
    assert next_attempts() == [None] * 2
    api.patch(hook.path, {"status": "active"})
    assert next_attempts() == [after()] * 2
    hook.receiver.fail(410)
    hook.send()
    assert (hook.read()["status"], next_attempts()) == ("disabled", [None] * 2)
    api.post(f"{hook.path}/redeliver", {"event_id": 1})
    pause.pause(api.store, pause.WEBHOOKS, "a rehearsal")
    pause.resume(api.store, pause.WEBHOOKS, schedule.retry_all)
    assert next_attempts() == [None] * 2
    api.patch(hook.path, {"status": "active"})
    hook.receiver.recover()
    assert hook.send() == 2
    assert next_attempts() == []


@only_sqlite
@pytest.mark.parametrize(
    ("status", "answer", "body"),
    [
        ("delivered", HEAD + b"Content-Length: 100\r\n\r\nthanks", "thanks"),
        ("delivered", HEAD + b"Transfer-Encoding: chunked\r\n\r\n6\r\nthanks\r\nfour", "thanks"),
        ("delivered", endless(HEAD + b"\r\nthanks", b"x", 0.05), None),
        ("pending", b"HTTP/1.1 500 No\r\nContent-Length: 100\r\n\r\nbroken", "broken"),
    ],
)
def test_the_status_of_a_response_counts_even_if_its_body_breaks_off(api, hook, monkeypatch, status, answer, body):
    if body is None:
        monkeypatch.setattr("retainer.events.sender.loop.TOTAL_SECONDS", 2)  # in which the status has to come
    site = FakeSite(answer)
    api.patch(hook.path, {"url": site.url})
    api.make("/tags")
    hook.send()
    site.close()
    (delivery,) = hook.deliveries()
    assert (delivery["status"], delivery["response_body"]) == (status, body)
    assert delivery["response_status"] == (200 if status == "delivered" else 500)
    assert delivery["error"] == (None if status == "delivered" else "The receiver answered 500.")


@only_sqlite
def test_a_receiver_that_speaks_no_http_is_told_from_one_that_cannot_be_reached(api, hook):
    site = FakeSite(b"SSH-2.0-x\r\n")
    api.patch(hook.path, {"url": site.url})
    api.make("/tags")
    hook.send()
    site.close()
    assert hook.deliveries()[0]["error"] == "The receiver did not give a valid HTTP answer."
    forbidding = Sender(api.store, (ip_network("127.0.0.9"),), "", lambda *_: None, hook.notices.append)
    api.patch(hook.path, {"status": "paused"})
    api.patch(hook.path, {"status": "active"})
    forbidding.run_once()
    assert hook.deliveries()[0]["error"] == "The receiver cannot be reached."
