"""Incidents: the times for which a site was down, with the error of the check that found it so."""

from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, bindparam, delete, insert, select, update

from retainer.schema.sites import site_incidents
from retainer.sites.uptime import QUARTER
from retainer.store.transaction import Transaction
from retainer.store.tx import Tx
from retainer.values.exact import instant_after


class Incident(NamedTuple):
    """A time for which a site was down; without an end, it still is."""

    started_at: str
    ended_at: str | None
    cause: str | None


OF_SITE: ColumnElement[bool] = and_(
    site_incidents.c.account_id == bindparam("account"), site_incidents.c.site_id == bindparam("site")
)
BEGIN = insert(site_incidents).values(
    account_id=bindparam("account"),
    site_id=bindparam("site"),
    **{name: bindparam(name) for name in ("started_at", "cause")},
)
END = update(site_incidents).where(OF_SITE, site_incidents.c.ended_at.is_(None)).values(ended_at=bindparam("ended_at"))
DELETE_OLD = delete(site_incidents).where(OF_SITE, site_incidents.c.ended_at <= bindparam("before"))
NEWEST = (
    select(*site_incidents.c[Incident._fields])
    .where(site_incidents.c.site_id == bindparam("site"))
    .order_by(site_incidents.c.started_at.desc())
    .limit(bindparam("limit"))
)


def begin_incident(tx: Transaction, account_id: int, site_id: int, started_at: str, cause: str | None) -> None:
    """Save that a site is down since the first failed check, and delete what ended 90 days ago or earlier."""
    tx.run(DELETE_OLD, account=account_id, site=site_id, before=instant_after(tx.now, -QUARTER))
    tx.run(BEGIN, account=account_id, site=site_id, started_at=started_at, cause=cause)


def end_incident(tx: Transaction, account_id: int, site_id: int) -> None:
    """Save that a site is up again."""
    tx.run(END, account=account_id, site=site_id, ended_at=tx.now)


def list_incidents(tx: Tx, site_id: int, limit: int) -> list[Incident]:
    """Return the newest incidents of a site, the newest first."""
    return list(map(Incident._make, tx.all(NEWEST, site=site_id, limit=limit)))
