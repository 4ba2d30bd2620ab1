"""Passwords: argon2id hashes (RFC 9106), at most two at a time, for each takes 64 MiB and a core's twentieth second."""

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from retainer.errors import Refusal

AT_ONCE = 2
LONGEST_QUEUE = 8
HASHER = PasswordHasher()

_turns = threading.BoundedSemaphore(AT_ONCE)
_places = threading.BoundedSemaphore(AT_ONCE + LONGEST_QUEUE)


def hash_password(password: str) -> str:
    """Return the argon2id hash of a password; slow on purpose, so never within a transaction that writes.

    Raises `unavailable` when too many wait for theirs.
    """
    with _turn():
        return HASHER.hash(password)


def matches(password_hash: str | None, password: str) -> bool:
    """Whether a password is that of a hash; without a hash it takes as long and is not. Raises `unavailable`."""
    with _turn():
        try:
            return HASHER.verify(password_hash or NOBODYS, password) and password_hash is not None
        except (VerificationError, InvalidHashError):
            return False


def is_outdated(password_hash: str) -> bool:
    """Whether a hash was made with other parameters than new ones are."""
    return HASHER.check_needs_rehash(password_hash)


def generate() -> str:
    """Return a new random password of 16 characters."""
    return secrets.token_urlsafe(12)


def hashed_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields of a user with the password, if there is one, replaced by its `password_hash`."""
    values = dict(fields)
    if (password := values.pop("password", None)) is not None:
        values["password_hash"] = hash_password(password)
    return values


@contextmanager
def _turn() -> Iterator[None]:
    if not _places.acquire(blocking=False):
        message = "Too many people sign in at once. Try again in a few seconds."
        raise Refusal("unavailable", message, headers={"Retry-After": "2"})
    try:
        with _turns:
            yield
    finally:
        _places.release()


NOBODYS = HASHER.hash(secrets.token_urlsafe(12))
"""What the passwords of unknown users are compared with, so that they take as long to refuse."""
