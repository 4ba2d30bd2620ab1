"""Fixtures: admins of both agencies who are signed in to the console."""

import pytest

from tests.console.visitor import Visitor, admin_of
from tests.factories import ApiClient


@pytest.fixture
def visitor(api: ApiClient) -> Visitor:
    """The admin of the first agency."""
    return admin_of(api)
