"""The recorder loses nothing that it need not, and writes nothing twice; old requests are deleted."""

import threading
import time
from datetime import timedelta

import pytest
from sqlalchemy import func, select
from testing.process import at_once

from retainer.schema.requests import operation_hours, request_hours, requests
from retainer.server.monitoring import housekeeping
from retainer.store.engines.base import OutcomeUnknown, Unavailable
from retainer.traffic import counts, recorder
from retainer.traffic.recorder import RequestRecorder
from retainer.values.exact import LAST_DAY, utcnow
from tests.databases import each_database, slow_on_each
from tests.traffic.common import NOON, answered, asked, later, listed, write

pytestmark = slow_on_each


def rows(api, table):
    with api.store.unscoped() as tx:
        return tx.value(select(func.count()).select_from(table))


def kept(api):
    """How many requests are in the log, of all accounts."""
    return rows(api, requests)


class Failing:
    """A store whose database fails: before a commit, or after it."""

    def __init__(self, store, error, *, after=False):
        self.store, self.error, self.after = store, error, after

    def unscoped(self, *, write):
        transaction = self.store.unscoped(write=write)
        if not self.after:
            raise self.error
        end, error = transaction.__exit__, self.error

        class Unsure:
            def __enter__(self):
                return transaction.__enter__()

            def __exit__(self, *raised):
                end(*raised)
                raise error

        return Unsure()


class Arriving:
    """A store during whose transactions more requests are answered."""

    def __init__(self, store, waiting, lines):
        self.store, self.waiting, self.lines = store, waiting, lines

    def unscoped(self, *, write):
        self.waiting.add([self.lines.pop()])
        return self.store.unscoped(write=write)


def test_a_write_ends_although_requests_go_on_arriving(api):
    waiting = RequestRecorder()
    waiting.add([answered(api, time=later(n)) for n in range(3)])
    arriving = [answered(api, time=later(n)) for n in range(3, 30)]
    waiting.write(Arriving(api.store, waiting, arriving))
    assert kept(api) == 3
    waiting.write(api.store)
    assert kept(api) == 30 - len(arriving) > 3


def test_while_the_database_is_away_requests_wait_the_oldest_are_lost_and_counted(api, monkeypatch):
    monkeypatch.setattr(recorder, "MAX_WAITING", 10)
    waiting = RequestRecorder()
    waiting.add([answered(api, time=later(n)) for n in range(8)])
    with pytest.raises(Unavailable):
        waiting.write(Failing(api.store, Unavailable("away")))
    waiting.add([answered(api, time=later(n)) for n in range(8, 30)])
    assert waiting.pop_dropped() == 12
    assert waiting.pop_dropped() == 0
    waiting.write(api.store)
    assert [request.answered_at for request in listed(api).requests] == [
        later(n) for n in (*range(29, 19, -1), *range(7, -1, -1))
    ]
    assert kept(api) == 18


def test_the_last_write_waits_for_one_that_has_begun(api, monkeypatch):
    monkeypatch.setattr(recorder, "BATCH_SIZE", 3)
    sharing = RequestRecorder()
    sharing.add([answered(api, time=later(n)) for n in range(90)])
    at_once(4, lambda _: sharing.write(api.store))
    assert (kept(api), sharing.pop_dropped()) == (90, 0)
    assert asked(api, counts.by_key, NOON, LAST_DAY)[api.key_id].requests == 90


@pytest.mark.parametrize("is_there", [True, False])
def test_a_batch_whose_commit_was_not_confirmed_is_written_once(api, is_there):
    unsure = RequestRecorder()
    unsure.add([answered(api, time=later(n)) for n in range(3)])
    for _ in range(2):
        with pytest.raises(OutcomeUnknown):
            unsure.write(Failing(api.store, OutcomeUnknown("lost"), after=is_there))
    unsure.write(api.store)
    assert kept(api) == 3
    assert asked(api, counts.by_key, NOON, LAST_DAY)[api.key_id].requests == 3


def test_a_batch_that_the_database_refuses_is_lost_and_counted_and_no_other(api, monkeypatch):
    monkeypatch.setattr(recorder, "BATCH_SIZE", 4)
    ids = [api.key_id] * 10
    ids[5] = 999
    writing = RequestRecorder()
    writing.add([answered(api, time=later(n), key_id=key_id) for n, key_id in enumerate(ids)])
    with pytest.raises(api.store.engine.conflict):
        writing.write(api.store)
    assert writing.pop_dropped() == 4
    writing.write(api.store)
    assert [request.answered_at for request in listed(api).requests] == [later(n) for n in (9, 8, 3, 2, 1, 0)]
    of_key = asked(api, counts.by_key, NOON, LAST_DAY)[api.key_id]
    assert (of_key.requests, of_key.busiest_minute, writing.pop_dropped()) == (6, 6, 0)


