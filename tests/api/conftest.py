"""Fixtures of tests about retainers."""

import pytest
import time_machine


@pytest.fixture
def clock():
    """The end of October in UTC; in the agency's Berlin, November has begun."""
    with time_machine.travel("2026-10-31T23:30:00Z", tick=False) as traveller:
        yield traveller


@pytest.fixture
def client(api):
    return api.make("/clients", tax_rate="19")["id"]
