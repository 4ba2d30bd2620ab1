"""Fixtures: admins of both agencies who are signed in to the console."""

import pytest

from tests.console.visitor import Visitor, admin_of
from tests.factories import ApiClient
from tests.quick_hashes import hash_quickly


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    hash_quickly(monkeypatch)


@pytest.fixture
def visitor(api: ApiClient) -> Visitor:
    """The admin of the first agency."""
    return admin_of(api)
