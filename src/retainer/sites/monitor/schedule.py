"""The schedule: which sites are due, leases on them, and writing the findings of checks.

A site is claimed by a conditional update, so that any number of monitors can work side by side; if a monitor dies, its
sites are due again at the end of the lease. Sums are rolled up when findings are written, not when they are read.
"""

from datetime import datetime, timedelta

import msgspec
from sqlalchemy import and_, bindparam, func, select, update

from retainer.schema.sites import sites
from retainer.sites import uptime
from retainer.sites.monitor.pause import IS_PAUSED
from retainer.store.transaction import UnscopedTx

FAILURES = 2  # in a row: one alone may be the network's


class Due(msgspec.Struct):
    """A site that is due: what to request, what to expect, and until when this monitor has leased it."""

    account_id: int
    site_id: int
    url: str
    expected_status: list[int] | None
    keyword: str | None
    interval: int
    due_at: str
    leased_until: str = ""


class Finding(msgspec.Struct):
    """The result of a check; `error` is for the tenant, and says no more than they could see themselves."""

    is_up: bool
    status_code: int | None = None
    milliseconds: int | None = None
    error: str | None = None
    ssl_expires_at: str | None = None


IS_DUE = and_(sites.c.monitoring_enabled.is_(True), sites.c.next_check_at <= bindparam("now"), ~IS_PAUSED)
DUE = (
    select(*sites.c["account_id", "id", "url", "expected_status", "keyword", "check_interval_seconds", "next_check_at"])
    .where(IS_DUE)
    .order_by(sites.c.next_check_at)
    .limit(bindparam("most"))
)
THIS = and_(sites.c.account_id == bindparam("account"), sites.c.id == bindparam("site"))
LEASE = update(sites).where(THIS, sites.c.next_check_at == bindparam("seen")).values(next_check_at=bindparam("until"))
LEASED = (
    select(*sites.c["observed", "failures", "down_since", "maintenance_until", "last_checked_at"])
    .where(THIS, sites.c.next_check_at == bindparam("until"))
    .with_for_update()
)
FOUND = (
    *("observed", "failures", "down_since", "last_checked_at", "last_status_code", "response_time_ms"),
    *("last_error", "next_check_at"),
)
WRITE_FINDING = (
    update(sites)
    .where(THIS)
    .values(
        {
            "ssl_expires_at": func.coalesce(bindparam("ssl_expires_at"), sites.c.ssl_expires_at),  # kept while down
            **{name: bindparam(name) for name in FOUND},
        }
    )
)
STALE = (
    select(*sites.c["account_id", "id"])
    .where(sites.c.uptime_30d.is_not(None), sites.c.uptime_at < bindparam("before"))
    .limit(bindparam("most"))
)


def claim(tx: UnscopedTx, most: int, lease: timedelta) -> list[Due]:
    """Lease up to `most` due sites, the longest due first: no other monitor takes them before the lease ends."""
    until = uptime.later(tx.now, lease)
    leased = []
    for account_id, site_id, url, expected, keyword, interval, due_at in tx.all(DUE, now=tx.now, most=most):
        if tx.change(LEASE, account=account_id, site=site_id, seen=due_at, until=until):
            statuses = msgspec.json.decode(expected) if expected else None
            leased.append(Due(account_id, site_id, url, statuses, keyword, interval, due_at, until))
    return leased


def anything_due(tx: UnscopedTx) -> bool:
    """Whether a site should be checked by now."""
    return bool(tx.all(DUE, now=tx.now, most=1))


def lateness(tx: UnscopedTx) -> timedelta:
    """Return how long the site that has waited longest is due; nothing when none is, or the monitor is paused."""
    due = tx.all(DUE, now=tx.now, most=1)
    return datetime.fromisoformat(tx.now) - datetime.fromisoformat(due[0][-1]) if due else timedelta()


def record(tx: UnscopedTx, due: Due, finding: Finding) -> None:
    """Write a finding and when the next check is due, unless the lease is lost or the site is deleted."""
    row = tx.one(LEASED, account=due.account_id, site=due.site_id, until=due.leased_until)
    if row is None:
        return
    observed, failures, down_since, maintenance_until, last_checked_at = row
    excused = maintenance_until is not None and maintenance_until > tx.now
    if finding.is_up:
        observed, failures, down_since = "up", 0, None
    elif not excused:
        failures += 1
        if failures >= FAILURES:
            observed, down_since = "down", down_since or last_checked_at  # when it failed first
    if not excused:
        uptime.add_check(tx, due.account_id, due.site_id, is_up=finding.is_up)
        uptime.add_to_hour(tx, due.account_id, due.site_id, up=int(finding.is_up), down=int(not finding.is_up))
    following = uptime.later(due.due_at, timedelta(seconds=due.interval))
    tx.run(
        WRITE_FINDING,
        account=due.account_id,
        site=due.site_id,
        observed=observed,
        failures=failures,
        down_since=down_since,
        last_checked_at=tx.now,
        last_status_code=finding.status_code,
        response_time_ms=finding.milliseconds,
        last_error=finding.error,
        ssl_expires_at=finding.ssl_expires_at,
        next_check_at=following if following > tx.now else uptime.later(tx.now, timedelta(seconds=due.interval)),
    )
    uptime.summarise(tx, due.account_id, due.site_id)


def refresh(tx: UnscopedTx, most: int) -> int:
    """Update the uptime of up to `most` sites that are no longer checked, as their window moves; return how many."""
    stale = tx.all(STALE, before=uptime.later(tx.now, -timedelta(hours=1)), most=most)
    for account_id, site_id in stale:
        uptime.summarise(tx, account_id, site_id)
    return len(stale)
