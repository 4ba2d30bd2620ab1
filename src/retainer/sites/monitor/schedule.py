"""Monitor schedule: which sites are due, leases on them, and saving the results of checks.

A conditional update claims a site, so several monitors can work side by side. If a monitor dies, its sites are due
again when the lease ends. Uptime is rolled up when a result is saved, not when it is read.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec
from sqlalchemy import and_, bindparam, func, select

from retainer.fairness import Places
from retainer.identity.actors import operator_of
from retainer.outbound.loop import CLOCK_DIFFERENCE
from retainer.outbound.pause import MONITOR
from retainer.schema.sites import sites
from retainer.sites import incidents, uptime
from retainer.store.announcements import maintaining
from retainer.store.engines.sql import INTEGER, listed, seconds_after
from retainer.store.tables import NOW
from retainer.store.transaction import UnscopedTx
from retainer.store.tx import Store, Tx
from retainer.values.exact import instant_after

MAX_FAILURES = 2
"""Failures in a row after which a site is down: a single one may be the network's."""
RECHECK = timedelta(seconds=30)
"""Time from a first failure to the next check, which decides."""
REFRESH_BATCH = 100


class DueSite(NamedTuple):
    """A site that is due: its columns, and until when this monitor has leased it."""

    account_id: int
    id: int
    url: str
    expected_status: str | None
    keyword: str | None
    check_interval_seconds: int
    next_check_at: str
    leased_until: str = ""

    def expected(self) -> Collection[int]:
        """Return the HTTP statuses that count as up; none if the site has the default ones."""
        statuses: list[int] = msgspec.json.decode(self.expected_status) if self.expected_status else []
        return statuses


class CheckResult(NamedTuple):
    """The result of a check. Tenants read `error`: it reveals nothing that they could not observe themselves."""

    is_up: bool
    status_code: int | None = None
    milliseconds: int | None = None
    error: str | None = None
    ssl_expires_at: str | None = None


Checked = tuple[DueSite, CheckResult]


class Observation(NamedTuple):
    """What earlier checks of a site observed, and whether failures count."""

    observed: str
    failures: int
    down_since: str | None
    maintenance_until: str | None
    last_checked_at: str | None


IS_DUE = and_(sites.c.monitoring_enabled.is_(True), sites.c.next_check_at <= NOW, ~MONITOR.is_paused)
DUE_SITES = (
    select(*sites.c[DueSite._fields[:-1]])
    .where(IS_DUE, sites.c.account_id.not_in(listed("sated", INTEGER)))
    .order_by(sites.c.next_check_at)
    .limit(bindparam("limit"))
)
"""The sites to check, those first that have waited longest; without those of sated accounts."""
THIS_SITE = and_(sites.c.account_id == bindparam("account"), sites.c.id == bindparam("site"))
LEASE = maintaining(
    sites, THIS_SITE, sites.c.next_check_at == bindparam("seen"), values={"next_check_at": bindparam("until")}
)
LOCK_LEASED = (
    select(*sites.c[Observation._fields])
    .where(THIS_SITE, sites.c.next_check_at == bindparam("until"))
    .with_for_update()
)
RESULT_COLUMNS = (
    *("observed", "failures", "down_since", "last_checked_at", "last_status_code", "response_time_ms"),
    *("last_error", "next_check_at"),
)
SAVE_RESULT = maintaining(
    sites,
    THIS_SITE,
    values={
        "ssl_expires_at": func.coalesce(bindparam("ssl_expires_at"), sites.c.ssl_expires_at),  # kept while down
        **{name: bindparam(name) for name in RESULT_COLUMNS},
    },
)
STALE_SITES = (
    select(*sites.c["account_id", "id"])
    .where(sites.c.uptime_30d.is_not(None), sites.c.uptime_at < bindparam("before"))
    .limit(REFRESH_BATCH)
)
SET_BACK = maintaining(
    sites,
    sites.c.monitoring_enabled.is_(True),
    sites.c.next_check_at > seconds_after(NOW, sites.c.check_interval_seconds + CLOCK_DIFFERENCE.seconds),
    values={"next_check_at": NOW},
)


