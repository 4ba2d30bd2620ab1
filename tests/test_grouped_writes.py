"""Writers of SQLite that wait for each other share a transaction, and each is answered after its commit."""

import gc
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from sqlalchemy import insert
from testing.process import PATIENCE, until

from retainer.errors import Refusal
from retainer.kernel.http import Response
from retainer.server.http import turns
from retainer.server.http import writer as writers
from retainer.store.engines import Sqlite, base
from retainer.store.engines.base import Unavailable
from retainer.store.engines.turns import LONG_SECONDS
from retainer.store.tables import totals
from tests.databases import only_sqlite
from tests.store.test_turns import (
    breaks_at_the_commit,
    breaks_the_connection,
    ends_late,
    has_no_room,
    refuses,
    violates_a_constraint,
    written,
)
from tests.test_gate import Door

pytestmark = only_sqlite

PUT = insert(totals)
ENDS = ["BEGIN IMMEDIATE", "COMMIT"]


class Writers:
    """Requests of an account that each write a row, and those that the gate answers in one group."""

    def __init__(self, api):
        self.api, self.store, self.engine = api, api.store, api.store.engine
        self.door = Door(16, engine=self.engine)
        self.writer = self.door.gate.writer
        self.sent, self.runs = {}, []

    def put(self, tx, name):
        tx.run(PUT, account_id=self.api.account_id, name=name, count=0)

    def send(self, name, account_id=7, fails=None):
        def answer(request):
            self.runs.append(name)
            try:
                request.check()
                with self.store.unscoped(write=True) as tx:
                    self.put(tx, f"row {name}")
                    if fails is not None:
                        fails(tx, self.put)
            except (Refusal, Unavailable, self.engine.conflict) as error:
                return Response(503 if isinstance(error, Unavailable) else 422, [])
            return Response(201, [])

        self.sent[name] = self.door.send(account_id=account_id, answer=answer, is_quick=False, writes=True)

    @contextmanager
    def waiting(self, count):
        """A block in which so many requests are sent, which wait until it ends."""
        self.engine.turns.take(None)
        yield
        until(lambda: self.writer.queue.waiting == count - 1, "all but the first wait")
        self.engine.turns.hand_on()
        until(lambda: all(self.statuses().values()), "all are answered")
        until(lambda: self.writer.queue.free == 1, "nobody has the turn")

    def statuses(self):
        return {name: sent.client.status for name, sent in self.sent.items()}


@pytest.fixture
def grouped(api, monkeypatch):
    """Writers that wait until the test lets them go on, in groups that end no sooner on a busy machine."""
    monkeypatch.setattr(base, "WAIT_SECONDS", PATIENCE)
    monkeypatch.setattr(writers, "GROUP_SECONDS", PATIENCE)
    monkeypatch.setattr(turns, "SHARED_SECONDS", -1)  # no account meets another
    gc.disable()  # a collection would make a write long
    yield Writers(api)
    gc.enable()


@contextmanager
def traced(engine, monkeypatch, note=lambda text: text):
    """What is noted when a transaction begins or ends, on connections that are opened in the block."""
    seen, connect = [], engine.connect

    def connect_traced():
        connection = connect()
        connection.set_trace_callback(lambda text: seen.append(note(text)) if text in ENDS else None)
        return connection

    engine.close()
    with monkeypatch.context() as patched:
        patched.setattr(engine, "connect", connect_traced)
        yield seen
    engine.close()


def test_writers_that_wait_share_a_commit_and_accounts_take_turns(grouped, monkeypatch):
    with traced(grouped.engine, monkeypatch) as seen, grouped.waiting(5):
        grouped.send("a1", 7)
        until(lambda: grouped.runs == ["a1"], "the first is at work")
        for name, account_id in (("a2", 7), ("a3", 7), ("b1", 8), ("b2", 8)):
            grouped.send(name, account_id)
    assert grouped.runs[:2] == ["a1", "b1"], "b has used less than a"
    assert [sorted(run for run in grouped.runs if run[0] == each) for each in "ab"] == [
        ["a1", "a2", "a3"],
        ["b1", "b2"],
    ]
    assert seen == ENDS
    assert grouped.statuses() == dict.fromkeys(("a1", "a2", "a3", "b1", "b2"), 201)
    assert len(written(grouped.store)) == 5


def test_nothing_is_answered_before_the_commit_of_its_group(grouped, monkeypatch):
    with traced(grouped.engine, monkeypatch, lambda text: (text, {*grouped.statuses().values()})) as seen:
        with grouped.waiting(3):
            for name in "abc":
                grouped.send(name)
        assert seen == [("BEGIN IMMEDIATE", {None}), ("COMMIT", {None})]


