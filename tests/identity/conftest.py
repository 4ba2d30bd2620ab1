"""Fixtures of sign-ins: quick hashes, a frozen clock, an admin with a password."""

import time
from datetime import UTC, datetime

import pytest
import time_machine
from testing.process import PATIENCE

from retainer.identity.people import passwords
from retainer.identity.sign_in import throttle
from tests.quick_hashes import hash_quickly

NOW = datetime(2026, 3, 10, 9, 0, tzinfo=UTC)
PASSWORD = "a long enough password"


@pytest.fixture
def quick(monkeypatch):
    """Hashes take no time, and wait for their turn until the test gives it to them."""
    hash_quickly(monkeypatch)
    monkeypatch.setattr(throttle, "WAIT_SECONDS", PATIENCE)


@pytest.fixture
def clock(api):
    """A frozen clock, which also measures waits."""
    api.app.throttle.failures.clock = time.time
    with time_machine.travel(NOW, tick=False) as clock:
        yield clock


@pytest.fixture
def admin(quick, clock, api):
    """The email of an admin with a password."""
    api.set_user(api.admin_id, {"password_hash": passwords.hash_password(PASSWORD)})
    return "ana@north.example"
