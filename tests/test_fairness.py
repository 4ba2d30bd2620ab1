"""Fairness: whose turn it is when several accounts wait."""

import threading

from testing.process import until

from retainer import fairness
from retainer.fairness import FairSemaphore

LONG = 60


class Threads:
    """Threads that take a permission of a semaphore, and note in which order; each waits before the next begins."""

    def __init__(self, semaphore):
        self.semaphore, self.order, self.refused, self.threads = semaphore, [], [], []

    def begin(self, name, *, waits=True):
        before = self.semaphore.waiting

        def run():
            if self.semaphore.acquire(name[0], LONG):
                self.order.append(name)
                self.semaphore.release(name[0])
            else:
                self.refused.append(name)

        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()
        if waits:
            until(lambda: self.semaphore.waiting == before + 1, "it waits")

    def join(self):
        for thread in self.threads:
            thread.join(LONG)


def test_a_permission_goes_to_the_next_subject_in_turn():
    semaphore = FairSemaphore(1, 1, 10)
    threads = Threads(semaphore)
    assert semaphore.acquire("x", LONG)
    for name in ("a1", "a2", "a3", "b1"):
        threads.begin(name)
    semaphore.release("x")
    threads.join()
    assert threads.order == ["a1", "b1", "a2", "a3"]
    assert (semaphore.free, semaphore.waiting, semaphore._held) == (1, 0, {})  # noqa: SLF001  # nothing is kept


def test_a_subject_goes_first_that_has_used_less_and_none_saves_up_or_starves():
    semaphore = FairSemaphore(1, 1, 10)
    threads = Threads(semaphore)
    assert semaphore.acquire("b", LONG)
    for name in ("b1", "c1"):
        threads.begin(name)
    semaphore.charge("b", 2)
    semaphore.release("b")
    threads.join()
    assert threads.order == ["c1", "b1"]
    served = []
    assert semaphore.acquire("x", LONG)
    for waiter in (*["a"] * 3, *["b"] * 3):
        assert not semaphore.enter(waiter, waiter)
    following = semaphore.release("x")
    while following:
        served.append(following)
        semaphore.charge(following, 3 if following == "a" else 1)
        following = semaphore.release(following)
    assert "".join(served) == "abbbaa"


def test_what_was_used_is_forgotten_if_many_others_have_used_more_or_nobody_waits(monkeypatch):
    monkeypatch.setattr(fairness, "MAX_CHARGED", 4)
    semaphore = FairSemaphore(1, 1, 100)
    assert semaphore.acquire("first", 0)
    for number in range(1, 30):
        assert not semaphore.enter(number, number)
    following = semaphore.release("first")
    while following:
        semaphore.charge(following, following)
        assert len(semaphore._used) <= 4  # noqa: SLF001  # a bound
        following = semaphore.release(following)
    assert semaphore._used == {}  # noqa: SLF001  # nothing is kept


def test_a_subject_that_has_its_share_leaves_the_rest_to_others():
    semaphore = FairSemaphore(4, 2, 10)
    assert [semaphore.acquire("a", 0) for _ in range(3)] == [True, True, False]
    assert [semaphore.acquire("b", 0) for _ in range(3)] == [True, True, False]
    threads = Threads(semaphore)
    threads.begin("a1")
    semaphore.release("b")
    assert semaphore.acquire("c", 0), "what is free is not for the one that waits, because it has its share"
    assert threads.order == []
    semaphore.release("a")
    threads.join()
    assert threads.order == ["a1"]


def test_a_thread_that_has_waited_long_enough_gives_up_and_leaves_nothing_behind():
    semaphore = FairSemaphore(1, 1, 10)
    assert semaphore.acquire("a", 0)
    assert not semaphore.acquire("b", 0.01)
    semaphore.release("a")
    assert (semaphore.free, semaphore.waiting, semaphore._held) == (1, 0, {})  # noqa: SLF001


