"""Writers that share a transaction, on a real database, with threads that stop where a test needs them."""

import contextlib
import itertools
import random
import threading
import time

import pytest
from sqlalchemy import insert, select
from testing.process import until

from retainer.errors import Refusal
from retainer.store.engines import Busy, DeadlineExceeded, OutcomeUnknown, Sqlite, Unavailable
from retainer.store.engines import group_commit as groups
from retainer.store.tables import totals
from tests.databases import only_sqlite

PUT = insert(totals)
NO_ACCOUNT = 4711
MANY = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000) "
    f"SELECT {NO_ACCOUNT}, 'row of no account', max(i) FROM n"
)


@pytest.fixture
def store(api, monkeypatch):
    """The store of an agency, whose groups stay open while a writer waits, on slow machines too."""
    monkeypatch.setattr(groups, "GROUP_SECONDS", 60)
    return api.store


@pytest.fixture
def put(api):
    """A function that writes a row with a name."""
    return lambda tx, name: tx.run(PUT, account_id=api.account_id, name=name, count=0)


def written(store):
    """Return the names that a reader sees."""
    with store.unscoped() as tx:
        return {name for (name,) in tx.all(select(totals.c.name)) if name.startswith("row")}


class Writer(threading.Thread):
    """A writer whose transaction stays open until it may end."""

    def __init__(self, store, name, does):
        super().__init__(name=name, daemon=True)
        self.store, self.does = store, does
        self.began, self.may_end, self.answered = threading.Event(), threading.Event(), threading.Event()
        self.error = self.saw = None
        self.statements = []

    def run(self):
        try:
            with self.store.unscoped(write=True) as tx:
                tx.connection.set_trace_callback(self.statements.append)
                self.began.set()
                assert self.may_end.wait(timeout=20)
                self.does(tx)
        except Exception as error:  # noqa: BLE001
            self.error = error
        self.saw = written(self.store)
        self.answered.set()

    def end(self, follower=None):
        """Let it end, and wait until the follower has begun or, without one, this one has returned."""
        self.may_end.set()
        assert (follower.began if follower else self.answered).wait(timeout=20)

    @property
    def transactions(self):
        """The transaction statements from its begin to the begin of the next writer, or to the commit."""
        words = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")
        matching = [statement for statement in self.statements if statement.startswith(words)]
        return matching[: matching.index("COMMIT") + 1] if "COMMIT" in matching else matching


@pytest.fixture
def together(store, put):
    """A function that starts writers: the first has begun, the others wait for it in order."""
    started = []

    def start(*things):
        for number, does in enumerate(things):
            writer = Writer(store, f"row {number}", does)
            started.append(writer)
            writer.start()
            if number:
                until(lambda number=number: len(store.engine.writers._queue) == number, "they wait")  # noqa: SLF001
            else:
                assert writer.began.wait(timeout=20)
        return started

    yield start
    for writer in started:
        writer.may_end.set()
    for writer in started:
        writer.join(timeout=20)
        assert not writer.is_alive()


@pytest.fixture
def puts(put):
    """The action of a writer that writes its own row."""
    return lambda tx: put(tx, threading.current_thread().name)


def end(writers):
    """Let all end, one after another."""
    for writer, follower in itertools.pairwise(writers):
        writer.end(follower)
    writers[-1].end()
    for writer in writers:
        assert writer.answered.wait(timeout=20)


def kinds(writers):
    return [type(writer.error) for writer in writers]


FINE, IntegrityError = type(None), Sqlite.conflict


@only_sqlite
def test_a_single_writer_has_a_plain_transaction(together, puts):
    (alone,) = together(puts)
    end([alone])
    assert (alone.error, alone.saw) == (None, {"row 0"})
    assert alone.transactions == ["COMMIT"]


