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


def set_user(tx: Tx, user_id: int, values: Fields, *, all_days: bool) -> Fields:
    """Change a user as `change_user` does, if it is clear to which days a new cost applies.

    After the first, it needs its first day, or applies to `all_days`. Raises `validation_failed`.
    """
    rates, day = users.list_cost_rates(tx, user_id), values.get("cost_rate_from")
    if values.get("cost_rate") is None:
        if (day or all_days) and tx.readable("cost_rate"):
            tx.error("cost_rate_from" if day else "all_days", "Enter the new cost, too.")
    elif day and all_days:
        tx.error("cost_rate_from", "Leave this blank if the new cost is for past days, too.")
    elif rates and not day and not all_days:
        tx.error("cost_rate_from", "Enter the first day of the new cost, or choose it for past days, too.")
    changed = change_user(tx, user_id, values)
    for first in [day for day, _ in rates if day] if all_days else ():
        change_user(tx, user_id, {"cost_rate": values["cost_rate"], "cost_rate_from": first})
    return changed
