"""Cost rates: what an hour of a user costs. When that changes, so does what the user's time has cost in reports."""

from typing import Any

from retainer.identity import users
from retainer.rollups.changes import changing
from retainer.rollups.sources import TIME
from retainer.store.tx import Tx


def change_user(tx: Tx, user_id: int, changes: dict[str, Any]) -> dict[str, Any]:
    """Change fields of a user, cost rate included, and return them all; `is_active=False` stops the user's keys.

    What the user's time has cost is summed anew. Raises what `users.change_user` does.
    """
    with changing(tx, TIME, user_id, by="user_id"):
        return users.change_user(tx, user_id, changes)
