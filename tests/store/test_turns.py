"""Writers of a SQLite database take turns, on a real database, with threads that stop where a test needs them."""

import contextlib
import gc
import threading
import time

import pytest
from sqlalchemy import insert, select
from testing.process import PATIENCE, until

from retainer.errors import Refusal
from retainer.store.engines import Sqlite, base, turns
from retainer.store.engines.base import AccountPaused, Busy, DeadlineExceeded, OutcomeUnknown, Unavailable
from retainer.store.tables import totals
from tests.databases import only_sqlite

pytestmark = only_sqlite

PUT = insert(totals)
NO_ACCOUNT = 4711


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Writers wait until the test lets them go on, and no collection of garbage makes a turn long."""
    monkeypatch.setattr(base, "WAIT_SECONDS", PATIENCE)
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def store(api):
    """The store of an agency."""
    return api.store


@pytest.fixture
def put(api):
    """A function that writes a row with a name."""
    return lambda tx, name: tx.run(PUT, account_id=api.account_id, name=name, count=0)


def written(store):
    """Return the names that a reader sees."""
    with store.unscoped() as tx:
        return {name for (name,) in tx.all(select(totals.c.name)) if name.startswith("row")}


def refuses(tx, put):
    raise Refusal("not_found", "There is no such thing.")


def violates_a_constraint(tx, put):
    tx.run(PUT, account_id=NO_ACCOUNT, name="row of no account", count=0)


def breaks_at_the_commit(tx, put):
    """Write a row without its account, which SQLite checks when it commits."""
    tx.connection.execute("PRAGMA defer_foreign_keys=ON")
    violates_a_constraint(tx, put)


def ends_late(tx, put):
    tx.deadline = 0


def has_no_room(tx, put):
    """Fill the file: SQLite rolls the whole transaction back, as on a full disk."""
    (pages,) = tx.connection.execute("PRAGMA page_count").fetchone()
    tx.connection.execute(f"PRAGMA max_page_count={pages + 1}")
    try:
        put(tx, "row " * 25_000)
    finally:
        assert not tx.connection.in_transaction
        tx.connection.execute("PRAGMA max_page_count=1000000")


def breaks_the_connection(tx, put):
    tx.connection.close()


FAILS = [
    (refuses, Refusal),
    (violates_a_constraint, Sqlite.conflict),
    (breaks_at_the_commit, OutcomeUnknown),
    (ends_late, DeadlineExceeded),
    (has_no_room, Unavailable),
    (breaks_the_connection, OutcomeUnknown),
]


@pytest.mark.parametrize(("fails", "error"), FAILS)
def test_a_failed_writer_leaves_nothing_and_passes_the_turn(store, put, fails, error):
    with pytest.raises(error), store.unscoped(write=True) as tx:  # noqa: PT012
        put(tx, "row of a failed writer")
        fails(tx, put)
    with store.unscoped(write=True) as tx:
        put(tx, "row after")
    assert written(store) == {"row after"}


def test_a_writer_that_goes_on_after_a_rollback_by_sqlite_is_not_told_that_it_wrote(store, put):
    refused = store.engine.driver.DatabaseError  # becomes ours at the end of a block
    with pytest.raises(OutcomeUnknown), store.unscoped(write=True) as tx, contextlib.suppress(refused):
        has_no_room(tx, put)


def test_a_writer_that_cannot_begin_passes_the_turn(store, put, monkeypatch):
    store.engine.close()
    with monkeypatch.context() as patched:
        patched.setattr(store.engine, "path", store.engine.path.with_name("missing.db"))
        with pytest.raises(Unavailable), store.unscoped(write=True):
            pass
    with store.unscoped(write=True) as tx:
        put(tx, "row after")
    assert written(store) == {"row after"}


def test_a_commit_is_not_interrupted_at_the_deadline(store, put):
    with store.unscoped(write=True) as tx:
        put(tx, "row")
        tx.engine.limit(tx.connection, 0)
    assert written(store) == {"row"}


def test_a_connection_keeps_no_deadline_of_its_last_transaction(store):
    long = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000) SELECT max(i) FROM n"
    with store.unscoped() as tx:
        tx.engine.limit(tx.connection, 0)
    assert store.engine.one(long, []) == (400_000,)


@contextlib.contextmanager
def waiting_writer(engine, account_id=None):
    """A thread that waits for the turn of a block, takes it after the block, and hands it on."""
    count = engine.turns.writer.waiting
    writer = threading.Thread(target=take_and_hand_on, args=(engine.turns, account_id), daemon=True)
    writer.start()
    until(lambda: engine.turns.writer.waiting == count + 1, "it waits")
    yield
    writer.join(PATIENCE)
    assert not writer.is_alive()


def take_and_hand_on(taken, account_id):
    """Return when a writer of an account got the turn."""
    taken.take(account_id)
    taken.hand_on()
    return time.monotonic()


def test_a_writer_that_waits_too_long_for_its_turn_leaves_the_queue(store, put, monkeypatch):
    monkeypatch.setattr(base, "WAIT_SECONDS", 0.1)
    refused = []

    def write():
        with pytest.raises(Busy) as raised, store.unscoped(write=True):
            pass
        refused.append(raised.value)

    with store.unscoped(write=True) as tx:
        put(tx, "row")
        second = threading.Thread(target=write)
        second.start()
        second.join(PATIENCE)
        assert len(refused) == 1
        assert store.engine.turns.writer.waiting == 0
    assert written(store) == {"row"}


def compute(seconds):
    """Take the processor."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_an_account_that_computed_while_another_waited_pauses_before_its_next_turn(store):
    taken = store.engine.turns
    taken.take(1)
    with waiting_writer(store.engine, 2):
        compute(2 * turns.LONG_SECONDS)
        before = time.monotonic()
        taken.hand_on()
    end = taken.pauses[1]
    assert end >= before + 2 * turns.LONG_SECONDS * turns.PAUSES
    assert take_and_hand_on(taken, 1) >= end, "the whole pause"
    assert not taken.is_pausing(1), "once"


