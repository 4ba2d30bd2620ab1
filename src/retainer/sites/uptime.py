"""Uptime: the share of checks that found a site up, rolled up with each check; and incidents, while it was down.

The last day is counted from the checks themselves, weeks and months from sums for each hour, kept for 90 days. An
incident has the error of the check that found the site down. A pause, a maintenance and a time without checks end what
is going on; only failures after them begin another incident.
"""

from datetime import timedelta
from functools import partial
from typing import NamedTuple

from sqlalchemy import ColumnElement, Table, bindparam, case, delete, func, insert, select, update

from retainer.identity.actors import in_accounts
from retainer.schema.sites import site_checks, site_hours, site_incidents, sites
from retainer.store.announcements import maintaining
from retainer.store.engines.sql import insert_or_add
from retainer.store.row_mapper import Derived
from retainer.store.tables import ACCOUNT, NOW
from retainer.store.tx import Store, Tx
from retainer.values.exact import half_up, instant_after

DAY, WEEK, MONTH, QUARTER = timedelta(days=1), timedelta(days=7), timedelta(days=30), timedelta(days=90)


class Incident(NamedTuple):
    started_at: str
    ended_at: str | None
    cause: str | None


OBSERVED = (
    *("uptime_24h", "uptime_7d", "uptime_30d", "last_checked_at", "down_since", "last_status_code"),
    *("response_time_ms", "last_error", "ssl_expires_at"),
)
HOUR_SUMS = ("up", "down", "responses", "response_ms")
THIS_SITE = sites.c.id == bindparam("site")
CHECK_NOW = maintaining(sites, THIS_SITE, values={"next_check_at": NOW})
UNCHECKED = {"next_check_at": NOW, "observed": "unknown", "failures": 0, **dict.fromkeys(OBSERVED)}
RESET = maintaining(sites, THIS_SITE, values=UNCHECKED)
OF_SITE = {table: table.c.site_id == bindparam("site") for table in (site_checks, site_hours, site_incidents)}
DELETE_CHECKS = [delete(table).where(of_site) for table, of_site in OF_SITE.items()]
WRITE_SHARES = maintaining(
    sites, THIS_SITE, values={name: bindparam(name) for name in ("uptime_24h", "uptime_7d", "uptime_30d", "uptime_at")}
)
ADD_CHECK = insert(site_checks).values(
    account_id=ACCOUNT, site_id=bindparam("site"), checked_at=NOW, is_up=bindparam("is_up")
)
ADD_TO_HOUR = insert_or_add(
    site_hours,
    {"account_id": ACCOUNT, "site_id": bindparam("site"), **{name: bindparam(name) for name in ("hour", *HOUR_SUMS)}},
    HOUR_SUMS,
)
OLD_CHECKS = delete(site_checks).where(OF_SITE[site_checks], site_checks.c.checked_at <= bindparam("before"))
OLD_HOURS = delete(site_hours).where(OF_SITE[site_hours], site_hours.c.hour <= bindparam("before"))
DAY_SUMS = select(func.sum(case((site_checks.c.is_up, 1), else_=0)), func.count()).where(OF_SITE[site_checks])
IN_WEEK = site_hours.c.hour > bindparam("week")
TOTAL = site_hours.c.up + site_hours.c.down
MONTH_SUMS = select(
    func.sum(case((IN_WEEK, site_hours.c.up), else_=0)),
    func.sum(case((IN_WEEK, TOTAL), else_=0)),
    func.sum(site_hours.c.up),
    func.sum(TOTAL),
).where(OF_SITE[site_hours], site_hours.c.hour > bindparam("month"))
BEGIN_INCIDENT = insert(site_incidents).values(
    account_id=ACCOUNT, site_id=bindparam("site"), started_at=bindparam("started_at"), cause=bindparam("cause")
)
SUSPENDED = case((sites.c.observed == "down", "unknown"), else_=sites.c.observed)
IS_FAILING = sites.c.failures > 0
FAILING = select(sites.c.account_id).where(IS_FAILING).distinct()
LOCK_FAILING = select(sites.c.id).where(IS_FAILING).order_by(sites.c.id).with_for_update()
SUSPEND_ALL = maintaining(sites, IS_FAILING, values={"failures": 0, "down_since": None, "observed": SUSPENDED})
SUSPEND = SUSPEND_ALL.where(THIS_SITE)
END_ALL = update(site_incidents).where(site_incidents.c.ended_at.is_(None)).values(ended_at=bindparam("ended_at"))
END_INCIDENT = END_ALL.where(OF_SITE[site_incidents])
OLD_INCIDENTS = delete(site_incidents).where(OF_SITE[site_incidents], site_incidents.c.ended_at <= bindparam("before"))
NEWEST_INCIDENTS = (
    select(*site_incidents.c[Incident._fields])
    .where(OF_SITE[site_incidents])
    .order_by(site_incidents.c.started_at.desc())
    .limit(bindparam("limit"))
)


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


