"""Rate limits: an exact moving window for each key, and one for each address of refused callers."""

import math
import threading
import time
from collections import deque
from typing import Protocol

import msgspec

from retainer.errors import Refusal

WINDOW_SECONDS = 60
ADDRESS_RATE_LIMIT = 600


class Allowance(msgspec.Struct, frozen=True, gc=False):
    """The state of a window after a request; `reset` is the Unix second at which it is empty again."""

    limit: int
    remaining: int
    reset: int
    retry_after: int | None = None

    def admit(self) -> None:
        """Refuse with 429 when the window had no room for the request."""
        if self.retry_after is not None:
            message = f"Too many requests: {self.limit} a minute are allowed. Try again in {self.retry_after} seconds."
            raise Refusal("rate_limited", message, headers={"Retry-After": str(self.retry_after)})


class Limiter(Protocol):
    """What counts requests: `SlidingWindow` those of this process, `SharedWindow` those of all servers together."""

    @property
    def is_shared(self) -> bool:
        """Whether requests that other processes admit are counted at the moment."""

    def hit(self, key: str, limit: int, *, charge: bool = True) -> Allowance:
        """Count a request if there is room, and return the state of the window, atomically."""

    def sweep(self) -> None:
        """Forget the keys whose window is empty."""


def hit_address(limiter: Limiter, address: str, *, charge: bool) -> Allowance:
    """Count a refused request of an address if there is room, and return the state of the address's window."""
    return limiter.hit(f"address:{address}", ADDRESS_RATE_LIMIT, charge=charge)


class SlidingWindow:
    """An exact moving window in memory: no span of 60 seconds admits more than the limit.

    The memory store of the `limits` library (5.8) is not safe with threads, follows the wall clock, and starts a
    thread to copy all its lists a hundred times a second.
    """

    is_shared = False

    def __init__(self) -> None:
        self._hits: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    def hit(self, key: str, limit: int, *, charge: bool = True) -> Allowance:
        """Count a request if there is room, and return the state of the window, atomically."""
        with self._lock:
            now = time.monotonic()
            hits = self._fresh(key, now - WINDOW_SECONDS)
            wait = None
            if charge and len(hits) < limit:
                hits.append(now)
            elif charge:
                wait = max(1, math.ceil(hits[len(hits) - limit] + WINDOW_SECONDS - now))
            left = hits[-1] + WINDOW_SECONDS - now if hits else 0
            return Allowance(limit, max(0, limit - len(hits)), math.ceil(time.time() + left), wait)

    def refund(self, key: str) -> None:
        """Take back the newest hit of a key, for a request that was refused elsewhere."""
        with self._lock:
            if self._hits.get(key):
                self._hits[key].pop()

    def sweep(self) -> None:
        """Forget the keys whose window is empty."""
        with self._lock:
            for key in list(self._hits):
                if not self._fresh(key, time.monotonic() - WINDOW_SECONDS):
                    del self._hits[key]

    def _fresh(self, key: str, start: float) -> deque[float]:
        """Return the hits of a key after `start`, oldest first."""
        hits = self._hits.get(key)
        if hits is None:
            hits = self._hits[key] = deque()
        while hits and hits[0] <= start:
            hits.popleft()
        return hits
