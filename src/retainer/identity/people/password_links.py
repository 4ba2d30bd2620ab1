"""Password links: a user sets a password with one, once, within a week; a new link replaces the last."""

import secrets
from datetime import timedelta
from typing import NamedTuple

from sqlalchemy import bindparam, delete, select

from retainer.errors import Refusal, invalid
from retainer.identity import audit
from retainer.identity.audit import Target
from retainer.identity.people.sessions import digest
from retainer.schema.identity import accounts, password_links, users
from retainer.store.engines.sql import INSTANT
from retainer.store.tx import Store, Tx
from retainer.values.exact import instant_after, utcnow

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
    """The user of a link; one without a password is invited."""

    account_id: int
    account_name: str
    user_id: int
    name: str
    email: str
    has_password: bool
    expires_at: str


class LinkedUser(NamedTuple):
    """A user for whom a link is created."""

    name: str
    is_active: bool


USER = select(*users.c[LinkedUser._fields]).where(users.c.id == bindparam("id"))
VOID = delete(password_links).where(password_links.c.user_id == bindparam("user"))
USE = delete(password_links).where(password_links.c.hash == bindparam("hash"))
COLUMNS = {
    **password_links.c,
    **users.c["name", "email"],
    "account_name": accounts.c.name,
    "has_password": users.c.password_hash.is_not(None),
}
BY_HASH = (
    select(*(COLUMNS[name] for name in Invitee._fields))
    .select_from(
        password_links.join(users, users.c.id == password_links.c.user_id).join(
            accounts, accounts.c.id == password_links.c.account_id
        )
    )
    .where(
        password_links.c.hash == bindparam("hash"),
        password_links.c.expires_at > bindparam("at", type_=INSTANT),
        users.c.is_active,
    )
)


def create(tx: Tx, user_id: int) -> PasswordLink:
    """Create a link for an active user, and void the former one. Raises `not_found` or `validation_failed`."""
    row = tx.one(USER, id=user_id)
    if row is None:
        raise Refusal("not_found", f"There is no user {user_id}.")
    user = LinkedUser(*row)
    if not user.is_active:
        raise invalid({"user": [f"{user.name} is deactivated. Activate the user first."]})
    void_all_of(tx, user_id)
    link = PasswordLink(secrets.token_urlsafe(32), instant_after(tx.now, VALID))
    values = {"user_id": user_id, "hash": digest(link.token), "expires_at": link.expires_at}
    tx.insert_raw(password_links, values)
    audit.note(tx, "link created", Target("user", user_id, user.name), after={"expires_at": link.expires_at})
    return link


def find(store: Store, token: str) -> Invitee:
    """Return the user of a link. Raises `not_found` if it was used or replaced, or has expired."""
    row = store.unscoped_one(BY_HASH, hash=digest(token), at=utcnow())
    if row is None:
        raise unusable()
    invitee = Invitee(*row)
    return invitee._replace(has_password=bool(invitee.has_password))


def use_up(tx: Tx, token: str) -> None:
    """Void a link whose user sets a password in this transaction. Raises `not_found` if it was used meanwhile."""
    if not tx.change(USE, hash=digest(token)):
        raise unusable()


def void_all_of(tx: Tx, user_id: int) -> None:
    tx.run(VOID, user=user_id)


def unusable() -> Refusal:
    """Return the refusal of a link, in the same words for each reason."""
    message = "This link was already used or replaced, or has expired. Ask an admin or the operator for a new one."
    return Refusal("not_found", message)
