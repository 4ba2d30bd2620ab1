"""Ownership of time and expenses: members change and delete only their own."""

from sqlalchemy import bindparam, select

from retainer.errors import Refusal
from retainer.kernel.roles import may
from retainer.schema.identity import users
from retainer.shared import relations
from retainer.store.tx import Tx
from retainer.values.kinds import ME

NAME = select(users.c.name).where(users.c.id == bindparam("id"))


def build_owner(tx: Tx, user_id: int | None) -> int:
    """Return the user of a record: that of the key if none was sent."""
    return tx.actor.user_id if user_id is None or user_id == ME else user_id


def validate_owner(tx: Tx, user_id: int, former: int | None, noun: str) -> None:
    """Note an error if a member's key names another user; note `not_owner` if the record belonged to another."""
    message = None if former is None else _not_owner(tx, former, noun)
    if message:
        tx.error("user_id", message, "not_owner")
    elif user_id not in {former, tx.actor.user_id} and not may(tx.actor, "records"):
        tx.error(
            "user_id", "Only an admin's or manager's key can name another user. Leave it out for the key's own user."
        )
    else:
        relations.validate_user(tx, "user_id", user_id, former)


def check_deletion(tx: Tx, user_id: int, noun: str) -> None:
    """Raise `not_owner` if a member's key deletes another user's record."""
    message = _not_owner(tx, user_id, noun)
    if message:
        raise Refusal("not_owner", message, errors={"user_id": [message]})


def _not_owner(tx: Tx, user_id: int, noun: str) -> str | None:
    if may(tx.actor, "records") or user_id == tx.actor.user_id:
        return None
    name = tx.value(NAME, id=user_id)
    return f"This {noun} belongs to {name} (user {user_id}). Use that user's key or an admin's to change or delete it."