def test_if_too_many_wait_the_newest_of_the_largest_subject_gives_up():
    semaphore = FairSemaphore(1, 1, 3)
    threads = Threads(semaphore)
    assert semaphore.acquire("x", 0)
    for name in ("a1", "a2", "a3"):
        threads.begin(name)
    assert not semaphore.acquire("a", LONG), "it would be the newest of the largest itself"
    threads.begin("b1", waits=False)
    until(lambda: threads.refused == ["a3"], "the newest gave up")
    until(lambda: semaphore.waiting == 3, "the other took its place")
    assert not semaphore.acquire("b", 0.01), "it would be as large as the largest"
    assert threads.refused == ["a3"]
    semaphore.release("x")
    threads.join()
    assert threads.order == ["a1", "b1", "a2"]


def test_a_permission_goes_to_the_subject_that_holds_least():
    semaphore = FairSemaphore(4, 2, 10)
    for subject in ("a", "b", "x", "x"):
        assert semaphore.acquire(subject, 0)
    threads = Threads(semaphore)
    for name in ("a1", "b1", "c1"):
        threads.begin(name)
    semaphore.release("x")
    threads.join()
    assert threads.order == ["c1", "a1", "b1"], "a and b hold one already"


def test_with_a_larger_share_those_have_a_permission_for_whom_there_is_one():
    semaphore = FairSemaphore(5, 1, 10)
    for subject in "abc":
        assert semaphore.acquire(subject, 0)
    threads = Threads(semaphore)
    threads.begin("a1")
    assert not semaphore.enter("b", "b")
    assert (semaphore.free, semaphore.waiting) == (2, 2)
    assert semaphore.widen(2) == ["b"]
    threads.join()
    assert (threads.order, semaphore.waiting) == (["a1"], 0)


def test_a_permission_that_is_lent_still_counts_for_the_share_of_its_holder():
    semaphore = FairSemaphore(1, 1, 10)
    assert semaphore.acquire("a", 0)
    assert not semaphore.enter("a", "a")
    assert semaphore.lend() is None
    assert (semaphore.enter("b", "b"), semaphore.waiting) == (True, 1)
    assert semaphore.release("b") is None
    assert semaphore.end_loan("a") == "a"
    assert semaphore.release("a") is None
    assert (semaphore.free, semaphore.waiting, semaphore._held) == (1, 0, {})  # noqa: SLF001  # nothing is kept


def test_what_is_taken_beyond_the_count_is_missing_until_it_is_given_back():
    semaphore = FairSemaphore(1, 1, 10)
    assert semaphore.acquire("a", 0)
    semaphore.take("b")
    assert semaphore.free == -1
    threads = Threads(semaphore)
    threads.begin("c1")
    semaphore.release("a")
    assert (threads.order, semaphore.waiting) == ([], 1)
    assert not semaphore.acquire("a", 0)
    semaphore.release("b")
    threads.join()
    assert threads.order == ["c1"]
    assert (semaphore.free, semaphore.waiting, semaphore._held) == (1, 0, {})  # noqa: SLF001


class LateLock:
    """The lock of a semaphore, which does something before a thread enters it for the second time."""

    def __init__(self, lock, something):
        self.lock, self.something, self.entered = lock, something, 0

    def __enter__(self):
        self.entered += 1
        if self.entered == 2:
            self.something()
        self.lock.acquire()

    def __exit__(self, *_):
        self.lock.release()


def test_a_permission_that_comes_as_the_wait_ends_is_not_lost():
    semaphore = FairSemaphore(1, 1, 10)
    assert semaphore.acquire("a", 0)
    lock = semaphore._lock  # noqa: SLF001

    def release():
        semaphore._lock = lock  # noqa: SLF001
        semaphore.release("a")

    semaphore._lock = LateLock(lock, release)  # noqa: SLF001
    assert semaphore.acquire("b", 0.01), "it was given while the thread was about to give up"
    semaphore.release("b")
    assert semaphore.acquire("c", 0)
