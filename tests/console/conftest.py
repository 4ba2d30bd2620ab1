"""Fixtures: admins of both agencies who are signed in to the console."""

import pytest

from retainer.identity.people import users
from retainer.kernel import limits
from tests.console.visitor import HASH, Visitor, admin_of
from tests.factories import ApiClient
from tests.quick_hashes import hash_quickly


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    hash_quickly(monkeypatch)


@pytest.fixture
def visitor(api: ApiClient) -> Visitor:
    """The admin of the first agency."""
    return admin_of(api)


@pytest.fixture
def person(api):
    """Return a function that signs a new person with a role in."""

    def sign_in(role):
        email = f"{role}@north.example"
        with api.operating() as tx:
            user_id = users.create_user(tx, users.UserDetails(f"Pat {role}", email, role), HASH)
        visitor = Visitor(api.app)
        assert visitor.sign_in(email).status == 303
        visitor.user_id = user_id
        return visitor

    return sign_in


@pytest.fixture
def unlimited(monkeypatch):
    """A test that asks for more pages a minute than anybody may: pages refused for that would prove nothing."""
    for name in ("PERSON_RATE_LIMIT", "PEOPLE_RATE_LIMIT", "ADDRESS_RATE_LIMIT"):
        monkeypatch.setattr(limits, name, 100_000)
