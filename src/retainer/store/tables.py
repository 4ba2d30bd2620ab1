"""Common parts of all tables: the metadata, the values that a transaction binds, and the counters of rows."""

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

FROM_TRANSACTION = object()
"""The value of a bind that stands for the attribute of the transaction with its name."""
ACCOUNT = bindparam("account_id", FROM_TRANSACTION, type_=INTEGER)
TODAY = bindparam("today", FROM_TRANSACTION, type_=DAY)
"""The current day in the account's time zone."""
NOW = bindparam("now", FROM_TRANSACTION, type_=INSTANT)
RESERVED = frozenset(bind.key for bind in (ACCOUNT, TODAY, NOW))
"""Names that no other bind may have."""

totals = Table(
    "totals",
    metadata,
    Column("account_id", INTEGER, ForeignKey("accounts.id"), primary_key=True),
    Column("name", TEXT, primary_key=True),
    Column("count", INTEGER, nullable=False),
    info={"tenant": True},
    **KEYED,
)
"""Number of rows of an account in a table, maintained in the transaction that adds or removes them."""
