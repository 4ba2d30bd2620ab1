"""The throttle of sign-ins. It counts failures outside the database (decision 14).

Failures never lock an admin out of a known browser: one that was signed in before is counted and queued separately.
"""

import hashlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

from retainer.errors import Refusal
from retainer.identity.sign_in.failures import Failures
from retainer.identity.sign_in.hashing_queue import HashingQueue
from retainer.kernel.limits import Limiter, hit_address

FREE_FAILURES = 5
FREE_NETWORK_FAILURES = (20, 100)
"""Free failures of an address (IPv6: of a /64 network), and of a /48 network."""


class Origin(NamedTuple):
    """The networks and the known browser of an attempt."""

    networks: tuple[str, ...]
    """The address; for IPv6 its /64 network and its /48 network."""
    session_id: int | None = None
    """The last session of a known browser: one that was signed in before with the same email."""


class Attempt(NamedTuple):
    """An attempt. It counts as a failure before its password is checked, so that concurrent attempts all count."""

    failures: int
    """Number of failures of the known browser, else of the email."""

    @property
    def is_waiting(self) -> bool:
        """Whether the next attempt has to wait."""
        return self.failures >= FREE_FAILURES


class Throttle:
    """Refuses attempts before anything is hashed or written."""

    def __init__(self, limiter: Limiter, failures: Failures, queue: HashingQueue) -> None:
        self.limiter, self.failures, self.queue = limiter, failures, queue

    @contextmanager
    def attempt(self, email: str, origin: Origin) -> Iterator[Attempt]:
        """Run an attempt with a folded email in a block: `validation_failed` is a failure, success resets the count.

        Any other error does not count. Refusals are charged to the address, as in the API. Raises `rate_limited` if the
        address, the email or the known browser has to wait.
        """
        address = origin.networks[0]
        try:
            if origin.session_id is None and hit_address(self.limiter, address, charge=False).remaining == 0:
                hit_address(self.limiter, address, charge=True).admit()
            main, networks = _subjects(email, origin)
            with self._charged([*networks, main]) as failures:
                yield Attempt(failures)
            self.failures.reset(main[0])
        except Refusal as refusal:
            if refusal.status < 500:
                hit_address(self.limiter, address, charge=True)
            raise
        for name, _ in networks:  # their other failures remain
            self.failures.take_back(name)

    def turn(self, origin: Origin) -> AbstractContextManager[None]:
        """Return a block that hashes a password. Raises `rate_limited` or `unavailable` if too many attempts wait."""
        is_known = origin.session_id is not None
        return self.queue.turn(f"session:{origin.session_id}" if is_known else origin.networks[-1], is_known=is_known)

    def turn_of_user(self, user_id: int) -> AbstractContextManager[None]:
        """Return a block that hashes a user's new password, set with a link. Raises like `turn`."""
        return self.queue.turn(f"user:{user_id}", is_known=True)

    @contextmanager
    def _charged(self, subjects: list[tuple[str, int]]) -> Iterator[int]:
        """Count a failure of each subject for a block; yield the failures of the last one."""
        counts = [self.failures.hit(name, free, charge=False) for name, free in subjects]
        max(counts, key=lambda count: count.wait).admit()
        charged: list[str] = []
        failures = 0
        try:
            for name, free in subjects:
                count = self.failures.hit(name, free)
                count.admit()
                charged.append(name)
                failures = count.failures
            yield failures
        except BaseException as error:
            if not (isinstance(error, Refusal) and error.code == "validation_failed"):
                for name in charged:
                    self.failures.take_back(name)
            raise


def _subjects(email: str, origin: Origin) -> tuple[tuple[str, int], list[tuple[str, int]]]:
    """Return the subjects and their free failures: the known browser or the email, and the networks.

    Emails are hashed. A known browser does not wait for its network.
    """
    if origin.session_id is not None:
        return (f"session:{origin.session_id}", FREE_FAILURES), []
    digest = hashlib.sha256(email.encode(errors="replace")).hexdigest()
    networks = zip(origin.networks, FREE_NETWORK_FAILURES, strict=False)
    return (f"email:{digest}", FREE_FAILURES), [(f"network:{network}", free) for network, free in networks]
