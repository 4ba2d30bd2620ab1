"""Sessions: admins signed in to the console; rows of the database, so that every process knows them and their end."""

import hashlib
import secrets
from datetime import timedelta

import msgspec
from sqlalchemy import bindparam, select, update

from retainer.errors import Refusal
from retainer.identity import audit
from retainer.identity.admins import ACTING, IS_ADMIN, IS_LIVE, OF_USERS, Admin, limits
from retainer.identity.audit import Target
from retainer.schema.identity import accounts, sessions, users
from retainer.store.engines import Unavailable
from retainer.store.engines.sql import INSTANT, INTEGER
from retainer.store.tx import ActorChanged, Store, Tx
from retainer.values.exact import instant_after, utcnow

NOTE_USE = timedelta(minutes=1)
MAX_USER_AGENT = 255
BROWSER_TTL = timedelta(days=90)
"""So long a browser is known by its last session, whose cookie it therefore keeps when that has ended."""


class Session(msgspec.Struct):
    """A session that is not over."""

    id: int
    user_id: int
    user_name: str
    created_at: str
    last_used_at: str
    address: str | None
    user_agent: str | None


BY_HASH = (
    select(
        *sessions.c["account_id", "user_id"],
        *ACTING[1:],
        *users.c["name", "email"],
        accounts.c.name,
        *sessions.c["id", "last_used_at"],
    )
    .select_from(OF_USERS.join(accounts, accounts.c.id == sessions.c.account_id))
    .where(sessions.c.hash == bindparam("hash"), IS_LIVE, IS_ADMIN)
)
USED = update(sessions).where(sessions.c.id == bindparam("id")).values(last_used_at=bindparam("now", type_=INSTANT))
LIVE = (
    select(
        *sessions.c["id", "user_id"], users.c.name, *sessions.c["created_at", "last_used_at", "address", "user_agent"]
    )
    .select_from(OF_USERS)
    .where(IS_LIVE)
    .order_by(sessions.c.last_used_at.desc(), sessions.c.id.desc())
)
END_ALL_OF_USER = (
    update(sessions)
    .where(
        sessions.c.user_id == bindparam("user"),
        sessions.c.id != bindparam("except_id", type_=INTEGER),
        sessions.c.ended_at.is_(None),
    )
    .values(ended_at=bindparam("now", type_=INSTANT), updated_at=bindparam("now", type_=INSTANT))
)
ONE = select(users.c.name, sessions.c.ended_at).select_from(OF_USERS).where(sessions.c.id == bindparam("id"))


def digest(token: str) -> str:
    """Return the SHA-256 of a token, which is what is stored of it; 256 random bits cannot be guessed."""
    return hashlib.sha256(token.encode()).hexdigest()


def admin_of(store: Store, token: str, address: str | None) -> Admin | None:
    """Return the admin of a session, read every time; None when it has ended, is idle, or the user is no admin now.

    The use is noted at most once a minute. `address` is that of the request, for the audit.
    """
    now = utcnow()
    row = store.unscoped_one("whose session is this", BY_HASH, hash=digest(token), **limits(now))
    if row is None:
        return None
    account_id, user_id, *others, last_used_at = row
    values = [account_id, user_id, "admin", *others, address]
    admin = Admin(*values)
    if last_used_at <= instant_after(now, -NOTE_USE):
        try:
            with store.begin(admin, write=True) as tx:
                tx.run(USED, id=admin.session_id, now=tx.now)
        except ActorChanged:
            return None
        except Unavailable:  # on a full disk one can still read
            pass
    return admin


def start(tx: Tx, user_id: int, address: str | None, user_agent: str | None) -> tuple[int, str]:
    """Begin a session of a user; return its id, and its token, which is not stored."""
    token = secrets.token_urlsafe(32)
    values = {"user_id": user_id, "hash": digest(token), "last_used_at": tx.now, "address": address}
    return tx.insert_raw(sessions, values | {"user_agent": user_agent and user_agent[:MAX_USER_AGENT]}), token


def list_sessions(tx: Tx) -> list[Session]:
    """Return the sessions of the account's admins that are not over, that which was used last first."""
    return [Session(*row) for row in tx.all(LIVE, **limits(tx.now))]


def end(tx: Tx, session_id: int) -> None:
    """End a session of the account, one's own or another's; one that is over remains so. Raises `not_found`."""
    row = tx.one(ONE, id=session_id)
    if row is None:
        raise Refusal("not_found", f"There is no session {session_id}.")
    name, ended_at = row
    if ended_at is None:
        tx.update_columns(sessions, session_id, {"ended_at": tx.now})
        is_own = isinstance(tx.actor, Admin) and tx.actor.session_id == session_id
        audit.note(tx, "signed out" if is_own else "session revoked", Target("session", session_id, name))


def end_all_of(tx: Tx, user_id: int) -> None:
    """End all sessions of a user but the one that acts."""
    acting = tx.actor.session_id if isinstance(tx.actor, Admin) else None
    tx.run(END_ALL_OF_USER, user=user_id, except_id=acting or 0, now=tx.now)