def test_each_write_counts_the_busiest_minute_of_all_servers(api):
    for busiest in (2, 4):
        write(api, *[answered(api)] * 2, answered(api, time=later(60)))
        assert asked(api, counts.by_key, NOON, LAST_DAY)[api.key_id].busiest_minute == busiest


def test_a_busy_server_writes_more_at_once(api):
    waiting = RequestRecorder()
    for count, seconds in ((1, recorder.QUIET_SECONDS), (recorder.BUSY_THRESHOLD, recorder.BUSY_SECONDS)):
        waiting.add([answered(api)] * count)
        assert waiting.write(api.store) == timedelta(seconds=seconds)


@each_database
def test_many_requests_are_all_written(api, monkeypatch):
    monkeypatch.setattr(recorder, "BATCH_SIZE", 1000)
    monkeypatch.setattr(recorder, "MINUTES_TOGETHER", 7)
    write(api, *(answered(api, time=later(max(0, n - 100))) for n in range(2345)))
    assert kept(api) == 2345
    of_key = asked(api, counts.by_key, NOON, LAST_DAY)[api.key_id]
    assert (of_key.requests, of_key.busiest_minute) == (2345, 160)


def test_several_servers_write_at_once_and_the_sums_are_those_of_all(both):
    api, other = both

    def write_many(n):
        for part in range(5):
            batch = [answered(each, time=later(n + part)) for each in (api, other) for _ in range(20)]
            write(api, *batch)

    threads = [threading.Thread(target=write_many, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in both:
        assert kept(api) == 800
        (of_key,) = asked(each, counts.by_key, NOON, LAST_DAY).values()
        assert (of_key.requests, of_key.busiest_minute) == (400, 400)
        assert asked(each, counts.operations, NOON)[0].requests == 400


def test_old_requests_are_deleted_a_batch_at_a_time_and_newer_ones_stay(both, monkeypatch):
    monkeypatch.setattr(housekeeping, "BATCH_SIZE", 10)
    api, now = both[0], utcnow()
    for each in both:
        write(each, *(answered(each, time=later(-86400 * n - 11, now), request_id=f"sent-{n}") for n in range(40)))
    deleted = [housekeeping.delete_old(api.store, housekeeping.REQUESTS, 30) for _ in range(3)]
    assert deleted == [20, 0, 0]
    assert kept(api) == 60
    assert [housekeeping.delete_old(api.store, housekeeping.REQUESTS, 0) for _ in range(4)] == [20, 20, 20, 0]
    assert kept(api) == 0


def test_a_pass_that_has_taken_its_time_leaves_other_accounts_to_the_next_one(both, monkeypatch):
    """The thread of a server has other chores; with thousands of accounts, one pass would keep it for minutes."""
    monkeypatch.setattr(housekeeping, "PASS_SECONDS", 0)
    for each in both:
        write(each, answered(each, time=later(-86400, utcnow())))
    assert [housekeeping.delete_old(both[0].store, housekeeping.REQUESTS, 0) for _ in range(3)] == [1, 1, 0]


@pytest.mark.parametrize(("found", "seconds"), [(9, 60), (10, 2)])
def test_what_has_just_become_old_waits_unless_it_is_a_whole_batch(api, monkeypatch, found, seconds):
    """Under steady load there is always something, and each pass is a transaction of each account."""
    monkeypatch.setattr(housekeeping, "BATCH_SIZE", 10)
    write(api, *(answered(api, time=later(-86400 * 400 - n, utcnow())) for n in range(found)))
    (chore,) = (each for each in api.app.housekeeping.chores if each.name == "deleting old requests")
    began = time.monotonic()
    chore.do(lambda what, error: pytest.fail(f"{what}: {error}"))
    assert kept(api) == 0
    assert seconds <= chore.due_at - began < seconds + 1


def test_a_server_deletes_old_requests_and_later_their_sums(api):
    now = utcnow()
    write(api, *(answered(api, time=later(-86400 * n, now)) for n in (0, 80, 100)))
    for chore in api.app.housekeeping.chores:
        chore.do(lambda what, error: pytest.fail(f"{what}: {error}"))
    assert kept(api) == 1
    assert rows(api, request_hours) == rows(api, operation_hours) == 2
