"""References: every row that refers to another one, also where the database has no constraint for it.

A constraint can be switched off while rows are changed, and a cluster has none between some of its tables.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

from sqlalchemy import Select, Table, func, select

from retainer.doctor.findings import Finding
from retainer.schema import metadata
from retainer.schema.identity import accounts
from retainer.store.constraints import singular
from retainer.store.transaction import Transaction
from retainer.store.tx import Tx

OF_ACCOUNTS = [table for table in metadata.sorted_tables if table.info.get("of_account")]


def find_in_account(tx: Tx) -> Iterator[Finding]:
    for table in OF_ACCOUNTS:
        for name in (column.name for column in table.c if "target" in column.info):
            for row_id, missing in tx.all(_broken(table, name)):
                what = f"{name} is {missing}, and there is no such {singular(_target(table, name))}."
                yield Finding(what, f"{singular(table)} {row_id}")


def find_without_account(tx: Transaction) -> Iterator[Finding]:
    """Yield the rows of accounts that do not exist."""
    for table in OF_ACCOUNTS:
        for account_id, rows in tx.all(_homeless(table)):
            yield Finding(f"{rows} rows of {table.name} belong to account {account_id}, which does not exist.")


def _target(table: Table, name: str) -> Table:
    return metadata.tables[table.c[name].info["target"]]


@cache
def _broken(table: Table, name: str) -> Select[Any]:
    target = _target(table, name).alias("target")
    key = next(column for column in table.primary_key if column.name != "account_id")
    joined = table.outerjoin(target, target.c.id == table.c[name])
    is_broken = table.c[name].is_not(None) & target.c.id.is_(None)
    return select(key, table.c[name]).select_from(joined).where(is_broken).limit(100)


@cache
def _homeless(table: Table) -> Select[Any]:
    is_homeless = table.c.account_id.not_in(select(accounts.c.id))
    return select(table.c.account_id, func.count()).where(is_homeless).group_by(table.c.account_id)
