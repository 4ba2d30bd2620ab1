"""Uptime: what the checks of a site have found, rolled up as they are made, so that reading adds up nothing.

A site is down after two failures in a row. Each check counts as up or down; while a site is in maintenance none does.
The last day is counted from the checks themselves, which are kept as long; weeks and months from sums for each hour.
"""

from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Delete,
    Insert,
    Select,
    Table,
    Update,
    and_,
    bindparam,
    case,
    delete,
    func,
    insert,
    select,
    update,
)

from retainer.exact import as_instant, half_up
from retainer.store.columns import flag, hidden, instant, integer, ref, text
from retainer.store.records import Derived
from retainer.store.tables import NOW, keyed_table, metadata
from retainer.store.tx import Everywhere, Tx

DAY, WEEK, MONTH = timedelta(days=1), timedelta(days=7), timedelta(days=30)

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
    for table in (site_checks, site_hours) if anew else ():
        tx.run(_forget(table), site=site)


def standing(table: Table) -> ColumnElement[Any]:
    """The status of a site: what was observed, unless nobody looks or nobody should."""
    paused, excused = table.c.monitoring_enabled.is_(False), table.c.maintenance_until > NOW
    return case((paused, "paused"), (excused, "maintenance"), else_=table.c.observed)


def percent(column: str) -> Derived:
    """A share that was counted in thousandths of a percent, as a JSON number with three places."""
    return Derived(
        lambda table: table.c[column], lambda thousandths: None if thousandths is None else thousandths / 1000
    )


def check(tx: Everywhere, account_id: int, site_id: int, *, is_up: bool) -> None:
    """Note a check for the figures of the day."""
    tx.run(_check(), account=account_id, site=site_id, at=tx.now, up=is_up)


def count(tx: Everywhere, account_id: int, site_id: int, *, up: int, down: int) -> None:
    """Add checks to those of the hour it is."""
    values = {"account": account_id, "site": site_id, "hour": tx.now[:13], "up": up, "down": down}
    if not tx.run(_hour(), **values):
        tx.run(_new_hour(), **values)


def summarise(tx: Everywhere, account_id: int, site_id: int) -> None:
    """Write the shares of a site's checks that were up, as of now, and forget what no share counts any more."""
    its = {"account": account_id, "site": site_id}
    day, week, month = (later(tx.now, -span) for span in (DAY, WEEK, MONTH))
    tx.run(_old_checks(), **its, before=day)
    tx.run(_old_hours(), **its, before=month[:13])
    up, total = tx.one(_of_day(), **its) or (0, 0)
    up7, total7, up30, total30 = tx.one(_of_month(), **its, week=week[:13]) or (0, 0, 0, 0)
    shares = {"day": share(up, total), "week": share(up7, total7), "month": share(up30, total30)}
    tx.run(_shares(), site=site_id, at=tx.now, **shares)


def share(up: int | None, total: int | None) -> int | None:
    """Thousandths of a percent, rounded half up; none without checks."""
    return half_up((up or 0) * 100_000, total) if total else None


def later(moment: str, span: timedelta) -> str:
    """The moment so long after another."""
    return as_instant(datetime.fromisoformat(moment) + span)


@cache
def _now() -> Update:
    sites = metadata.tables["sites"]
    return update(sites).where(sites.c.id == bindparam("site")).values(next_check_at=bindparam("now"))


@cache
def _forget(table: Table) -> Delete:
    return delete(table).where(table.c.site_id == bindparam("site"))


@cache
def _anew() -> Update:
    nothing = (
        "uptime_24h",
        "uptime_7d",
        "uptime_30d",
        "last_checked_at",
        "down_since",
        "last_status_code",
        "response_time_ms",
        "last_error",
        "ssl_expires_at",
    )
    values: dict[str, Any] = {"observed": "unknown", "failures": 0, **dict.fromkeys(nothing)}
    return _now().values(values)


@cache
def _shares() -> Update:
    sites = metadata.tables["sites"]
    spans = {"uptime_24h": "day", "uptime_7d": "week", "uptime_30d": "month", "uptime_at": "at"}
    values: dict[str, Any] = {name: bindparam(span) for name, span in spans.items()}
    return update(sites).where(sites.c.id == bindparam("site")).values(values)


def _its(table: Table) -> ColumnElement[bool]:
    return and_(table.c.account_id == bindparam("account"), table.c.site_id == bindparam("site"))


@cache
def _check() -> Insert:
    values: dict[str, Any] = {"checked_at": bindparam("at"), "is_up": bindparam("up")}
    return insert(site_checks).values(account_id=bindparam("account"), site_id=bindparam("site"), **values)


@cache
def _hour() -> Update:
    more: dict[str, Any] = {name: site_hours.c[name] + bindparam(name) for name in ("up", "down")}
    return update(site_hours).where(_its(site_hours), site_hours.c.hour == bindparam("hour")).values(more)


@cache
def _new_hour() -> Insert:
    values: dict[str, Any] = {name: bindparam(name) for name in ("hour", "up", "down")}
    return insert(site_hours).values(account_id=bindparam("account"), site_id=bindparam("site"), **values)


@cache
def _old_checks() -> Delete:
    return delete(site_checks).where(_its(site_checks), site_checks.c.checked_at <= bindparam("before"))


@cache
def _old_hours() -> Delete:
    return delete(site_hours).where(_its(site_hours), site_hours.c.hour <= bindparam("before"))


@cache
def _of_day() -> Select[Any]:
    up: Any = func.sum(case((site_checks.c.is_up, 1), else_=0))
    total: Any = func.count()
    return select(up, total).select_from(site_checks).where(_its(site_checks))


@cache
def _of_month() -> Select[Any]:
    hours = site_hours.c
    of_week = hours.hour > bindparam("week")
    total = hours.up + hours.down
    sums: Any = (case((of_week, hours.up), else_=0), case((of_week, total), else_=0), hours.up, total)
    return select(*(func.sum(its) for its in sums)).where(_its(site_hours))
