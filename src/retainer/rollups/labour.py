"""Labour: the cost rates that the sums count, and how a changed rate reaches the sums of time that was recorded before.

`cost_rates` are the rates that admins set, `counted_cost_rates` those by which the sums are made. At any time the sums
are exactly what the counted rates make of the entries, whatever is written meanwhile. A step counts one batch of
entries by the rate that was set, and notes that in the counted rates: so it can stop after any step, and any process
can go on.
"""

from datetime import date, timedelta

from sqlalchemy import Insert, Select, Table, and_, bindparam, delete, insert, select, union

from retainer.identity.admins import operator_of
from retainer.rollups import summaries
from retainer.rollups.sources import TIME, labour_at
from retainer.schema.rollups import project_sums
from retainer.schema.work import cost_rates, counted_cost_rates, time_entries
from retainer.store.engines.sql import DAY, INTEGER, rows_of
from retainer.store.tx import Store, Tx
from retainer.values.exact import LAST_DAY

BATCH_SIZE = 500
"""Entries that a step counts, and the others of the earliest day among them; this takes some hundredths of a second."""
Rates = dict[str, int | None]
"""The cost of an hour, in minor units, by the day from which it counts; null where there is none."""

USER = bindparam("user", type_=INTEGER)
FIRST, LAST = bindparam("first", type_=DAY), bindparam("last", type_=DAY)


def _rates_in(table: Table) -> Select[str, int]:
    return select(table.c.from_date, table.c.amount).where(table.c.user_id == USER)


WANTED, COUNTED = _rates_in(cost_rates), _rates_in(counted_cost_rates)
COUNT_ALL = (
    delete(counted_cost_rates),
    insert(counted_cost_rates).from_select(cost_rates.c.keys(), select(cost_rates)),
)
FORGET_COUNTED = delete(counted_cost_rates).where(counted_cost_rates.c.user_id == USER)
FIRST_DAY_OF_BATCH = (
    select(time_entries.c.date)
    .where(time_entries.c.user_id == USER, time_entries.c.date.between(FIRST, LAST))
    .order_by(time_entries.c.date.desc(), time_entries.c.id.desc())
    .limit(1)
    .offset(BATCH_SIZE - 1)
)


FORMER, SET = bindparam("former", type_=INTEGER), bindparam("set", type_=INTEGER)


def _recounting() -> Insert:
    """Return the statement that adds what a user's time on some days costs more, or less, at the rate that was set."""
    changes = (at_new - at_former for at_new, at_former in zip(labour_at(SET), labour_at(FORMER), strict=True))
    rows = TIME.rows.with_only_columns(
        *TIME.rows.selected_columns["day", "client_id", "project_id", "currency"],
        *(
            change.label(name)
            for name, change in zip(("labour_cost", "missing_cost_rate_minutes"), changes, strict=True)
        ),
    ).where(time_entries.c.user_id == USER, time_entries.c.date.between(FIRST, LAST))
    changed = rows_of("changed", rows.selected_columns)
    return summaries.adding(project_sums, changed, is_one=False).add_cte(rows.cte("changed"))


RECOUNT = _recounting()


def _unlike(table: Table, other: Table) -> Select[int, int]:
    """Select the users who have a rate in one table that the other does not have."""
    names = ("account_id", "user_id", "from_date", "amount")
    same = and_(*(table.c[name] == other.c[name] for name in names))
    return (
        select(table.c.account_id, table.c.user_id)
        .select_from(table.outerjoin(other, same))
        .where(other.c.user_id.is_(None))
    )


PENDING = union(_unlike(cost_rates, counted_cost_rates), _unlike(counted_cost_rates, cost_rates)).limit(1)
"""An account and a user of it whose rates the sums do not count yet."""


def recount(tx: Tx, user_id: int) -> bool:
    """Count a batch of a user's entries by the rates that were set; return whether all of them are counted so now."""
    wanted, counted = _rates(tx, WANTED, user_id), _rates(tx, COUNTED, user_id)
    days = _last_difference(wanted, counted)
    if days is not None:
        first, last = days
        first = tx.value(FIRST_DAY_OF_BATCH, user=user_id, first=first, last=last) or first
        rates = {"former": _rate_on(counted, first), "set": _rate_on(wanted, first)}
        tx.run(RECOUNT, user=user_id, first=first, last=last, **rates)
        if last < LAST_DAY:
            following = _neighbour(last, 1)
            counted[following] = _rate_on(counted, following)
        counted[first] = rates["set"]
        _write_counted(tx, user_id, counted)
    is_complete = _last_difference(wanted, counted) is None
    if is_complete and counted != wanted:  # the same rates, in other words
        _write_counted(tx, user_id, wanted)
    return is_complete


def recount_step(store: Store) -> bool:
    """Count a batch of the entries of a user whose rate was changed; return whether there was such a user."""
    with store.unscoped("cost rates may be pending in every account") as unscoped:
        pending = unscoped.one(PENDING)
    if pending is None:
        return False
    account_id, user_id = pending
    with store.begin(operator_of(store, account_id), write=True) as tx:
        recount(tx, user_id)
    return True


def count_all(tx: Tx) -> None:
    """Let the sums count every cost rate of the account as it was set; the caller makes them anew."""
    for statement in COUNT_ALL:
        tx.run(statement)


def _rates(tx: Tx, statement: Select[str, int], user_id: int) -> Rates:
    return dict(tx.all(statement, user=user_id))


def _write_counted(tx: Tx, user_id: int, rates: Rates) -> None:
    tx.run(FORGET_COUNTED, user=user_id)
    tx.insert_rows(counted_cost_rates, [(tx.actor.account_id, user_id, day, rates[day]) for day in sorted(rates)])


def _last_difference(wanted: Rates, counted: Rates) -> tuple[str, str] | None:
    """Return the first and the last of the latest days on which the rates differ and neither changes; None without."""
    following = None
    for day in sorted(wanted.keys() | counted.keys(), reverse=True):
        if _rate_on(wanted, day) != _rate_on(counted, day):
            return day, LAST_DAY if following is None else _neighbour(following, -1)
        following = day
    return None


def _rate_on(rates: Rates, day: str) -> int | None:
    since = max((since for since in rates if since <= day), default=None)
    return None if since is None else rates[since]


def _neighbour(day: str, days: int) -> str:
    return (date.fromisoformat(day) + timedelta(days=days)).isoformat()
