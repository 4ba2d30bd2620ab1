"""Password links: a link with which an admin sets a password, once, within a week; a new one replaces the last."""

from datetime import timedelta
from typing import NamedTuple

from retainer.store.tx import Store, Tx

VALID = timedelta(days=7)
PATH = "/console/password"


class PasswordLink(NamedTuple):
    """A new link; its token is not stored."""

    token: str
    expires_at: str

    def url(self, site: str) -> str:
        """Return the link under the public address of the site, like https://agency.example."""
        return f"{site}{PATH}?token={self.token}"


class Invitee(NamedTuple):
    """Whose link it is; `has_password` is False when it is the user's first."""

    account_id: int
    user_id: int
    name: str
    email: str
    account_name: str
    expires_at: str
    has_password: bool


def create(tx: Tx, user_id: int) -> PasswordLink:
    """Make a link for an active admin; former ones are void. Raises `not_found` or `validation_failed`."""
    raise NotImplementedError


def find(store: Store, token: str) -> Invitee:
    """Return whose link it is. Raises `not_found` for one that was used, replaced or has expired."""
    raise NotImplementedError


def void_all_of(tx: Tx, user_id: int) -> None:
    """Void the links of a user."""
    raise NotImplementedError