@only_sqlite
def test_waiting_writers_share_a_commit_and_return_after_it(store, together, puts):
    first, second, third = writers = together(puts, puts, puts)
    first.end(second)
    second.end(third)
    time.sleep(0.2)
    assert not first.answered.is_set()
    assert not second.answered.is_set()
    assert written(store) == set(), "uncommitted rows are invisible"
    end(writers)
    assert kinds(writers) == [FINE] * 3
    assert [writer.saw for writer in writers] == [{"row 0", "row 1", "row 2"}] * 3
    assert [writer.transactions for writer in writers] == [
        ["SAVEPOINT writer"],
        ["RELEASE writer", "SAVEPOINT writer"],
        ["RELEASE writer", "COMMIT"],
    ]


@only_sqlite
def test_a_following_writer_sees_the_rows_of_earlier_ones(together, puts):
    seen = []
    _, second = writers = together(puts, lambda tx: seen.extend(tx.all(select(totals.c.name))))
    end(writers)
    assert second.error is None
    assert ("row 0",) in seen


def refuses(tx):
    raise Refusal("not_found", "There is no such thing.")


def divides_by_nothing(tx):
    1 // 0  # noqa: B018


def violates_a_constraint(tx):
    tx.run(PUT, account_id=NO_ACCOUNT, name="row of no account", count=0)


def is_late(tx):
    tx.deadline = 0
    tx.one(select(totals.c.name))


FAILS = {
    "Refusal": refuses,
    "ZeroDivisionError": divides_by_nothing,
    "IntegrityError": violates_a_constraint,
    "DeadlineExceeded": is_late,
}


@only_sqlite
@pytest.mark.parametrize("position", range(4))
@pytest.mark.parametrize("fails", FAILS)
def test_a_failed_writer_is_rolled_back_alone(store, together, puts, fails, position):
    def puts_and_fails(tx):
        puts(tx)
        FAILS[fails](tx)

    writers = together(*(puts_and_fails if number == position else puts for number in range(4)))
    end(writers)
    assert [kind.__name__ for kind in kinds(writers)] == [
        fails if number == position else "NoneType" for number in range(4)
    ]
    assert written(store) == {f"row {number}" for number in range(4) if number != position}


@only_sqlite
@pytest.mark.parametrize("position", range(3))
def test_a_writer_past_its_deadline_is_rolled_back_alone(store, together, puts, position):
    def ends_late(tx):
        puts(tx)
        tx.deadline = 0

    writers = together(*(ends_late if number == position else puts for number in range(3)))
    end(writers)
    assert kinds(writers) == [DeadlineExceeded if number == position else FINE for number in range(3)]
    assert written(store) == {f"row {number}" for number in range(3) if number != position}


@only_sqlite
def test_a_statement_in_a_shared_transaction_is_not_interrupted(store, together, puts):
    def writes_for_long(tx):
        tx.engine.limit(tx.connection, 0)
        tx.connection.execute(f"INSERT INTO totals {MANY}")

    writers = together(puts, writes_for_long, puts)
    end(writers)
    assert kinds(writers) == [FINE, IntegrityError, FINE], "it ran to its end, without an account"
    assert written(store) == {"row 0", "row 2"}


@only_sqlite
def test_a_refusal_waits_for_the_commit_of_the_row_that_caused_it(together, put, puts):
    def is_taken(tx):
        put(tx, "row 0")

    _, second, third = writers = together(puts, is_taken, puts)
    writers[0].end(second)
    second.end(third)
    assert not second.answered.wait(timeout=0.2)
    end(writers)
    assert second.saw == {"row 0", "row 2"}


def breaks_at_the_commit(tx):
    """Write a row without its account, which SQLite checks when it commits."""
    tx.connection.execute("PRAGMA defer_foreign_keys=ON")
    violates_a_constraint(tx)


@only_sqlite
@pytest.mark.parametrize("position", range(3))
def test_a_failed_commit_fails_for_all_writers_and_refusals(store, together, puts, position):
    things = [puts, puts, puts]
    things[position] = breaks_at_the_commit
    writers = together(*things[:2], refuses, things[2])
    end(writers)
    assert kinds(writers) == [OutcomeUnknown] * 4
    assert written(store) == set()
    assert len({id(writer.error) for writer in writers}) == 4, "each has an error of its own"


