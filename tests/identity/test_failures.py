"""Counted failures: when a subject has to wait, in memory and in Valkey."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from testing.process import PATIENCE

from retainer.identity.sign_in import failures
from retainer.identity.sign_in.failures import TTL, WAITS, Failures
from retainer.identity.sign_in.failures_valkey import SharedFailures
from retainer.kernel.limits_valkey import PREFIX, SharedWindow
from tests.valkey_process import ValkeyProcess


class InMemory:
    """The counter of one process, on a clock that the test moves."""

    def __init__(self, monkeypatch):
        self.now = 1000.0
        monkeypatch.setattr(failures, "time", SimpleNamespace(monotonic=lambda: self.now))
        self.counters = [Failures()]

    def wait(self, seconds):
        self.now += seconds

    def subjects(self):
        self.counters[0].sweep()
        return len(self.counters[0]._counted)  # noqa: SLF001


class InValkey:
    """The counters of two servers, whose counts the test makes older."""

    def __init__(self, process):
        process.client.flushall()
        self.client = process.client
        self.warnings = []
        windows = [SharedWindow(process.url, self.warnings.append, timeout=PATIENCE) for _ in range(2)]
        self.counters = [SharedFailures(window) for window in windows]

    def keys(self):
        return list(self.client.scan_iter(f"{PREFIX}failures:*"))

    def wait(self, seconds):
        for key in self.keys():
            self.client.lset(key, 1, int(self.client.lindex(key, 1)) - seconds * 1_000_000)
            self.client.pexpire(key, self.client.pttl(key) - seconds * 1000)

    def subjects(self):
        assert self.warnings == []
        return len(self.keys())


@pytest.fixture(params=["memory", "valkey"])
def counting(request, monkeypatch):
    """A clock, and counters that must agree."""
    if request.param == "memory":
        return InMemory(monkeypatch)
    return InValkey(request.getfixturevalue("valkey_process"))


def test_after_the_free_failures_each_one_makes_the_next_attempt_wait_longer(counting):
    first, last = counting.counters[0], counting.counters[-1]
    assert [first.hit("a", 3) for _ in range(3)] == [(1, 0), (2, 0), (3, 0)]
    for number, seconds in enumerate((1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900), start=3):
        assert last.hit("a", 3) == last.hit("a", 3, charge=False) == (number, seconds), (
            "an attempt that waits is not counted"
        )
        assert last.hit("b", 3, charge=False) == (0, 0), "another subject does not wait"
        counting.wait(seconds)
        assert first.hit("a", 3, charge=False) == (number, 0)
        assert first.hit("a", 3) == (number + 1, 0)


def test_a_failure_that_is_taken_back_causes_no_wait(counting):
    first, last = counting.counters[0], counting.counters[-1]
    assert [first.hit("a", 2).failures for _ in range(2)] == [1, 2]
    assert first.hit("a", 2).wait == 1
    last.take_back("a")
    assert first.hit("a", 2) == (2, 0)
    last.take_back("a")
    last.take_back("a")
    assert counting.subjects() == 0, "a subject without failures is deleted"
    last.take_back("a")
    assert counting.subjects() == 0


def test_a_reset_deletes_the_failures_of_one_subject(counting):
    first, last = counting.counters[0], counting.counters[-1]
    for subject in "ab":
        first.hit(subject, 1)
    last.reset("a")
    assert [first.hit(subject, 1, charge=False) for subject in "ab"] == [(0, 0), (1, 1)]


def test_failures_are_deleted_after_their_ttl(counting):
    counter = counting.counters[0]
    for seconds in WAITS[:2]:
        counter.hit("a", 1)
        counting.wait(seconds)
    counting.wait(TTL - PATIENCE)
    assert counting.subjects() == 1
    counting.wait(PATIENCE)
    assert counter.hit("a", 1) == (1, 0)
    counting.wait(TTL + 1)
    assert counting.subjects() == 0


def test_concurrent_attempts_are_limited_to_the_free_failures(counting):
    with ThreadPoolExecutor(8) as pool:
        tried = list(pool.map(lambda n: counting.counters[n % len(counting.counters)].hit("a", 5), range(40)))
    assert sorted(count.failures for count in tried if not count.wait) == [1, 2, 3, 4, 5]


def test_memory_keeps_the_subjects_that_failed_last(monkeypatch):
    clock = InMemory(monkeypatch)
    counter = clock.counters[0] = Failures(max_subjects=3)
    for subject in ("a", "b", "c", "a", "d"):
        counter.hit(subject, 9)
    assert [counter.hit(subject, 9, charge=False).failures for subject in "abcd"] == [2, 0, 1, 1]
    assert clock.subjects() == 3


def test_without_valkey_a_process_counts_in_memory(tmp_path):
    process = ValkeyProcess(tmp_path)
    counter = SharedFailures(SharedWindow(process.url, lambda _: None, timeout=PATIENCE))
    counter.hit("a", 2)
    process.kill()
    assert [counter.hit("a", 2) for _ in range(3)] == [(1, 0), (2, 0), (2, 1)], "the count starts again"
    counter.reset("a")
    assert counter.hit("a", 2) == (1, 0)
    counter._window.is_shared = True  # noqa: SLF001  # ends the thread that waits for it
