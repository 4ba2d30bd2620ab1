"""Sending webhooks: every event arrives, those of a record in their order, whatever the receiver does meanwhile."""

import itertools
import random
import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from standardwebhooks import WebhookVerificationError
from testing.process import PATIENCE

from retainer.cli.accounts import resume
from retainer.events.deliveries import MAX_PENDING
from retainer.events.sender import batch, loop, results, schedule
from retainer.events.sender.loop import Sender
from retainer.identity import closing
from retainer.outbound import loop as background
from retainer.outbound import pause
from retainer.outbound.leases import Places
from retainer.server.monitoring import housekeeping
from retainer.values.exact import as_instant
from tests.contract.cases import another_process
from tests.contract.filler import NOW
from tests.databases import only_postgresql, only_sqlite, slow_on_each
from tests.length import IS_FULL, length
from tests.webhooks.receiver import Hooked, Receiver

SENDERS = 8
BUSY_SECONDS = loop.TURN_SECONDS
"""For a request on a busy machine; a turn with such requests still ends before its lease."""


@pytest.fixture
def hooked(api, monkeypatch):
    monkeypatch.setattr(loop, "TOTAL_SECONDS", BUSY_SECONDS)
    made = []

    def hook(**members):
        made.append(Hooked(api, **members))
        return made[-1]

    yield hook
    for each in made:
        each.receiver.close()


@pytest.fixture
def clock():
    """A clock that stands still until it is moved."""
    with time_machine.travel(NOW, tick=False) as traveller:
        yield traveller


@slow_on_each
def test_an_event_arrives_as_it_is_listed_with_a_signature(api, hooked):
    api.make("/tags")
    hook = hooked()
    api.make("/clients")
    client = api.make("/clients")["id"]
    api.patch(f"/clients/{client}", {"status": "archived"})
    assert hook.send() == 3
    listed = api.get("/events", {"after": 1}).data
    assert sorted((got.event for got in hook.receiver.got), key=lambda event: event["id"]) == listed
    for got in hook.receiver.got:
        assert hook.verify(got) == got.event
        assert got.headers["content-type"] == "application/json"
        with pytest.raises(WebhookVerificationError):
            hook.verify(got._replace(body=got.body + b" "))
    webhook = hook.read()
    assert (webhook["position"], webhook["pending_count"]) == (4, 0)
    assert webhook["last_delivered_at"] is not None
    shown = [(each["event_id"], each["type"], each["record_id"], each["status"]) for each in hook.deliveries()]
    assert sorted(shown) == [(each["id"], each["type"], each["record_id"], "delivered") for each in listed]
    first = hook.deliveries()[0]
    assert (first["response_status"], first["response_body"], first["attempts"]) == (200, "thanks", 1)
    assert hook.send() == 0


@only_sqlite
def test_only_the_chosen_types_are_sent_and_the_position_follows_the_others(api, hooked):
    hook = hooked(types=["tag.deleted"])
    tag = api.make("/tags")["id"]
    api.make("/clients")
    assert hook.send() == 0
    assert hook.read()["position"] == 2
    api.delete(f"/tags/{tag}")
    assert hook.send() == 1
    assert hook.receiver.events == [3]


@only_sqlite
def test_what_the_key_could_not_read_is_not_sent(api, hooked):
    narrow = api.new_key(["webhooks:write", "clients:read"])
    receiver = Receiver()
    api.post("/webhooks", {"url": receiver.url}, key=narrow)
    hook = hooked()
    api.make("/sites")
    api.make("/tags")
    hook.send()
    receiver.close()
    assert [got.event["type"] for got in receiver.got] == ["tag.created"]
    assert len(hook.receiver.got) == 2


@slow_on_each
def test_both_secrets_sign_for_a_day(api, hooked, clock):
    hook = hooked()
    rotated = api.post(f"{hook.path}/rotate-secret").json["meta"]["secret"]
    api.make("/tags")
    hook.send()
    clock.shift(timedelta(hours=25))
    api.make("/tags")
    hook.send()
    during, after = hook.receiver.got
    clock.shift(-timedelta(hours=25))
    for secret in (hook.secret, rotated):
        assert hook.verify(during, secret) == during.event
    clock.shift(timedelta(hours=25))
    assert hook.verify(after, rotated) == after.event
    with pytest.raises(WebhookVerificationError):
        hook.verify(after)


