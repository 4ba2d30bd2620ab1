"""Usage: what each account of a server stores and asks for, for its operator."""

import math
from typing import Any

from sqlalchemy import ColumnElement, Table, func, select

from retainer.schema.identity import api_keys, logos
from retainer.schema.requests import request_hours
from retainer.store.tables import metadata
from retainer.store.tx import Store


def _by_account(table: Table, figure: ColumnElement[Any]) -> Any:  # a Select of two columns
    return select(table.c.account_id, figure).group_by(table.c.account_id)


ROWS = [_by_account(table, func.count()) for table in metadata.sorted_tables if table.info.get("tenant")]
FIGURES = {
    "logo_bytes": _by_account(logos, func.sum(func.length(logos.c.content))),
    "requests": _by_account(request_hours, func.sum(request_hours.c.requests)),
    "server_errors": _by_account(request_hours, func.sum(request_hours.c.server_errors)),
    "last_used_at": _by_account(api_keys, func.max(api_keys.c.last_used_at)),
}
NOTHING = {"rows": 0, "logo_bytes": 0, "requests": 0, "server_errors": 0, "last_used_at": None}
"""The usage of an account without a row."""


def usage_by_account(store: Store) -> dict[int, dict[str, Any]]:
    """Return the usage of each account with a row: the number of its rows in all tables, and the figures.

    `requests` and `server_errors` are those of the days that the request log keeps; `last_used_at` is when a key was.
    """
    usage: dict[int, dict[str, Any]] = {}
    with store.unscoped(seconds=math.inf) as tx:
        for statement in ROWS:
            for account_id, count in tx.all(statement):
                usage.setdefault(account_id, dict(NOTHING))["rows"] += count
        for name, statement in FIGURES.items():
            for account_id, figure in tx.all(statement):
                usage[account_id][name] = figure
    return usage
