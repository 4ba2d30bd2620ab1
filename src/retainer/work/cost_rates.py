"""Cost rates: what an hour of a user costs. When that changes, so does what the user's time has cost in reports."""

from typing import Any

from retainer.errors import Refusal
from retainer.identity import users
from retainer.identity.accounts import operator
from retainer.rollups.changes import changing
from retainer.rollups.sources import TIME
from retainer.store.tx import Store


def set_user(store: Store, user_id: int, changes: dict[str, Any]) -> dict[str, Any]:
    """Change fields of a user, cost rate included, and return them all; `is_active=False` stops the user's keys.

    What the user's time has cost is summed anew. Raises `not_found`.
    """
    owner = store.unscoped_one("an admin names a user of any account", users.OWNER, id=user_id)
    if owner is None:
        raise Refusal("not_found", f"There is no user {user_id}.")
    with store.begin(operator(*owner), write=True) as tx, changing(tx, TIME, user_id, by="user_id"):
        return users.change_user(tx, user_id, changes)
