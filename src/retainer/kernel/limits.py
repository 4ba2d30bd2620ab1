"""How many requests a minute: an exact moving window for each key, and one for each address of refused callers."""

import math
import threading
import time
from collections import deque

import msgspec
from limits.storage import MovingWindowSupport

from retainer.errors import Refusal

WINDOW_SECONDS = 60
ADDRESS_CEILING = 600


class Allowance(msgspec.Struct, frozen=True, gc=False):
    """The figures of a bucket after a request; `reset` is the Unix second at which it is wholly free again."""

    limit: int
    remaining: int
    reset: int
    retry_after: int | None = None

    def admit(self) -> None:
        """Refuse with 429 when the request found the bucket empty."""
        if self.retry_after is not None:
            message = f"Too many requests: {self.limit} a minute are allowed. Try again in {self.retry_after} seconds."
            raise Refusal("rate_limited", message, headers={"Retry-After": str(self.retry_after)})


class Window(MovingWindowSupport):
    """The moving window of the `limits` library, in memory: thread-safe, by the monotonic clock, one deque a key.

    The library's own memory store (5.8) is not safe with threads, follows the wall clock, and starts a thread to copy
    all its lists a hundred times a second; this keeps its interface, so that a shared store can take its place.
    """

    def __init__(self) -> None:
        self._hits: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    def take(self, key: str, limit: int, *, charge: bool = True) -> Allowance:
        """Count a request if there is room, and answer the figures of its bucket, in one step."""
        with self._lock:
            refused = charge and not self.acquire_entry(key, limit, WINDOW_SECONDS)
            hits = self._fresh(key, WINDOW_SECONDS)
            now = time.monotonic()
            left = hits[-1] + WINDOW_SECONDS - now if hits else 0
            wait = max(1, math.ceil(hits[0] + WINDOW_SECONDS - now)) if refused else None
            return Allowance(limit, limit - len(hits), math.ceil(time.time() + left), wait)

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Add `amount` hits unless that exceeds the limit within `expiry` seconds."""
        hits = self._fresh(key, expiry)
        if len(hits) + amount > limit:
            return False
        hits.extend([time.monotonic()] * amount)
        return True

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:  # noqa: ARG002
        """When the oldest hit within `expiry` seconds was, and how many there are."""
        hits = self._fresh(key, expiry)
        return (hits[0] if hits else time.monotonic()), len(hits)

    def clear(self, key: str) -> None:
        """Forget a key's hits."""
        self._hits.pop(key, None)

    def sweep(self) -> None:
        """Forget the keys whose window is empty."""
        with self._lock:
            for key in list(self._hits):
                if not self._fresh(key, WINDOW_SECONDS):
                    self.clear(key)

    def _fresh(self, key: str, expiry: int) -> deque[float]:
        """The hits of a key that are younger than `expiry` seconds, oldest first."""
        hits = self._hits.setdefault(key, deque())
        start = time.monotonic() - expiry
        while hits and hits[0] <= start:
            hits.popleft()
        return hits
