"""Tenant isolation: the account is added to every statement when it is prepared, so that nobody can forget it."""

from typing import Any

from sqlalchemy import Alias, Join, Table, and_
from sqlalchemy.sql import visitors
from sqlalchemy.sql.elements import ClauseElement

from retainer.store.tables import ACCOUNT


def scoped(statement: ClauseElement) -> ClauseElement:
    """Return the statement with `account_id = :account_id` on every tenant table in it, subqueries included.

    The right side of a join is limited in its ON clause, so that outer joins remain outer joins.
    """

    def limit(part: Any, tables: list[Table]) -> None:
        part._where_criteria += tuple(table.c.account_id == ACCOUNT for table in tables)  # noqa: SLF001

    def select(part: Any) -> None:
        if part._setup_joins:  # noqa: SLF001
            raise TypeError("Write joins as first.join(second, condition), where the second can be limited.")
        limit(part, [table for source in part.get_final_froms() for table in _leftmost(source)])

    def join(part: Any) -> None:
        if _is_tenant(part.right):
            part.onclause = and_(part.onclause, part.right.c.account_id == ACCOUNT)

    def change(part: Any) -> None:
        if _is_tenant(part.table):
            limit(part, [part.table])

    visits = {"select": select, "join": join, "update": change, "delete": change}
    return visitors.cloned_traverse(statement, {}, visits)


def _leftmost(source: Any) -> list[Table]:
    while isinstance(source, Join):
        source = source.left
    return [source] if _is_tenant(source) else []


def _is_tenant(source: Any) -> bool:
    table = source.element if isinstance(source, Alias) else source
    return isinstance(table, Table) and bool(table.info.get("tenant"))
