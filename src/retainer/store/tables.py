"""Constructors of tables: the metadata, and the columns and constraints that all tables of accounts share."""

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
"""The account of the transaction, bound in every statement."""
TODAY = bindparam("today", type_=DAY)
"""The current day in the account's time zone, bound in every statement that uses it."""
NOW = bindparam("moment", type_=INSTANT)
"""The moment of the transaction, bound in every statement that uses it."""


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
    """A table whose rows belong to an account and have no id: `key` is the primary key within the account."""
    return Table(
        name, metadata, account_id(), *items, PrimaryKeyConstraint("account_id", *key), info={"tenant": True}, **KEYED
    )


totals = keyed_table("totals", text("name"), integer("count"), key=("name",))
"""The number of rows of an account in each table, updated in the transaction that adds or removes them."""
