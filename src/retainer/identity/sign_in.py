"""Signing in to the console: by email and password, or by a link with which a password is set."""

from typing import NamedTuple

from retainer.identity.admins import Admin
from retainer.store.tx import Store


class Browser(NamedTuple):
    """From where somebody signs in: the address, what the browser says it is, and the session that it last had."""

    address: str | None
    user_agent: str | None = None
    last_token: str | None = None
    """The token of the cookie, also when its session has ended: the browser is known by it."""


class SignedIn(NamedTuple):
    """A new session: its token, for a cookie that outlives it, and whose it is."""

    token: str
    admin: Admin


class AccountChoice(NamedTuple):
    """One of several accounts that an email and a password fit."""

    account_id: int
    name: str


def sign_in(
    store: Store, email: str, password: str, browser: Browser, *, account_id: int | None = None
) -> SignedIn | list[AccountChoice]:
    """Sign an admin in; return the accounts to choose from when email and password fit several and none is named.

    Raises `validation_failed` when they fit none, in the same words and time whatever is wrong, and `rate_limited`
    after too many failures: of the email from anywhere or of the address, but of a known browser only its own.
    """
    raise NotImplementedError


def set_password(store: Store, token: str, password: str, browser: Browser) -> SignedIn:
    """Set the password of a link's user and sign in; other sessions of the user end, the link is used up.

    Raises `not_found` for a link that cannot be used, `validation_failed` for a password that is too short.
    """
    raise NotImplementedError


def change_password(store: Store, admin: Admin, current: str, password: str) -> None:
    """Change the admin's own password; all other sessions end. Raises `validation_failed`, `rate_limited`."""
    raise NotImplementedError
