"""Statements: compiled once for a dialect, limited to the account on the way, and then run by the driver."""

from functools import cache
from typing import Any

from sqlalchemy import Dialect
from sqlalchemy.sql.elements import ClauseElement

from retainer.store.scope import scoped

MOST_TEXTS = 4096

Prepared = tuple[str, dict[str, Any]]
"""The text of a statement for the driver, and the values that it brings along."""


class Statements:
    """The statements of a dialect: the same for all databases of a process, so each is compiled once."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.scoped: dict[ClauseElement, Prepared] = {}
        self.unscoped: dict[ClauseElement, Prepared] = {}

    def prepare(self, statement: ClauseElement, *, scope: bool) -> Prepared:
        """Return a statement for the driver, limited to the account when `scope` is set."""
        known = self.scoped if scope else self.unscoped
        prepared = known.get(statement)
        if prepared is None:
            if len(known) >= MOST_TEXTS:  # filters and orders can be combined without end
                known.clear()
            compiled = (scoped(statement) if scope else statement).compile(dialect=self.dialect)
            prepared = known[statement] = (str(compiled), dict(compiled.params))
        return prepared


@cache
def statements_of(dialect: Dialect) -> Statements:
    """Return the statements of a dialect."""
    return Statements(dialect)
