"""Rate limits in memory and in Valkey, with a clock that the test moves."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retainer.kernel import limits
from retainer.kernel.limits import SlidingWindow
from tests.length import length
from tests.valkey_process import shared_by


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


@contextlib.contextmanager
def in_memory() -> Iterator[tuple[Clock, SlidingWindow]]:
    """A clock, and the window of one process."""
    clock = Clock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "time", clock)
        yield clock, SlidingWindow()


@pytest.fixture(scope="module", params=["memory", "valkey"])
def opened(request) -> Any:
    """Opens a clock and a counter: of one process in memory, or of three servers with one Valkey."""
    if request.param == "memory":
        return in_memory
    process = request.getfixturevalue("valkey_process")
    return lambda: shared_by(process)


@pytest.fixture
def counting(opened):
    """A clock and a counter."""
    with opened() as found:
        yield found


def test_a_request_sent_after_retry_after_is_admitted(counting):
    clock, window = counting
    for _ in range(5):
        assert window.hit("k", 5).retry_after is None
        clock.wait(1.7)
    for _ in range(50):
        refused = window.hit("k", 5)
        if refused.retry_after is not None:
            assert 1 <= refused.retry_after <= 60
            clock.wait(refused.retry_after)
            assert window.hit("k", 5).retry_after is None
        clock.wait(0.3)


def test_what_is_left_of_a_window_still_counts_after_a_sweep():
    with in_memory() as (clock, window):
        window.hit("k", 2)
        clock.wait(59)
        window.hit("k", 2)
        clock.wait(2)
        window.sweep()
        assert [window.hit("k", 2).retry_after for _ in range(2)] == [None, 58]


def test_reset_is_when_the_whole_ceiling_is_free_again(counting):
    clock, window = counting
    window.hit("k", 3)
    clock.wait(20)
    last = window.hit("k", 3)
    assert last.remaining == 1
    clock.wait(last.reset - clock.time())
    assert window.hit("k", 3, amount=0).remaining == 3


def test_a_look_at_the_figures_costs_nothing(counting):
    clock, window = counting
    empty = window.hit("k", 3, amount=0)
    assert (empty.remaining, empty.retry_after) == (3, None)
    assert abs(empty.reset - clock.time()) < 30
    for remaining in (2, 1, 0):
        assert window.hit("k", 3).remaining == remaining
        assert window.hit("k", 3, amount=0).remaining == remaining
    assert window.hit("k", 3, amount=0).retry_after is None


def test_a_refused_request_is_not_counted(counting):
    clock, window = counting
    window.hit("k", 1)
    clock.wait(30)
    for _ in range(10):
        assert window.hit("k", 1).retry_after is not None
    clock.wait(30)
    assert window.hit("k", 1).retry_after is None


def test_a_lower_ceiling_counts_at_once_and_its_wait_is_honest(counting):
    clock, window = counting
    for _ in range(10):
        window.hit("k", 10)
        clock.wait(1)
    refused = window.hit("k", 4)
    assert (refused.remaining, refused.limit) == (0, 4)
    clock.wait(refused.retry_after)
    assert window.hit("k", 4).retry_after is None


def test_an_amount_is_counted_as_a_whole_or_not_at_all_and_its_wait_is_honest(counting):
    clock, window = counting
    window.hit("k", 5)
    clock.wait(10)
    window.hit("k", 5, amount=2)
    refused = window.hit("k", 5, amount=3)
    assert (refused.remaining, refused.retry_after in {50, 51}) == (2, True)
    assert window.hit("k", 5, amount=0).remaining == 2
    clock.wait(refused.retry_after)
    exact = window.hit("k", 5, amount=3)
    assert (exact.remaining, exact.retry_after) == (0, None)
    assert window.hit("k", 5, amount=6).retry_after >= 59, "it has room at no time"
    assert window.hit("empty", 5, amount=6).retry_after == 60


def test_keys_do_not_share_and_empty_ones_are_forgotten(counting):
    clock, window = counting
    window.hit("a", 1)
    assert window.hit("b", 1).retry_after is None
    clock.wait(61)
    window.sweep()
    assert window.hit("a", 1).remaining == 0


def test_the_window_moves_on_with_each_hit_however_many_have_left_it(counting):
    clock, window = counting
    for count in (1, 2, 3, 7, 16, 33):
        for _ in range(count):
            window.hit("k", 40)
        clock.wait(40)
        assert window.hit("k", 40).remaining == 40 - count - 1
        clock.wait(20)
        assert window.hit("k", 40, amount=0).remaining == 39
        clock.wait(60)


def test_memory_holds_no_window_that_is_empty():
    with in_memory() as (clock, window):
        window.hit("a", 1)
        window.hit("looked at", 1, amount=0)
        clock.wait(30)
        window.hit("b", 1)
        clock.wait(30)
        window.sweep()
        assert [*window._hits] == ["b"]  # noqa: SLF001


def test_a_wall_clock_that_jumps_neither_locks_out_nor_lets_in():
    with in_memory() as (clock, window):
        for _ in range(3):
            window.hit("k", 3)
        for jump in (3600, -7200):
            clock.wall += jump
            assert window.hit("k", 3).retry_after == 60
        clock.wait(60)
        assert window.hit("k", 3).retry_after is None


@settings(max_examples=length(200), deadline=None)
@given(st.lists(st.floats(0, 40), min_size=1, max_size=60), st.integers(1, 8))
def test_no_span_of_sixty_seconds_admits_more_than_the_ceiling(opened, pauses, ceiling):
    with opened() as (clock, window):
        admitted = []
        for pause in pauses:
            clock.wait(pause)
            before = clock.monotonic()
            is_admitted = window.hit("k", ceiling).retry_after is None
            after = clock.monotonic()
            if sum(before - 60 < at for _, at in admitted) < ceiling:
                assert is_admitted, "there is room"
            if sum(after - 60 < at for at, _ in admitted) >= ceiling:
                assert not is_admitted, "there is none"
            if is_admitted:
                admitted.append((before, after))
