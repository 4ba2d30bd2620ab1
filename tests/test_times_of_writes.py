"""The time of a write is taken in its turn: times rise with the ids of events, on which copies of the data rest."""

import threading
from datetime import UTC, datetime, timedelta

import time_machine
from testing.agencies import PATIENT_SECONDS
from testing.process import at_once, until

from retainer.store.engines import base, sqlite
from retainer.values.exact import utcnow
from tests.databases import each_database, only_postgresql
from tests.length import length

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def times(api):
    return [at for (at,) in api.sql("SELECT at FROM events WHERE account_id = $1 ORDER BY id", api.account_id)]


def another_process(api):
    return api.on(api.databases.open(api.app.settings.database))


@only_postgresql
def test_a_write_that_waited_has_the_time_of_its_turn(api):
    answers = []
    with api.databases.held_writes(api.app, api.account_id, 60):
        waits = threading.Thread(target=lambda: answers.append(api.post("/tags", {"name": "New"})))
        waits.start()
        locked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        until(lambda: api.sql(locked) == [(1,)], "the write waits for the lock of its account")
        passed = utcnow()
    waits.join(60)
    (answer,) = answers
    assert answer.data["updated_at"] > passed
    assert times(api) == [answer.data["updated_at"]]


@each_database
def test_times_rise_with_the_ids_of_events_whoever_writes(api, monkeypatch):
    for module in (base, sqlite):
        monkeypatch.setattr(module, "WAIT_SECONDS", PATIENT_SECONDS)
    api = another_process(api)
    clients, count = (api, another_process(api)), length(100)
    tasks = [api.make("/tasks")["id"] for _ in range(2)]

    def write(thread):
        for turn in range(count):
            if turn % 100 == 0:
                key = api.new_key()  # a key has 600 requests a minute
            path = f"/tasks/{tasks[turn % 2]}"
            change = {"method": "PATCH", "path": path, "body": {"title": f"{thread} {turn} again"}}
            client = clients[thread % 2]
            assert client.patch(path, {"title": f"{thread} {turn}"}, key=key).status == 200
            assert client.post("/batch", {"atomic": True, "operations": [change]}, key=key).status == 200

    at_once(8, write)
    found = times(api)
    assert len(found) >= 16 * count
    assert found == sorted({*found}), "each is later than the one before it"
    newest = max(api.get(f"/tasks/{task}").data["updated_at"] for task in tasks)
    assert newest == found[-1]


@each_database
def test_a_clock_that_is_set_back_a_little_lets_no_time_go_back(api):
    with time_machine.travel(NOON, tick=False):
        tag = api.make("/tags")
    with time_machine.travel(NOON - timedelta(seconds=30), tick=False):
        changed = [api.patch(f"/tags/{tag['id']}", {"name": name}).data["updated_at"] for name in ("A", "B")]
    assert [tag["updated_at"], *changed] == [f"2026-03-02T12:00:00.00000{number}Z" for number in range(3)]


@each_database
def test_a_clock_that_was_far_ahead_is_not_followed(api):
    with time_machine.travel(NOON + timedelta(days=40), tick=False):
        tag = api.make("/tags")
    with time_machine.travel(NOON, tick=False):
        changed = api.patch(f"/tags/{tag['id']}", {"name": "A"})
    assert changed.data["updated_at"] == "2026-03-02T12:00:00.000000Z"
