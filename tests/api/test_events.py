"""GET /events: in order, without gaps, limited to what the key may read; and waiting for the next event."""

import threading
import time
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
import time_machine
from testing.process import until
from tests.contract.cases import CREATES, another_process
from tests.databases import each_database, only_sqlite

from retainer.events.catalogue import ANNOUNCED, TYPES
from retainer.kernel import waiting
from retainer.kernel.waiting import preferred_seconds
from retainer.server.http import gate, turns
from retainer.server.monitoring import housekeeping
from retainer.settings import BASE_PATH


def walk(api, **query):
    """All events that the parameters show, page by page."""
    found, more = [], True
    while more:
        answer = api.get("/events", query)
        found += answer.data
        query["after"], more = answer.json["meta"]["next_after"], answer.json["meta"]["has_more"]
    return found


def newest(api):
    return api.get("/events").json["meta"]["latest"]


def shown(events):
    return [(event["type"], event["record_id"]) for event in events]


@each_database
def test_events_are_listed_in_their_order_page_by_page(api, other_tenant):
    tags = [api.make("/tags")["id"] for _ in range(5)]
    other_tenant.make("/clients")
    assert api.delete(f"/tags/{tags[0]}").status == 204
    first = api.get("/events", {"per_page": 4})
    assert shown(first.data) == [("tag.created", tag) for tag in tags[:4]]
    meta = {"next_after": 4, "has_more": True, "latest": 6, "per_page": 4}
    assert first.json["meta"] == meta
    following = first.json["links"]["next"]
    assert following.endswith(f"{BASE_PATH}/events?per_page=4&after=4")
    second = api.get("/events", following.partition("?")[2])
    assert shown(second.data) == [("tag.created", tags[4]), ("tag.deleted", tags[0])]
    assert second.json["meta"] == meta | {"next_after": 6, "has_more": False}
    empty = api.get("/events", {"after": 6})
    assert (empty.data, empty.json["meta"]["next_after"]) == ([], 6)
    assert empty.json["links"]["next"].endswith("/events?after=6")


@only_sqlite
def test_each_event_names_the_address_of_its_record(api):
    made = {}
    for operation in CREATES:
        record = api.make(operation.path)
        made[operation.resource.table.name] = record["id"]
    events = {(event["resource"], event["record_id"]): event for event in walk(api)}
    assert {resource for resource, _ in events} == set(ANNOUNCED)
    for event in events.values():
        path, _, query = event["url"].partition(BASE_PATH)[2].partition("?")
        answer = api.get(path, query)
        record = answer.data[0] if query else answer.data
        assert record["id"] == event["record_id"]
        assert (event["parent_id"] is not None) == (event["resource"] in {"milestone", "ticket_reply"})
    client = next(event for event in events.values() if event["resource"] == "client")
    assert api.delete(f"/tags/{made['tags']}").status == 204
    gone = walk(api, after=newest(api) - 1)[0]
    assert (gone["type"], gone["url"], gone["fields"]) == ("tag.deleted", None, [])
    assert (client["user_id"], client["key_id"]) == (api.admin_id, api.key_id)


@only_sqlite
def test_events_are_filtered_by_type_resource_and_record(api):
    client, tag = api.make("/clients")["id"], api.make("/tags")["id"]
    api.patch(f"/clients/{client}", {"status": "archived"})
    changes = [("client.created", client), ("client.archived", client)]
    assert shown(walk(api, types="client.archived,tag.created")) == [("tag.created", tag), changes[1]]
    assert shown(walk(api, resource="client", record_id=client)) == changes
    assert shown(walk(api, resource="client", record_id=client + 1)) == []
    assert shown(walk(api, resource="tag")) == [("tag.created", tag)]
    answer = api.get("/events", {"types": "client.renamed", "after": "x", "per_page": 101})
    assert answer.errors.keys() == {"types", "after", "per_page"}
    assert len(set(TYPES)) == len(TYPES)


@only_sqlite
def test_a_key_sees_the_events_of_what_it_may_read(api):
    api.make("/tasks")
    client = api.make("/clients")["id"]
    api.make("/sites")
    key = api.new_key(["clients:read", "sites:write"])
    answer = api.get("/events", key=key)
    assert shown(answer.data) == [("client.created", client)]
    assert answer.json["meta"]["next_after"] == answer.json["meta"]["latest"] == 3
    assert shown(api.get("/events", {"resource": "client", "types": "client.created"}, key=key).data) == [
        ("client.created", client)
    ]
    refused = api.get("/events", {"resource": "client,task", "types": "client.created,invoice.paid"}, key=key)
    assert refused.errors == {
        "types": ["This key lacks the scope invoices:read. Leave out the events of: quote, invoice, credit_note."],
        "resource": ["This key lacks the scope tasks:read. Leave out the events of: task."],
    }


@each_database
def test_a_position_that_is_not_kept_is_gone_and_says_how_to_start_again(api):
    moment = datetime(2026, 3, 1, tzinfo=UTC)
    with time_machine.travel(moment, tick=False) as clock:
        for _ in range(3):
            api.make("/tags")
        clock.shift(timedelta(days=31))
        api.make("/clients")
        housekeeping.delete_old(api.store, housekeeping.EVENTS, 30)
        assert shown(walk(api)) == [("client.created", api.get("/clients").data[0]["id"])]
        assert len(walk(api, after=3)) == 1
        for after, reason in ((2, "too old"), (0, "too old"), (5, "Position 5 is after the newest event, which is 4")):
            gone = api.get("/events", {"after": after})
            assert (gone.status, gone.code) == (410, "events_gone")
            assert reason in gone.json["message"]
            assert "continue with after=4" in gone.json["message"]


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, 0),
        ("wait=20", 20),
        ("respond-async, wait=5", 5),
        ('Wait="7"', 7),
        ("wait=900", 20),
        ("wait", 0),
        ("await=5", 0),
        ("wait=-1", 0),
    ],
)
def test_the_preference_is_read_as_the_rfc_says(header, seconds):
    assert preferred_seconds(header) == seconds