@only_sqlite
def test_after_a_failed_commit_the_next_writer_has_another_connection(store, together, puts, put):
    writers = together(puts, breaks_at_the_commit)
    end(writers)
    with store.unscoped(write=True) as tx:
        put(tx, "row after")
    assert written(store) == {"row after"}


@pytest.fixture
def has_no_room(put):
    """The action of a writer without room: SQLite rolls the whole transaction back, as on a full disk."""

    def does(tx):
        (pages,) = tx.connection.execute("PRAGMA page_count").fetchone()
        tx.connection.execute(f"PRAGMA max_page_count={pages + 1}")
        try:
            put(tx, "row " * 25_000)
        finally:
            assert not tx.connection.in_transaction
            tx.connection.execute("PRAGMA max_page_count=1000000")

    return does


@only_sqlite
@pytest.mark.parametrize("position", [1, 2])
def test_a_rollback_by_sqlite_fails_for_earlier_writers_but_not_for_later_ones(
    store, together, puts, has_no_room, position
):
    writers = together(*(has_no_room if number == position else puts for number in range(4)))
    end(writers)
    assert kinds(writers) == [Unavailable] * (position + 1) + [FINE] * (3 - position)
    assert written(store) == {f"row {number}" for number in range(position + 1, 4)}


@only_sqlite
def test_no_writer_joins_a_transaction_that_sqlite_has_rolled_back(store, together, puts, has_no_room):
    def goes_on_without_room(tx):
        with contextlib.suppress(Unavailable):
            has_no_room(tx)

    writers = together(goes_on_without_room, puts)
    writers[0].end()
    end(writers)
    assert kinds(writers) == [OutcomeUnknown, FINE]
    assert writers[1].transactions == ["COMMIT"]


@only_sqlite
def test_a_broken_connection_fails_for_earlier_writers_but_not_for_later_ones(store, together, puts):
    def breaks(tx):
        puts(tx)
        tx.connection.close()

    writers = together(puts, puts, breaks, puts)
    end(writers)
    assert kinds(writers) == [Unavailable] * 3 + [FINE]
    assert written(store) == {"row 3"}


@only_sqlite
def test_a_writer_that_waits_too_long_for_its_turn_leaves_the_queue(store, together, puts, monkeypatch):
    monkeypatch.setattr(groups, "WAIT_SECONDS", 0.2)
    first, second = together(puts, puts)
    assert second.answered.wait(timeout=10)
    assert (type(second.error), second.began.is_set()) == (Busy, False)
    first.end()
    assert first.error is None
    assert written(store) == {"row 0"}


@only_sqlite
def test_the_outcome_is_unknown_after_waiting_too_long_for_the_commit(store, together, puts, monkeypatch):
    first, second = together(puts, puts)
    monkeypatch.setattr(groups, "END_SECONDS", 0.2)
    first.end(second)
    assert first.answered.wait(timeout=10)
    assert isinstance(first.error, OutcomeUnknown)
    assert isinstance(first.error, Busy), "it is not an outage"
    second.end()
    assert second.error is None
    assert written(store) == {"row 0", "row 1"}, "a slow writer loses nothing"


@only_sqlite
def test_an_old_group_accepts_no_more_writers(store, together, puts, monkeypatch):
    monkeypatch.setattr(groups, "GROUP_SECONDS", 0)
    first, second = together(puts, puts)
    first.end()
    assert (first.error, first.saw) == (None, {"row 0"})
    assert first.transactions == ["COMMIT"]
    second.end()
    assert second.transactions == ["COMMIT"]


def seconds_to_begin(writers, account_id):
    """How long a writer of an account waits for a free turn, which it takes and gives back."""
    began = time.monotonic()
    writers.begin(account_id)
    writers.end(commit=False)
    return time.monotonic() - began


@only_sqlite
def test_an_account_that_kept_another_waiting_for_long_pauses_before_its_next_turn(store, monkeypatch):
    writers, pause = store.engine.writers, 0.5
    monkeypatch.setattr(groups, "LONG_SECONDS", 0)
    monkeypatch.setattr(groups, "PAUSES", 10**6)
    writers.begin(1)
    other = threading.Thread(target=seconds_to_begin, args=(writers, 2))
    other.start()
    until(lambda: len(writers._queue) == 1, "it waits")  # noqa: SLF001
    writers.end(commit=False)
    other.join()
    monkeypatch.setattr(groups, "WAIT_SECONDS", pause)
    assert seconds_to_begin(writers, 1) >= pause


