"""Incidents: the times for which a site was down, with the error of the check that found it so.

A pause and a maintenance end what is going on; only failures after them begin another incident.
"""

from typing import NamedTuple

from sqlalchemy import bindparam, case, delete, insert, select, update

from retainer.schema.sites import site_incidents, sites
from retainer.sites.uptime import QUARTER
from retainer.store.announcements import maintaining
from retainer.store.tables import ACCOUNT
from retainer.store.transaction import UnscopedTx
from retainer.store.tx import Tx
from retainer.values.exact import instant_after


class Incident(NamedTuple):
    """A time for which a site was down; without an end, it still is."""

    started_at: str
    ended_at: str | None
    cause: str | None


OF_SITE = site_incidents.c.site_id == bindparam("site")
BEGIN = insert(site_incidents).values(
    account_id=ACCOUNT, site_id=bindparam("site"), started_at=bindparam("started_at"), cause=bindparam("cause")
)
SUSPENDED = case((sites.c.observed == "down", "unknown"), else_=sites.c.observed)
SUSPEND_ALL = maintaining(
    sites, sites.c.failures > 0, values={"failures": 0, "down_since": None, "observed": SUSPENDED}
)
SUSPEND = SUSPEND_ALL.where(sites.c.id == bindparam("site"))
END_ALL = update(site_incidents).where(site_incidents.c.ended_at.is_(None)).values(ended_at=bindparam("ended_at"))
END = END_ALL.where(OF_SITE)
DELETE_OLD = delete(site_incidents).where(OF_SITE, site_incidents.c.ended_at <= bindparam("before"))
NEWEST = (
    select(*site_incidents.c[Incident._fields])
    .where(OF_SITE)
    .order_by(site_incidents.c.started_at.desc())
    .limit(bindparam("limit"))
)


def begin_incident(tx: Tx, site_id: int, started_at: str, cause: str | None) -> None:
    """Save that a site is down since the first failed check, and delete what ended 90 days ago or earlier."""
    tx.run(DELETE_OLD, site=site_id, before=instant_after(tx.now, -QUARTER))
    tx.run(BEGIN, site=site_id, started_at=started_at, cause=cause)


def end_incident(tx: Tx, site_id: int) -> None:
    tx.run(END, site=site_id, ended_at=tx.now)


def suspend(tx: Tx, site_id: int) -> None:
    """End what is going on at a site, as a pause or a maintenance begins: failures before it count no more."""
    tx.run(SUSPEND, site=site_id)
    end_incident(tx, site_id)


def suspend_all(tx: UnscopedTx, since: str) -> None:
    """End what is going on at all sites, because none has been checked since then."""
    tx.run(SUSPEND_ALL)
    tx.run(END_ALL, ended_at=since)


def list_incidents(tx: Tx, site_id: int, limit: int) -> list[Incident]:
    return [Incident(*row) for row in tx.all(NEWEST, site=site_id, limit=limit)]
