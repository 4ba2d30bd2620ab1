"""The queue for password hashes: order and refusals."""

import threading
from contextlib import contextmanager

import pytest
from testing.process import until

from retainer.errors import Refusal
from retainer.identity.sign_in.hashing_queue import HashingQueue


class Crowd:
    """Attempts that wait while the only turn is taken; it notes the order in which they then have theirs."""

    def __init__(self, queue):
        self.queue = queue
        self.order = []
        self.threads = []

    def arrive(self, name, network, *, is_known=False):
        """Let an attempt wait; return when it does."""
        before = len(self.queue_order())
        self.threads.append(threading.Thread(target=self.attempt, args=(name, network, is_known)))
        self.threads[-1].start()
        until(lambda: len(self.queue_order()) > before, "it waits, or was refused")

    def attempt(self, name, network, is_known):
        try:
            with self.queue.turn(network, is_known=is_known):
                self.order.append(name)
        except Refusal as refused:
            self.order.append(f"{name}: {refused.code}, {refused.headers['Retry-After']}")

    def queue_order(self):
        return [*self.order, *range(self.queue.waiting)]


@contextmanager
def crowd(**options):
    """A queue whose only turn is taken during the block; after it, all attempts have had theirs."""
    queue = HashingQueue(concurrency=1, **options)
    found = Crowd(queue)
    with queue.turn("somebody", is_known=False):
        yield found
    for thread in found.threads:
        thread.join()
    assert queue.waiting == 0


def test_networks_have_their_turns_one_after_another():
    with crowd() as waiting:
        for name in ("a1", "a2", "a3", "b1", "b2", "c1"):
            waiting.arrive(name, name[0])
    assert waiting.order == ["a1", "b1", "c1", "a2", "b2", "a3"]


def test_known_browsers_come_first():
    with crowd() as waiting:
        waiting.arrive("a1", "a")
        waiting.arrive("known", "session:1", is_known=True)
        waiting.arrive("known too", "session:2", is_known=True)
    assert waiting.order == ["known", "known too", "a1"]


def test_a_network_has_a_share_and_is_refused_beyond_it():
    with crowd(share=2) as waiting:
        for name in ("a1", "a2", "a3", "b1"):
            waiting.arrive(name, name[0])
    assert waiting.order == ["a3: rate_limited, 2", "a1", "b1", "a2"]


def test_an_attempt_counts_for_the_share_until_it_is_hashed():
    queue = HashingQueue(share=1)
    with queue.turn("a", is_known=False):
        with pytest.raises(Refusal), queue.turn("a", is_known=False):
            pass
        with queue.turn("b", is_known=False):
            pass
    with queue.turn("a", is_known=False):
        pass


def test_in_a_full_queue_a_new_network_takes_the_place_of_the_newest_attempt_of_the_one_with_most():
    with crowd(max_waiting=4) as waiting:
        for name in ("a1", "a2", "b1", "a3", "c1"):
            waiting.arrive(name, name[0])
        assert waiting.queue.waiting == 4
    assert waiting.order == ["a3: rate_limited, 2", "a1", "b1", "c1", "a2"]


def test_in_a_full_queue_a_network_with_as_many_attempts_as_the_others_is_refused():
    with crowd(max_waiting=3) as waiting:
        for name in ("a1", "a2", "b1", "b2", "c1", "d1"):
            waiting.arrive(name, name[0])
    assert waiting.order[:2] == ["b2: unavailable, 2", "a2: rate_limited, 2"], "c comes instead of a's second"
    assert waiting.order[2:] == ["d1: unavailable, 2", "a1", "b1", "c1"]


def test_in_a_full_queue_a_known_browser_displaces_unknown_ones_only():
    with crowd(max_waiting=2) as waiting:
        waiting.arrive("a1", "a")
        waiting.arrive("b1", "b")
        for number in (1, 2, 3):
            waiting.arrive(f"known {number}", f"session:{number}", is_known=True)
    refused = ["a1: rate_limited, 2", "b1: rate_limited, 2", "known 3: unavailable, 2"]
    assert (sorted(waiting.order[:3]), waiting.order[3:]) == (refused, ["known 1", "known 2"])


def test_a_hash_that_fails_gives_its_turn_back():
    queue = HashingQueue(concurrency=1)
    with pytest.raises(ValueError, match="broken"), queue.turn("a", is_known=False):
        raise ValueError("broken")
    with queue.turn("a", is_known=False):
        assert queue.waiting == 0


def test_an_attempt_waits_and_hashes_outside_and_returns():
    places = []

    @contextmanager
    def outside():
        places.append("out")
        yield
        places.append("back")

    queue = HashingQueue(outside, share=1)
    with queue.turn("a", is_known=False):
        assert places == ["out"]
        with pytest.raises(Refusal), queue.turn("a", is_known=False):
            pass
        assert places == ["out"], "a refused attempt never leaves"
    assert places == ["out", "back"]
