"""Fairness: semaphores that accounts share, so that none waits long for another."""

import threading
from collections import OrderedDict, deque
from collections.abc import Hashable


class Waiter:
    """A thread that waits for its turn, until the lock is released: with a permission, or because it must give up."""

    __slots__ = ("decided", "is_granted", "subject")

    def __init__(self, subject: Hashable) -> None:
        self.subject = subject
        self.is_granted = False
        self.decided = threading.Lock()
        self.decided.acquire()


class FairSemaphore:
    """`count` permissions that subjects share: each may hold `share` of them.

    The next free one goes to the subject that holds least; of several, to the one that has waited longest for its turn.
    A subject is an account; before sign-in, a network. At most `max_waiting` threads wait, those of a subject in order
    of arrival. If there are more, the newest one of the subject with most gives up.
    """

    def __init__(self, count: int, share: int, max_waiting: int) -> None:
        self.count, self.share, self.max_waiting = count, share, max_waiting
        self.free = count
        self.waiting = 0
        self._held: dict[Hashable, int] = {}  # of those who hold one at least
        self._queues: OrderedDict[Hashable, deque[Waiter]] = OrderedDict()  # of those who wait, the next subject first
        self._lock = threading.Lock()

    def has_other(self, than: Hashable) -> bool:
        with self._lock:
            return any(subject != than for subject in self._queues)

    def acquire(self, subject: Hashable, seconds: float) -> bool:
        """Take a permission, or wait for one; return False after these seconds, or if too many others wait."""
        with self._lock:
            held = self._held.get(subject, 0)
            if self.free > 0 and held < self.share:  # those who wait have their shares
                self.free -= 1
                self._held[subject] = held + 1
                return True
            if seconds <= 0 or not self._has_room(subject):
                return False
            waiter = Waiter(subject)
            self._queues.setdefault(subject, deque()).append(waiter)
            self.waiting += 1
        waiter.decided.acquire(timeout=seconds)
        if waiter.is_granted:
            return True
        with self._lock:
            if waiter in self._queues.get(subject, ()):
                self._remove(waiter)
            return waiter.is_granted  # it may have been meanwhile

    def take(self, subject: Hashable) -> None:
        """Take a permission at once, even one too many: for a thread that holds what others wait for."""
        with self._lock:
            self.free -= 1
            self._held[subject] = self._held.get(subject, 0) + 1

    def release(self, subject: Hashable) -> None:
        """Give a permission back, to the next subject that waits."""
        with self._lock:
            held = self._held.pop(subject)
            if held > 1:
                self._held[subject] = held - 1
            self.free += 1
            while self.waiting and self.free > 0 and (waiter := self._next()):
                self._queues.move_to_end(waiter.subject)
                self._remove(waiter)
                self.free -= 1
                self._held[waiter.subject] = self._held.get(waiter.subject, 0) + 1
                waiter.is_granted = True
                waiter.decided.release()

    def _next(self) -> Waiter | None:
        subject = min(self._queues, key=lambda subject: self._held.get(subject, 0))  # the first of those with least
        return self._queues[subject][0] if self._held.get(subject, 0) < self.share else None

    def _remove(self, waiter: Waiter) -> None:
        self._queues[waiter.subject].remove(waiter)
        if not self._queues[waiter.subject]:
            del self._queues[waiter.subject]
        self.waiting -= 1

    def _has_room(self, subject: Hashable) -> bool:
        """Return whether another thread may wait, in the place of one that gives up if there are too many."""
        if self.waiting < self.max_waiting:
            return True
        largest = max(self._queues.values(), key=len, default=deque[Waiter]())
        if len(largest) <= len(self._queues.get(subject, ())) + 1:
            return False
        newest = largest[-1]
        self._remove(newest)
        newest.decided.release()
        return True
