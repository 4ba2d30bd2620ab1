"""Waiting: requests that prefer to wait for something new in a followed list (RFC 7240, `Prefer: wait`).

A waiting request keeps its thread, but neither its running slot nor a connection to the database. It looks again when
this process has written something for its account, and once a second for what other processes have written.
"""

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from retainer.errors import Refusal
from retainer.fairness import FairSemaphore
from retainer.store.engines.base import of_request

MAX_SECONDS = 20
"""Maximum wait of a request, less than the time that a request may take."""
POLL_SECONDS = 1.0
LAST_SECONDS = 2
"""With less of its time left, a request that has waited does not look again: it is answered with nothing."""
WAIT_SLOTS = 64
SHARE = 8
"""Maximum number of waiting requests: of a process, and of an account."""
Left = Callable[[], AbstractContextManager[None]]
WAIT = re.compile(r'(?:^|[,;])\s*wait\s*=\s*"?([0-9]{1,9})"?\s*(?=$|[,;])', re.IGNORECASE)


def preferred_seconds(header: str | None) -> int:
    """Return how long a request prefers to wait, at most MAX_SECONDS; 0 without such a preference."""
    found = WAIT.search(header) if header else None
    return min(int(found[1]), MAX_SECONDS) if found else 0


class Ending:
    """Whether the server is stopping, or this process `is_draining`; then responses ask clients to disconnect."""

    def __init__(self, is_stopping: Callable[[], bool] = lambda: False) -> None:
        self.is_stopping, self.is_draining = is_stopping, False

    def has_begun(self) -> bool:
        return self.is_draining or self.is_stopping()


class Place:
    """The place of a request that may wait until a deadline."""

    def __init__(self, waiting: "Waiting", seconds: int) -> None:
        self.seconds = seconds
        self.waited_ns = 0
        self.woken = threading.Event()
        self._waiting = waiting
        self.deadline = time.monotonic() + seconds

    def wait(self, left: Left) -> bool:
        """Wait until there may be something new; return False if the time is up, or the server is ending.

        Meanwhile, the request is outside of the running slots, in a block of `left`. If it gets none in time to look
        again, the time is up, too: it is answered with what it found last.
        """
        seconds = self.deadline - time.monotonic()
        if seconds <= 0 or self._waiting.ending.has_begun():
            return False
        began = time.perf_counter_ns()
        try:
            with left():
                self.woken.wait(min(seconds, POLL_SECONDS))
        except Refusal:  # no turn
            return False
        finally:
            self.waited_ns += time.perf_counter_ns() - began
        self.woken.clear()  # before the caller looks, so that nothing that comes meanwhile is missed
        return not self._waiting.ending.has_begun() and of_request.remaining() > LAST_SECONDS


class Waiting:
    """The requests of a process that wait."""

    def __init__(self, ending: Ending) -> None:
        self.ending = ending
        self.slots = FairSemaphore(WAIT_SLOTS, SHARE, 0)
        self._places: dict[int, set[Place]] = {}
        self._lock = threading.Lock()

    def count(self, account_id: int) -> int:
        return len(self._places.get(account_id, ()))

    @contextmanager
    def place(self, account_id: int, seconds: int) -> Iterator[Place | None]:
        """Give a request a place for the block; None if it prefers not to wait, or no place is left for its account."""
        if not seconds or not self.slots.acquire(account_id, 0):
            yield None
            return
        place = Place(self, seconds)
        with self._lock:
            self._places.setdefault(account_id, set()).add(place)
        try:
            yield place
        finally:
            with self._lock:
                self._places[account_id].remove(place)
                if not self._places[account_id]:
                    del self._places[account_id]
            self.slots.release(account_id)

    def notify(self, account_id: int) -> None:
        if account_id in self._places:
            with self._lock:
                for place in self._places.get(account_id, ()):
                    place.woken.set()
