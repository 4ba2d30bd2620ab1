"""Writers that wait hold no turn of requests, and no connection that readers need."""

import threading
import time
from contextlib import closing, contextmanager
from types import SimpleNamespace

import psycopg
import pytest
from testing.agencies import open_agency
from testing.process import until

from retainer.server.http import gate as gates
from retainer.server.http import turns as turns_of_requests
from retainer.store.engines import Sqlite, base, postgresql_connection, postgresql_writers, sqlite, turns
from retainer.store.engines.postgresql_writers import MAX_LOCKS_AWAITED, WRITES
from tests.databases import each_database, only_postgresql, only_sqlite
from tests.length import first

PATIENCE = 120
OF_EACH = 4
"""Writers of an account."""


@pytest.fixture
def patient(api, monkeypatch):
    """A client whose writes wait until the test lets them go on, however slow the machine is."""
    api.store.engine.close()
    for module in (base, sqlite):
        monkeypatch.setattr(module, "WAIT_SECONDS", PATIENCE)
    monkeypatch.setattr(gates, "REQUEST_SECONDS", PATIENCE)
    monkeypatch.setattr(turns_of_requests, "TURN_SECONDS", PATIENCE)
    monkeypatch.setattr(api.store, "seconds", PATIENCE)
    monkeypatch.setattr(postgresql_connection, "REPLY_SECONDS", PATIENCE)
    for name in ("statement_timeout", "lock_timeout"):
        monkeypatch.setitem(postgresql_connection.SESSION, name, f"{PATIENCE}s")
    yield api
    api.store.engine.close()


@contextmanager
def held_by_another_process(api, accounts):
    """A block in which another process holds the writer, or the locks of the accounts."""
    if isinstance(api.store.engine, Sqlite):
        with closing(api.engine.connect()) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
            other.execute("ROLLBACK")
        return
    with psycopg.connect(api.app.settings.database, autocommit=True) as other:
        for account_id in accounts:
            other.execute("SELECT pg_advisory_lock(%s::INTEGER, %s::INTEGER)", [WRITES, account_id])
        yield
        other.execute("SELECT pg_advisory_unlock_all()")


class Writers:
    """Threads that write for some accounts at the same time."""

    def __init__(self, api, agencies):
        self.answers = []
        self.threads = [
            threading.Thread(target=self.write, args=(api, agency["key"], number), daemon=True)
            for agency in agencies
            for number in range(OF_EACH)
        ]
        for thread in self.threads:
            thread.start()

    def write(self, api, key, number):
        self.answers.append(api.post("/tags", {"name": f"Tag {number}"}, key=key).status)

    def join(self):
        for thread in self.threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()


def waiting(app):
    """The writers that wait, the one that waits for another process on SQLite included."""
    engine = app.store.engine
    if isinstance(engine, Sqlite):
        return app.gate.writer.queue.waiting + (1 - app.gate.writer.queue.free)
    return engine.writers.queues.waiting + (postgresql_writers.MAX_ACCOUNTS - engine.writers.queues.free)


@each_database
@pytest.mark.parametrize("accounts", first((8, 16, 32)))
def test_reads_of_an_account_are_answered_while_writers_of_others_wait(patient, accounts):
    api, engine, running = patient, patient.store.engine, patient.app.gate.turns.running
    agencies = [open_agency(api.store, f"Writer{number}", "enterprise") for number in range(accounts)]
    with held_by_another_process(api, [agency["account_id"] for agency in agencies]):
        writers = Writers(api, agencies)
        until(lambda: waiting(api.app) == accounts * OF_EACH, "all of them wait")
        until(lambda: running.free >= running.count - 1, "of all turns, they hold the one of SQLite's writer at most")
        for _ in range(20):
            assert api.get("/clients").status == 200
            assert api.get("/clients", key=agencies[0]["key"]).status == 200, "their own reads are answered, too"
        assert writers.answers == [], "all of them still wait"
        lent = engine.connections[0] - engine.connections[1]
        assert lent <= (1 if isinstance(engine, Sqlite) else MAX_LOCKS_AWAITED)
    writers.join()
    assert writers.answers == [201] * accounts * OF_EACH
    assert (running.free, running.waiting, waiting(api.app)) == (running.count, 0, 0)


@only_postgresql
def test_an_account_whose_lock_another_process_has_holds_up_no_other_write(patient):
    agencies = [open_agency(patient.store, f"Writer{number}", "enterprise") for number in range(MAX_LOCKS_AWAITED + 2)]
    with held_by_another_process(patient, [agency["account_id"] for agency in agencies]):
        writers = Writers(patient, agencies)
        until(lambda: waiting(patient.app) == len(writers.threads), "all of them wait")
        assert patient.post("/tags", {"name": "Mine"}).status == 201
        assert writers.answers == []
    writers.join()


@only_sqlite
def test_a_writer_that_has_the_only_turn_to_write_waits_for_no_turn_to_run(patient):
    """Else all writes would wait for readers."""
    api, running, taken = patient, patient.app.gate.turns.running, patient.store.engine.turns
    taken.take(None)
    writers = Writers(api, [{"key": api.key}])
    until(lambda: waiting(api.app) == OF_EACH, "they wait")
    for reader in range(running.count):
        assert running.acquire(f"reader {reader}", 0)
    taken.hand_on()
    writers.join()
    assert writers.answers == [201] * OF_EACH
    assert running.free == 0
    for reader in range(running.count):
        running.release(f"reader {reader}")


@only_sqlite
def test_an_account_that_pauses_holds_no_turn(patient, monkeypatch):
    api, running, taken, over = patient, patient.app.gate.turns.running, patient.store.engine.turns, threading.Event()
    monkeypatch.setattr(turns, "time", SimpleNamespace(monotonic=time.monotonic, thread_time=time.thread_time))
    turns.time.sleep = over.wait
    taken.pauses[api.account_id] = time.monotonic() + PATIENCE / 2
    writers = Writers(api, [{"key": api.key}])
    until(lambda: writers.answers == [503] * (OF_EACH - 2), "two wait, and the others are told to come again")
    until(lambda: running.free == running.count, "no turn is held")
    assert api.get("/tags").data == []
    taken.pauses.clear()
    over.set()
    writers.join()
    assert sorted(writers.answers) == [201] * 2 + [503] * (OF_EACH - 2)
