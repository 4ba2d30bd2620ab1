"""The throttle of sign-ins: growing waits after failures, and few password hashes at a time (decision 14).

Failures never lock a user out of a known browser: one that was signed in before is counted and hashed separately. A
count is kept for an hour after its last wait, so what is left of its life beyond an hour is the wait.
"""

import hashlib
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, NamedTuple, Protocol

from retainer.errors import Refusal
from retainer.fairness import FairSemaphore
from retainer.kernel.limits import SlidingWindow

FREE_FAILURES = 5  # failures of an email, or of a known browser, after which the next attempt must wait
FREE_NETWORK_FAILURES = (20, 100)  # free failures of an address (IPv6: of a /64 network), and of a /48 network
MAX_WAITING = 64
"""Maximum number of attempts that wait for their turn to be hashed, half of them in known browsers."""
WAIT_SECONDS = 10
RETRY_SECONDS = 2
MAX_WAIT = 900  # seconds. The waits are 1, 2, 4 and so on, up to this.
TTL = 3600  # seconds after the last wait until failures are deleted
MAX_SUBJECTS = 65_536  # maximum number of subjects in memory; the one that failed longest ago is deleted first
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


class Origin(NamedTuple):
    networks: tuple[str, ...]  # the address; for IPv6 its /64 network and its /48 network
    account_id: int = 0
    session_id: int = 0
    """The last session of a known browser: one that was signed in before with the same email; with its account."""


class Failures:
    """Counts failures in the memory of this process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._counted: OrderedDict[str, tuple[int, float]] = OrderedDict()
        """The failures of each subject, and when they are deleted; the latest failure is last."""
        self._lock = threading.Lock()

    def hit(self, subject: str, free: int) -> int:
        """Count an attempt as a failure, atomically; return the failures. Raises `rate_limited` if it has to wait."""
        failures, wait = self.count(subject, free)
        if wait:
            advice = f"Try again in {wait} seconds, or ask another admin for a password link."
            message = f"Too many failed sign-in attempts. {advice}"
            raise Refusal("rate_limited", message, headers={"Retry-After": str(wait)})
        return failures

    def count(self, subject: str, free: int) -> tuple[int, int]:
        """Count a failure unless the subject has to wait; return the failures, and the seconds to wait before it."""
        with self._lock:
            now = self.clock()
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
                self._counted[subject] = left, self.clock() + TTL
            else:
                self._counted.pop(subject, None)


class Scripts(Protocol):
    """Runs scripts in a Valkey, whose library is optional: those of `SharedWindow`."""

    def register(self, text: str, /) -> Any: ...
    def run(self, script: Any, key: str, /, *arguments: int) -> list[int] | None: ...


class SharedFailures(Failures):
    """Counts failures in Valkey for all servers; while Valkey is out of reach, in memory."""

    def __init__(self, scripts: Scripts) -> None:
        super().__init__()
        self._scripts = scripts
        self._hit, self._forgive = map(scripts.register, (HIT, FORGIVE))

    def count(self, subject: str, free: int) -> tuple[int, int]:
        answer = self._scripts.run(self._hit, f"failures:{subject}", free, TTL, MAX_WAIT)
        return (answer[0], answer[1]) if answer else super().count(subject, free)

    def forgive(self, subject: str, failures: int) -> None:
        self._scripts.run(self._forgive, f"failures:{subject}", failures, TTL)
        super().forgive(subject, failures)


class Throttle:
    """Refuses attempts before anything is hashed or written; `limiter` counts pages without a session.

    Each hash takes 64 MiB and 50 ms of a core. One runs for known browsers, and one for all others. Attempts wait and
    hash in an `outside` block, where they occupy no slot of a request.
    """

    def __init__(
        self, limiter: SlidingWindow, failures: Failures, outside: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self.limiter, self.failures, self.outside = limiter, failures, outside
        self.failed = 0
        """Number of failed attempts, for the metrics."""
        self._lock = threading.Lock()
        self.lanes = {is_known: FairSemaphore(1, 1, MAX_WAITING // 2) for is_known in (True, False)}
        """Shared by accounts for known browsers, and by networks for others."""

    def admit_request(self, networks: tuple[str, ...]) -> None:
        """Count a request for a password link against its networks. Raises `rate_limited`, for unknown emails too."""
        for network, free in zip(networks, FREE_NETWORK_FAILURES, strict=False):
            _, wait = self.failures.count(f"LINK {network}", free)
            if wait:
                message = f"Too many links were asked for. Try again in {wait} seconds."
                raise Refusal("rate_limited", message, headers={"Retry-After": str(wait)})

    @contextmanager
    def attempt(self, subject: str, origin: Origin) -> Iterator[int]:
        """Run an attempt in a block; yield the failures of its subject, counted apart for each known browser.

        An attempt counts as a failure before it is checked, so that concurrent ones all count. `validation_failed` is
        a failure, success clears the failures of the subject, and any other error does not count. Raises
        `rate_limited` if the subject or a network has to wait; a known browser does not wait for its network.
        """
        main = hashlib.sha256(f"{origin.session_id} {subject}".encode(errors="replace")).hexdigest()
        networks = () if origin.session_id else zip(origin.networks, FREE_NETWORK_FAILURES, strict=False)
        with ExitStack() as forgiving:
            found = []
            for name, free in [(main, FREE_FAILURES), *networks]:
                found.append(self.failures.hit(name, free))
                forgiving.callback(self.failures.forgive, name, 1)
            try:
                yield found[0]
            except Refusal as refusal:
                if refusal.code == "validation_failed":
                    forgiving.pop_all()
                    with self._lock:
                        self.failed += 1
                raise
            self.failures.forgive(main, found[0] - 1)

    @contextmanager
    def turn(self, holder: int | str) -> Iterator[None]:
        """Wait for a turn to hash in the block; a known browser has its account as holder. Raises `unavailable`."""
        lane = self.lanes[isinstance(holder, int)]
        with self.outside():
            if not lane.acquire(holder, WAIT_SECONDS):
                message = f"Too many sign-in attempts at once. Try again in {RETRY_SECONDS} seconds."
                raise Refusal("unavailable", message, headers={"Retry-After": str(RETRY_SECONDS)})
            try:
                yield
            finally:
                lane.release(holder)
