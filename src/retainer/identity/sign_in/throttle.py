"""The throttle of signing in: what is tried, and when; nothing that it counts is written to the database.

Nobody is locked out: failures from elsewhere make other attempts from elsewhere wait, but not a browser that was signed
in before, which has a count and a place in the queue of its own.
"""

import hashlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

from retainer.errors import Refusal
from retainer.identity.sign_in.failures import Failures
from retainer.identity.sign_in.hashing_queue import HashingQueue
from retainer.kernel.limits import Limiter, hit_address

FREE = 5
FREE_OF_NETWORKS = (20, 100)
"""Failures of an address (IPv6: of a /64 network) after which the next attempt waits, and of a /48 network."""


class Origin(NamedTuple):
    """From where an attempt comes."""

    networks: tuple[str, ...]
    """The address; for IPv6 its /64 network and its /48 network."""
    session_id: int | None = None
    """The session by which the browser is known, if it was signed in before with the email that it sends."""


class Attempt(NamedTuple):
    """An attempt that was counted as a failure before it is known to be one, so that many at once are all counted."""

    failures: int
    """Number of failures of the browser, if it is known, else of the email."""

    @property
    def is_waiting(self) -> bool:
        """Whether the next attempt has to wait."""
        return self.failures >= FREE


class Throttle:
    """Decides which attempts are tried, before anything is hashed or written."""

    def __init__(self, limiter: Limiter, failures: Failures, queue: HashingQueue) -> None:
        self.limiter, self.failures, self.queue = limiter, failures, queue

    @contextmanager
    def attempt(self, email: str, origin: Origin) -> Iterator[Attempt]:
        """A block that tries a folded email; success forgets its failures, `validation_failed` is one more.

        After any other error nothing is counted. Refusals are charged to the address, as those of the API are. Raises
        `rate_limited` when the address, the email or the known browser has to wait.
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
        for name, _ in networks:  # of which others may be: only this attempt was none
            self.failures.take_back(name)

    def turn(self, origin: Origin) -> AbstractContextManager[None]:
        """Return a block that hashes. Raises `rate_limited` and `unavailable` when too many wait for that."""
        is_known = origin.session_id is not None
        return self.queue.turn(f"session:{origin.session_id}" if is_known else origin.networks[-1], is_known=is_known)

    def turn_of_user(self, user_id: int) -> AbstractContextManager[None]:
        """Return a block that hashes the password of a user who has a link. Raises like `turn`."""
        return self.queue.turn(f"user:{user_id}", is_known=True)

    @contextmanager
    def _charged(self, subjects: list[tuple[str, int]]) -> Iterator[int]:
        """A block whose subjects have one failure more; yield how many the last one has."""
        looks = [self.failures.hit(name, free, charge=False) for name, free in subjects]
        max(looks, key=lambda count: count.wait).admit()
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
    """Return whose failures are counted, and how many are free: the browser or the email, and the networks.

    What was typed as an email is not kept. A browser that is known does not wait for its network.
    """
    if origin.session_id is not None:
        return (f"session:{origin.session_id}", FREE), []
    digest = hashlib.sha256(email.encode(errors="replace")).hexdigest()
    networks = zip(origin.networks, FREE_OF_NETWORKS, strict=False)
    return (f"email:{digest}", FREE), [(f"network:{network}", free) for network, free in networks]
