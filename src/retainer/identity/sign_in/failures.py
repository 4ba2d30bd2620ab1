"""Failures to sign in, counted in memory: many of a subject make its next attempt wait, longer after each."""

import math
import threading
import time
from collections import OrderedDict
from typing import NamedTuple, Protocol

from retainer.errors import Refusal

WAITS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900)
"""Seconds to wait after each failure beyond those that are free; after later ones, the last of them."""
TTL = 3600
"""Failures are forgotten this many seconds after the last wait has ended."""
MAX_SUBJECTS = 65_536
"""How many subjects a process remembers; those that failed longest ago are forgotten first."""


class Count(NamedTuple):
    """The failures of a subject, and for how many seconds it has to wait."""

    failures: int
    wait: int = 0

    def admit(self) -> None:
        """Refuse with 429 when the subject has to wait."""
        if self.wait:
            advice = f"Try again in {self.wait} seconds, or ask another admin for a password link."
            message = f"Too many failed sign-in attempts. {advice}"
            raise Refusal("rate_limited", message, headers={"Retry-After": str(self.wait)})


class Failures(Protocol):
    """Counts failures: `LocalFailures` those of this process, `SharedFailures` those of all servers together."""

    def hit(self, subject: str, free: int, *, charge: bool = True) -> Count:
        """Count an attempt as a failure unless the subject has to wait, atomically; after `free` failures it has to.

        Returns the wait that refuses this attempt, not the one that follows from it. Without `charge` nothing changes.
        """

    def take_back(self, subject: str) -> None:
        """Undo a charge, and the wait that followed from it."""

    def reset(self, subject: str) -> None:
        """Forget all failures of a subject."""

    def sweep(self) -> None:
        """Drop the failures of which the time is over."""


class LocalFailures:
    """Counts the failures of this process; what it remembers is bounded, and lost when it ends."""

    def __init__(self, max_subjects: int = MAX_SUBJECTS) -> None:
        self.max_subjects = max_subjects
        self._counted: OrderedDict[str, tuple[int, float]] = OrderedDict()
        """Of each subject how many failures, and until when it waits; the last that failed is last."""
        self._lock = threading.Lock()

    def hit(self, subject: str, free: int, *, charge: bool = True) -> Count:
        """Count an attempt as a failure unless the subject has to wait, atomically; after `free` failures it has to."""
        with self._lock:
            now = time.monotonic()
            failures, until = self._counted.get(subject, (0, now))
            if until > now:
                return Count(failures, math.ceil(until - now))
            if not charge:
                return Count(failures)
            failures = 1 if until <= now - TTL else failures + 1
            wait = WAITS[min(failures - free, len(WAITS) - 1)] if failures >= free else 0
            self._counted[subject] = failures, now + wait
            self._counted.move_to_end(subject)
            if len(self._counted) > self.max_subjects:
                self._counted.popitem(last=False)
            return Count(failures)

    def take_back(self, subject: str) -> None:
        """Undo a charge, and the wait that followed from it."""
        with self._lock:
            failures, _ = self._counted.get(subject, (0, 0))
            if failures > 1:
                self._counted[subject] = failures - 1, time.monotonic()
            else:
                self._counted.pop(subject, None)

    def reset(self, subject: str) -> None:
        """Forget all failures of a subject."""
        with self._lock:
            self._counted.pop(subject, None)

    def sweep(self) -> None:
        """Drop the failures of which the time is over."""
        with self._lock:
            start = time.monotonic() - TTL
            for subject in [subject for subject, (_, until) in self._counted.items() if until <= start]:
                del self._counted[subject]
