"""The turns of requests on SQLite, which answers in the server's process: few run, long statements beside them."""

import contextlib
import threading

import pytest
from testing.process import until

from retainer.kernel.http import Response
from retainer.server.http.turns import RequestTurns
from retainer.store.engines.base import Busy
from tests.databases import only_sqlite
from tests.test_gate import Door

pytestmark = only_sqlite

FOREVER = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture
def engine(api):
    yield api.store.engine
    interrupt(api.store.engine)


def interrupt(engine):
    for connection in [*engine._open]:  # noqa: SLF001
        connection.interrupt()


def test_two_requests_run_at_a_time_whatever_is_set(engine):
    door = Door(16, engine=engine)
    door.hold(7)
    door.hold(8)
    waiting = door.send(account_id=9)
    assert (waiting.client.status, door.gate.counts()) == (None, (16, 2, 1))
    door.free_again()
    assert waiting.client.status == 200


def test_what_takes_long_runs_beside_the_requests_of_other_accounts_that_wait(engine):
    door = Door(4, engine=engine)

    def compute(_):
        return engine.one(FOREVER, [])

    def compute_for(*account_ids):
        return [door.send(account_id=account_id, answer=compute, is_quick=False) for account_id in account_ids]

    long = compute_for(7, 8)
    short, own = door.send(account_id=9), door.send(account_id=7)
    until(lambda: short.client.status == 200, "it had the turn of one that takes long")
    assert own.client.status is None, "one of an account runs"

    long += compute_for(9, 10, 11)
    until(
        lambda: door.gate.counts() == (4, 4, 2),
        "two stand aside, as many as may; one of an account and one of another wait",
    )
    while any(sent.client.status is None for sent in long):
        interrupt(engine)
    until(lambda: own.client.status == 200, "its account has a turn again")
    until(lambda: door.gate.counts() == (4, 0, 0), "nobody runs or waits")


def test_what_stands_aside_and_then_waits_for_something_else_needs_a_turn_again(engine):
    door, is_over = Door(4, engine=engine), threading.Event()

    def compute_and_wait(_):
        with contextlib.suppress(Busy):
            engine.one(FOREVER, [])
        with door.gate.turns.left():
            is_over.wait(60)
        return Response(200, [])

    long = [door.send(account_id=account_id, answer=compute_and_wait, is_quick=False) for account_id in (7, 8)]
    other = door.send(account_id=9)
    until(lambda: other.client.status == 200, "one stands aside")
    own = door.send(account_id=7)
    while own.client.status is None:
        interrupt(engine)
    assert long[0].client.status is None, "while it waits, another request of its account runs"
    is_over.set()
    until(lambda: {sent.client.status for sent in long} == {200}, "they go on")
    until(lambda: door.gate.counts() == (4, 0, 0), "nobody runs or waits")


def test_one_thread_at_a_time_lets_requests_stand_aside():
    started = []
    turns = RequestTurns(16, print, print, started.append, is_sqlite=True)
    for subject in (7, 8):
        assert turns.running.acquire(subject, 0)
    turns.look()
    assert started == [], "nobody waits"
    for count in (1, 2):
        assert not turns.running.enter(9, "waiting")
        turns.relieve()
        turns.look()
        assert len(started) == count
        assert turns.running.leave(9, "waiting")
        started[-1]()
