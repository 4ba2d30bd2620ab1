"""Sums of a filtered list, computed over all of its rows and by currency, whichever page is shown."""

from decimal import Decimal
from typing import Any, NamedTuple

from sqlalchemy import Select, Table, func, select

from retainer.kernel.query import Filter, Signature, conditions, signature_of
from retainer.rollups import summaries
from retainer.schema import rollups
from retainer.store.engines.base import Row
from retainer.store.statements import Deferred
from retainer.store.tx import Tx
from retainer.values.exact import LAST_DAY, amount_of

MAX_SUMMED = 20_000
"""Rows that are added up one by one; time of all, or by client, project, user and day, has stored totals instead."""
TIME_KEYS = {"client_id", "project_id", "user_id"}
DAYS = {"date_from", "date_to"}
FIRST_SUMMED, LAST_SUMMED = "1900-01-01", "2199-12-31"
TIME_SUMS = ("tracked_minutes", "billable_value")
"""The stored totals of time, in the order of the summed columns."""


class Sum(NamedTuple):
    """The sum of a field: whole minutes, or the amount in each currency."""

    minutes: int
    amounts: list[tuple[str, Decimal]]


def load_sums(tx: Tx, table: Table, fields: tuple[str, ...], filters: Filter, total: int) -> dict[str, Sum] | None:
    """Return the sums of fields over a filtered list of `total` rows; None if there are too many rows to add up."""
    rows = _from_summaries(tx, filters) if table.name == "time_entries" else None
    if rows is None:
        if total > MAX_SUMMED:
            return None
        signature, values = signature_of(filters, tx.actor.user_id)
        rows = tx.all(Deferred(_sums, (table, type(filters), signature, fields)), **values)
    found = {}
    for position, field in enumerate(fields, 1):
        if table.c[field].info.get("money"):
            amounts = [(row[0], amount_of(row[position], row[0])) for row in rows if row[position] is not None]
            found[field] = Sum(0, amounts)
        else:
            found[field] = Sum(sum(row[position] for row in rows), [])
    return found


def _sums(table: Table, model: type[Filter], signature: Signature, fields: tuple[str, ...]) -> Select[str]:
    sums = [func.sum(table.c[field]) for field in fields]
    limits = conditions(table, model, signature)
    return select(table.c.currency, *sums).where(*limits).group_by(table.c.currency).order_by(table.c.currency)


def _from_summaries(tx: Tx, filters: Filter) -> list[Row] | None:
    """Return the currency, minutes and value of time entries from stored totals; None if no summary has the filters."""
    asked: dict[str, Any] = {
        name: value for name in filters.__struct_fields__ if (value := getattr(filters, name)) is not None
    }
    keys = asked.keys() & TIME_KEYS
    is_single = all(len(asked[name]) == 1 for name in keys)
    if not is_single or asked.keys() - TIME_KEYS - DAYS or ("user_id" in keys and len(keys) > 1):
        return None
    table = rollups.user_sums if "user_id" in keys else rollups.project_sums
    only: dict[str, int] = {name: asked[name][0] or 0 for name in keys}  # the key of rows without a project is 0
    if only.get("user_id", 1) < 0:
        only["user_id"] = tx.actor.user_id
    first, last = asked.get("date_from"), min(asked.get("date_to") or LAST_DAY, LAST_SUMMED)
    days = (None, last) if first is None else (max(first, FIRST_SUMMED), last)
    found = summaries.read(tx, table, days, ("currency",), TIME_SUMS, None, **only)
    return [(code, *(found[code,][name] for name in TIME_SUMS)) for (code,) in sorted(found)]
