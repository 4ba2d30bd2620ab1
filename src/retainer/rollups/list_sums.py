"""Sums of a filtered list over all of its rows, by currency: for `totals=true` of the API, and lists of the console."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import msgspec
from sqlalchemy import ColumnElement, Select, Table, case, func, select

from retainer.errors import invalid
from retainer.kernel.paging import Page, SummedMeta, SummedPage, listing
from retainer.kernel.query import Filter, FilterShapes, conditions, parameters, shapes_of
from retainer.rollups import summaries
from retainer.schema import rollups
from retainer.store.engines.base import Row
from retainer.store.row_mapper import R
from retainer.store.statements import DeferredStatement
from retainer.store.tx import Tx
from retainer.values.exact import LAST_DAY, amount_of

S = TypeVar("S", bound=msgspec.Struct)

MAX_SUMMED = 20_000
"""Rows that are added up one by one; time of all, or by client, project, user and day, has stored totals instead."""
TIME_KEYS = {"client_id", "project_id", "user_id"}
DAYS = {"date_from", "date_to"}
FIRST_SUMMED, LAST_SUMMED = "1900-01-01", "2199-12-31"
TIME_SUMS = {"duration_minutes": "tracked_minutes", "billable_minutes": "billable_minutes", "amount": "billable_value"}
"""The summed fields of time, and their stored totals."""


class Sum(NamedTuple):
    """A field to add up over a list: over all of its records, or those of a condition, which the label names."""

    field: str
    where: Callable[[Table], ColumnElement[bool]] | None = None
    label: str = ""


def summed_listing(
    tx: Tx, table: Table, model: type[R], totals: type[S], filters: Filter, page: Page
) -> SummedPage[R, S]:
    """Return a page of records, with the sums of the whole list if they were requested.

    `totals` has a currency, then the fields to sum up. Raises `validation_failed` if too many records match.
    """
    if page.has_totals:
        tx.snapshot()
    listed = listing(tx, table, model, filters, page)
    if not page.has_totals:
        return SummedPage(listed.data, listed.links, listed.meta)
    _, *fields = totals.__struct_fields__
    rows = load_sums(tx, table, tuple(map(Sum, fields)), filters, listed.meta.total)
    if rows is None:
        days = next(name for name in parameters(type(filters)) if name in {"date_from", "issue_date_from"})
        message = (
            f"Sums are computed for up to {MAX_SUMMED:,} records; {listed.meta.total:,} match. Narrow the list, "
            f"for example with {days} and {days.removesuffix('from')}to, or leave totals out."
        )
        raise invalid({"totals": [message]})
    meta: SummedMeta[S] = SummedMeta(*msgspec.structs.astuple(listed.meta))
    meta.totals = []
    for currency, *sums in rows:
        units = zip(fields, (each or 0 for each in sums), strict=True)
        meta.totals.append(
            totals(currency, *(amount_of(unit, currency) if is_money(table, name) else unit for name, unit in units))
        )
    return SummedPage(listed.data, listed.links, meta)


def load_sums(tx: Tx, table: Table, sums: tuple[Sum, ...], filters: Filter, total: int) -> list[Row] | None:
    """Return a row for each currency in a filtered list of `total` rows: the currency, and each sum.

    Amounts are in minor units, and null if no row has one. None: there are too many rows to add up.
    """
    rows = _from_summaries(tx, [each.field for each in sums], filters) if table.name == "time_entries" else None
    if rows is not None:
        return rows
    if total > MAX_SUMMED:
        return None
    shapes, values = shapes_of(filters, tx.actor.user_id)
    return tx.all(DeferredStatement(_sums, (table, type(filters), shapes, sums)), **values)


def is_money(table: Table, field: str) -> bool:
    return field in table.c and bool(table.c[field].info.get("money"))


def _sums(table: Table, model: type[Filter], shapes: FilterShapes, sums: tuple[Sum, ...]) -> Select[str]:
    added = []
    for field, where, _ in sums:
        if field == "billable_minutes":
            added.append(func.sum(case((table.c.billable, table.c.duration_minutes), else_=0)))
        else:
            added.append(func.sum(table.c[field] if where is None else case((where(table), table.c[field]))))
    limits = conditions(table, model, shapes)
    return select(table.c.currency, *added).where(*limits).group_by(table.c.currency).order_by(table.c.currency)


def _from_summaries(tx: Tx, fields: list[str], filters: Filter) -> list[Row] | None:
    """Return the sums of time entries from stored totals; None if no summary has the filters."""
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
    names = tuple(TIME_SUMS[field] for field in fields)
    found = summaries.read(tx, table, days, ("currency",), names, None, **only)
    return [(code, *(found[code,][name] for name in names)) for (code,) in sorted(found)]
