"""The sliding window of all servers, in Valkey; while that is out of reach, each process counts separately."""

import threading
import time
from collections.abc import Callable

from valkey import Valkey
from valkey.commands.core import Script

from retainer.kernel.limits import WINDOW_SECONDS, Allowance, SlidingWindow

PREFIX = "retainer:limit:"
TIMEOUT_SECONDS = 0.2  # on a busy machine, an answer can take 50 ms
PAUSE_SECONDS = 1  # between two attempts to reach Valkey, each of which may delay one request
ATTEMPT, UNLIMITED = "attempt", 2**53

SCRIPT = """
-- The key is a list of hits in microseconds, oldest first, and expires with its newest hit. After a failover, the clock
-- may be up to a second behind a hit; more means that the clock was set back, and the hit does not count.
local SECOND = 1000000
local key, limit, amount, window = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3] * SECOND
local time = redis.call('TIME')
local now = time[1] * SECOND + time[2]

local function left(place)
    return redis.call('LINDEX', key, place) + window - now
end

local count, wait = redis.call('LLEN', key), 0
while count > 0 and (left(0) <= 0 or left(0) > window + SECOND) do
    redis.call('LTRIM', key, 1, -1)
    count = count - 1
end
local excess = count + amount - limit
if amount > 0 and excess <= 0 then
    for _ = 1, amount do redis.call('RPUSH', key, string.format('%d', now)) end
    redis.call('PEXPIRE', key, window / 1000)
    count = count + amount
elseif amount > 0 then
    wait = math.max(1, math.ceil((count > 0 and left(math.min(excess, count) - 1) or window) / SECOND))
end
return {count, math.ceil((now + (count > 0 and left(-1) or 0)) / SECOND), wait}
"""


class SharedWindow(SlidingWindow):
    """An exact sliding window for all servers with one Valkey and its clock: one call for each request (decision 7).

    The process also counts its own requests. A key that reached its limit here is refused without a call, and even if
    Valkey loses its data, no process admits more than the limit in any 60 seconds.

    After a failed call, requests in flight wait for TIMEOUT_SECONDS, and later ones do not call Valkey: only one in
    PAUSE_SECONDS tries again. The connection of a failed call is closed, so that no later call reads its late answer.
    """

    def __init__(self, url: str, warn: Callable[[str], None], *, timeout: float = TIMEOUT_SECONDS) -> None:
        super().__init__()
        tls = {"ssl_check_hostname": True} if url.startswith("valkeys:") else {}
        self._client = Valkey.from_url(
            url, socket_timeout=timeout, socket_connect_timeout=timeout, lib_name=None, lib_version=None, **tls
        )
        self._script = self.register(SCRIPT)
        self._warn = warn
        self._changing = threading.Lock()
        self._next_attempt = 0.0
        self.is_shared = True
        self.hit(ATTEMPT, UNLIMITED)

    def hit(self, key: str, limit: int, *, amount: int = 1) -> Allowance:
        local = super().hit(key, limit, amount=amount)
        if local.retry_after is not None:
            return local
        answer = self.run(self._script, key, limit, amount, WINDOW_SECONDS)
        if answer is None:
            return local
        count, reset, wait = answer
        if wait:
            self.refund(key, amount)
        return Allowance(limit, max(0, limit - count), reset, wait or None)

    def sweep(self) -> None:
        """Delete empty windows, and see whether Valkey takes writes, also while no requests come."""
        super().sweep()
        self.hit(ATTEMPT, UNLIMITED)

    def register(self, text: str) -> Script:
        return self._client.register_script(text)

    def run(self, script: Script, key: str, *arguments: int) -> list[int] | None:
        """Return the result of a script for a key; None while Valkey is out of reach."""
        if not self.is_shared:
            with self._changing:
                now = time.monotonic()
                if now < self._next_attempt:
                    return None
                self._next_attempt = now + PAUSE_SECONDS
        try:
            answer: list[int] | None = script([PREFIX + key], arguments)
        except Exception as error:  # noqa: BLE001  # no request fails because of Valkey
            self._change(is_shared=False, reason=str(error).rstrip("."))
            return None
        if not self.is_shared:
            self._change(is_shared=True)
        return answer

    def _change(self, *, is_shared: bool, reason: str = "") -> None:
        """Note whether Valkey answers, and log each change once."""
        with self._changing:
            if is_shared == self.is_shared:
                return
            self.is_shared, self._next_attempt = is_shared, time.monotonic() + PAUSE_SECONDS
        if is_shared:
            self._warn("Valkey is back. All servers share the limit again.")
        else:
            advice = "Until it is back, each process enforces the limit on its own."
            self._warn(f"Valkey is out of reach ({reason}). {advice}")
            self._client.connection_pool.disconnect(inuse_connections=False)
