"""Sign-ins whose password was right, and whose second factor is still to come, for ten minutes."""

import secrets
from datetime import timedelta
from typing import NamedTuple

from sqlalchemy import bindparam, delete, select

from retainer.errors import Refusal
from retainer.identity.admins import ADMIN_COLUMNS, Admin
from retainer.identity.people.sessions import digest
from retainer.schema.identity import accounts, pending_sign_ins, users
from retainer.store.engines.sql import INSTANT
from retainer.store.tx import Store, Tx
from retainer.values.exact import instant_after, utcnow

VALID = timedelta(minutes=10)


class SecondStep(NamedTuple):
    """A sign-in that needs a second factor; its token is not stored."""

    token: str


BY_HASH = (
    select(*ADMIN_COLUMNS.values())
    .select_from(pending_sign_ins.join(users, users.c.id == pending_sign_ins.c.user_id))
    .join(accounts, accounts.c.id == users.c.account_id)
    .where(
        pending_sign_ins.c.hash == bindparam("hash"),
        pending_sign_ins.c.expires_at > bindparam("at", type_=INSTANT),
        users.c.is_active,
    )
)
USE = delete(pending_sign_ins).where(pending_sign_ins.c.hash == bindparam("hash"))


def create(tx: Tx, user_id: int) -> SecondStep:
    """Begin the second step of a sign-in."""
    step = SecondStep(secrets.token_urlsafe(32))
    values = {"user_id": user_id, "hash": digest(step.token), "expires_at": instant_after(tx.now, VALID)}
    tx.insert_raw(pending_sign_ins, values)
    return step


def find(store: Store, token: str) -> Admin:
    """Return the user of a sign-in. Raises `not_found` if it has expired or was finished."""
    row = store.unscoped_one(BY_HASH, hash=digest(token), at=utcnow())
    if row is None:
        raise expired()
    return Admin(**dict(zip(ADMIN_COLUMNS, row, strict=True)))


def use_up(tx: Tx, token: str) -> None:
    """Finish a sign-in. Raises `not_found` if it was finished or voided meanwhile."""
    if not tx.change(USE, hash=digest(token)):
        raise expired()


def expired() -> Refusal:
    return Refusal("not_found", "This sign-in has expired. Enter your email and password again.")
