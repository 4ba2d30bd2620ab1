"""The store: a database, and the transactions in which it is read and written."""

from typing import Any

from sqlalchemy.sql.elements import ClauseElement

from retainer.store.engines import Sqlite
from retainer.store.group_commit import GroupCommit
from retainer.store.statements import statements_of
from retainer.store.transaction import UnscopedTx
from retainer.store.tx import Actor, Tx


class Store:
    """A database: it begins transactions."""

    def __init__(self, engine: Sqlite) -> None:
        self.engine = engine
        self.writers = GroupCommit(engine)
        self.statements = statements_of(engine.dialect)

    def begin(self, actor: Actor, *, write: bool) -> Tx:
        """Return a transaction of the actor's account; leaving its block commits, an exception rolls back."""
        return Tx(self.engine, self.writers, self.statements, actor, write=write)

    def unscoped(self, reason: str, *, write: bool = False) -> UnscopedTx:  # noqa: ARG002
        """Return a transaction over all accounts: for operators' commands and housekeeping."""
        return UnscopedTx(self.engine, self.writers, self.statements, write=write)

    def unscoped_one(self, reason: str, statement: ClauseElement, **values: Any) -> tuple[Any, ...] | None:  # noqa: ARG002
        """Return one row of one statement over all accounts: for finding out whose request this is."""
        text, names, _ = self.statements.prepare(statement, scope=False)
        return self.engine.one(text, [values[name] for name in names])