@only_sqlite
@pytest.mark.parametrize("other", [None, 1], ids=["nobody", "itself"])
def test_an_account_that_kept_no_other_waiting_does_not_pause(store, monkeypatch, other):
    writers = store.engine.writers
    monkeypatch.setattr(groups, "LONG_SECONDS", 0)
    monkeypatch.setattr(groups, "PAUSES", 10**6)
    writers.begin(1)
    same = threading.Thread(target=seconds_to_begin, args=(writers, 1))
    if other is not None:
        same.start()
        until(lambda: len(writers._queue) == 1, "it waits")  # noqa: SLF001
    writers.end(commit=False)
    if other is not None:
        same.join(20)
        assert not same.is_alive()
    monkeypatch.setattr(groups, "WAIT_SECONDS", 60)
    again = threading.Thread(target=seconds_to_begin, args=(writers, 1))
    again.start()
    again.join(20)
    assert not again.is_alive()


@only_sqlite
def test_accounts_write_in_turn(store):
    writers, order, threads = store.engine.writers, [], []

    def write(name):
        writers.begin(int(name[0]))
        order.append(name)
        writers.end(commit=False)

    writers.begin(9)
    for number, name in enumerate(("1 first", "1 second", "1 third", "2 first")):
        threads.append(threading.Thread(target=write, args=(name,)))
        threads[-1].start()
        until(lambda count=number + 1: len(writers._queue) == count, "it waits")  # noqa: SLF001
    writers.end(commit=False)
    for thread in threads:
        thread.join()
    assert order == ["1 first", "2 first", "1 second", "1 third"]


@only_sqlite
def test_a_request_of_a_group_that_failed_is_503_and_its_idempotency_key_is_free(api, together, puts):
    answers = []

    def post():
        answers.append(api.post("/tags", {"name": "A"}, headers={"Idempotency-Key": "k"}))

    (first,) = together(breaks_at_the_commit)
    request = threading.Thread(target=post)
    request.start()
    until(lambda: len(api.store.engine.writers._queue) == 1, "it waits")  # noqa: SLF001
    first.may_end.set()
    request.join(timeout=20)
    assert (answers[0].status, answers[0].code, answers[0].headers["retry-after"]) == (503, "unavailable", "2")
    assert api.get("/tags").data == []
    again = api.post("/tags", {"name": "A"}, headers={"Idempotency-Key": "k"})
    assert (again.status, "idempotency-replayed" in again.headers) == (201, False)


@only_sqlite
def test_acknowledged_rows_exist_and_refused_ones_do_not_under_any_timing(store, put, monkeypatch):
    """Writers leave the queue while they get their turn, groups end early, and some writes are refused."""
    monkeypatch.setattr(groups, "WAIT_SECONDS", 0.002)
    monkeypatch.setattr(groups, "END_SECONDS", 0.002)
    monkeypatch.setattr(groups, "GROUP_SECONDS", 0.003)
    outcomes = {}

    def write(number):
        rng = random.Random(number)
        for turn in range(150):
            name = f"row {number}.{turn}"
            try:
                with store.unscoped(write=True) as tx:
                    put(tx, name)
                    if rng.random() < 0.2:
                        refuses(tx)
                    time.sleep(rng.choice((0, 0, 0, 0.001)))
                outcomes[name] = FINE
            except (Refusal, Unavailable) as error:
                outcomes[name] = type(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive()
    found = written(store)
    by_kind = {kind: {name for name, outcome in outcomes.items() if outcome is kind} for kind in set(outcomes.values())}
    assert by_kind[FINE] <= found
    assert found & (by_kind[Refusal] | by_kind[Busy] | by_kind.get(Unavailable, set())) == set()
    with store.unscoped(write=True) as tx:
        put(tx, "row at last")
