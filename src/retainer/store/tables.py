"""Common parts of all tables: the metadata, the values that a transaction binds, the counters of rows, and events."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import Column, ForeignKey, MetaData, Table, bindparam, literal_column

from retainer.store.engines.sql import DAY, INSTANT, INTEGER, KEYED, TEXT

metadata = MetaData(
    naming_convention={
        "ix": "%(table_name)s_by_%(column_0_N_name)s",
        "uq": "%(table_name)s_unique_%(column_0_N_name)s",
        "ck": "%(table_name)s_check_%(constraint_name)s",
        "fk": "%(table_name)s_ref_%(column_0_N_name)s",
        "pk": "%(table_name)s_pk",
    }
)

Supply = Callable[[Any], object]


class TransactionValue(NamedTuple):
    supply: Supply


ACCOUNT = bindparam("account_id", TransactionValue(attrgetter("account_id")), type_=INTEGER)
TODAY = bindparam("today", TransactionValue(attrgetter("today")), type_=DAY)
"""The current day in the account's time zone."""
NOW = bindparam("now", TransactionValue(attrgetter("now")), type_=INSTANT)
RESERVED = frozenset(bind.key for bind in (ACCOUNT, TODAY, NOW))  # names that no other bind may have

totals = Table(
    "totals",
    metadata,
    Column("account_id", INTEGER, ForeignKey("accounts.id"), primary_key=True),
    Column("name", TEXT, primary_key=True),
    Column("count", INTEGER, nullable=False),
    info={"of_account": True},
    **KEYED,
)
"""Number of rows of an account in a table, maintained in the transaction that adds or removes them."""

ONCE = totals.c.name == literal_column("'users'")
"""The condition of one row of each account, since all have users. On a cluster, such a row leads to the node of its
account, while `accounts` is on every node."""

events = Table(
    "events",
    metadata,
    Column("account_id", INTEGER, ForeignKey("accounts.id"), primary_key=True),
    Column("id", INTEGER, primary_key=True, autoincrement=False),
    Column("at", INSTANT, nullable=False),
    Column("type", TEXT, nullable=False),
    Column("record_id", INTEGER, nullable=False),
    Column("parent_id", INTEGER, nullable=True),
    Column("fields", TEXT, nullable=False),
    Column("user_id", INTEGER, nullable=True),
    Column("key_id", INTEGER, nullable=True),
    Column("link_id", INTEGER, nullable=True),
    Column("request_id", TEXT, nullable=True),
    info={"of_account": True},
    **KEYED,
)
"""What has happened to the records of an account; `store/outbox.py` writes it.

The ids of an account are 1, 2, 3 and so on, in the order of the commits; the newest event is never deleted, so no id is
used again. Events outlive what they name, so nothing refers to it. The key is the only index: each other one would have
to be written with every change of a record.
"""