@pytest.mark.parametrize(
    ("fails", "status"),
    [(refuses, 422), (violates_a_constraint, 422), (ends_late, 503), (has_no_room, 503), (breaks_the_connection, 503)],
)
def test_a_writer_that_fails_in_a_group_fails_alone(grouped, fails, status):
    with grouped.waiting(3):
        for name, failure in (("before", None), ("failed", fails), ("after", None)):
            grouped.send(name, fails=failure)
    assert grouped.statuses() == {"before": 201, "failed": status, "after": 201}
    assert written(grouped.store) == {"row before", "row after"}


def test_a_commit_whose_outcome_is_unknown_is_told_to_all_of_its_group(grouped):
    with grouped.waiting(3):
        for name, failure in (("before", None), ("failed", breaks_at_the_commit), ("after", None)):
            grouped.send(name, fails=failure)
    assert grouped.statuses() == dict.fromkeys(("before", "failed", "after"), 503)
    assert written(grouped.store) == set(), "nobody was told that it wrote"


def test_a_commit_that_finds_no_room_is_repeated_by_each_writer_alone(grouped, monkeypatch):
    monkeypatch.setattr(writers, "OutcomeUnknown", ())  # as if it were known that nothing was written
    with grouped.waiting(3):
        for name, failure in (("before", None), ("failed", breaks_at_the_commit), ("after", None)):
            grouped.send(name, fails=failure)
    assert grouped.statuses() == {"before": 201, "failed": 503, "after": 201}
    assert written(grouped.store) == {"row before", "row after"}


def compute(tx, put):
    """Take the processor for long."""
    end = time.thread_time() + 2 * LONG_SECONDS
    while time.thread_time() < end:
        pass


def test_an_account_whose_last_write_was_long_has_a_transaction_of_its_own(grouped, monkeypatch):
    with grouped.waiting(1):
        grouped.send("long", 7, compute)
    with traced(grouped.engine, monkeypatch) as seen, grouped.waiting(3):
        grouped.send("first", 8)
        until(lambda: "first" in grouped.runs, "it is at work")
        grouped.send("again", 7)
        grouped.send("second", 8)
    assert grouped.statuses() == dict.fromkeys(("long", "first", "second", "again"), 201)
    assert seen == ENDS * 2, "it begins one of its own, which the next may share"


def test_an_account_that_kept_others_waiting_pauses_before_its_next_write(grouped):
    with grouped.waiting(3):
        grouped.send("long", 7, compute)
        until(lambda: "long" in grouped.runs, "it is at work")
        grouped.send("other", 8)
        grouped.send("later", 7)
    assert grouped.runs.index("other") < grouped.runs.index("later")
    assert grouped.statuses() == dict.fromkeys(("long", "other", "later"), 201)


def test_a_group_ends_after_a_while_though_others_wait(grouped, monkeypatch):
    monkeypatch.setattr(writers, "MAX_GROUP", 2)
    with traced(grouped.engine, monkeypatch) as seen, grouped.waiting(4):
        for name in "abcd":
            grouped.send(name)
    assert seen == ENDS * 2


def test_beside_other_accounts_groups_take_as_long_as_a_flush(grouped, monkeypatch):
    with monkeypatch.context() as fast:  # no flush takes time
        fast.setattr(writers, "time", SimpleNamespace(thread_time=time.thread_time, monotonic=lambda: 0.0))
        with traced(grouped.engine, monkeypatch) as seen, grouped.waiting(3):
            for name in "abc":
                grouped.send(name)
        assert seen == ENDS, "nobody else is there"

        monkeypatch.setattr(turns, "SHARED_SECONDS", 60)
        grouped.door.send(account_id=8)
        with traced(grouped.engine, monkeypatch) as seen, grouped.waiting(3):
            for name in "def":
                grouped.send(name)
        assert seen == ENDS * 3

    monkeypatch.setattr(Sqlite, "end_write", slowly(Sqlite.end_write))
    grouped.send("g")
    until(lambda: grouped.statuses()["g"], "a slow flush is known")
    with traced(grouped.engine, monkeypatch) as seen, grouped.waiting(3):
        for name in "hij":
            grouped.send(name)
    assert seen == ENDS


def slowly(end_write):
    def end(*arguments, **options):
        end_write(*arguments, **options)
        time.sleep(0.5)

    return end


def test_events_are_announced_after_the_commit_of_their_group(api):
    order, waiting = [], api.app.waiting
    waiting.place(api.account_id, 20).rest(lambda: order.append([row[0] for row in read_elsewhere(api)]))
    api.make("/tags", name="Announced")
    assert order == [["Announced"]]


def read_elsewhere(api):
    """What another connection sees."""
    found = []
    thread = threading.Thread(target=lambda: found.extend(api.sql("SELECT name FROM tags")))
    thread.start()
    thread.join()
    return found
