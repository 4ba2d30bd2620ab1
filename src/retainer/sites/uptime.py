"""Uptime: what the checks of a site have found, rolled up as they are made, so that reading adds up nothing.

A site is down after two failures in a row. Each check counts as up or down; while a site is in maintenance none does.
The last day is counted from the checks themselves, which are kept as long; weeks and months from sums for each hour.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import ColumnElement, Select, Table, and_, bindparam, case, delete, func, insert, select, update

from retainer.schema.sites import site_checks, site_hours, sites
from retainer.store.records import Derived
from retainer.store.tables import NOW
from retainer.store.transaction import Transaction
from retainer.store.tx import Tx
from retainer.values.exact import as_instant, half_up

DAY, WEEK, MONTH = timedelta(days=1), timedelta(days=7), timedelta(days=30)

OBSERVED = (
    *("uptime_24h", "uptime_7d", "uptime_30d", "last_checked_at", "down_since", "last_status_code"),
    *("response_time_ms", "last_error", "ssl_expires_at"),
)
CHECK_NOW = update(sites).where(sites.c.id == bindparam("site")).values(next_check_at=bindparam("now"))
START_OVER = CHECK_NOW.values({"observed": "unknown", "failures": 0, **dict.fromkeys(OBSERVED)})
DELETE_CHECKS = [delete(table).where(table.c.site_id == bindparam("site")) for table in (site_checks, site_hours)]
SHARES = {"uptime_24h": "day", "uptime_7d": "week", "uptime_30d": "month", "uptime_at": "at"}
WRITE_SHARES = (
    update(sites)
    .where(sites.c.account_id == bindparam("account"), sites.c.id == bindparam("site"))
    .values({name: bindparam(value) for name, value in SHARES.items()})
)


def _of_site(table: Table) -> ColumnElement[bool]:
    return and_(table.c.account_id == bindparam("account"), table.c.site_id == bindparam("site"))


ADD_CHECK = insert(site_checks).values(
    account_id=bindparam("account"), site_id=bindparam("site"), checked_at=bindparam("at"), is_up=bindparam("up")
)
ADD_TO_HOUR = (
    update(site_hours)
    .where(_of_site(site_hours), site_hours.c.hour == bindparam("hour"))
    .values({name: site_hours.c[name] + bindparam(name) for name in ("up", "down")})
)
NEW_HOUR = insert(site_hours).values(
    account_id=bindparam("account"),
    site_id=bindparam("site"),
    **{name: bindparam(name) for name in ("hour", "up", "down")},
)
OLD_CHECKS = delete(site_checks).where(_of_site(site_checks), site_checks.c.checked_at <= bindparam("before"))
OLD_HOURS = delete(site_hours).where(_of_site(site_hours), site_hours.c.hour <= bindparam("before"))
DAY_SUMS = (
    select(func.sum(case((site_checks.c.is_up, 1), else_=0)), func.count())
    .select_from(site_checks)
    .where(_of_site(site_checks))
)


class MonthSums(NamedTuple):
    """How many checks of the last 7 and 30 days found a site up, and how many there were; null without any."""

    week_up: int | None = None
    week_total: int | None = None
    month_up: int | None = None
    month_total: int | None = None


def _month_sums() -> Select[int, int, int, int]:
    hours = site_hours.c
    in_week, total = hours.hour > bindparam("week"), hours.up + hours.down
    week_up, week_total = func.sum(case((in_week, hours.up), else_=0)), func.sum(case((in_week, total), else_=0))
    return select(week_up, week_total, func.sum(hours.up), func.sum(total)).where(_of_site(site_hours))


MONTH_SUMS = _month_sums()


def check_now(tx: Tx, site_id: int, *, start_over: bool = False) -> None:
    """Make a site's next check due at once; with `start_over`, delete all that was observed of it."""
    tx.run(START_OVER if start_over else CHECK_NOW, site=site_id, now=tx.now)
    for statement in DELETE_CHECKS if start_over else ():
        tx.run(statement, site=site_id)


def effective_status(table: Table) -> ColumnElement[str]:
    """Return the status of a site: what was observed, unless it is not monitored or in maintenance."""
    is_paused, in_maintenance = table.c.monitoring_enabled.is_(False), table.c.maintenance_until > NOW
    return case((is_paused, "paused"), (in_maintenance, "maintenance"), else_=table.c.observed)


def percent(column: str) -> Derived:
    """Return a column of thousandths of a percent as a field: a JSON number of percent with three places."""
    return Derived(
        lambda table: table.c[column], lambda thousandths: None if thousandths is None else thousandths / 1000
    )


def add_check(tx: Transaction, account_id: int, site_id: int, *, is_up: bool) -> None:
    """Keep a check, made now, for the share of the last 24 hours."""
    tx.run(ADD_CHECK, account=account_id, site=site_id, at=tx.now, up=is_up)


def add_to_hour(tx: Transaction, account_id: int, site_id: int, *, up: int, down: int) -> None:
    """Add checks to the sums of the present hour."""
    values = {"account": account_id, "site": site_id, "hour": tx.now[:13], "up": up, "down": down}
    if not tx.change(ADD_TO_HOUR, **values):
        tx.run(NEW_HOUR, **values)


def summarise(tx: Transaction, account_id: int, site_id: int) -> None:
    """Write the shares of a site's checks that were up, as of now, and delete what no share counts any more."""
    key = {"account": account_id, "site": site_id}
    day, week, month = (later(tx.now, -span) for span in (DAY, WEEK, MONTH))
    tx.run(OLD_CHECKS, **key, before=day)
    tx.run(OLD_HOURS, **key, before=month[:13])
    up, total = tx.one(DAY_SUMS, **key) or (0, 0)
    sums = MonthSums(*(tx.one(MONTH_SUMS, **key, week=week[:13]) or ()))
    shares = {
        "day": share(up, total),
        "week": share(sums.week_up, sums.week_total),
        "month": share(sums.month_up, sums.month_total),
    }
    tx.run(WRITE_SHARES, **key, at=tx.now, **shares)


def share(up: int | None, total: int | None) -> int | None:
    """Return a share in thousandths of a percent, rounded half up, or None without checks."""
    return half_up((up or 0) * 100_000, total) if total else None


def later(moment: str, span: timedelta) -> str:
    """Return the moment that lies this long after another."""
    return as_instant(datetime.fromisoformat(moment) + span)
