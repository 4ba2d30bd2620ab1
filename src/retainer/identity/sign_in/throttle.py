"""The throttle of sign-ins: growing waits after failures, and few password hashes at a time (decision 14).

Failures never lock a user out of a known browser: one that was signed in before is counted and hashed separately.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import NamedTuple

from retainer.errors import Refusal
from retainer.fairness import FairSemaphore
from retainer.identity.sign_in.failures import Failures
from retainer.kernel.limits import SlidingWindow

FREE_FAILURES = 5
"""Failures of an email, or of a known browser, after which the next attempt must wait."""
FREE_NETWORK_FAILURES = (20, 100)
"""Free failures of an address (IPv6: of a /64 network), and of a /48 network."""
MAX_WAITING = 64
"""Maximum number of attempts that wait for their turn to be hashed, half of them in known browsers."""
WAIT_SECONDS = 10
RETRY_SECONDS = 2


class Origin(NamedTuple):
    networks: tuple[str, ...]
    """The address; for IPv6 its /64 network and its /48 network."""
    account_id: int = 0
    session_id: int = 0
    """The last session of a known browser: one that was signed in before with the same email; with its account."""


class Throttle:
    """Refuses attempts before anything is hashed or written; `limiter` counts pages without a session.

    Each hash takes 64 MiB and 50 ms of a core. One runs for known browsers, and one for all others. Attempts wait and
    hash in an `outside` block, where they occupy no slot of a request.
    """

    def __init__(
        self, limiter: SlidingWindow, failures: Failures, outside: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self.limiter, self.failures, self.outside = limiter, failures, outside
        self.lanes = {is_known: FairSemaphore(1, 1, MAX_WAITING // 2) for is_known in (True, False)}
        """Shared by accounts for known browsers, and by networks for others."""

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
                raise
            self.failures.forgive(main, found[0] - 1)

    @contextmanager
    def turn(self, holder: int | str) -> Iterator[None]:
        """Wait for a turn, and hash a password in the block. The holder is an account if the browser is known.

        Raises `unavailable` if too many attempts wait, or too long.
        """
        lane = self.lanes[isinstance(holder, int)]
        with self.outside():
            if not lane.acquire(holder, WAIT_SECONDS):
                message = f"Too many sign-in attempts at once. Try again in {RETRY_SECONDS} seconds."
                raise Refusal("unavailable", message, headers={"Retry-After": str(RETRY_SECONDS)})
            try:
                yield
            finally:
                lane.release(holder)
