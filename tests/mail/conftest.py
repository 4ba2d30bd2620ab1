"""A mail server and a mailer for tests of mail."""

import pytest
import time_machine

from tests.contract.filler import NOW
from tests.mail.server import Post


@pytest.fixture
def post(api):
    made = Post(api)
    yield made
    made.close()


@pytest.fixture
def clock():
    """A clock that stands still until it is moved."""
    with time_machine.travel(NOW, tick=False) as traveller:
        yield traveller
