"""Failed sign-ins, counted in Valkey for all servers."""

from retainer.identity.sign_in.failures import TTL, WAITS, Count, Failures
from retainer.kernel.limits_valkey import SharedWindow

HIT = """
-- The key is a list: the number of failures, and when the wait ends, in microseconds of this server's clock.
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


class SharedFailures(Failures):
    """Counts failures in Valkey for all servers; while Valkey is out of reach, in memory."""

    def __init__(self, window: SharedWindow) -> None:
        super().__init__()
        self._window = window
        self._hit, self._take_back, self._reset = map(window.register, (HIT, TAKE_BACK, RESET))

    def hit(self, subject: str, free: int, *, charge: bool = True) -> Count:
        """Count an attempt as a failure unless the subject has to wait, atomically; it waits after `free` failures."""
        answer = self._window.run(self._hit, f"failures:{subject}", int(charge), free, TTL, *WAITS)
        return Count(*answer) if answer is not None else super().hit(subject, free, charge=charge)

    def take_back(self, subject: str) -> None:
        """Undo a charge and the wait that it caused."""
        self._window.run(self._take_back, f"failures:{subject}", TTL)
        super().take_back(subject)

    def reset(self, subject: str) -> None:
        """Delete all failures of a subject."""
        self._window.run(self._reset, f"failures:{subject}")
        super().reset(subject)
