"""Cost rates: what an hour of a user costs. When that changes, so does what the user's time has cost in reports."""

from typing import Any

from retainer.identity.people import users
from retainer.rollups import labour
from retainer.store.tx import Tx


def change_user(tx: Tx, user_id: int, changes: dict[str, Any]) -> dict[str, Any]:
    """Change fields of a user, cost rate included, and return them all; `is_active=False` stops the user's keys.

    Only another cost rate changes sums: of one batch of entries at once, of others in the steps of `labour`, which the
    server takes. Raises what `users.change_user` does.
    """
    changed = users.change_user(tx, user_id, changes)
    if changes.get("cost_rate") is not None:
        labour.recount(tx, user_id)
    return changed
