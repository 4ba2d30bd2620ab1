"""One-time tokens: password links and unfinished sign-ins. Only the hashes of tokens are stored."""

import secrets
from datetime import timedelta
from typing import NamedTuple

from sqlalchemy import Table, bindparam, delete, select

from retainer.errors import Refusal
from retainer.identity.actors import PERSON_COLUMNS, Person
from retainer.identity.people.sessions import BROWSER_TTL, digest
from retainer.schema.identity import accounts, password_links, pending_sign_ins, sessions, users
from retainer.store.engines.sql import INSTANT
from retainer.store.tx import Store, Tx
from retainer.values.exact import instant_after, utcnow


class Token(NamedTuple):
    token: str
    expires_at: str

    def url(self, site: str) -> str:
        """Return the address of a password link under that of the site, like https://agency.example."""
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

    def create(self, tx: Tx, user_id: int) -> Token:
        new = Token(secrets.token_urlsafe(32), instant_after(tx.now, self.valid))
        tx.insert_raw(self.table, {"user_id": user_id, "hash": digest(new.token), "expires_at": new.expires_at})
        return new

    def find(self, store: Store, token: str) -> tuple[Person, bool]:
        """Return the user of a token, and whether the user has a password.

        Raises `not_found` if the token was used or voided, or has expired.
        """
        row = store.unscoped_one(self._by_hash, hash=digest(token), at=utcnow())
        if row is None:
            raise Refusal("not_found", self.unusable)
        has_password, *columns = row
        return Person(**dict(zip(PERSON_COLUMNS, columns, strict=True))), bool(has_password)

    def use_up(self, tx: Tx, token: str) -> None:
        """Void a token in the transaction that uses it. Raises `not_found` if it was used or voided meanwhile."""
        if not tx.change(self._use, hash=digest(token)):
            raise Refusal("not_found", self.unusable)

    def void_all_of(self, tx: Tx, user_id: int) -> None:
        tx.run(self._void, user=user_id)


LINKS = Tokens(
    password_links,
    timedelta(days=7),
    "This link was already used or replaced, or has expired. Ask an admin or the operator for a new one.",
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
