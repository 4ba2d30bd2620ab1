"""The schedule: which sites are due, who checks them, and what becomes of what was found.

A site is claimed by a conditional update, so that any number of monitors can work side by side; whoever took it and
died leaves it due again at the end of the lease. Sums are rolled up as results are written: reading adds up nothing.
"""

from datetime import timedelta

import msgspec
from sqlalchemy import and_, bindparam, func, select, update

from retainer.schema.sites import sites
from retainer.sites import uptime
from retainer.store.transaction import UnscopedTx

FAILURES = 2  # in a row: one alone may be the network's


class Due(msgspec.Struct):
    """A site that should be checked: what to ask it, and the moments around its check."""

    account_id: int
    site_id: int
    url: str
    expected_status: list[int] | None
    keyword: str | None
    interval: int
    due_at: str
    leased_until: str = ""


class Finding(msgspec.Struct):
    """What a check has found; `error` is for the tenant and says no more than they could see themselves."""

    is_up: bool
    status_code: int | None = None
    milliseconds: int | None = None
    error: str | None = None
    ssl_expires_at: str | None = None


IS_DUE = and_(sites.c.monitoring_enabled.is_(True), sites.c.next_check_at <= bindparam("now"))
DUE = (
    select(*sites.c["account_id", "id", "url", "expected_status", "keyword", "check_interval_seconds", "next_check_at"])
    .where(IS_DUE)
    .order_by(sites.c.next_check_at)
    .limit(bindparam("most"))
)
LEASE = (
    update(sites)
    .where(sites.c.id == bindparam("site"), sites.c.next_check_at == bindparam("seen"))
    .values(next_check_at=bindparam("until"))
)
LEASED = (
    select(*sites.c["observed", "failures", "down_since", "maintenance_until", "last_checked_at"])
    .where(sites.c.id == bindparam("site"), sites.c.next_check_at == bindparam("until"))
    .with_for_update()
)
FOUND = (
    *("observed", "failures", "down_since", "last_checked_at", "last_status_code", "response_time_ms"),
    *("last_error", "next_check_at"),
)
WRITE_FINDING = (
    update(sites)
    .where(sites.c.id == bindparam("site"))
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
    """Take sites that are due, the longest due first, so that no other monitor takes them while the lease lasts.

    Whoever took a site and died leaves it due again at the end of the lease.
    """
    until = uptime.later(tx.now, lease)
    taken = []
    for account_id, site_id, url, expected, keyword, interval, due_at in tx.all(DUE, now=tx.now, most=most):
        if tx.run(LEASE, site=site_id, seen=due_at, until=until):
            statuses = msgspec.json.decode(expected) if expected else None
            taken.append(Due(account_id, site_id, url, statuses, keyword, interval, due_at, until))
    return taken


def anything_due(tx: UnscopedTx) -> bool:
    """Whether a site should be checked by now."""
    return bool(tx.all(DUE, now=tx.now, most=1))


def record(tx: UnscopedTx, due: Due, found: Finding) -> None:
    """Write what a check has found, and when the next one is due, unless the site was taken by another or is gone."""
    row = tx.one(LEASED, site=due.site_id, until=due.leased_until)
    if row is None:
        return
    observed, failures, down_since, maintenance_until, last_checked_at = row
    excused = maintenance_until is not None and maintenance_until > tx.now
    if found.is_up:
        observed, failures, down_since = "up", 0, None
    elif not excused:
        failures += 1
        if failures >= FAILURES:
            observed, down_since = "down", down_since or last_checked_at  # when it failed first
    if not excused:
        uptime.add_check(tx, due.account_id, due.site_id, is_up=found.is_up)
        uptime.add_to_hour(tx, due.account_id, due.site_id, up=int(found.is_up), down=int(not found.is_up))
    following = uptime.later(due.due_at, timedelta(seconds=due.interval))
    tx.run(
        WRITE_FINDING,
        site=due.site_id,
        observed=observed,
        failures=failures,
        down_since=down_since,
        last_checked_at=tx.now,
        last_status_code=found.status_code,
        response_time_ms=found.milliseconds,
        last_error=found.error,
        ssl_expires_at=found.ssl_expires_at,
        next_check_at=following if following > tx.now else uptime.later(tx.now, timedelta(seconds=due.interval)),
    )
    uptime.summarise(tx, due.account_id, due.site_id)


def refresh(tx: UnscopedTx, most: int) -> int:
    """Bring the shares of sites up to date that nobody checks any more: time passes for them, too."""
    stale = tx.all(STALE, before=uptime.later(tx.now, -timedelta(hours=1)), most=most)
    for account_id, site_id in stale:
        uptime.summarise(tx, account_id, site_id)
    return len(stale)
