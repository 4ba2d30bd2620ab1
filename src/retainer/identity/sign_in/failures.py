"""Failed sign-ins: after some failures of a subject, its next attempt must wait, longer each time.

A count is kept for an hour after its last wait, so what is left of its life beyond an hour is the wait.
"""

import math
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from retainer.errors import Refusal

if TYPE_CHECKING:  # its library is optional
    from retainer.kernel.limits_valkey import SharedWindow

MAX_WAIT = 900
"""Seconds. The waits are 1, 2, 4 and so on, up to this."""
TTL = 3600
"""Seconds after the last wait until failures are deleted."""
MAX_SUBJECTS = 65_536
"""Maximum number of subjects in memory; the one that failed longest ago is deleted first."""
HIT = """
local free, ttl, longest = tonumber(ARGV[1]), ARGV[2] * 1000, tonumber(ARGV[3])
local failures, wait = tonumber(redis.call('GET', KEYS[1]) or 0), redis.call('PTTL', KEYS[1]) - ttl
if wait > 0 then return {failures, math.ceil(wait / 1000)} end
failures = failures + 1
wait = failures >= free and math.min(2 ^ (failures - free), longest) * 1000 or 0
redis.call('SET', KEYS[1], failures, 'PX', wait + ttl)
return {failures, 0}
"""
FORGIVE = """
local failures = tonumber(redis.call('GET', KEYS[1]) or 0) - ARGV[1]
if failures > 0 then redis.call('SET', KEYS[1], failures, 'EX', ARGV[2]) else redis.call('DEL', KEYS[1]) end
"""


class Failures:
    """Counts failures in the memory of this process."""

    def __init__(self) -> None:
        self._counted: OrderedDict[str, tuple[int, float]] = OrderedDict()
        """The failures of each subject, and when they are deleted; the latest failure is last."""
        self._lock = threading.Lock()

    def hit(self, subject: str, free: int) -> int:
        """Count an attempt as a failure, atomically; return the failures. After `free` of them, the next one waits.

        Raises `rate_limited` without counting if the subject has to wait.
        """
        failures, wait = self.count(subject, free)
        if wait:
            advice = f"Try again in {wait} seconds, or ask another admin for a password link."
            message = f"Too many failed sign-in attempts. {advice}"
            raise Refusal("rate_limited", message, headers={"Retry-After": str(wait)})
        return failures

    def count(self, subject: str, free: int) -> tuple[int, int]:
        """Count a failure unless the subject has to wait; return the failures, and the seconds to wait before it."""
        with self._lock:
            now = time.monotonic()
            failures, end = self._counted.get(subject, (0, now))
            if end - TTL > now:
                return failures, math.ceil(end - TTL - now)
            failures = failures + 1 if end > now else 1
            wait = min(2 ** (failures - free), MAX_WAIT) if failures >= free else 0
            self._counted[subject] = failures, now + wait + TTL
            self._counted.move_to_end(subject)
            if len(self._counted) > MAX_SUBJECTS:
                self._counted.popitem(last=False)
            return failures, 0

    def forgive(self, subject: str, failures: int) -> None:
        """Subtract failures of a subject, which then need not wait."""
        with self._lock:
            left = self._counted.get(subject, (0, 0))[0] - failures
            if left > 0:
                self._counted[subject] = left, time.monotonic() + TTL
            else:
                self._counted.pop(subject, None)


class SharedFailures(Failures):
    """Counts failures in Valkey for all servers; while Valkey is out of reach, in memory."""

    def __init__(self, window: "SharedWindow") -> None:
        super().__init__()
        self._window = window
        self._hit, self._forgive = map(window.register, (HIT, FORGIVE))

    def count(self, subject: str, free: int) -> tuple[int, int]:
        answer = self._window.run(self._hit, f"failures:{subject}", free, TTL, MAX_WAIT)
        return (answer[0], answer[1]) if answer else super().count(subject, free)

    def forgive(self, subject: str, failures: int) -> None:
        self._window.run(self._forgive, f"failures:{subject}", failures, TTL)
        super().forgive(subject, failures)
