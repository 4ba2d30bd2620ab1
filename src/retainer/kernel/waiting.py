"""Waiting: requests that prefer to wait for something new in a followed list (RFC 7240, `Prefer: wait`).

A waiting request keeps neither a thread, nor its turn, nor a connection to the database. It looks again when this
process has written something for its account, and once a second for what other processes have written.
"""

import re
import threading
import time
from collections.abc import Callable

from retainer.fairness import FairSemaphore

MAX_SECONDS = 20
"""Maximum wait of a request, less than the time that a request may take."""
POLL_SECONDS = 1.0
LAST_SECONDS = 2
"""With less of its time left, a request that has waited does not look again: it is answered with nothing."""
WAIT_SLOTS = 64
SHARE = 8
"""Maximum number of waiting requests: of a process, and of an account."""
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


class WaitingPlace:
    """The place of a request that may wait until a deadline."""

    def __init__(self, waiting: "WaitingRequests", account_id: int, seconds: int) -> None:
        self.account_id, self.seconds = account_id, seconds
        self.deadline = time.monotonic() + seconds
        self.is_waiting = False
        """Whether the request has found nothing, and is to wait for more."""
        self._waiting = waiting
        self._is_woken = False
        self._wake: Callable[[], None] | None = None
        self._rested_ns = 0

    def rest(self, wake: Callable[[], None]) -> bool:
        """Begin to wait: `wake` is called when there may be something new. Return whether there is already."""
        self._rested_ns = time.perf_counter_ns()
        self._wake = wake
        return self._is_woken

    def end_rest(self) -> int:
        """End the wait, before the request looks again; return its nanoseconds, which are no work."""
        self._wake, self._is_woken, self.is_waiting = None, False, False
        return time.perf_counter_ns() - self._rested_ns

    def wake(self) -> None:
        self._is_woken = True  # before it looks whether the request rests, which looks in the other order
        if self._wake is not None:
            self._wake()

    def leave(self) -> None:
        self._waiting.remove(self)


class WaitingRequests:
    """The requests of a process that wait."""

    def __init__(self, ending: Ending) -> None:
        self.ending = ending
        self.slots = FairSemaphore(WAIT_SLOTS, SHARE, 0)
        self._places: dict[int, set[WaitingPlace]] = {}
        self._lock = threading.Lock()

    def count(self, account_id: int) -> int:
        return len(self._places.get(account_id, ()))

    def place(self, account_id: int, seconds: int) -> WaitingPlace | None:
        """Give a request a place until it leaves; None if no place is left for its account, or the server ends."""
        if self.ending.has_begun() or not self.slots.acquire(account_id, 0):
            return None
        place = WaitingPlace(self, account_id, seconds)
        with self._lock:
            self._places.setdefault(account_id, set()).add(place)
        return place

    def remove(self, place: WaitingPlace) -> None:
        with self._lock:
            self._places[place.account_id].remove(place)
            if not self._places[place.account_id]:
                del self._places[place.account_id]
        self.slots.release(place.account_id)

    def notify(self, account_id: int) -> None:
        if account_id in self._places:
            with self._lock:
                places = [*self._places.get(account_id, ())]
            for place in places:
                place.wake()
