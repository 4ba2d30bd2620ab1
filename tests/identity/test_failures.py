"""Counted failures: when a subject has to wait, in memory and in Valkey."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from testing.process import PATIENCE

from retainer.errors import Refusal
from retainer.identity.sign_in import throttle
from retainer.identity.sign_in.throttle import TTL, Failures, SharedFailures
from retainer.kernel.limits_valkey import PREFIX, SharedWindow
from tests.valkey_process import ValkeyProcess


class InMemory:
    """The counter of one process, on a clock that the test moves."""

    def __init__(self):
        self.now = 1000.0
        self.counters = [Failures(lambda: self.now)]

    def wait(self, seconds):
        self.now += seconds


class InValkey:
    """The counters of two servers, whose counts the test makes older."""

    def __init__(self, process):
        process.client.flushall()
        self.client = process.client
        self.warnings = []
        windows = [SharedWindow(process.url, self.warnings.append, timeout=PATIENCE) for _ in range(2)]
        self.counters = [SharedFailures(window) for window in windows]

    def keys(self):
        assert self.warnings == []
        return list(self.client.scan_iter(f"{PREFIX}failures:*"))

    def wait(self, seconds):
        for key in self.keys():
            self.client.pexpire(key, self.client.pttl(key) - seconds * 1000)


@pytest.fixture(params=["memory", "valkey"])
def counting(request):
    """A clock, and counters that must agree."""
    if request.param == "memory":
        return InMemory()
    return InValkey(request.getfixturevalue("valkey_process"))


def test_after_the_free_failures_each_one_makes_the_next_attempt_wait_longer(counting):
    first, last = counting.counters[0], counting.counters[-1]
    assert [first.hit("a", 3) for _ in range(3)] == [1, 2, 3]
    for number, seconds in enumerate((1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900), start=3):
        for counter in (last, first):
            with pytest.raises(Refusal) as refused:
                counter.hit("a", 3)
            assert refused.value.code == "rate_limited"
            assert refused.value.headers == {"Retry-After": str(seconds)}, "an attempt that waits is not counted"
        counting.wait(seconds)
        assert first.hit("a", 3) == number + 1
        assert last.hit("b", number) == number - 2, "another subject does not wait"


def test_a_failure_that_is_forgiven_causes_no_wait(counting):
    first, last = counting.counters[0], counting.counters[-1]
    assert [first.hit("a", 2) for _ in range(2)] == [1, 2]
    assert first.count("a", 2) == (2, 1)
    last.forgive("a", 1)
    assert first.count("a", 2) == (2, 0)
    last.forgive("a", 3)
    last.forgive("a", 1)
    assert first.hit("a", 2) == 1


def test_all_failures_of_one_subject_can_be_forgiven(counting):
    first, last = counting.counters[0], counting.counters[-1]
    for subject in "ab":
        first.hit(subject, 1)
    last.forgive("a", 1)
    assert [first.count(subject, 1) for subject in "ab"] == [(1, 0), (1, 1)]


def test_failures_are_forgotten_an_hour_after_the_last_wait(counting):
    counter = counting.counters[0]
    for seconds in (1, 2):
        counter.hit("a", 1)
        counting.wait(seconds)
    counting.wait(TTL - PATIENCE)
    assert counter.hit("a", 1) == 3
    counting.wait(4 + TTL)
    assert counter.hit("a", 1) == 1


def test_a_count_in_valkey_expires(valkey_process):
    counting = InValkey(valkey_process)
    counting.counters[0].hit("a", 1)
    counting.counters[-1].hit("b", 2)
    counting.wait(TTL + 1)
    assert counting.keys() == []


def test_concurrent_attempts_are_limited_to_the_free_failures(counting):
    began = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        tried = list(pool.map(lambda n: counting.counters[n % len(counting.counters)].count("a", 5), range(40)))
    admitted = sorted(failed for failed, wait in tried if not wait)
    assert admitted == [*range(1, len(admitted) + 1)]
    waited = 2 ** (len(admitted) - 5) - 1  # seconds, if more than five were admitted: the clock of Valkey goes on
    assert 0 <= waited <= time.monotonic() - began


def test_memory_keeps_the_subjects_that_failed_last(monkeypatch):
    monkeypatch.setattr(throttle, "MAX_SUBJECTS", 3)
    counter = Failures()
    for subject in ("a", "b", "c", "a", "d"):
        counter.hit(subject, 9)
    assert [counter.hit(subject, 9) for subject in "acd"] == [3, 2, 2]
    assert counter.hit("b", 9) == 1


def test_without_valkey_a_process_counts_in_memory(tmp_path):
    process = ValkeyProcess(tmp_path)
    counter = SharedFailures(SharedWindow(process.url, lambda _: None, timeout=PATIENCE))
    counter.hit("a", 2)
    process.kill()
    assert [counter.count("a", 2) for _ in range(3)] == [(1, 0), (2, 0), (2, 1)], "the count starts again"
    counter.forgive("a", 2)
    assert counter.hit("a", 2) == 1