def claim(store: Store, places: Places, lease: timedelta) -> list[DueSite]:
    """Lease the sites that have been due longest: no other monitor checks them before the lease ends."""
    with store.unscoped() as tx:  # most ticks find nothing, and need no lock
        if not tx.all(DUE_SITES, limit=1, sated=places.sated):
            return []
    with store.unscoped(write=True) as tx:
        until = instant_after(tx.now, lease)

        def lease_site(site: DueSite) -> DueSite | None:
            values = {"account": site.account_id, "site": site.id, "seen": site.next_check_at, "until": until}
            return site._replace(leased_until=until) if tx.change(LEASE, **values) else None

        return places.fill(
            lambda: [DueSite(*row) for row in tx.all(DUE_SITES, limit=places.total, sated=places.sated)], lease_site
        )


def lateness(tx: UnscopedTx) -> timedelta:
    """Return how long the longest-waiting site has been due; zero if none is, or while the monitor is paused."""
    row = tx.one(DUE_SITES, limit=1, sated="[]")
    return datetime.fromisoformat(tx.now) - datetime.fromisoformat(DueSite(*row).next_check_at) if row else timedelta()


def save_results(store: Store, results: list[Checked]) -> None:
    """Save results in one transaction; a site that has gone down or up follows in one of its account."""
    with store.unscoped(write=True) as tx:
        turned = [each for each in results if not save_result(tx, *each)]
    for site, result in turned:
        with store.begin(operator_of(store, site.account_id), write=True) as own:
            save_result(own, site, result)


def save_result(tx: UnscopedTx | Tx, site: DueSite, result: CheckResult) -> bool:
    """Save a result and when the next check is due, unless the lease has ended or the site was deleted.

    What a site has become is an event, which takes a transaction of its account. In another one this returns False
    then, and has changed nothing.
    """
    row = tx.one(LOCK_LEASED, account=site.account_id, site=site.id, until=site.leased_until)
    if row is None:
        return True
    before = Observation(*row)
    observed, failures, down_since = before.observed, before.failures, before.down_since
    in_maintenance = before.maintenance_until is not None and before.maintenance_until > tx.now
    if result.is_up:
        observed, failures, down_since = "up", 0, None
    elif not in_maintenance:
        failures += 1
        if failures >= MAX_FAILURES:
            observed, down_since = "down", down_since or before.last_checked_at  # the time of the first failure
    if observed != before.observed:
        if not isinstance(tx, Tx):
            return False
        tx.announce(sites, site.id, observed, ("status", "down_since"))
    if not in_maintenance:
        uptime.add_check(tx, site.account_id, site.id, is_up=result.is_up)
        uptime.add_to_hour(tx, site.account_id, site.id, is_up=result.is_up, response_ms=result.milliseconds)
    if down_since is not None and before.down_since is None:
        incidents.begin_incident(tx, site.account_id, site.id, down_since, result.error)
    elif down_since is None and before.down_since is not None:
        incidents.end_incident(tx, site.account_id, site.id)
    tx.run(
        SAVE_RESULT,
        account=site.account_id,
        site=site.id,
        observed=observed,
        failures=failures,
        down_since=down_since,
        last_checked_at=tx.now,
        last_status_code=result.status_code,
        response_time_ms=result.milliseconds,
        last_error=result.error,
        ssl_expires_at=result.ssl_expires_at,
        next_check_at=_next_check_at(site, tx.now, is_undecided=0 < failures < MAX_FAILURES and not in_maintenance),
    )
    uptime.summarise(tx, site.account_id, site.id)
    return True


def _next_check_at(site: DueSite, now: str, *, is_undecided: bool) -> str:
    """Return when the next check is due: soon after a first failure, else in the rhythm of the site."""
    if is_undecided:
        return instant_after(now, RECHECK)
    interval = timedelta(seconds=site.check_interval_seconds)
    in_rhythm = instant_after(site.next_check_at, interval)
    return in_rhythm if in_rhythm > now else instant_after(now, interval)


def refresh(store: Store) -> None:
    """Update the uptime of sites that are no longer checked, as their window moves, too; and set a wrong clock right.

    A check that is further ahead than its interval is due: the clock was ahead when it was scheduled.
    """
    with store.unscoped(write=True) as tx:
        for account_id, site_id in tx.all(STALE_SITES, before=instant_after(tx.now, -timedelta(hours=1))):
            uptime.summarise(tx, account_id, site_id)
        tx.run(SET_BACK)
