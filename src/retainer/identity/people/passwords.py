"""Passwords: argon2id hashes (RFC 9106); each takes 64 MiB and a core's twentieth second."""

import secrets
from typing import Any

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

HASHER = PasswordHasher()
DUMMY_HASH = "$argon2id$v=19$m=65536,t=3,p=4$5yg3gYXAsabnI3YySV2QLw$gb7Ln2LOSdhIfT5Tc4lYdhydzNtDfYvKvL8l6rU7uNA"
"""The hash of a random password that nobody has kept, with which those of unknown users are compared."""


def hash_password(password: str) -> str:
    """Return the argon2id hash of a password; slow on purpose, so never within a transaction that writes."""
    return HASHER.hash(password)


def matches(password_hash: str | None, password: str) -> bool:
    """Whether a password is that of a hash; without a hash it takes as long and is not."""
    try:
        return HASHER.verify(password_hash or DUMMY_HASH, password) and password_hash is not None
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