@slow_on_each
def test_a_second_rotation_keeps_each_former_secret_until_its_own_time(api, hooked, clock):
    hook, secrets = hooked(), []
    secrets.append(hook.secret)
    for hours in (0, 10):
        clock.shift(timedelta(hours=hours))
        secrets.append(api.post(f"{hook.path}/rotate-secret").json["meta"]["secret"])
    signers = []
    for hours in (10, 5, 10):  # 20, 25 and 35 hours after the first rotation
        clock.shift(timedelta(hours=hours))
        api.make("/tags")
        hook.send()
        signers.append([place for place, secret in enumerate(secrets) if verifies(hook, secret)])
    assert signers == [[0, 1, 2], [1, 2], [2]]


def verifies(hook, secret):
    with suppress(WebhookVerificationError):
        return hook.verify(hook.receiver.got[-1], secret) is not None
    return False


@slow_on_each
def test_a_failure_is_tried_again_after_growing_pauses_with_the_same_id(api, hooked, clock):
    hook = hooked()
    hook.receiver.fail(503)
    api.make("/tags")
    tried = []
    for _ in range(5):
        assert hook.send() == 1
        (delivery,) = hook.deliveries()
        assert (delivery["status"], delivery["error"]) == ("pending", "The receiver answered 503.")
        tried.append(delivery["attempts"])
        assert hook.send() == 0
        clock.move_to(schedule.datetime.fromisoformat(delivery["next_attempt_at"]))
    assert tried == [1, 2, 3, 4, 5]
    pauses = [5, 30, 120, 600]
    hook.receiver.recover()
    assert hook.send() == 1
    stamps = [int(got.headers["webhook-timestamp"]) for got in hook.receiver.got]
    taken = [later - former for former, later in itertools.pairwise(stamps)]
    for found, pause_seconds in zip(taken, pauses, strict=False):
        assert pause_seconds - 2 <= found <= pause_seconds + 2
    assert len({got.message_id for got in hook.receiver.got}) == 1
    (delivery,) = hook.deliveries()
    assert (delivery["status"], delivery["attempts"], delivery["error"]) == ("delivered", 6, None)


@slow_on_each
def test_events_of_a_record_queue_behind_a_failed_one_and_others_go_on(api, hooked, clock):
    hook = hooked()
    client = api.make("/clients")["id"]
    hook.receiver.fail(events={1})
    api.patch(f"/clients/{client}", {"name": "Renamed"})
    api.make("/tags")
    hook.send()
    api.patch(f"/clients/{client}", {"name": "Again"})
    api.make("/tags")
    hook.send()
    assert sorted(hook.receiver.events) == [3, 5]
    waiting = hook.deliveries(status="pending")
    assert [(each["event_id"], each["attempts"], each["next_attempt_at"] is None) for each in waiting] == [
        (1, 1, False),
        (2, 0, True),
        (4, 0, True),
    ]
    assert hook.read()["pending_count"] == 3
    hook.receiver.recover()
    assert hook.send() == 0
    clock.shift(timedelta(seconds=6))
    assert hook.send() == 3
    assert hook.receiver.events[-3:] == [1, 2, 4]
    assert hook.read()["pending_count"] == 0


@only_sqlite
def test_a_turn_that_tries_nothing_brings_no_retry_forward(api, hooked, clock):
    hook = hooked(types=["tag.created"])
    hook.receiver.fail(events={1})
    api.make("/tags")
    api.make("/tags")
    assert hook.send() == 2
    api.make("/clients")
    assert hook.send() == 0
    clock.shift(timedelta(seconds=1))
    api.make("/tags")
    assert hook.send() == 1
    assert hook.send() == 0, "the first event has its own time"
    assert hook.receiver.events == [2, 4]


@only_sqlite
def test_what_has_just_failed_waits_although_another_event_arrives(api, hooked, clock):
    hook = hooked()
    hook.receiver.fail(events={1})
    api.make("/tags")
    hook.send()
    clock.shift(timedelta(seconds=6))
    api.make("/clients")
    assert hook.send() == 2
    assert hook.send() == 0


