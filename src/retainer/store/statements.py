"""Statements: compiled once for a dialect, limited to the account on the way, and then run by the driver."""

from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Dialect
from sqlalchemy.sql.elements import ClauseElement

from retainer.store.scope import scoped

MOST_TEXTS = 4096


class Prepared(NamedTuple):
    """A statement for the driver."""

    text: str
    names: list[str]
    """The names of the values at ?1, ?2 and so on; one that is used twice has one place."""
    constants: dict[str, Any]
    """The values that it brings along."""


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
            compiled: Any = (scoped(statement) if scope else statement).compile(dialect=self.dialect)
            text = compiled.string.replace("$", "?")
            prepared = known[statement] = Prepared(text, compiled.positiontup, dict(compiled.params))
        return prepared


@cache
def statements_of(dialect: Dialect) -> Statements:
    """Return the statements of a dialect."""
    return Statements(dialect)
