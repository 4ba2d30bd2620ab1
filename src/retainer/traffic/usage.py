"""Usage: what each account of a server stores and asks for, for its operator."""

import math
from collections import Counter

from sqlalchemy import ColumnElement, Select, Table, func, select

from retainer.schema.files import files
from retainer.schema.identity import api_keys, logos
from retainer.schema.requests import request_hours
from retainer.store.tables import metadata, totals
from retainer.store.tx import Store


def _by_account(table: Table, figure: ColumnElement[int] | ColumnElement[str]) -> Select[tuple[int, int | str]]:
    return select(table.c.account_id, figure).group_by(table.c.account_id)


def _counted(name: str) -> Select[tuple[int, int | str]]:
    return select(totals.c.account_id, totals.c.count).where(totals.c.name == name)


ROWS = [_by_account(table, func.count()) for table in metadata.sorted_tables if table.info.get("of_account")]
FIGURES = {
    "sites": _counted("sites"),
    "webhooks": _counted("webhooks"),
    "logo_bytes": _by_account(logos, func.sum(func.length(logos.c.content))),
    "file_bytes": _by_account(files, func.sum(files.c.size)),
    "requests": _by_account(request_hours, func.sum(request_hours.c.requests)),
    "server_errors": _by_account(request_hours, func.sum(request_hours.c.server_errors)),
    "last_used_at": _by_account(api_keys, func.max(api_keys.c.last_used_at)),
}
NOTHING: dict[str, object] = {"rows": 0, **dict.fromkeys(FIGURES, 0), "last_used_at": None}
"""The usage of an account without a row."""


def usage_by_account(store: Store) -> dict[int, dict[str, object]]:
    """Return the usage of each account with a row: the number of its rows in all tables, and the figures.

    `requests` and `server_errors` are those of the days that the request log keeps; `last_used_at` is when a key was.
    """
    rows: Counter[int] = Counter()
    with store.unscoped(seconds=math.inf) as tx:
        for statement in ROWS:
            for account_id, count in tx.all(statement):
                rows[account_id] += count
        usage: dict[int, dict[str, object]] = {account_id: NOTHING | {"rows": rows[account_id]} for account_id in rows}
        for name, statement in FIGURES.items():
            for account_id, figure in tx.all(statement):
                usage[account_id][name] = figure
    return usage