class Waiter:
    """A client in a thread whose request waits for events."""

    def __init__(self, api, seconds=20, **options):
        self.api, self.answer, self.began = api, None, time.monotonic()
        self.options = {"headers": {"Prefer": f"wait={seconds}"}, **options}
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        self.answer = self.api.get("/events", {"after": 0}, **self.options)

    def is_waiting(self):
        """Return whether it has found nothing yet: it has a place, and has left the slot in which it looked."""
        has_place = self.api.app.waiting.count(self.api.account_id) > 0
        return has_place and self.api.app.gate.turns.running.free == self.api.app.gate.turns.running.count

    def result(self):
        self.thread.join(60)
        return self.answer


@each_database
def test_a_request_waits_for_the_next_event_of_any_process(api):
    for writer in (api, another_process(api)):
        waiter = Waiter(api)
        until(waiter.is_waiting, "it waits")
        tag = writer.make("/tags")["id"]
        answer = waiter.result()
        assert shown(answer.data) == [("tag.created", tag)]
        assert answer.headers["preference-applied"] == "wait=20"
        assert not waiter.is_waiting()
        api.delete(f"/tags/{tag}")
        api.sql("DELETE FROM events")


@only_sqlite
def test_a_wait_that_ends_with_nothing_is_empty_and_not_logged_as_slow(api):
    recorded = []
    api.app.log.recorder.add = recorded.extend
    began = time.monotonic()
    answer = api.get("/events", headers={"Prefer": "wait=1"})
    elapsed = 1000 * (time.monotonic() - began)
    assert (answer.data, answer.headers["preference-applied"]) == ([], "wait=1")
    api.app.log.drain()
    assert elapsed >= 1000
    assert recorded[-1].duration_ms <= elapsed - 500, "only the work counts, before the wait and after it"


@only_sqlite
def test_a_wait_ends_early_enough_to_answer_in_the_time_of_the_request(api, monkeypatch):
    monkeypatch.setattr(gate, "REQUEST_SECONDS", waiting.LAST_SECONDS + 1)
    answer = api.get("/events", headers={"Prefer": "wait=20"})
    assert (answer.status, answer.data, answer.headers["preference-applied"]) == (200, [], "wait=20")


@only_sqlite
def test_a_wait_that_ends_while_all_turns_are_taken_is_empty(api, monkeypatch):
    waiter, running = Waiter(api, seconds=1), api.app.gate.turns.running
    until(lambda: waiter.is_waiting() or waiter.answer, "it waits, or its second is over")
    monkeypatch.setattr(turns, "TURN_SECONDS", 0)
    for other in range(running.count):
        assert running.acquire(f"other {other}", 0)
    assert (waiter.result().status, waiter.answer.data) == (200, [])


@only_sqlite
def test_a_commit_wakes_the_requests_of_its_account_that_wait(api, other_tenant):
    woken = []
    for account_id in (api.account_id, other_tenant.account_id):
        api.app.waiting.place(account_id, 20).rest(partial(woken.append, account_id))
    api.make("/tags")
    assert woken == [api.account_id]


@only_sqlite
def test_no_account_takes_all_places_to_wait(api, monkeypatch):
    monkeypatch.setattr(api.app.waiting.slots, "share", 1)
    first = Waiter(api)
    until(first.is_waiting, "it waits")
    second = api.get("/events", headers={"Prefer": "wait=20"})
    assert second.data == []
    assert "preference-applied" not in second.headers
    api.make("/tags")
    assert len(first.result().data) == 1


@only_sqlite
def test_a_wait_ends_when_the_server_does(api):
    waiter = Waiter(api)
    until(waiter.is_waiting, "it waits")
    api.app.ending.is_draining = True
    assert waiter.result().data == []
    assert api.get("/events", headers={"Prefer": "wait=20"}).data == []


@only_sqlite
def test_a_key_that_is_revoked_while_it_waits_gets_no_event(api, monkeypatch):
    monkeypatch.setattr(waiting, "POLL_SECONDS", 20)  # only the new tag wakes it
    key = api.new_key()
    waiter = Waiter(api, key=key)
    until(waiter.is_waiting, "it waits")
    api.revoke_newest_key()
    api.make("/tags")
    assert waiter.result().code == "revoked_key"


def test_a_request_that_was_woken_once_waits_until_it_is_woken_again():
    waiting_requests = waiting.WaitingRequests(waiting.Ending())
    place = waiting_requests.place(1, 20)
    waiting_requests.notify(1)
    assert place.rest(list), "it missed nothing while it looked"
    place.end_rest()
    assert not place.rest(list)
    place.leave()
    assert (waiting_requests.count(1), waiting_requests.slots.free) == (0, waiting.WAIT_SLOTS)


def test_a_wait_is_shorter_than_the_server_keeps_a_connection():
    assert waiting.MAX_SECONDS < 30
