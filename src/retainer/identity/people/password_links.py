"""Password links: a link with which an admin sets a password, once, within a week; a new one replaces the last."""

import secrets
from datetime import timedelta
from typing import NamedTuple

from sqlalchemy import bindparam, delete, select

from retainer.errors import Refusal, invalid
from retainer.identity import audit
from retainer.identity.admins import IS_ADMIN
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
    """Whose link it is; without a password before, it is an invitation."""

    account_id: int
    user_id: int
    name: str
    email: str
    account_name: str
    expires_at: str
    has_password: bool


USER = select(*users.c["name", "role", "is_active"]).where(users.c.id == bindparam("id"))
VOID = delete(password_links).where(password_links.c.user_id == bindparam("user"))
USE = delete(password_links).where(password_links.c.hash == bindparam("hash"))
BY_HASH = (
    select(
        *password_links.c["account_id", "user_id"],
        *users.c["name", "email"],
        accounts.c.name,
        password_links.c.expires_at,
        users.c.password_hash.is_not(None),
    )
    .select_from(
        password_links.join(users, users.c.id == password_links.c.user_id).join(
            accounts, accounts.c.id == password_links.c.account_id
        )
    )
    .where(
        password_links.c.hash == bindparam("hash"),
        password_links.c.expires_at > bindparam("now", type_=INSTANT),
        IS_ADMIN,
    )
)


def create(tx: Tx, user_id: int) -> PasswordLink:
    """Make a link for an active admin; the former one is void. Raises `not_found` or `validation_failed`."""
    user = tx.one(USER, id=user_id)
    if user is None:
        raise Refusal("not_found", f"There is no user {user_id}.")
    name, role, is_active = user
    if not is_active:
        raise invalid({"user": [f"{name} is deactivated. Activate the user first."]})
    if role != "admin":
        raise invalid({"user": [f"{name} is not an admin, and only admins can sign in. Change the role first."]})
    void_all_of(tx, user_id)
    link = PasswordLink(secrets.token_urlsafe(32), instant_after(tx.now, VALID))
    values = {"user_id": user_id, "hash": digest(link.token), "expires_at": link.expires_at}
    tx.insert_raw(password_links, values)
    audit.note(tx, "link created", Target("user", user_id, name), after={"expires_at": link.expires_at})
    return link


def find(store: Store, token: str) -> Invitee:
    """Return whose link it is. Raises `not_found` for one that was used, replaced or has expired."""
    row = store.unscoped_one("whose link is this", BY_HASH, hash=digest(token), now=utcnow())
    if row is None:
        raise unusable()
    return Invitee._make([*row[:-1], bool(row[-1])])


def use_up(tx: Tx, token: str) -> None:
    """Void a link, whose user sets a password in this transaction. Raises `not_found` when another one has used it."""
    if not tx.change(USE, hash=digest(token)):
        raise unusable()


def void_all_of(tx: Tx, user_id: int) -> None:
    """Void the link of a user, if there is one."""
    tx.run(VOID, user=user_id)


def unusable() -> Refusal:
    """Return the refusal of a link, in the same words whatever became of it."""
    message = "This link was already used or replaced, or has expired. Ask an admin or the operator for a new one."
    return Refusal("not_found", message)
