"""Failed sign-ins, counted in memory: after several failures of a subject, its next attempt must wait."""

import math
import threading
import time
from collections import OrderedDict
from typing import NamedTuple

from retainer.errors import Refusal

WAITS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900)
"""Seconds to wait after each failure that is not free; the last value applies to all later ones."""
TTL = 3600
"""Seconds after the last wait until failures are deleted."""
MAX_SUBJECTS = 65_536
"""Maximum number of subjects in memory; the one that failed longest ago is deleted first."""


class Count(NamedTuple):
    """The failures of a subject, and the seconds that it has to wait."""

    failures: int
    wait: int = 0

    def admit(self) -> None:
        """Raise `rate_limited` if the subject has to wait."""
        if self.wait:
            advice = f"Try again in {self.wait} seconds, or ask another admin for a password link."
            message = f"Too many failed sign-in attempts. {advice}"
            raise Refusal("rate_limited", message, headers={"Retry-After": str(self.wait)})


class Failures:
    """Counts failures in the memory of this process, up to a number of subjects."""

    def __init__(self, max_subjects: int = MAX_SUBJECTS) -> None:
        self.max_subjects = max_subjects
        self._counted: OrderedDict[str, tuple[int, float]] = OrderedDict()
        """The failures of each subject, and when its wait ends; the latest failure is last."""
        self._lock = threading.Lock()

    def hit(self, subject: str, free: int, *, charge: bool = True) -> Count:
        """Count an attempt as a failure unless the subject has to wait, atomically; it waits after `free` failures.

        Returns the wait that refuses this attempt, not the one that it causes. Without `charge`, nothing is counted.
        """
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
        """Undo a charge and the wait that it caused."""
        with self._lock:
            failures, _ = self._counted.get(subject, (0, 0))
            if failures > 1:
                self._counted[subject] = failures - 1, time.monotonic()
            else:
                self._counted.pop(subject, None)

    def reset(self, subject: str) -> None:
        """Delete all failures of a subject."""
        with self._lock:
            self._counted.pop(subject, None)

    def sweep(self) -> None:
        """Delete failures older than their TTL."""
        with self._lock:
            start = time.monotonic() - TTL
            for subject in [subject for subject, (_, until) in self._counted.items() if until <= start]:
                del self._counted[subject]
