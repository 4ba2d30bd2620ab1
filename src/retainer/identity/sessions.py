"""Sessions: admins signed in to the console; rows of the database, so that every process knows them and their end."""

import msgspec
from datetime import timedelta

from retainer.identity.admins import Admin
from retainer.store.tx import Store, Tx

IDLE = timedelta(minutes=30)
LONGEST = timedelta(hours=12)
KNOWN = timedelta(days=90)
"""So long a browser is known by its last session, which it therefore sends on after it has ended."""


class Session(msgspec.Struct):
    """A session that is not over."""

    id: int
    user_id: int
    user_name: str
    created_at: str
    last_used_at: str
    address: str | None
    user_agent: str | None


def admin_of(store: Store, token: str, address: str | None) -> Admin | None:
    """Return the admin of a session, read every time; None when it has ended, is idle, or the user is no admin now.

    The use is noted at most once a minute. `address` is that of the request, for the audit.
    """
    raise NotImplementedError


def start(tx: Tx, user_id: int, address: str | None, user_agent: str | None) -> str:
    """Begin a session of a user; return its token, of which only the SHA-256 is stored."""
    raise NotImplementedError


def list_sessions(tx: Tx) -> list[Session]:
    """Return the sessions of the account's admins that are not over, that which was used last first."""
    raise NotImplementedError


def revoke(tx: Tx, session_id: int) -> None:
    """End a session of anyone in the account: signing out is revoking one's own. Raises `not_found`."""
    raise NotImplementedError


def end_all_of(tx: Tx, user_id: int) -> None:
    """End all sessions of a user but the one that acts."""
    raise NotImplementedError


def end_all(store: Store) -> None:
    """End the sessions and void the links of all accounts, as after a restore: their ends may not be in it."""
    raise NotImplementedError
