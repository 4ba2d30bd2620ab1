"""Labour cost: applies changed cost rates to the sums of existing time entries, in batches.

`cost_rates` are the rates that admins set, `counted_cost_rates` those that the sums use. The sums always match the
entries at their counted rates, whatever is written at the same time. A step applies the set rate to one batch of
entries and records it in the counted rates. It can stop after any step, and any process can continue.
"""

from datetime import date, timedelta

from sqlalchemy import Insert, Select, Table, and_, bindparam, delete, insert, select, union

from retainer.identity.admins import operator_of
from retainer.rollups import summaries
from retainer.rollups.sources import TIME, labour_at
from retainer.schema.rollups import project_sums
from retainer.schema.work import cost_rates, counted_cost_rates, time_entries
from retainer.store.engines.sql import DAY, INTEGER
from retainer.store.tx import Store, Tx
from retainer.values.exact import LAST_DAY

BATCH_SIZE = 500
"""Entries per step, plus the rest of the earliest day among them; a step takes some hundredths of a second."""
Rates = dict[str, int | None]
"""The cost of an hour in minor units, by the first day on which it applies; null without a rate."""

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
    """Return the statement that adds the change in cost of a user's time in a range of days."""
    changes = (at_new - at_former for at_new, at_former in zip(labour_at(SET), labour_at(FORMER), strict=True))
    rows = TIME.rows.with_only_columns(
        *TIME.rows.selected_columns["account_id", "day", "client_id", "project_id", "currency"],
        *(
            change.label(name)
            for name, change in zip(("labour_cost", "missing_cost_rate_minutes"), changes, strict=True)
        ),
    ).where(time_entries.c.user_id == USER, time_entries.c.date.between(FIRST, LAST))
    return summaries.adding(project_sums, rows.subquery("changed"), single_row=False)


RECOUNT = _recounting()


def _unlike(table: Table, other: Table) -> Select[int, int]:
    """Return a select of the users with a rate in one table that is missing in the other."""
    names = ("account_id", "user_id", "from_date", "amount")
    same = and_(*(table.c[name] == other.c[name] for name in names))
    return (
        select(table.c.account_id, table.c.user_id)
        .select_from(table.outerjoin(other, same))
        .where(other.c.user_id.is_(None))
    )


PENDING = union(_unlike(cost_rates, counted_cost_rates), _unlike(counted_cost_rates, cost_rates)).limit(1)
"""An account and a user whose set rates differ from the counted ones."""


def recount(tx: Tx, user_id: int) -> bool:
    """Apply the set rates to a batch of a user's entries; return whether all entries are done."""
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
    if is_complete and counted != wanted:  # equal rates, split differently
        _write_counted(tx, user_id, wanted)
    return is_complete


def recount_step(store: Store) -> bool:
    """Apply a changed rate to a batch of one user's entries; return whether any user was pending."""
    with store.unscoped() as unscoped:
        pending = unscoped.one(PENDING)
    if pending is None:
        return False
    account_id, user_id = pending
    with store.begin(operator_of(store, account_id), write=True) as tx:
        recount(tx, user_id)
    return True


def count_all(tx: Tx) -> None:
    """Mark all set rates of the account as counted; the caller rebuilds the sums."""
    for statement in COUNT_ALL:
        tx.run(statement)


def _rates(tx: Tx, statement: Select[str, int], user_id: int) -> Rates:
    return dict(tx.all(statement, user=user_id))


def _write_counted(tx: Tx, user_id: int, rates: Rates) -> None:
    tx.run(FORGET_COUNTED, user=user_id)
    tx.insert_rows(counted_cost_rates, [(tx.actor.account_id, user_id, day, rates[day]) for day in sorted(rates)])


def _last_difference(wanted: Rates, counted: Rates) -> tuple[str, str] | None:
    """Return the latest range of days with different rates, within which neither changes; None if all are equal."""
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
