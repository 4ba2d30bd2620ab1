"""Uptime: what the checks of a site have found, rolled up as they are made, so that reading adds up nothing.

A site is down after two failures in a row. Each check counts as up or down; while a site is in maintenance none does.
The last day is counted from the checks themselves, which are kept as long; weeks and months from sums for each hour.
"""

from functools import cache
from typing import Any

from sqlalchemy import Column, ColumnElement, Table, Update, bindparam, case, update

from retainer.store.columns import flag, hidden, instant, integer, ref, text
from retainer.store.records import Derived
from retainer.store.tables import NOW, keyed_table, metadata
from retainer.store.tx import Tx

site_checks = keyed_table(
    "site_checks",
    *ref("site_id", "sites", on_delete="cascade"),
    instant("checked_at"),
    flag("is_up"),
    key=("site_id", "checked_at"),
)
site_hours = keyed_table(
    "site_hours",
    *ref("site_id", "sites", on_delete="cascade"),
    text("hour"),
    integer("up"),
    integer("down"),
    key=("site_id", "hour"),
)


def observed_columns() -> list[Column[Any]]:
    """What the monitor writes of a site; some of it is told in other words."""
    return [
        hidden(text("observed", server_default="unknown")),
        hidden(integer("failures", server_default="0")),
        instant("last_checked_at", optional=True),
        instant("down_since", optional=True),
        integer("last_status_code", optional=True),
        integer("response_time_ms", optional=True),
        text("last_error", optional=True),
        instant("ssl_expires_at", optional=True),
        *(hidden(integer(f"uptime_{span}", optional=True)) for span in ("24h", "7d", "30d")),
        hidden(instant("uptime_at", optional=True)),
        hidden(instant("next_check_at", optional=True)),
    ]


def begin(tx: Tx, site: int, *, anew: bool = False) -> None:
    """Let a site be checked at once; `anew`, as if it had never been."""
    tx.run(_anew() if anew else _now(), site=site, now=tx.now)


def standing(table: Table) -> ColumnElement[Any]:
    """The status of a site: what was observed, unless nobody looks or nobody should."""
    paused, excused = table.c.monitoring_enabled.is_(False), table.c.maintenance_until > NOW
    return case((paused, "paused"), (excused, "maintenance"), else_=table.c.observed)


def percent(column: str) -> Derived:
    """A share that was counted in thousandths of a percent, as a JSON number with three places."""
    return Derived(
        lambda table: table.c[column], lambda thousandths: None if thousandths is None else thousandths / 1000
    )


@cache
def _now() -> Update:
    sites = metadata.tables["sites"]
    return update(sites).where(sites.c.id == bindparam("site")).values(next_check_at=bindparam("now"))


@cache
def _anew() -> Update:
    nothing = ("last_checked_at", "down_since", "last_status_code", "response_time_ms", "last_error", "ssl_expires_at")
    values: dict[str, Any] = {"observed": "unknown", "failures": 0, **dict.fromkeys(nothing)}
    return _now().values(values)
