"""Statements: each is limited to the account when it is compiled, so that no author can forget it, and compiled once.

A value in a statement is a constant of its text, since binding it would cost time with every run. A value that differs
between requests is a `bindparam` with a name.
"""

from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple, cast

from sqlalchemy import Alias, BindParameter, Dialect, FromClause, Join, Table, and_, literal, literal_column
from sqlalchemy.sql import visitors
from sqlalchemy.sql.elements import ClauseElement

from retainer.store.announcements import Change, announcement_of
from retainer.store.tables import ACCOUNT, RESERVED, TODAY, Supply, TransactionValue

CACHE_SIZE = 1024
"""Compiled statements that are cached for each dialect: about 400 are constants of the program, the rest are lists.

A list takes about 5 KB. Filters and orders can be combined in endless ways, so the least recently used one is dropped.
"""


class DeferredStatement(NamedTuple):
    """A statement that a function of hashable arguments builds, unless its text is cached.

    A statement that SQLAlchemy has built takes about 100 KB, its text a twentieth of that.
    """

    build: Callable[..., ClauseElement]
    arguments: tuple[object, ...]


Statement = ClauseElement | DeferredStatement


class CompiledStatement(NamedTuple):
    text: str
    names: list[str]
    """The names of the values of the placeholders 1, 2 and so on; a value that is used twice has one placeholder."""
    constants: dict[str, object]
    supplied: dict[str, Supply]  # what supplies values from the transaction, by name
    change: Change | None  # the change of records that it makes, which becomes an event for each


class Statements:
    def __init__(self, dialect: Dialect, marker: str) -> None:
        self.dialect = dialect
        self.marker = marker
        self.of_account = lru_cache(CACHE_SIZE)(partial(self._compile, scope=True))
        self.of_all = lru_cache(CACHE_SIZE)(partial(self._compile, scope=False))

    def _compile(self, statement: Statement, *, scope: bool) -> CompiledStatement:
        built = statement.build(*statement.arguments) if isinstance(statement, DeferredStatement) else statement
        for element in visitors.iterate(built):  # such a bind would take the place of the transaction's value
            if (
                isinstance(element, BindParameter)
                and element.key in RESERVED
                and not isinstance(element.value, TransactionValue)
            ):
                raise TypeError(f"The bind {element.key} has the name of a value of the transaction. Rename it.")
        change = announcement_of(built)
        whole = with_constants(scoped(built) if scope else built, self.dialect)
        compiled: Any = whole.compile(dialect=self.dialect)
        names: list[str] = compiled.positiontup
        values = {name: compiled.binds[name].value for name in names if not compiled.binds[name].required}
        supplied = {name: value.supply for name, value in values.items() if isinstance(value, TransactionValue)}
        constants = {name: value for name, value in values.items() if name not in supplied}
        if not scope and {ACCOUNT.key, TODAY.key}.intersection(supplied):
            raise TypeError("A statement over all accounts cannot use ACCOUNT or TODAY: no account is known.")
        return CompiledStatement(compiled.string.replace("$", self.marker), names, constants, supplied, change)


@cache
def statements_of(dialect: Dialect, marker: str) -> Statements:
    return Statements(dialect, marker)


def scoped(statement: ClauseElement) -> ClauseElement:
    """Return the statement with `account_id = :account_id` on every tenant table in it, including subqueries.

    The right side of a join is limited in its ON clause, so that outer joins remain outer joins.
    """

    def limit(part: Any, tables: list[FromClause]) -> None:
        part._where_criteria += tuple(table.c.account_id == ACCOUNT for table in tables)  # noqa: SLF001

    def select(part: Any) -> None:
        if part._setup_joins:  # noqa: SLF001
            raise TypeError("Write joins as first.join(second, condition), where the second can be limited.")
        # `get_final_froms` compiles the statement to find the same
        sources = part._compile_state_factory(part, None)._get_display_froms()  # noqa: SLF001
        limit(part, [table for source in sources for table in _leftmost(source)])

    def join(part: Any) -> None:
        if _has_account(part.right):
            part.onclause = and_(part.onclause, part.right.c.account_id == ACCOUNT)

    def change(part: Any) -> None:
        if _has_account(part.table):
            limit(part, [part.table])

    visits = {"select": select, "join": join, "update": change, "delete": change}
    return visitors.cloned_traverse(statement, {}, visits)


def with_constants(statement: ClauseElement, dialect: Dialect) -> ClauseElement:
    """Return the statement with its constants, whole numbers and texts, in the text.

    Texts with a dollar sign stay bound, as `_compile` replaces every dollar with the marker.
    """
    compiler = dialect.statement_compiler(dialect, None)

    def constant(element: object, **_: object) -> ClauseElement | None:
        if not isinstance(element, BindParameter) or not element.unique or type(element.value) not in {int, str}:
            return None
        text = compiler.render_literal_value(element.value, literal(element.value).type)
        text = f"({text})" if text.startswith("-") else text  # as two minus signs begin a comment
        return None if "$" in text else literal_column(text, element.type)

    return cast("ClauseElement", visitors.replacement_traverse(statement, {}, constant))


def _leftmost(source: FromClause) -> list[FromClause]:
    while isinstance(source, Join):
        source = source.left
    return [source] if _has_account(source) else []


def _has_account(source: object) -> bool:
    table = source.element if isinstance(source, Alias) else source
    return isinstance(table, Table) and bool(table.info.get("of_account"))