def test_a_pause_that_is_longer_than_a_write_may_wait_refuses_it_at_once(store, monkeypatch):
    taken = store.engine.turns
    monkeypatch.setattr(turns, "PAUSES", 10_000)
    taken.take(1)
    with waiting_writer(store.engine, 2):
        compute(2 * turns.LONG_SECONDS)
        taken.hand_on()
    with pytest.raises(AccountPaused) as paused:
        taken.take(1)
    assert paused.value.retry_seconds - base.WAIT_SECONDS > 0
    taken.take(2)
    taken.hand_on()


def test_a_writer_that_already_waits_pauses_too_if_its_account_has_to(store, monkeypatch):
    taken, outcomes = store.engine.turns, []

    def write_again():
        with pytest.raises(AccountPaused):
            taken.take(1)
        outcomes.append("refused")

    monkeypatch.setattr(turns, "PAUSES", 10_000)
    taken.take(1)
    again = threading.Thread(target=write_again, daemon=True)
    again.start()
    until(lambda: taken.writer.waiting == 1, "it waits")
    with waiting_writer(store.engine, 2):
        compute(2 * turns.LONG_SECONDS)
        taken.hand_on()
    again.join(PATIENCE)
    assert outcomes == ["refused"]
    assert (taken.writer.free, taken.writer.waiting) == (1, 0)


def test_a_turn_that_waits_for_the_disk_is_no_long_one(store):
    taken, is_waited_for = store.engine.turns, threading.Event()

    def wait_with_the_turn():
        taken.take(1)
        assert is_waited_for.wait(PATIENCE)
        time.sleep(2 * turns.LONG_SECONDS)  # as for a flush
        taken.hand_on()

    thread = threading.Thread(target=wait_with_the_turn)
    thread.start()
    until(lambda: not taken.writer.free, "it has the turn")
    with waiting_writer(store.engine, 2):
        is_waited_for.set()
    thread.join(PATIENCE)
    assert not taken.is_pausing(1)


