"""Cost rates: what an hour of a user costs from a day on, and the sums of time that follow from it."""

from sqlalchemy import bindparam

from retainer.identity.audit import Fields
from retainer.identity.people import users
from retainer.rollups.changes import changing
from retainer.rollups.sources import LABOUR
from retainer.store.tx import Tx
from retainer.values.exact import FIRST_DAY

_labour = LABOUR.rows.selected_columns
SINCE_DAY = (_labour.user_id == bindparam("record_id")) & (_labour.day >= bindparam("day"))


def change_user(tx: Tx, user_id: int, changes: Fields) -> Fields:
    """Change fields of a user, and return all of them. Raises what `users.change_user` raises.

    A new cost rate changes the sums of the time that the user has recorded from the first day of that rate on.
    """
    if changes.get("cost_rate") is None:
        return users.change_user(tx, user_id, changes)
    with changing(tx, LABOUR, user_id, by=SINCE_DAY, day=changes.get("cost_rate_from", FIRST_DAY)):
        return users.change_user(tx, user_id, changes)