@only_sqlite
def test_a_webhook_that_goes_back_sends_the_events_of_a_record_in_order(api, hooked, clock):
    hook = hooked()
    client = api.make("/clients")["id"]
    hook.send()
    hook.receiver.fail()
    api.patch(f"/clients/{client}", {"name": "Renamed"})
    hook.send()
    hook.receiver.recover()
    api.post(f"{hook.path}/redeliver", {"since": "2020-01-01T00:00:00Z"})
    clock.shift(timedelta(seconds=6))
    hook.send()
    assert hook.receiver.events == [1, 1, 2]


@only_sqlite
def test_an_event_that_is_sent_again_waits_behind_an_earlier_one_that_fails(api, hooked, clock):
    hook = hooked()
    client = api.make("/clients")["id"]
    api.patch(f"/clients/{client}", {"name": "Renamed"})
    hook.send()
    api.post(f"{hook.path}/redeliver", {"since": "2020-01-01T00:00:00Z"})
    hook.receiver.fail()
    hook.send()
    assert [each["status"] for each in hook.deliveries()] == ["pending", "pending"]
    hook.receiver.recover()
    clock.shift(timedelta(seconds=6))
    hook.send()
    assert hook.receiver.events == [1, 2, 1, 2]
    assert hook.read()["pending_count"] == 0


@only_sqlite
def test_an_event_that_is_sent_again_begins_with_short_pauses(api, hooked, clock):
    hook = hooked()
    hook.receiver.fail()
    api.make("/tags")
    hook.send()
    clock.shift(timedelta(days=2))
    hook.send()
    api.post(f"{hook.path}/redeliver", {"event_id": 1})
    hook.send()
    clock.shift(timedelta(seconds=6))
    assert hook.send() == 1


@slow_on_each
def test_webhooks_of_a_suspended_account_wait_and_then_send_all_in_order(api, other_tenant, clock):
    hook, other = Hooked(api), Hooked(other_tenant)
    hook.receiver.fail()
    client = api.make("/clients")["id"]
    hook.send()
    for name in ("First", "Second"):
        api.patch(f"/clients/{client}", {"name": name})
    with api.operating() as tx:
        closing.suspend(tx, "an invoice is not paid")
    clock.shift(timedelta(days=4))
    other_tenant.make("/tags")
    assert hook.send() == 1, "that of the other account"
    assert hook.receiver.events == []
    with api.store.unscoped() as tx:
        assert schedule.lateness(tx) == timedelta(0)
    with api.operating() as tx:
        resume(tx)
    hook.send()
    assert hook.read()["status"] == "active", "the days of the suspension are none in which it failed"
    hook.receiver.recover()
    clock.shift(timedelta(seconds=6))
    while hook.send():
        pass
    assert hook.receiver.events == [1, 2, 3]
    for each in (hook, other):
        each.receiver.close()


@slow_on_each
def test_a_receiver_that_is_back_gets_everything_at_once(api, hooked, clock):
    hook = hooked()
    hook.receiver.fail()
    api.make("/tags")
    hook.send()
    for seconds in (6, 30, 130):
        clock.shift(timedelta(seconds=seconds))
        assert hook.send() == 1
    api.make("/clients")
    hook.send()
    hook.receiver.recover()
    clock.shift(timedelta(seconds=6))
    assert hook.send() == 2, "the success of the client makes the tag due, which would have waited for minutes"
    assert hook.receiver.events == [2, 1]


@slow_on_each
def test_a_webhook_takes_no_more_events_while_too_many_are_pending(api, hooked, clock):
    hook = hooked()
    hook.receiver.fail()
    for count in (30, MAX_PENDING):  # the second turn has room for less than it finds
        for _ in range(count):
            api.make("/tags")
        hook.send()
    assert (hook.read()["pending_count"], hook.read()["position"]) == (MAX_PENDING, MAX_PENDING)
    assert len(hook.receiver.got) <= MAX_PENDING
    assert hook.send() == 0
    hook.receiver.recover()
    clock.shift(timedelta(seconds=6))
    hook.send()
    assert sorted(hook.receiver.events) == [*range(1, MAX_PENDING + 31)]
    assert hook.read()["pending_count"] == 0