@pytest.mark.parametrize("other", [None, 1], ids=["nobody", "itself"])
def test_an_account_that_kept_no_other_waiting_does_not_pause(store, monkeypatch, other):
    engine = store.engine
    monkeypatch.setattr(turns, "PAUSES", 1000)
    engine.turns.take(1)
    with waiting_writer(engine, other) if other else contextlib.nullcontext():
        compute(2 * turns.LONG_SECONDS)
        engine.turns.hand_on()
    assert not engine.turns.is_pausing(1)
    take_and_hand_on(engine.turns, 1)


def test_few_writers_of_an_account_wait_for_the_end_of_its_pause(store):
    taken = store.engine.turns
    taken.pauses[1] = time.monotonic() + base.WAIT_SECONDS - 1
    for _ in range(turns.PAUSING_SHARE):
        assert taken.pausing.acquire(1, 0)
    with pytest.raises(AccountPaused):
        taken.take(1)


def test_a_request_of_an_account_that_pauses_is_told_when_to_come_again(api):
    api.store.engine.turns.pauses[api.account_id] = time.monotonic() + 2 * PATIENCE
    refused = api.post("/tags", {"name": "Mine"})
    assert (refused.status, refused.code) == (503, "unavailable")
    assert PATIENCE < int(refused.headers["retry-after"]) <= 2 * PATIENCE
    assert "The last write of this account took long" in refused.json["message"]
    assert api.get("/tags").data == []


def test_accounts_write_in_turn(store):
    taken, order, threads = store.engine.turns, [], []

    def write(name):
        taken.take(int(name[0]))
        order.append(name)
        taken.hand_on()

    taken.take(9)
    for number, name in enumerate(("1 first", "1 second", "1 third", "2 first")):
        threads.append(threading.Thread(target=write, args=(name,)))
        threads[-1].start()
        until(lambda count=number + 1: taken.writer.waiting == count, "it waits")
    taken.hand_on()
    for thread in threads:
        thread.join()
    assert order == ["1 first", "2 first", "1 second", "1 third"]


def test_a_write_whose_commit_fails_is_503_and_its_idempotency_key_is_free(api, monkeypatch):
    sent = {"json": {"name": "A"}, "headers": {"Idempotency-Key": "k"}}
    begin = Sqlite.begin_write

    def fails_at_the_commit(engine, account_id, **options):
        connection = begin(engine, account_id, **options)
        connection.execute("PRAGMA defer_foreign_keys=ON")
        connection.execute("INSERT INTO totals VALUES (?, 'row of no account', 0)", [NO_ACCOUNT])
        return connection

    with monkeypatch.context() as patched:
        patched.setattr(Sqlite, "begin_write", fails_at_the_commit)
        answer = api.post("/tags", sent["json"], headers=sent["headers"])
    assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "unavailable", "2")
    assert api.get("/tags").data == []
    again = api.post("/tags", sent["json"], headers=sent["headers"])
    assert (again.status, "idempotency-replayed" in again.headers) == (201, False)


def test_what_was_acknowledged_exists_and_what_was_refused_does_not_under_any_timing(store, put, monkeypatch):
    """Eight writers, some of which leave the queue while they get their turn, and some of which are refused."""
    monkeypatch.setattr(base, "WAIT_SECONDS", 0.002)
    outcomes = {}

    def write(number):
        for turn in range(100):
            name, error = f"row {number}.{turn}", None
            try:
                with store.unscoped(write=True) as tx:
                    put(tx, name)
                    if turn % 5 == number % 5:
                        refuses(tx, put)
            except (Refusal, Busy) as refusal:
                error = refusal
            outcomes[name] = error

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive()
    assert written(store) == {name for name, error in outcomes.items() if error is None}
    assert any(isinstance(error, Refusal) for error in outcomes.values())
