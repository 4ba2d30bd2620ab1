"""Uptime: the share of checks that found a site up, rolled up with each check.

The last day is counted from the checks themselves, weeks and months from sums for each hour, kept for 90 days.
"""

from datetime import timedelta

from sqlalchemy import ColumnElement, Select, Table, and_, bindparam, case, delete, func, insert, select, update

from retainer.schema.sites import site_checks, site_hours, site_incidents, sites
from retainer.store.announcements import maintaining
from retainer.store.row_mapper import Derived
from retainer.store.tables import NOW
from retainer.store.transaction import Transaction
from retainer.store.tx import Tx
from retainer.values.exact import half_up, instant_after

DAY, WEEK, MONTH, QUARTER = timedelta(days=1), timedelta(days=7), timedelta(days=30), timedelta(days=90)

OBSERVED = (
    *("uptime_24h", "uptime_7d", "uptime_30d", "last_checked_at", "down_since", "last_status_code"),
    *("response_time_ms", "last_error", "ssl_expires_at"),
)
HOUR_SUMS = ("up", "down", "responses", "response_ms")
THIS_SITE = sites.c.id == bindparam("site")
CHECK_NOW = maintaining(sites, THIS_SITE, values={"next_check_at": NOW})
UNCHECKED = {"next_check_at": NOW, "observed": "unknown", "failures": 0, **dict.fromkeys(OBSERVED)}
RESET = maintaining(sites, THIS_SITE, values=UNCHECKED)
DELETE_CHECKS = [
    delete(table).where(table.c.site_id == bindparam("site")) for table in (site_checks, site_hours, site_incidents)
]
WRITE_SHARES = maintaining(
    sites,
    sites.c.account_id == bindparam("account"),
    THIS_SITE,
    values={name: bindparam(name) for name in ("uptime_24h", "uptime_7d", "uptime_30d", "uptime_at")},
)


def _of_site(table: Table) -> ColumnElement[bool]:
    return and_(table.c.account_id == bindparam("account"), table.c.site_id == bindparam("site"))


ADD_CHECK = insert(site_checks).values(
    account_id=bindparam("account"), site_id=bindparam("site"), checked_at=bindparam("at"), is_up=bindparam("up")
)
ADD_TO_HOUR = (
    update(site_hours)
    .where(_of_site(site_hours), site_hours.c.hour == bindparam("hour"))
    .values({name: site_hours.c[name] + bindparam(name) for name in HOUR_SUMS})
)
NEW_HOUR = insert(site_hours).values(
    account_id=bindparam("account"),
    site_id=bindparam("site"),
    **{name: bindparam(name) for name in ("hour", *HOUR_SUMS)},
)
OLD_CHECKS = delete(site_checks).where(_of_site(site_checks), site_checks.c.checked_at <= bindparam("before"))
OLD_HOURS = delete(site_hours).where(_of_site(site_hours), site_hours.c.hour <= bindparam("before"))
DAY_SUMS = (
    select(func.sum(case((site_checks.c.is_up, 1), else_=0)), func.count())
    .select_from(site_checks)
    .where(_of_site(site_checks))
)


def _month_sums() -> Select[int, int, int, int]:
    hours = site_hours.c
    in_week = hours.hour > bindparam("week")
    total = hours.up + hours.down
    week_up = func.sum(case((in_week, hours.up), else_=0))
    week_total = func.sum(case((in_week, total), else_=0))
    sums = select(week_up, week_total, func.sum(hours.up), func.sum(total))
    return sums.where(_of_site(site_hours), hours.hour > bindparam("month"))


MONTH_SUMS = _month_sums()


def check_now(tx: Tx, site_id: int, *, reset: bool = False) -> None:
    """Make a site's next check due immediately; with `reset`, delete what earlier checks observed."""
    tx.run(RESET if reset else CHECK_NOW, site=site_id)
    for statement in DELETE_CHECKS if reset else ():
        tx.run(statement, site=site_id)


def effective_status(table: Table) -> ColumnElement[str]:
    """Return the status of a site as an expression: the observed one, unless it is paused or in maintenance."""
    is_paused, in_maintenance = table.c.monitoring_enabled.is_(False), table.c.maintenance_until > NOW
    return case((is_paused, "paused"), (in_maintenance, "maintenance"), else_=table.c.observed)


def percent(column: str) -> Derived:
    """Return a column of thousandths of a percent as a field: a JSON number with three decimal places."""
    return Derived(lambda table: table.c[column], lambda thousandths: thousandths / 1000)


def add_check(tx: Transaction, account_id: int, site_id: int, *, is_up: bool) -> None:
    """Save a check, made now, for the share of the last 24 hours."""
    tx.run(ADD_CHECK, account=account_id, site=site_id, at=tx.now, up=is_up)


def add_to_hour(tx: Transaction, account_id: int, site_id: int, *, is_up: bool, response_ms: int | None) -> None:
    """Add a check to the sums of the current hour; `response_ms` is None without a response."""
    values = {
        "account": account_id,
        "site": site_id,
        "hour": tx.now[:13],
        "up": int(is_up),
        "down": int(not is_up),
        "responses": int(response_ms is not None),
        "response_ms": response_ms or 0,
    }
    if not tx.change(ADD_TO_HOUR, **values):
        tx.run(NEW_HOUR, **values)


def summarise(tx: Transaction, account_id: int, site_id: int) -> None:
    """Save the shares of a site's checks that were up, and delete checks and hours that are too old."""
    key = {"account": account_id, "site": site_id}
    day, week, month = (instant_after(tx.now, -span) for span in (DAY, WEEK, MONTH))
    tx.run(OLD_CHECKS, **key, before=day)
    tx.run(OLD_HOURS, **key, before=instant_after(tx.now, -QUARTER)[:13])
    ((day_up, day_total),) = tx.all(DAY_SUMS, **key)
    ((week_up, week_total, month_up, month_total),) = tx.all(MONTH_SUMS, **key, week=week[:13], month=month[:13])
    tx.run(
        WRITE_SHARES,
        **key,
        uptime_24h=share(day_up, day_total),
        uptime_7d=share(week_up, week_total),
        uptime_30d=share(month_up, month_total),
        uptime_at=tx.now,
    )


def share(up: int | None, total: int | None) -> int | None:
    """Return a share in thousandths of a percent, rounded half up, or None without checks."""
    return half_up((up or 0) * 100_000, total) if total else None