@only_postgresql
def test_of_senders_that_look_at_once_one_gets_the_webhook(api, hooked, clock):
    hooked()
    api.make("/tags")
    barrier = threading.Barrier(SENDERS)

    def look(_):
        barrier.wait()
        return len(schedule.DUE.claim(api.store, Places(10, ()), timedelta(minutes=1)))

    with ThreadPoolExecutor(SENDERS) as pool:
        for _ in range(10):
            assert sum(pool.map(look, range(SENDERS))) == 1
            clock.shift(timedelta(minutes=2))


@slow_on_each
def test_a_receiver_that_was_down_for_an_hour_under_load_gets_every_event(api, hooked, clock):
    hook = hooked()
    drawn = random.Random("an hour")
    clients = [api.make("/clients")["id"] for _ in range(6)]

    def work():
        for _ in range(drawn.randint(1, 8)):
            if drawn.random() < 0.3:
                api.make("/tags")
            else:
                api.patch(f"/clients/{drawn.choice(clients)}", {"name": f"Name {drawn.random()}"})

    def minutes(count):
        for _ in range(length(count)):
            work()
            hook.send()
            clock.shift(timedelta(minutes=count / length(count)))

    minutes(3)
    address = hook.receiver.server.server_address
    hook.receiver.fail()
    minutes(60)
    assert hook.read()["pending_count"] > 0
    hook.receiver.answer = lambda _: 200 if drawn.random() < 0.8 else 500  # it comes back, with difficulties
    minutes(20)
    hook.receiver.recover()
    clock.shift(timedelta(hours=1))
    hook.send()
    latest = api.get("/events").json["meta"]["latest"]
    assert latest > length(200)
    assert hook.receiver.server.server_address == address
    acted = {}
    by_record = defaultdict(list)
    for got in hook.receiver.accepted:
        if got.message_id not in acted:  # acting once for each id is enough
            acted[got.message_id] = got.event["id"]
            by_record[got.event["resource"], got.event["record_id"]].append(got.event["id"])
    assert sorted(acted.values()) == [*range(1, latest + 1)]
    assert all(ids == sorted(ids) for ids in by_record.values()), "the events of a record arrive in their order"
    assert hook.read()["pending_count"] == 0


@slow_on_each
def test_a_receiver_that_fails_for_three_days_pauses_its_webhook_and_loses_nothing(api, hooked, clock):
    hook = hooked()
    hook.receiver.fail(500)
    api.make("/tags")
    moments, hours = 0, 1 if IS_FULL else 12
    while hook.read()["status"] == "active":
        hook.send()
        moments += 1
        clock.shift(timedelta(hours=hours))
        assert moments < 80
    assert moments == 72 // hours + 1, "the last attempt comes after three days"
    webhook = hook.read()
    reason = "The receiver has failed for three days. The last error: The receiver answered 500."
    assert (webhook["status"], webhook["status_reason"]) == ("paused", reason)
    assert len(hook.notices) == 1
    assert reason in hook.notices[0]
    ((action, user_id),) = api.sql("SELECT action, user_id FROM audit_entries ORDER BY id DESC LIMIT 1")
    assert (action, user_id) == ("webhook paused", None)
    api.make("/clients")
    assert hook.send() == 0
    hook.receiver.recover()
    resumed = api.patch(hook.path, {"status": "active"}).data
    assert (resumed["status"], resumed["status_reason"]) == ("active", None)
    assert hook.send() == 2
    assert sorted(hook.receiver.events) == [1, 2], "in no order, since they are of two records"


@slow_on_each
@pytest.mark.parametrize("is_of_the_operator", [True, False])
def test_a_pause_is_no_time_in_which_a_receiver_fails(api, hooked, clock, is_of_the_operator):
    hook = hooked()
    hook.receiver.fail(500)
    api.make("/tags")
    hook.send()
    if is_of_the_operator:
        pause.pause(api.store, pause.WEBHOOKS, "a rehearsal")
    else:
        api.patch(hook.path, {"status": "paused"})
    clock.shift(timedelta(days=5))
    if is_of_the_operator:
        pause.resume(api.store, pause.WEBHOOKS, schedule.retry_all)
    else:
        api.patch(hook.path, {"status": "active"})
    assert hook.send() == 1
    assert hook.read()["status"] == "active"
    assert hook.deliveries()[0]["next_attempt_at"] == as_instant(datetime.now(UTC) + schedule.RETRIES.pauses[0])


