"""Fairness: queues, semaphores and places that accounts share, so that none waits long for another."""

import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")


class FairQueue(Generic[T]):
    """What waits, by subject: one of each subject in turn, and those of a subject in order of arrival.

    A subject is an account; before sign-in, a network. Its users hold a lock of their own.
    """

    def __init__(self) -> None:
        self._waiting: OrderedDict[Hashable, deque[T]] = OrderedDict()  # the next subject first
        self.count = 0

    def has_other(self, than: Hashable) -> bool:
        return any(subject != than for subject in self._waiting)

    def push(self, subject: Hashable, item: T) -> None:
        """Append what waits for a subject. A subject that did not wait comes after all others."""
        self._waiting.setdefault(subject, deque()).append(item)
        self.count += 1

    def pop(self, may: Callable[[Hashable], bool] = lambda _: True) -> T | None:
        """Return what has waited longest of the next subject that `may` proceed, or None without one."""
        for subject, items in self._waiting.items():
            if may(subject):
                item = items.popleft()
                self._waiting.move_to_end(subject)
                if not items:
                    del self._waiting[subject]
                self.count -= 1
                return item
        return None

    def pop_newest_of_largest(self, than: Hashable) -> T | None:
        """Return the newest of the subject with most, or None if that has no more than a subject that comes."""
        if not self._waiting:
            return None
        largest = max(self._waiting, key=lambda subject: len(self._waiting[subject]))
        items = self._waiting[largest]
        if len(items) <= len(self._waiting.get(than, ())) + 1:
            return None
        self.count -= 1
        return items.pop()  # there is another one

    def remove(self, subject: Hashable, item: T) -> bool:
        """Remove what waits no more; return whether it was still waiting."""
        items = self._waiting.get(subject)
        if items is None or item not in items:
            return False
        items.remove(item)
        if not items:
            del self._waiting[subject]
        self.count -= 1
        return True


class Waiter:
    """A thread that waits for its turn, until the lock is released: with a permission, or because it must give up."""

    __slots__ = ("decided", "is_granted", "subject")

    def __init__(self, subject: Hashable) -> None:
        self.subject = subject
        self.is_granted = False
        self.decided = threading.Lock()
        self.decided.acquire()


class FairSemaphore:
    """`count` permissions that subjects share: each may hold `share` of them, and the next free one goes round in turn.

    At most `max_waiting` threads wait. If there are more, the newest one of the subject with most gives up.
    """

    def __init__(self, count: int, share: int, max_waiting: int) -> None:
        self.count, self.share, self.max_waiting = count, share, max_waiting
        self.free = count
        self._held: dict[Hashable, int] = {}  # of those who hold one at least
        self._queue: FairQueue[Waiter] = FairQueue()
        self._lock = threading.Lock()

    @property
    def waiting(self) -> int:
        return self._queue.count

    def has_other(self, than: Hashable) -> bool:
        """Return whether a thread of another subject waits."""
        with self._lock:
            return self._queue.has_other(than)

    def acquire(self, subject: Hashable, seconds: float) -> bool:
        """Take a permission, or wait for one; return False after these seconds, or if too many others wait."""
        with self._lock:
            held = self._held.get(subject, 0)
            if self.free and held < self.share:  # those who wait have their shares
                self.free -= 1
                self._held[subject] = held + 1
                return True
            if seconds <= 0 or not self._has_room(subject):
                return False
            waiter = Waiter(subject)
            self._queue.push(subject, waiter)
        waiter.decided.acquire(timeout=seconds)
        if waiter.is_granted:
            return True
        with self._lock:
            self._queue.remove(subject, waiter)
            return waiter.is_granted  # it may have been meanwhile

    def release(self, subject: Hashable) -> None:
        """Give a permission back, to the next subject that waits and has less than its share."""
        with self._lock:
            held = self._held.pop(subject)
            if held > 1:
                self._held[subject] = held - 1
            self.free += 1
            while self._queue.count and self.free and (waiter := self._queue.pop(self._may_take)):
                self.free -= 1
                self._held[waiter.subject] = self._held.get(waiter.subject, 0) + 1
                waiter.is_granted = True
                waiter.decided.release()

    def _may_take(self, subject: Hashable) -> bool:
        return self._held.get(subject, 0) < self.share

    def _has_room(self, subject: Hashable) -> bool:
        """Return whether another thread may wait, in the place of one that gives up if there are too many."""
        if self._queue.count < self.max_waiting:
            return True
        waiter = self._queue.pop_newest_of_largest(than=subject)
        if waiter is not None:
            waiter.decided.release()
        return waiter is not None


class Leased(msgspec.Struct):
    """Work that was due at a time, and that no other process does until its lease ends."""

    leased_until: str
    account_id: int
    id: int
    due_at: str


Work = TypeVar("Work", bound=Leased)


class Places:
    """The places of a background loop, and who holds them.

    An account always gets one place, so it never waits for another account. Of the `total` of further places it gets
    one only while it holds fewer than are free (dynamic thresholds; Choudhury and Hahne, 1998): a single account at
    most half of them, two in the long run a third each.
    """

    def __init__(self, total: int, held: Iterable[int]) -> None:
        self.total = total
        self._held = Counter(held)
        self._free = total - sum(count - 1 for count in self._held.values())

    @property
    def sated(self) -> str:
        """Return the accounts that get no further place now, as JSON."""
        return msgspec.json.encode([account_id for account_id in self._held if not self._has_room(account_id)]).decode()

    def fill(self, find: Callable[[], Iterable[Work]], lease: Callable[[Work], bool]) -> list[Work]:
        """Return what could be leased; `find` returns work of accounts that are not sated, the oldest first."""
        leased: list[Work] = []
        is_filling = True
        while is_filling:
            is_filling = False
            for work in find():
                if self._has_room(work.account_id) and lease(work):
                    leased.append(work)
                    self._free -= self._held[work.account_id] > 0
                    self._held[work.account_id] += 1
                    is_filling = True
        return leased

    def _has_room(self, account_id: int) -> bool:
        return self._held[account_id] - 1 < self._free
