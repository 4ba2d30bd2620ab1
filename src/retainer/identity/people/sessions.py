"""Sessions in the console, and one-time tokens: password links and unfinished sign-ins.

They are rows, so that every process knows when one has ended. Only the hashes of tokens are stored.
"""

import hashlib
import secrets
from datetime import timedelta
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Table, bindparam, case, delete, func, select, update

from retainer.errors import NoSuchRecord, Refusal
from retainer.identity import actors, audit
from retainer.identity.actors import OF_ACCOUNTS, OF_USERS, PERSON_COLUMNS, Person, session_limits
from retainer.schema.identity import accounts, password_links, pending_sign_ins, sessions, users
from retainer.store.engines.sql import INSTANT, INTEGER
from retainer.store.tables import NOW
from retainer.store.tx import Store, Tx
from retainer.values.exact import instant_after, utcnow

MAX_USER_AGENT = 255
BROWSER_TTL = timedelta(days=90)
"""How long a browser is known by its last session. Its cookie therefore outlives the session."""


class Session(msgspec.Struct):
    id: int
    user_id: int
    user_name: str
    created_at: str
    last_used_at: str
    address: str | None
    user_agent: str | None


class KnownBrowser(NamedTuple):
    """The last session of a browser, which may have ended, and the email of its user."""

    account_id: int
    session_id: int
    email_folded: str


COLUMNS = {"user_name": users.c.name, **sessions.c}
FOUND_COLUMNS = PERSON_COLUMNS | {
    "session_id": sessions.c.id,
    "lacks_second_factor": case((actors.LACKS_SECOND_FACTOR, 1), else_=0),
    **accounts.c["plan", "trial_ends_at"],
}
BY_HASH = (
    select(*FOUND_COLUMNS.values())
    .select_from(OF_ACCOUNTS)
    .where(sessions.c.hash == bindparam("hash"), actors.IS_LIVE, users.c.is_active)
)
LAST = (
    select(sessions.c.account_id, sessions.c.id, users.c.email_folded)
    .select_from(OF_USERS)
    .where(sessions.c.hash == bindparam("hash"))
)
USED = (
    update(sessions)
    .where(
        *(sessions.c.account_id == bindparam("account"), sessions.c.id == bindparam("id")),
        sessions.c.last_used_at < bindparam("at"),
    )
    .values(last_used_at=bindparam("at"))
)
"""Notes a use of a session, unless a newer one was noted."""
LIVE = (
    select(*(COLUMNS[name] for name in Session.__struct_fields__))
    .select_from(OF_USERS)
    .where(actors.IS_LIVE)
    .order_by(sessions.c.last_used_at.desc(), sessions.c.id.desc())
)
LAST_USES = select(sessions.c.user_id, func.max(sessions.c.last_used_at)).group_by(sessions.c.user_id)
"""When each user last opened a page, by the sessions that are kept."""
END_ALL_OF_USER = (
    update(sessions)
    .where(
        sessions.c.user_id == bindparam("user"),
        sessions.c.id != bindparam("except_id", type_=INTEGER),
        sessions.c.ended_at.is_(None),
    )
    .values(ended_at=NOW, updated_at=NOW)
)
ONE = select(users.c.name, sessions.c.ended_at).select_from(OF_USERS).where(sessions.c.id == bindparam("id"))


def digest(token: str) -> str:
    """Return the SHA-256 of a token. Only the hash is stored; a fast one is enough for 256 random bits."""
    return hashlib.sha256(token.encode()).hexdigest()


def person_of(store: Store, token: str, address: str | None) -> Person | None:
    """Return the user of a session; None if it has ended or its user is not active.

    `address` is that of the request, for the audit.
    """
    found = _find(store, token, utcnow())
    if found is None:
        return None
    return Person(**found | {"lacks_second_factor": bool(found["lacks_second_factor"])}, address=address)


def account_of(store: Store, token: str) -> int | None:
    """Return the account of a session, without noting its use; None if it has ended."""
    found = _find(store, token, utcnow())
    return None if found is None else int(found["account_id"])


def _find(store: Store, token: str, now: str) -> dict[str, Any] | None:
    row = store.unscoped_one(BY_HASH, hash=digest(token), **session_limits(now))
    return None if row is None else dict(zip(FOUND_COLUMNS, row, strict=True))


def known_browser(store: Store, token: str | None) -> KnownBrowser | None:
    """Return the last session of a browser with a token; None if it has none, or one of more than 90 days ago."""
    row = None if token is None else store.unscoped_one(LAST, hash=digest(token))
    return None if row is None else KnownBrowser(*row)


