"""Fairness: semaphores that accounts share, so that none waits long for another."""

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Any

MAX_CHARGED = 1024
"""Subjects of which it is remembered what they have used; of more, the half that has used least is forgotten."""


class Waiter:
    """A thread that waits, until the lock is released: with a permission, or because it must give up."""

    __slots__ = ("decided", "is_granted")

    def __init__(self) -> None:
        self.is_granted = False
        self.decided = threading.Lock()
        self.decided.acquire()


class FairSemaphore:
    """`count` permissions that subjects share: each may hold `share` of them, which may be lowered at any time.

    The next free one goes to the subject that holds least; of several, to the one that was charged least while others
    waited; of several, to the one that has waited longest for its turn. A newcomer counts as charged as much as the
    subject that was served last, so that time without requests earns no credit (start-time fair queueing).
    A subject is an account; before sign-in, a network. At most `max_waiting` wait, those of a subject in order of
    arrival. If there are more, the newest one of the subject with most gives up. Threads wait, or objects; `give_up` is
    called with those that have to.
    """

    def __init__(
        self, count: int, share: int, max_waiting: int, give_up: Callable[[Any], object] = lambda _: None
    ) -> None:
        self.count, self.share, self.max_waiting, self._give_up = count, share, max_waiting, give_up
        self.free = count
        self.waiting = 0
        self._held: dict[Hashable, int] = {}  # of subjects that hold at least one
        self._queues: OrderedDict[Hashable, deque[Any]] = OrderedDict()  # of subjects that wait, the next one first
        self._used: dict[Hashable, float] = {}
        self._served = 0.0  # what the one that was served last had used
        self._lock = threading.Lock()

    def has_other(self, than: Hashable) -> bool:
        with self._lock:
            return any(subject != than for subject in self._queues)

    def enter(self, subject: Hashable, waiter: Any) -> bool:
        """Take a permission and return True; or let an object wait, or make it give up."""
        with self._lock:
            if self._take(subject):
                return True
            gives_up = self._make_room(subject, waiter) if self.waiting >= self.max_waiting else None
            if gives_up is not waiter:
                self._queues.setdefault(subject, deque()).append(waiter)
                self.waiting += 1
        if isinstance(gives_up, Waiter):
            gives_up.decided.release()
        elif gives_up is not None:
            self._give_up(gives_up)
        return False

    def acquire(self, subject: Hashable, seconds: float) -> bool:
        """Take a permission, or wait for one; return False after these seconds, or if too many others wait."""
        if seconds <= 0:
            with self._lock:
                return self._take(subject)
        waiter = Waiter()
        if self.enter(subject, waiter):
            return True
        if not waiter.decided.acquire(timeout=seconds):
            self.leave(subject, waiter)
        return waiter.is_granted  # it may have been while the thread gave up

    def take(self, subject: Hashable) -> None:
        """Take a permission at once, even one too many: for a thread that holds what others wait for."""
        with self._lock:
            self.free -= 1
            self._held[subject] = self._held.get(subject, 0) + 1

    def charge(self, subject: Hashable, cost: float) -> None:
        """Note what a permission has cost its subject, before it is given back."""
        with self._lock:
            self._used[subject] = max(self._used.get(subject, 0.0), self._served) + cost
            if len(self._used) > MAX_CHARGED:
                self._served = max(self._served, sorted(self._used.values())[MAX_CHARGED // 2])
                self._used = {each: used for each, used in self._used.items() if used > self._served}

    def release(self, subject: Hashable) -> Any:
        """Give a permission back, to the next subject that waits; return the object that has it now, if any."""
        with self._lock:
            self._drop(subject)
            self.free += 1
            following = self._following()
        return self._wake(following)

    def lend(self) -> Any:
        """Give others a permission that somebody goes on using, which still counts for the share of its holder.

        Return the object that has it now, if any. The holder then does not release it, but ends the loan.
        """
        with self._lock:
            self.free += 1
            following = self._following()
        return self._wake(following)

    def end_loan(self, subject: Hashable) -> Any:
        """End the use of a permission that was lent; return the object that has another one because of that, if any."""
        with self._lock:
            self._drop(subject)
            following = self._following()
        return self._wake(following)

    def widen(self, share: int) -> list[Any]:
        """Let each subject hold more from now on; return the objects that have a permission because of that."""
        with self._lock:
            self.share, granted = share, list[Any]()
            while self.waiting and self.free > 0 and (following := self._next()) is not None:
                granted.append(following)
        return [each for each in map(self._wake, granted) if each is not None]

    def leave(self, subject: Hashable, waiter: Any) -> bool:
        """Let an object wait no longer; return False if it did not: it has a permission, or had to give up."""
        with self._lock:
            is_waiting = waiter in self._queues.get(subject, ())
            if is_waiting:
                self._queues[subject].remove(waiter)
                self._note_removal(subject)
            return is_waiting

    def _take(self, subject: Hashable) -> bool:
        held = self._held.get(subject, 0)
        is_free = self.free > 0 and held < self.share  # all who wait already hold their share, so nobody is overtaken
        if is_free:
            self.free -= 1
            self._held[subject] = held + 1
            self._served = max(self._served, self._used.get(subject, 0.0))
        return is_free

    def _next(self) -> Any:
        """Give a permission to the first waiting subject that has the least, unless it already has its share."""
        subject = min(self._queues, key=self._standing)
        if not self._take(subject):
            return None
        self._queues.move_to_end(subject)
        following = self._queues[subject].popleft()
        self._note_removal(subject)
        return following

    def _drop(self, subject: Hashable) -> None:
        held = self._held.pop(subject)
        if held > 1:
            self._held[subject] = held - 1

    def _following(self) -> Any:
        """Give a free permission to the next subject that waits."""
        following = self._next() if self.waiting and self.free > 0 else None
        if not self.waiting and following is None:
            self._used.clear()
        return following

    @staticmethod
    def _wake(following: Any) -> Any:
        """Tell a thread that it has a permission; return an object that has one, which somebody else is to tell."""
        if not isinstance(following, Waiter):
            return following
        following.is_granted = True
        following.decided.release()
        return None

    def _standing(self, subject: Hashable) -> tuple[int, float]:
        return self._held.get(subject, 0), max(self._used.get(subject, 0.0), self._served)

    def _make_room(self, subject: Hashable, waiter: Any) -> Any:
        """Return who gives up: the newest of the subject with most, or the waiter if that would be this one."""
        largest, queue = max(self._queues.items(), key=lambda each: len(each[1]), default=(None, EMPTY))
        if len(queue) <= len(self._queues.get(subject, ())) + 1:
            return waiter
        newest = queue.pop()
        self._note_removal(largest)
        return newest

    def _note_removal(self, subject: Hashable) -> None:
        if not self._queues[subject]:
            del self._queues[subject]
        self.waiting -= 1


EMPTY: deque[Any] = deque()