@slow_on_each
def test_a_receiver_that_answers_410_disables_its_webhook(api, hooked):
    hook = hooked()
    hook.receiver.fail(410)
    api.make("/tags")
    hook.send()
    assert (hook.read()["status"], len(hook.notices)) == ("disabled", 1)
    assert "410" in hook.read()["status_reason"]
    api.make("/tags")
    assert hook.send() == 0
    assert api.patch(hook.path, {"description": "Accounting"}).data["status"] == "disabled"


@slow_on_each
def test_a_test_is_sent_once(api, hooked):
    hook = hooked()
    hook.receiver.fail(404)
    api.post(f"{hook.path}/test")
    assert hook.send() == 1
    (got,) = hook.receiver.got
    assert hook.verify(got)["type"] == "webhook.test"
    assert hook.verify(got)["url"] == f"http://agency.example/api/public/v1{hook.path}"
    (delivery,) = hook.deliveries()
    assert (delivery["status"], delivery["response_status"], delivery["event_id"]) == ("failed", 404, None)
    assert hook.read()["pending_count"] == 0
    assert hook.send() == 0


@slow_on_each
def test_events_are_sent_again_with_their_ids(api, hooked):
    hook = hooked()
    for _ in range(3):
        api.make("/tags")
    hook.send()
    api.post(f"{hook.path}/redeliver", {"event_id": 2})
    assert hook.send() == 1
    assert hook.receiver.events[3:] == [2]
    api.post(f"{hook.path}/redeliver", {"since": "2026-01-01T00:00:00Z"})
    assert hook.send() == 3
    assert len({got.message_id for got in hook.receiver.got}) == 3
    assert [each["attempts"] for each in hook.deliveries()] == [2, 3, 2]
    assert hook.read()["position"] == 3


