"""Hashes of passwords of the same kind that take a hundredth of the time and memory."""

import pytest
from argon2 import PasswordHasher

from retainer.identity.people import passwords

QUICK = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)


def hash_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the product take quick hashes in a test."""
    monkeypatch.setattr(passwords, "HASHER", QUICK)
    monkeypatch.setattr(passwords, "DUMMY_HASH", QUICK.hash("nobody's"))
