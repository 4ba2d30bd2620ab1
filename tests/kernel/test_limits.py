"""The window, on a clock that the test moves."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retainer import limits
from retainer.limits import SlidingWindow
from tests.length import length


class Clock:
    """Stands in for the module `time`: the wall clock may jump, the monotonic one never does."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.wall = 1_700_000_000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.wall

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.wall += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(limits, "time", clock)
    return clock


def test_a_request_sent_after_retry_after_is_admitted(clock):
    window = SlidingWindow()
    for _ in range(5):
        assert window.hit("k", 5).retry_after is None
        clock.wait(1.7)
    for _ in range(50):
        refused = window.hit("k", 5)
        if refused.retry_after is not None:
            assert refused.retry_after >= 1
            clock.wait(refused.retry_after)
            assert window.hit("k", 5).retry_after is None
        clock.wait(0.3)


def test_reset_is_when_the_whole_ceiling_is_free_again(clock):
    window = SlidingWindow()
    window.hit("k", 3)
    clock.wait(20)
    last = window.hit("k", 3)
    assert last.remaining == 1
    clock.wait(last.reset - clock.wall)
    assert window.hit("k", 3, charge=False).remaining == 3


def test_a_wall_clock_that_jumps_neither_locks_out_nor_lets_in(clock):
    window = SlidingWindow()
    for _ in range(3):
        window.hit("k", 3)
    for jump in (3600, -7200):
        clock.wall += jump
        assert window.hit("k", 3).retry_after == 60
    clock.wait(60)
    assert window.hit("k", 3).retry_after is None


def test_a_lower_ceiling_counts_at_once_and_its_wait_is_honest(clock):
    window = SlidingWindow()
    for _ in range(10):
        window.hit("k", 10)
        clock.wait(1)
    refused = window.hit("k", 4)
    assert (refused.remaining, refused.limit) == (0, 4)
    clock.wait(refused.retry_after)
    assert window.hit("k", 4).retry_after is None


def test_keys_do_not_share_and_empty_ones_are_forgotten(clock):
    window = SlidingWindow()
    window.hit("a", 1)
    assert window.hit("b", 1).retry_after is None
    clock.wait(61)
    window.sweep()
    assert window.hit("a", 1).remaining == 0


@settings(max_examples=length(200), deadline=None)
@given(st.lists(st.floats(0, 40), min_size=1, max_size=60), st.integers(1, 8))
def test_no_span_of_sixty_seconds_admits_more_than_the_ceiling(pauses, ceiling):
    clock, window = Clock(), SlidingWindow()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "time", clock)
        admitted = []
        for pause in pauses:
            clock.wait(pause)
            free = sum(clock.now - 60 < at for at in admitted) < ceiling
            taken = window.hit("k", ceiling).retry_after is None
            assert taken == free
            if taken:
                admitted.append(clock.now)
