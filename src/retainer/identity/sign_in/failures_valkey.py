"""Failures to sign in that all servers count together, in Valkey; without it, each process counts its own."""

from retainer.identity.sign_in.failures import TTL, WAITS, Count, LocalFailures
from retainer.kernel.limits_valkey import SharedWindow

HIT = """
-- The key is a list of two: how many failures, and until when the next attempt waits, in microseconds of this server.
-- It takes the same commands as the window of requests.
local SECOND, charge, free, ttl = 1000000, ARGV[1] == '1', tonumber(ARGV[2]), ARGV[3]
local time = redis.call('TIME')
local now = time[1] * SECOND + time[2]
local failures = tonumber(redis.call('LINDEX', KEYS[1], 0) or 0)
local left = tonumber(redis.call('LINDEX', KEYS[1], 1) or 0) - now
if left > 0 and left <= ARGV[#ARGV] * SECOND then  -- more means that the clock was set back
    return {failures, math.ceil(left / SECOND)}
end
if not charge then return {failures, 0} end
failures = failures + 1
local wait = failures >= free and ARGV[math.min(4 + failures - free, #ARGV)] or 0
redis.call('DEL', KEYS[1])
redis.call('RPUSH', KEYS[1], failures, now + wait * SECOND)
redis.call('PEXPIRE', KEYS[1], (wait + ttl) * 1000)
return {failures, 0}
"""
TAKE_BACK = """
local failures = tonumber(redis.call('LINDEX', KEYS[1], 0) or 0)
redis.call('DEL', KEYS[1])
if failures > 1 then
    redis.call('RPUSH', KEYS[1], failures - 1, 0)
    redis.call('PEXPIRE', KEYS[1], ARGV[1] * 1000)
end
"""
RESET = "redis.call('DEL', KEYS[1])"


class SharedFailures:
    """Counts failures with the Valkey of a window; while that is out of reach, each process begins to count its own."""

    def __init__(self, window: SharedWindow) -> None:
        self._window = window
        self._local = LocalFailures()
        self._hit, self._take_back, self._reset = map(window.register, (HIT, TAKE_BACK, RESET))

    def hit(self, subject: str, free: int, *, charge: bool = True) -> Count:
        """Count an attempt as a failure unless the subject has to wait, atomically; after `free` failures it has to."""
        answer = self._window.run(self._hit, f"failures:{subject}", int(charge), free, TTL, *WAITS)
        return Count(*answer) if answer is not None else self._local.hit(subject, free, charge=charge)

    def take_back(self, subject: str) -> None:
        """Undo a charge, and the wait that followed from it."""
        self._window.run(self._take_back, f"failures:{subject}", TTL)
        self._local.take_back(subject)

    def reset(self, subject: str) -> None:
        """Forget all failures of a subject."""
        self._window.run(self._reset, f"failures:{subject}")
        self._local.reset(subject)

    def sweep(self) -> None:
        """Drop the failures of which the time is over; those in Valkey expire by themselves."""
        self._local.sweep()
