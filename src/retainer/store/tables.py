"""The tables' common ground: one metadata, and the shape that every table of an account has."""

from typing import Any

from sqlalchemy import Column, ForeignKey, Integer, MetaData, PrimaryKeyConstraint, Table, UniqueConstraint, bindparam

from retainer.store.columns import instant, integer, text
from retainer.store.engines import DAY, INSTANT, INTEGER, KEYED, NUMBERED

metadata = MetaData(
    naming_convention={
        "ix": "%(table_name)s_by_%(column_0_N_name)s",
        "uq": "%(table_name)s_unique_%(column_0_N_name)s",
        "ck": "%(table_name)s_check_%(constraint_name)s",
        "fk": "%(table_name)s_ref_%(column_0_N_name)s",
        "pk": "%(table_name)s_pk",
    }
)

ACCOUNT = bindparam("account_id", type_=Integer)
"""The account of the transaction, in every statement that it runs."""
TODAY = bindparam("today", type_=DAY)
"""The day it is in the account's zone, in every statement that mentions it."""
NOW = bindparam("moment", type_=INSTANT)
"""The moment of the transaction, in every statement that mentions it."""


def account_id() -> Column[Any]:
    """The account that a row belongs to; the first column of every key."""
    return Column("account_id", INTEGER, ForeignKey("accounts.id"), nullable=False)


def tenant_table(name: str, *items: Any) -> Table:
    """A table whose rows belong to an account, with `id`, `account_id`, `created_at` and `updated_at`."""
    return Table(
        name,
        metadata,
        Column("id", INTEGER, primary_key=True),
        account_id(),
        instant("created_at"),
        instant("updated_at"),
        *items,
        UniqueConstraint("account_id", "id"),
        info={"tenant": True},
        **NUMBERED,
    )


def keyed_table(name: str, *items: Any, key: tuple[str, ...]) -> Table:
    """A table of an account without ids: its rows are found by `key` alone."""
    return Table(
        name, metadata, account_id(), *items, PrimaryKeyConstraint("account_id", *key), info={"tenant": True}, **KEYED
    )


totals = keyed_table("totals", text("name"), integer("count"), key=("name",))
"""How many rows an account has in a table, kept in the transaction that adds or removes them."""
