"""Passwords: argon2id hashes (RFC 9106). Each takes 64 MiB and 50 ms of a core."""

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

HASHER = PasswordHasher()
DUMMY_HASH = "$argon2id$v=19$m=65536,t=3,p=4$5yg3gYXAsabnI3YySV2QLw$gb7Ln2LOSdhIfT5Tc4lYdhydzNtDfYvKvL8l6rU7uNA"
"""The hash of an unknown random password, for comparisons with passwords of unknown users."""


def hash_password(password: str) -> str:
    """Return the argon2id hash of a password. It is slow on purpose: never call it in a writing transaction."""
    return HASHER.hash(password)


def matches(password_hash: str | None, password: str) -> bool:
    """Whether a password matches a hash; without a hash this takes as long and returns False."""
    try:
        return HASHER.verify(password_hash or DUMMY_HASH, password) and password_hash is not None
    except (VerificationError, InvalidHashError):
        return False
