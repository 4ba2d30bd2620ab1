"""Rate limits: an exact sliding window for each key, and for each address of refused requests."""

import math
import threading
import time
from collections import deque

import msgspec

from retainer.errors import Refusal

WINDOW_SECONDS = 60
ADDRESS_RATE_LIMIT = 600
PERSON_RATE_LIMIT, PEOPLE_RATE_LIMIT = 600, 6000
"""Requests of a user, and of all users of an account, to the console: ten times as many as people send."""


class Allowance(msgspec.Struct, frozen=True, gc=False):
    """The state of a window after a request; `reset` is the Unix second at which it will be empty."""

    limit: int
    remaining: int
    reset: int
    retry_after: int | None = None

    def admit(self) -> None:
        """Raise `rate_limited` if the window had no room for the request."""
        if self.retry_after is not None:
            message = f"Too many requests: the limit is {self.limit} a minute. Try again in {self.retry_after} seconds."
            raise Refusal("rate_limited", message, headers={"Retry-After": str(self.retry_after)})


def hit_address(limiter: "SlidingWindow", address: str, *, charge: bool) -> Allowance:
    """Count a refused request of an address if there is room, and return the state of the address's window."""
    return limiter.hit(f"address:{address}", ADDRESS_RATE_LIMIT, amount=int(charge))


def admit_person(limiter: "SlidingWindow", account_id: int, user_id: int) -> None:
    """Count a request of a user to the console. Raises `rate_limited` if the user or the account sends too many."""
    limiter.hit(f"user:{account_id}.{user_id}", PERSON_RATE_LIMIT).admit()
    limiter.hit(f"people:{account_id}", PEOPLE_RATE_LIMIT).admit()


class SlidingWindow:
    """An exact sliding window in memory: no 60 seconds admit more requests than the limit.

    The memory store of the `limits` library (5.8) is not thread-safe, follows the wall clock, and copies all its
    lists a hundred times a second.
    """

    is_shared = False
    """Whether requests of other processes are counted at the moment."""

    def __init__(self) -> None:
        self._hits: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    def hit(self, key: str, limit: int, *, amount: int = 1) -> Allowance:
        """Count an amount of requests if there is room for all, and return the state of the window, atomically."""
        with self._lock:
            now, wait = time.monotonic(), None
            hits = self._hits.get(key)
            if hits is None:
                hits = self._hits[key] = deque()
            start = now - WINDOW_SECONDS
            while hits and hits[0] <= start:
                hits.popleft()
            excess = len(hits) + amount - limit
            if amount == 1 and excess <= 0:
                hits.append(now)
            elif amount and excess <= 0:
                hits.extend([now] * amount)
            elif amount:  # until enough of the oldest have left the window; more than the limit never has room
                since = hits[min(excess, len(hits)) - 1] if hits else now
                wait = max(1, math.ceil(since + WINDOW_SECONDS - now))
            left = hits[-1] + WINDOW_SECONDS - now if hits else 0
            return Allowance(limit, max(0, limit - len(hits)), math.ceil(time.time() + left), wait)

    def refund(self, key: str, amount: int) -> None:
        """Remove the newest hits of a key, because Valkey refused the request."""
        with self._lock:
            hits = self._hits.get(key)
            while hits and amount:
                hits.pop()
                amount -= 1

    def sweep(self) -> None:
        with self._lock:
            start = time.monotonic() - WINDOW_SECONDS
            self._hits = {key: hits for key, hits in self._hits.items() if hits and hits[-1] > start}