def start(tx: Tx, user_id: int, address: str | None, user_agent: str | None) -> tuple[int, str]:
    token = secrets.token_urlsafe(32)
    values = {"user_id": user_id, "hash": digest(token), "last_used_at": tx.now, "address": address}
    return tx.insert_raw(sessions, values | {"user_agent": user_agent and user_agent[:MAX_USER_AGENT]}), token


def list_sessions(tx: Tx) -> list[Session]:
    return [Session(*row) for row in tx.all(LIVE, **session_limits(tx.now))]


def end(tx: Tx, session_id: int) -> None:
    """End a session of the account, if it has not ended. Raises `not_found`."""
    row = tx.one(ONE, id=session_id)
    if row is None:
        raise NoSuchRecord("session", session_id)
    user_name, ended_at = row
    if ended_at is None:
        tx.update_columns(sessions, session_id, {"ended_at": tx.now})
        is_own = isinstance(tx.actor, Person) and tx.actor.session_id == session_id
        audit.note(tx, "signed out" if is_own else "session revoked", audit.Target("session", session_id, user_name))


def end_all_of(tx: Tx, user_id: int) -> None:
    """End all sessions of a user except the current one, and sign-ins that wait for the second factor."""
    acting = tx.actor.session_id if isinstance(tx.actor, Person) else None
    tx.run(END_ALL_OF_USER, user=user_id, except_id=acting or 0)
    SECOND_STEPS.void_all_of(tx, user_id)


class Token(NamedTuple):
    token: str
    expires_at: str

    def url(self, site: str) -> str:
        return f"{site}/console/password?token={self.token}"


class Tokens:
    """The tokens of a table: each is of an active user, and works once, until it expires."""

    def __init__(self, table: Table, valid: timedelta, unusable: str) -> None:
        self.table, self.valid, self.unusable = table, valid, unusable
        self._by_hash = (
            select(users.c.password_hash.is_not(None), *PERSON_COLUMNS.values())
            .select_from(table.join(users, users.c.id == table.c.user_id))
            .join(accounts, accounts.c.id == users.c.account_id)
            .where(
                table.c.hash == bindparam("hash"),
                table.c.expires_at > bindparam("at", type_=INSTANT),
                users.c.is_active,
            )
        )
        self._use = delete(table).where(table.c.hash == bindparam("hash"))
        self.expired = delete(table).where(table.c.expires_at <= bindparam("before", type_=INSTANT))
        self._void = delete(table).where(table.c.user_id == bindparam("user"))

    def create(self, tx: Tx, user_id: int, valid: timedelta | None = None) -> Token:
        new = Token(secrets.token_urlsafe(32), instant_after(tx.now, valid or self.valid))
        tx.insert_raw(self.table, {"user_id": user_id, "hash": digest(new.token), "expires_at": new.expires_at})
        return new

    def find(self, store: Store, token: str) -> tuple[Person, bool]:
        """Return the user, and whether there is a password.

        Raises `not_found` for a used, void or expired token, and `account_suspended`.
        """
        row = store.unscoped_one(self._by_hash, hash=digest(token), at=utcnow())
        if row is None:
            raise Refusal("not_found", self.unusable)
        has_password, *columns = row
        person = Person(**dict(zip(PERSON_COLUMNS, columns, strict=True)))
        person.require_running()
        return person, bool(has_password)

    def use_up(self, tx: Tx, token: str) -> None:
        """Void a token in the transaction that uses it. Raises `not_found` if it was used or voided meanwhile."""
        if not tx.change(self._use, hash=digest(token)):
            raise Refusal("not_found", self.unusable)

    def void_all_of(self, tx: Tx, user_id: int) -> None:
        tx.run(self._void, user=user_id)


LINKS = Tokens(
    password_links,
    timedelta(days=7),
    "This link was already used or replaced, or has expired. If you have set your password with it, sign in. "
    "Otherwise, ask an admin or the operator for a new one.",
)
"""Password links: a user sets a password with one; a new link replaces the last."""
SECOND_STEPS = Tokens(
    pending_sign_ins, timedelta(minutes=10), "This sign-in has expired. Enter your email and password again."
)
"""Sign-ins whose password was right, and whose second factor is still to come."""
EXPIRED = [tokens.expired for tokens in (LINKS, SECOND_STEPS)]
OLD_SESSIONS = delete(sessions).where(sessions.c.last_used_at <= bindparam("before", type_=INSTANT))


def delete_expired(store: Store) -> None:
    with store.unscoped(write=True) as tx:
        tx.run(OLD_SESSIONS, before=instant_after(tx.now, -BROWSER_TTL))
        for statement in EXPIRED:
            tx.run(statement, before=tx.now)


def revoke_all(store: Store) -> None:
    """Delete all sessions and tokens: a restored database does not know which have ended since its backup."""
    with store.unscoped(write=True) as tx:
        for table in (sessions, password_links, pending_sign_ins):
            tx.run(delete(table))
