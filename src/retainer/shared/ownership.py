"""Ownership: whose time or expense a record is. A key that acts as a member changes and deletes only that user's."""

from sqlalchemy import bindparam, select

from retainer.errors import Refusal
from retainer.schema.identity import users
from retainer.shared import relations
from retainer.shared.relations import HasUser
from retainer.store.tx import Tx
from retainer.values.kinds import ME

NAME = select(users.c.name).where(users.c.id == bindparam("id"))


def prepare_user(tx: Tx, record: HasUser, before: HasUser | None, noun: str) -> None:
    """Fill in the key's user; note an error when a member's key names another, or changes what is another's.

    Notes `not_owner` for what is another's.
    """
    record.user_id = tx.actor.user_id if record.user_id in {None, ME} else record.user_id
    message = None if before is None else _not_owner(tx, before, noun)
    if message:
        tx.error("user_id", message, "not_owner")
    elif before is not None and record.user_id == before.user_id:
        return
    elif record.user_id != tx.actor.user_id and tx.actor.role != "admin":
        tx.error("user_id", "Only an admin's key says that it was another's. Leave it out for the key's own user.")
    else:
        relations.resolve_user(tx, record, "user_id", None)


def check_deletion(tx: Tx, record: HasUser, noun: str) -> None:
    """Raise `not_owner` when a member's key deletes what is another's."""
    message = _not_owner(tx, record, noun)
    if message:
        raise Refusal("not_owner", message, errors={"user_id": [message]})


def _not_owner(tx: Tx, record: HasUser, noun: str) -> str | None:
    if tx.actor.role == "admin" or record.user_id == tx.actor.user_id:
        return None
    name = tx.value(NAME, id=record.user_id)
    return (
        f"This {noun} is {name}'s (user {record.user_id}). Use a key of theirs or of an admin to change or delete it."
    )