def add_check(tx: Tx, site_id: int, *, is_up: bool, response_ms: int | None) -> None:
    """Save a check, made now, and add it to the sums of its hour; `response_ms` is None without a response."""
    tx.run(ADD_CHECK, site=site_id, is_up=is_up)
    responses = {"responses": int(response_ms is not None), "response_ms": response_ms or 0}
    tx.run(ADD_TO_HOUR, site=site_id, hour=tx.now[:13], up=int(is_up), down=int(not is_up), **responses)


def summarise(tx: Tx, site_id: int) -> None:
    """Save the shares of a site's checks that were up, and delete checks and hours that are too old."""
    day, week, month = (instant_after(tx.now, -span) for span in (DAY, WEEK, MONTH))
    tx.run(OLD_CHECKS, site=site_id, before=day)
    tx.run(OLD_HOURS, site=site_id, before=instant_after(tx.now, -QUARTER)[:13])
    ((day_up, day_total),) = tx.all(DAY_SUMS, site=site_id)
    ((week_up, week_total, month_up, month_total),) = tx.all(MONTH_SUMS, site=site_id, week=week[:13], month=month[:13])
    tx.run(
        WRITE_SHARES,
        site=site_id,
        uptime_24h=share(day_up, day_total),
        uptime_7d=share(week_up, week_total),
        uptime_30d=share(month_up, month_total),
        uptime_at=tx.now,
    )


def share(up: int | None, total: int | None) -> int | None:
    """Return a share in thousandths of a percent, rounded half up, or None without checks."""
    return half_up((up or 0) * 100_000, total) if total else None


def begin_incident(tx: Tx, site_id: int, started_at: str, cause: str | None) -> None:
    """Save that a site is down since the first failed check, and delete what ended 90 days ago or earlier."""
    tx.run(OLD_INCIDENTS, site=site_id, before=instant_after(tx.now, -QUARTER))
    tx.run(BEGIN_INCIDENT, site=site_id, started_at=started_at, cause=cause)


def suspend(tx: Tx, site_id: int, ended_at: str) -> None:
    """End what is going on at a site, as a pause, a maintenance or a time without checks begins."""
    tx.run(SUSPEND, site=site_id)
    tx.run(END_INCIDENT, site=site_id, ended_at=ended_at)


def suspend_account(tx: Tx, since: str) -> int:
    """End what is going on at the sites of an account, because none has been checked since then."""
    tx.all(LOCK_FAILING)  # in one order, whichever server does it
    tx.run(END_ALL, ended_at=since)
    return tx.change(SUSPEND_ALL)


def suspend_all(store: Store, since: str) -> None:
    """End what is going on at all sites, because none has been checked since then."""
    in_accounts(store, FAILING, partial(suspend_account, since=since))


def list_incidents(tx: Tx, site_id: int, limit: int) -> list[Incident]:
    return [Incident(*row) for row in tx.all(NEWEST_INCIDENTS, site=site_id, limit=limit)]
