"""Monitor schedule: which sites are due, and saving the results of checks, with which uptime is rolled up."""

from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import and_, bindparam, select

from retainer.identity.actors import in_accounts, operator_of
from retainer.outbound.leases import LeasedRow, Leases
from retainer.outbound.pause import MONITOR
from retainer.schema.sites import sites
from retainer.sites import uptime
from retainer.store.announcements import maintaining
from retainer.store.engines.sql import seconds_after
from retainer.store.tables import NOW
from retainer.store.transaction import Transaction
from retainer.store.tx import Store, Tx
from retainer.values.exact import CLOCK_DIFFERENCE, instant_after, utcnow

MAX_FAILURES = 2
"""Failures in a row after which a site is down: a single one may be the network's. With two, it is down since the check
before the last."""
LATE = timedelta(hours=1)  # by how much a busy monitor may be late; after more, none was running
RECHECK = timedelta(seconds=30)  # time from a first failure to the next check, which decides
RETRY = timedelta(seconds=1)  # time to the next try of a check that this process was too busy for


class DueSite(LeasedRow):
    url: str
    expected_status: str | None
    keyword: str | None
    check_interval_seconds: int


class CheckResult(NamedTuple):
    """The result of a check. Tenants read `error`: it reveals nothing that they could not observe themselves."""

    is_up: bool
    status_code: int | None = None
    milliseconds: int | None = None
    error: str | None = None
    ssl_expires_at: str | None = None


class Observation(NamedTuple):
    observed: str
    failures: int
    down_since: str | None
    maintenance_until: str | None
    last_checked_at: str | None
    ssl_expires_at: str | None


IS_DUE = and_(sites.c.monitoring_enabled.is_(True), sites.c.next_check_at <= NOW, ~MONITOR.is_paused(sites))
DUE = Leases(DueSite, sites, sites.c.next_check_at, IS_DUE)
LOCK_LEASED = (
    select(*sites.c[Observation._fields])
    .where(uptime.THIS_SITE, sites.c.next_check_at == bindparam("until"))
    .with_for_update()
)
RESULT_COLUMNS = (
    *("observed", "failures", "down_since", "last_checked_at", "last_status_code", "response_time_ms"),
    *("last_error", "ssl_expires_at", "next_check_at"),
)
SAVE_RESULT = maintaining(sites, uptime.THIS_SITE, values={name: bindparam(name) for name in RESULT_COLUMNS})
PUT_OFF_LEASED = maintaining(
    sites, uptime.THIS_SITE, sites.c.next_check_at == bindparam("until"), values={"next_check_at": bindparam("due_at")}
)
IS_STALE = and_(sites.c.uptime_30d.is_not(None), sites.c.uptime_at < bindparam("before"))
STALE_ACCOUNTS = select(sites.c.account_id).where(IS_STALE).distinct()
STALE_SITES = select(sites.c.id).where(IS_STALE)
PUT_OFF = and_(
    sites.c.monitoring_enabled.is_(True),
    sites.c.next_check_at > seconds_after(NOW, sites.c.check_interval_seconds + CLOCK_DIFFERENCE.seconds),
)
PUT_OFF_ACCOUNTS = select(sites.c.account_id).where(PUT_OFF).distinct()
LOCK_PUT_OFF = select(sites.c.id).where(PUT_OFF).order_by(sites.c.id).with_for_update()
SET_BACK = maintaining(sites, PUT_OFF, values={"next_check_at": NOW})


def lateness(tx: Transaction) -> timedelta:
    """Return how long the longest-waiting site has been due; zero if none is, or while the monitor is paused."""
    row = tx.one(DUE.due, limit=1, accounts_at_limit="[]")
    return datetime.fromisoformat(tx.now) - datetime.fromisoformat(DueSite("", *row).due_at) if row else timedelta()


def save_result(store: Store, site: DueSite, result: CheckResult) -> None:
    """Save a result and when the next check is due, unless the lease has ended or the site was deleted."""
    with store.begin(operator_of(store, site.account_id), write=True) as tx:
        row = tx.one(LOCK_LEASED, site=site.id, until=site.leased_until)
        if row is None:
            return
        before = Observation(*row)
        longest = timedelta(seconds=site.check_interval_seconds) + LATE
        if before.last_checked_at and before.last_checked_at < instant_after(tx.now, -longest):
            uptime.suspend(tx, site.id, before.last_checked_at)
            before = Observation(*(tx.one(LOCK_LEASED, site=site.id, until=site.leased_until) or row))
        observed, failures, down_since = before.observed, before.failures, before.down_since
        in_maintenance = before.maintenance_until is not None and before.maintenance_until > tx.now
        if result.is_up:
            observed, failures, down_since = "up", 0, None
        elif not in_maintenance:
            failures += 1
            if failures >= MAX_FAILURES:
                observed, down_since = "down", down_since or before.last_checked_at
        if observed != before.observed:
            tx.announce(sites, site.id, observed, ("status", "down_since"))
        if not in_maintenance:
            uptime.add_check(tx, site.id, is_up=result.is_up, response_ms=result.milliseconds)
        if down_since is not None and before.down_since is None:
            uptime.begin_incident(tx, site.id, down_since, result.error)
        elif down_since is None and before.down_since is not None:
            tx.run(uptime.END_INCIDENT, site=site.id, ended_at=tx.now)
        tx.run(
            SAVE_RESULT,
            site=site.id,
            observed=observed,
            failures=failures,
            down_since=down_since,
            last_checked_at=tx.now,
            last_status_code=result.status_code,
            response_time_ms=result.milliseconds,
            last_error=result.error,
            ssl_expires_at=result.ssl_expires_at or (None if result.is_up else before.ssl_expires_at),
            next_check_at=_next_check_at(site, tx.now, is_undecided=0 < failures < MAX_FAILURES and not in_maintenance),
        )
        uptime.summarise(tx, site.id)


def put_off(store: Store, site: DueSite) -> None:
    """Make a site due in a second that could not be checked, unless the lease has ended."""
    with store.begin(operator_of(store, site.account_id), write=True) as tx:
        tx.run(PUT_OFF_LEASED, site=site.id, until=site.leased_until, due_at=instant_after(tx.now, RETRY))


def _next_check_at(site: DueSite, now: str, *, is_undecided: bool) -> str:
    if is_undecided:
        return instant_after(now, RECHECK)
    interval = timedelta(seconds=site.check_interval_seconds)
    in_rhythm = instant_after(site.due_at, interval)
    return in_rhythm if in_rhythm > now else instant_after(now, interval)


def refresh(store: Store) -> None:
    """Update the uptime of sites that are no longer checked, as their window moves, too; and set a wrong clock right.

    A check that is further ahead than its interval is due: the clock was ahead when it was scheduled.
    """

    def set_back(tx: Tx) -> int:
        tx.all(LOCK_PUT_OFF)  # in one order, whichever server does it
        return tx.change(SET_BACK)

    def summarise_stale(tx: Tx) -> int:
        stale = tx.all(STALE_SITES, before=before)
        for (site_id,) in stale:
            uptime.summarise(tx, site_id)
        return len(stale)

    before = instant_after(utcnow(), -timedelta(hours=1))
    in_accounts(store, PUT_OFF_ACCOUNTS, set_back)
    in_accounts(store, STALE_ACCOUNTS, summarise_stale, before=before)
