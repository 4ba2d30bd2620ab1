"""Doctor: recomputes stored sums from their rows and reports mismatches."""

from functools import cache
from typing import Any

from sqlalchemy import Select, Table, bindparam, func, or_, select

from retainer.identity.actors import OPERATORS, operator
from retainer.rollups import record_totals, summaries
from retainer.rollups.record_totals import TOTALS
from retainer.schema import identity, metadata
from retainer.schema.rollups import SUMMARIES
from retainer.store.tables import NOW, events, totals
from retainer.store.tx import Store, Tx

UNCOUNTED: tuple[Table, ...] = (
    *(identity.api_keys, identity.sessions, identity.password_links, identity.pending_sign_ins),
    *(identity.second_factors, identity.recovery_codes, identity.logos, events),
)
"""The tables without a list that shows how many rows they have."""
KEPT = OPERATORS.where(or_(identity.accounts.c.deletes_at.is_(None), identity.accounts.c.deletes_at > NOW))
COUNTER = select(totals.c.count).where(totals.c.name == bindparam("name"))


def inspect(store: Store, *, repair: bool) -> list[str]:
    """Return the mismatched sums of all accounts; with `repair`, rebuild the sums of each affected account.

    An account whose rows are being deleted is left out.
    """
    with store.unscoped() as tx:
        accounts = tx.all(KEPT)
    descriptions = []
    for account in accounts:
        with store.begin(operator(account), write=repair) as tx_of_account:
            tx_of_account.snapshot()
            names = mismatched(tx_of_account)
            descriptions += [f"{name} of account {tx_of_account.actor.account_id}" for name in names]
            if names and repair:
                rebuild(tx_of_account)
    return descriptions


def mismatched(tx: Tx) -> list[str]:
    """Return the names of the sums that differ from their rows; each is a bug."""
    names = [table.name for table in SUMMARIES if tx.one(summaries.difference(table))]
    names += [f"totals of {table.name}" for table in TOTALS if tx.one(record_totals.differences(table))]
    return names + [f"count of {table.name}" for table in counted() if miscount(tx, table)]


def rebuild(tx: Tx) -> None:
    for table in SUMMARIES:
        clear, fill = summaries.rebuilding(table)
        tx.run(clear)
        tx.run(fill)
    for table in TOTALS:
        tx.run(record_totals.correcting(table))
    for table in counted():
        tx.count(table, miscount(tx, table))


def counted() -> list[Table]:
    """Return the tables with a row counter: tables of an account with ids that a `Tx` writes."""
    tables = [table for table in metadata.sorted_tables if table.info.get("of_account") and "id" in table.c]
    return [table for table in tables if table not in UNCOUNTED]


def miscount(tx: Tx, table: Table) -> int:
    return int(tx.value(_rows(table)) - (tx.value(COUNTER, name=table.name) or 0))


@cache
def _rows(table: Table) -> Select[Any]:
    return select(func.count()).select_from(table)
