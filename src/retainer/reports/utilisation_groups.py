"""Groups of the utilisation report: the time of each user by client, by task or by day."""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from sqlalchemy import Select, Table, bindparam, select

from retainer.errors import invalid
from retainer.reports.common import BillableMinutes, RowCurrency, TrackedMinutes, sums_of
from retainer.reports.periods import Period
from retainer.reports.worked_time import KEYS, SUMS, WORKED, BillableValue, OtherCurrencies, SharePercent, shares
from retainer.rollups.summaries import Figures
from retainer.schema.crm import clients
from retainer.schema.work import tasks
from retainer.store.engines.sql import INTEGER, is_listed, listed
from retainer.store.tx import Tx
from retainer.values.kinds import Id

MAX_GROUPS = 10_000
Key = int | str | None
"""A client, a task or a day."""
GroupBy = Annotated[Literal["client", "task", "day"], Meta(title="UtilisationGrouping")]


class UtilisationGroup(msgspec.Struct):
    """A part of the time of a user."""

    id: Annotated[Id | None, "The client or the task. Null for days, and for time without a client or a task."]
    name: Annotated[str | None, "Current name of the client, title of the task, or the day. Null if there is none."]
    tracked_minutes: TrackedMinutes
    billable_minutes: BillableMinutes
    billable_share_percent: SharePercent
    currency: RowCurrency
    billable_value: BillableValue
    other_currencies: OtherCurrencies


COLUMNS: dict[GroupBy, str] = {"client": "client_id", "task": "task_id", "day": "day"}


def _select_names(table: Table, name: str) -> Select[tuple[int, str]]:
    return select(table.c.id, table.c[name]).where(is_listed(table.c.id, listed("ids", INTEGER).scalar_subquery()))


NAMES = {"client": _select_names(clients, "name"), "task": _select_names(tasks, "title")}


@cache
def _select_groups(limits: tuple[str, ...], by: tuple[str, ...]) -> Select[int]:
    return sums_of(WORKED, by, SUMS, limits).limit(bindparam("limit", type_=INTEGER))


def groups_of_users(
    tx: Tx, period: Period, limits: Mapping[str, object], group_by: GroupBy, currency: str
) -> dict[int, list[UtilisationGroup]]:
    """Return the groups of each user: days in order, others by minutes. Raises `validation_failed` for too many."""
    by = (*KEYS, COLUMNS[group_by])
    bounds = {"first": period.first, "last": period.to, "limit": MAX_GROUPS + 1}
    rows = tx.all(_select_groups(tuple(limits), by), **limits, **bounds)
    if len(rows) > MAX_GROUPS:
        message = f"Gives more than {MAX_GROUPS} groups. Shorten the period, or limit the report to a client or a user."
        raise invalid({"group_by": [message]})
    figures: dict[int, dict[Key, dict[str, Figures]]] = defaultdict(lambda: defaultdict(dict))
    for user_id, code, key, *sums in rows:
        figures[user_id][key][code] = Figures(zip(SUMS, sums, strict=True))
    names = load_names(tx, group_by, {key for keys in figures.values() for key in keys if isinstance(key, int)})
    order: Callable[[UtilisationGroup], tuple[str | int, int]] = by_name if group_by == "day" else by_minutes
    found = {}
    for user_id, keys in figures.items():
        groups = [to_group(key, names, currency, sums) for key, sums in keys.items()]
        found[user_id] = sorted(groups, key=order)
    return found


def load_names(tx: Tx, group_by: GroupBy, ids: set[int]) -> dict[int, str]:
    return dict(tx.all(NAMES[group_by], ids=json.dumps(sorted(ids)))) if group_by in NAMES else {}


def to_group(key: Key, names: dict[int, str], currency: str, figures: dict[str, Figures]) -> UtilisationGroup:
    if isinstance(key, str):
        return UtilisationGroup(id=None, name=key, **shares(currency, figures))
    return UtilisationGroup(id=key, name=None if key is None else names.get(key), **shares(currency, figures))


def by_name(group: UtilisationGroup) -> tuple[str, int]:
    return group.name or "", 0


def by_minutes(group: UtilisationGroup) -> tuple[int, int]:
    return -group.tracked_minutes, group.id or 0
