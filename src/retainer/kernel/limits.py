"""How many requests a minute: an exact moving window for each key, and one for each address of refused callers."""

import math
import threading
import time
from collections import deque
from typing import Any

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
            raise Refusal(
                "rate_limited",
                f"Too many requests: {self.limit} a minute are allowed. Wait {self.retry_after} seconds and try again.",
                headers={"Retry-After": str(self.retry_after)},
            )


class Window(MovingWindowSupport):
    """The moving window of the `limits` library, in memory: thread-safe, by the monotonic clock, one deque a key.

    The library's own memory store (5.8) is not safe with threads, follows the wall clock, and copies its lists a
    hundred times a second; this keeps its interface, so that a shared store can take its place.
    """

    def __init__(self) -> None:
        self._hits: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    def take(self, key: str, limit: int) -> Allowance:
        """Count a request if there is room, and answer the figures; both in one step."""
        with self._lock:
            admitted = self.acquire_entry(key, limit, WINDOW_SECONDS)
            return self._figures(key, limit, refused=not admitted)

    def figures(self, key: str, limit: int) -> Allowance:
        """The figures without counting."""
        with self._lock:
            return self._figures(key, limit, refused=False)

    def sweep(self) -> None:
        """Forget the keys whose window is empty."""
        with self._lock:
            for key in list(self._hits):
                if not self.get_moving_window(key, 0, WINDOW_SECONDS)[1]:
                    del self._hits[key]

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Add `amount` hits unless that exceeds the limit within `expiry` seconds."""
        hits = self._hits.setdefault(key, deque())
        now = time.monotonic()
        while hits and hits[0] <= now - expiry:
            hits.popleft()
        if len(hits) + amount > limit:
            return False
        hits.extend([now] * amount)
        return True

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:  # noqa: ARG002
        """When the oldest hit within `expiry` seconds was, and how many there are."""
        hits = self._hits.get(key, ())
        start = time.monotonic() - expiry
        fresh = [hit for hit in hits if hit > start] if hits and hits[0] <= start else hits
        return (fresh[0] if fresh else start + expiry), len(fresh)

    def clear(self, key: str) -> None:
        """Forget a key's hits."""
        self._hits.pop(key, None)

    def _figures(self, key: str, limit: int, *, refused: bool) -> Allowance:
        oldest, count = self.get_moving_window(key, limit, WINDOW_SECONDS)
        now = time.monotonic()
        newest = self._hits[key][-1] if count else now - WINDOW_SECONDS
        reset = math.ceil(time.time() + newest + WINDOW_SECONDS - now)
        wait = max(1, math.ceil(oldest + WINDOW_SECONDS - now)) if refused else None
        return Allowance(limit, max(0, limit - count), reset, wait)


def of_key(window: Window, caller: Any) -> Allowance:
    """Charge a request to its key, at the ceiling of the account's plan."""
    return window.take(f"key:{caller.key_id}", caller.ceiling)


def of_address(window: Window, address: str, *, charge: bool) -> Allowance:
    """The bucket of an address; only refused callers are charged, so none can block a good key."""
    take = window.take if charge else window.figures
    return take(f"address:{address}", ADDRESS_CEILING)
