"""The turns of requests on SQLite, which answers in the server's process: few run, long statements beside them."""

import time

import pytest
from testing.process import until

from retainer.server.http.turns import SHORT_SECONDS
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


def test_while_sqlite_computes_others_run_even_of_the_same_account(engine):
    door = Door(4, engine=engine)

    def compute(_):
        return engine.one(FOREVER, [])

    long = [door.send(account_id=account_id, answer=compute, is_quick=False) for account_id in (7, 8)]
    until(lambda: door.gate.turns.running.free == 2, "both stand aside")
    assert door.gate.counts() == (4, 2, 0)
    assert door.send(account_id=9).client.status == door.send(account_id=7).client.status == 200

    long.append(door.send(account_id=7, answer=compute, is_quick=False))
    until(lambda: door.gate.turns.running.free == 1, "it has its turn")
    long.append(door.send(account_id=9, answer=compute, is_quick=False))
    until(lambda: door.gate.turns.running.free == 0, "so has another account, as two stand aside already")
    time.sleep(10 * SHORT_SECONDS)
    assert door.gate.counts() == (4, 4, 0)
    assert door.gate.turns.running.free == 0
    while any(sent.client.status is None for sent in long):
        interrupt(engine)
    assert door.gate.counts() == (4, 0, 0)