@slow_on_each
def test_several_senders_share_the_work_and_each_event_is_sent_once(api, hooked):
    hooks = [hooked() for _ in range(5)]
    for _ in range(20):
        api.make("/tags")
    stores = [api.store, another_process(api).store, another_process(api).store]
    threads = [threading.Thread(target=hooks[0].sender(store).run_once) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    hooks[0].send()
    for hook in hooks:
        assert sorted(hook.receiver.events) == [*range(1, 21)]
    assert hooks[0].failures == []


@slow_on_each
def test_what_a_dead_sender_has_sent_is_sent_again_when_its_lease_ends(api, hooked, clock, monkeypatch):
    hook = hooked()
    api.make("/tags")

    def die(*_):
        raise SystemError("The process was killed.")

    monkeypatch.setattr(loop, "save_results", die)
    assert hook.sender().run_once() == 0
    assert len(hook.receiver.got) == 1
    hook.failures.clear()
    monkeypatch.undo()
    assert hook.send() == 0, "another sender has leased it"
    clock.shift(loop.Sender.lease)
    assert hook.send() == 1
    first, second = hook.receiver.got
    assert (first.message_id, first.body) == (second.message_id, second.body)


@slow_on_each
def test_a_result_after_the_lease_has_ended_is_not_saved(api, hooked, clock):
    hook = hooked()
    api.make("/tags")
    (leased,) = schedule.DUE.claim(api.store, Places(10, ()), loop.Sender.lease)
    loaded = batch.load_batch(api.store, leased, "")
    loaded.groups[0][0].outcome = batch.SendOutcome(200)
    clock.shift(loop.Sender.lease + timedelta(seconds=1))
    assert len(schedule.DUE.claim(api.store, Places(10, ()), loop.Sender.lease)) == 1
    assert results.save_results(api.store, leased, loaded) == (0, [])
    assert hook.deliveries() == []


@slow_on_each
def test_a_webhook_that_goes_back_during_a_turn_stays_there(api, hooked):
    hook = hooked()
    api.make("/tags")
    hook.send()
    api.make("/tags")
    (leased,) = schedule.DUE.claim(api.store, Places(10, ()), loop.Sender.lease)
    loaded = batch.load_batch(api.store, leased, "")
    assert api.post(f"{hook.path}/redeliver", {"since": "2026-01-01T00:00:00Z"}).data["position"] == 0
    results.save_results(api.store, leased, loaded)
    assert hook.read()["position"] == 0
    hook.send()
    assert sorted(hook.receiver.events) == [1, 1, 2]


@only_sqlite
def test_a_redirect_is_a_failure_and_a_large_response_is_cut(api, hooked):
    hook = hooked()
    hook.receiver.fail(302)
    hook.receiver.headers, hook.receiver.content = {"location": hook.receiver.url}, b"x" * 5000
    api.make("/tags")
    assert hook.send() == 1
    (delivery,) = hook.deliveries()
    assert (delivery["status"], delivery["response_status"]) == ("pending", 302)
    assert delivery["response_body"] == "x" * loop.MAX_BODY


@only_sqlite
def test_a_receiver_that_does_not_answer_takes_ten_seconds_at_most(api, hooked, monkeypatch):
    monkeypatch.setattr(loop, "TOTAL_SECONDS", 0.3)
    hook = hooked()
    answered = threading.Event()
    hook.receiver.answer = lambda _: answered.wait(30) and 200
    api.make("/tags")
    hook.send()
    answered.set()
    assert hook.deliveries()[0]["error"] == "The receiver did not answer within 0 seconds."


@only_sqlite
def test_a_forbidden_address_is_like_one_that_cannot_be_reached(api, hooked):
    hook = hooked()
    closed = Receiver()
    closed.close()
    api.patch(hook.path, {"url": closed.url})
    api.make("/tags")
    hook.send()
    api.patch(hook.path, {"url": hook.receiver.url})
    api.make("/tags")
    Sender(api.store, (), "", lambda *_: None, hook.notices.append).run_once()
    assert [each["error"] for each in hook.deliveries()] == ["The receiver cannot be reached."] * 2
    assert hook.receiver.got == []


@slow_on_each
def test_events_that_were_deleted_before_they_were_sent_are_reported(api, hooked, clock):
    hook = hooked()
    api.patch(hook.path, {"status": "paused"})
    for _ in range(3):
        api.make("/tags")
    clock.shift(timedelta(days=31))
    api.make("/tags")
    housekeeping.delete_old(api.store, housekeeping.EVENTS, 30)
    api.patch(hook.path, {"status": "active"})
    hook.send()
    assert hook.receiver.events == [4]
    assert "Events up to 3 were deleted" in hook.read()["status_reason"]
    assert len(hook.notices) == 1


@slow_on_each
def test_old_deliveries_are_deleted_with_the_events_but_no_pending_one(api, hooked, clock):
    hook = hooked()
    hook.receiver.fail(events={2})
    for _ in range(3):
        api.make("/tags")
    hook.send()
    clock.shift(timedelta(days=31))
    assert housekeeping.delete_old(api.store, housekeeping.EVENTS, 30) == 4
    assert [each["event_id"] for each in hook.deliveries()] == [2]
    hook.send()
    (delivery,) = hook.deliveries()
    assert (delivery["status"], delivery["error"]) == ("failed", batch.GONE.error)
    assert (hook.read()["status"], hook.read()["pending_count"]) == ("active", 0)


@only_sqlite
def test_nothing_is_sent_while_webhooks_are_paused_in_the_installation(api, hooked):
    hook = hooked()
    api.make("/tags")
    pause.pause(api.store, pause.WEBHOOKS, "a rehearsal")
    assert hook.send() == 0
    assert "retainer deliver --resume" in pause.warnings(api.store)[0]
    pause.resume(api.store, pause.WEBHOOKS, schedule.retry_all)
    assert hook.send() == 1


@only_sqlite
def test_a_sender_that_is_stopped_saves_what_has_arrived(api, hooked, monkeypatch):
    monkeypatch.setattr(background, "DRAIN_SECONDS", PATIENCE)
    monkeypatch.setattr(background, "STOP_SECONDS", 2 * PATIENCE)
    hook = hooked()
    for _ in range(40):
        api.make("/tags")
    arrived, sender = threading.Event(), hook.sender()

    def answer(_):
        arrived.set()
        sender.stopped.wait(PATIENCE)
        return 200

    hook.receiver.answer = answer
    sender.start()
    assert arrived.wait(PATIENCE)
    sender.stop()
    delivered = [each["event_id"] for each in hook.deliveries(status="delivered")]
    assert sorted(delivered) == sorted(hook.receiver.events)
    hook.receiver.recover()
    hook.send()
    assert sorted(hook.receiver.events) == [*range(1, 41)]
