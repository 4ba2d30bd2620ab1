"""Background threads: no error ends them, and none of their memory grows without end."""

import threading
import time
from datetime import timedelta

import pytest
import time_machine
from testing.process import until

from retainer.background import MAX_PAUSE, Background, Chore
from retainer.server.monitoring import housekeeping
from retainer.server.monitoring.housekeeping import Housekeeping
from retainer.traffic.recorder import RequestRecorder
from tests.databases import only_sqlite


@pytest.fixture
def reported():
    return []


@pytest.fixture
def running(reported):
    """Start threads, and stop them after the test."""
    started = []

    def run(*chores, report=None):
        report = report or (lambda what, error: reported.append((what, error)))
        started.append(Background("chores", report, chores, stop_seconds=10))
        started[-1].start()
        return started[-1]

    yield run
    for each in started:
        each.stop()


class Work:
    """Work that counts its runs, and fails as often as there are errors."""

    def __init__(self, *errors):
        self.errors, self.runs = list(errors), 0

    def __call__(self):
        self.runs += 1
        if self.errors:
            raise self.errors.pop(0)


@pytest.mark.parametrize("error", [ValueError("broken"), SystemExit(1), MemoryError()])
def test_a_chore_that_raises_is_reported_and_repeated_and_others_go_on(running, reported, error):
    broken, other = Work(error), Work()
    running(Chore("the broken one", 0, broken), Chore("the other", 0.01, other))
    until(lambda: broken.runs > 1, "the broken one is repeated")
    before = other.runs
    until(lambda: other.runs > before, "the other goes on")
    assert reported == [("the broken one", error)]


def test_the_pause_after_errors_doubles_up_to_a_maximum_and_ends_with_a_success(reported):
    work = Work(*(ValueError() for _ in range(40)))
    chore, pauses = Chore("work", 0, work), []
    for _ in range(41):
        began = time.monotonic()
        chore.do(lambda *_: None)
        pauses.append(round(chore.due_at - began))
    assert pauses == [1, 2, 4, 8, 16, *[MAX_PAUSE] * 35, 0]


def test_a_report_that_fails_ends_no_thread(running):
    def report(*_):
        raise RuntimeError("can't start new thread")

    work = Work(ValueError())
    running(Chore("work", 0, work), report=report)
    until(lambda: work.runs > 1, "it is repeated")


def test_a_stopped_thread_ends_after_the_chore_that_it_is_doing(running):
    begun, released = threading.Event(), threading.Event()
    thread = running(Chore("work", 0, lambda: begun.set() or released.wait(30)))
    assert begun.wait(30)
    threading.Timer(0.1, released.set).start()
    thread.stop()
    until(lambda: "chores" not in {each.name for each in threading.enumerate()}, "the thread has ended")


class Broken:
    """A counter that cannot be swept."""

    def sweep(self):
        raise ValueError("planted")


@only_sqlite
def test_a_counter_that_cannot_be_swept_does_not_end_the_log(api, monkeypatch):
    monkeypatch.setattr(housekeeping, "SWEEP_SECONDS", 0.01)
    log = api.app.log
    keeping = Housekeeping(api.store, Broken(), log, RequestRecorder(), api.app.settings)
    keeping.start()
    try:
        until(lambda: b"planted" in log.writer.stream.getvalue(), "the failure is in the log")
        log.warning("still written")
        until(lambda: b"still written" in log.writer.stream.getvalue(), "the log goes on")
    finally:
        keeping.stop()


@only_sqlite
def test_keys_that_are_no_longer_used_take_no_memory(api):
    used = api.app.housekeeping.keys_used
    with time_machine.travel("2026-03-02T12:00:00Z", tick=False) as clock:
        for _ in range(3):
            assert api.get("/me", key=api.new_key()).status == 200
        for minutes, kept in ((0, 3), (1, 0)):
            clock.shift(60 * minutes)
            used.write(api.store)
            assert len(used._used) + len(used._written) == kept, "each is written once a minute"  # noqa: SLF001


@only_sqlite
def test_a_clock_that_was_ahead_does_not_hide_the_use_of_keys_until_then(api):
    with time_machine.travel("2026-03-03T12:00:00Z", tick=False) as clock:
        for days in (0, -1):
            clock.shift(timedelta(days=days))
            assert api.get("/me").status == 200
            api.app.housekeeping.keys_used.write(api.store)
    assert api.sql("SELECT last_used_at FROM api_keys WHERE id = $1", api.key_id) == [("2026-03-02T12:00:00.000000Z",)]
