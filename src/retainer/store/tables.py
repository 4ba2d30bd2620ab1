"""What all tables have in common: one metadata, the values that a transaction binds, and the counters of rows."""

from sqlalchemy import Column, ForeignKey, MetaData, Table, bindparam

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

ACCOUNT = bindparam("account_id", type_=INTEGER)
"""The account of the transaction, bound in every statement."""
TODAY = bindparam("today", None, type_=DAY)
"""The current day in the account's time zone, bound in every statement that uses it, in place of the None."""
NOW = bindparam("moment", None, type_=INSTANT)
"""The moment of the transaction, bound likewise."""


totals = Table(
    "totals",
    metadata,
    Column("account_id", INTEGER, ForeignKey("accounts.id"), primary_key=True),
    Column("name", TEXT, primary_key=True),
    Column("count", INTEGER, nullable=False),
    info={"tenant": True},
    **KEYED,
)
"""How many rows an account has in a table, kept in the transaction that adds or removes them."""
