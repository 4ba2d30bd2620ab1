"""Cost rates: the cost of an hour of a user. If it changes, the cost of the user's recorded time changes in reports."""

from typing import Any

from retainer.identity.people import users
from retainer.rollups import labour
from retainer.store.tx import Tx


def change_user(tx: Tx, user_id: int, changes: dict[str, Any]) -> dict[str, Any]:
    """Change fields of a user, and return all of them; `is_active=False` disables the user's keys.

    A new cost rate changes totals: those of a first batch of entries immediately, the rest in steps that the server
    takes (`rollups/labour.py`). Raises what `users.change_user` raises.
    """
    changed = users.change_user(tx, user_id, changes)
    if changes.get("cost_rate") is not None:
        labour.recount(tx, user_id)
    return changed
