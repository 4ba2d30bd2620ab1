"""Cost rates: the cost of an hour of a user. If it changes, the cost of the user's recorded time changes in reports."""

from typing import Any

from retainer.identity.people import users
from retainer.rollups.changes import changing
from retainer.rollups.sources import LABOUR
from retainer.store.tx import Tx


def change_user(tx: Tx, user_id: int, changes: dict[str, Any]) -> dict[str, Any]:
    """Change fields of a user, and return all of them. Raises what `users.change_user` raises.

    `is_active=False` disables the user's keys. A new cost rate changes the sums of all time that the user recorded.
    """
    if changes.get("cost_rate") is None:
        return users.change_user(tx, user_id, changes)
    with changing(tx, LABOUR, user_id, by="user_id"):
        return users.change_user(tx, user_id, changes)
