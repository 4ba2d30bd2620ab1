"""A client who opens links."""

import pytest

from tests.console.visitor import Visitor


@pytest.fixture
def client(api):
    """A client with a browser that was never signed in."""
    return Visitor(api.app, "198.51.100.4")
