"""Schedule of webhooks: which have something to send, leases on them, and the pauses after failures.

A conditional update leases a webhook, so several processes can send side by side, and one webhook has one sender. If a
sender dies, its webhooks are due again when the leases end; what it had sent without saving is sent again.
"""

from datetime import datetime, timedelta
from itertools import accumulate
from typing import NamedTuple

from sqlalchemy import and_, bindparam, case, exists, func, or_, select, update

from retainer.events.deliveries import MAX_PENDING
from retainer.fairness import Places
from retainer.outbound.loop import CLOCK_DIFFERENCE
from retainer.outbound.pause import WEBHOOKS
from retainer.schema.webhooks import webhook_deliveries, webhooks
from retainer.store.engines.sql import INSTANT, INTEGER, listed
from retainer.store.tables import NOW, events
from retainer.store.transaction import UnscopedTx
from retainer.store.tx import Store
from retainer.values.exact import as_instant, instant_after

PAUSES = (
    *(timedelta(seconds=5), timedelta(seconds=30), timedelta(minutes=2), timedelta(minutes=10), timedelta(minutes=30)),
    *(timedelta(hours=1), timedelta(hours=3)),
    *(timedelta(hours=6),) * 11,
)
"""Pauses between the attempts to send an event."""
GIVE_UP = timedelta(days=3)
"""How long a receiver may fail before its webhook is paused; the last attempt comes then."""
OFFSETS = (*accumulate(PAUSES), GIVE_UP)
"""When an event is sent again, counted from its first failure."""


class Leased(NamedTuple):
    """A webhook that this sender has leased, and until when."""

    account_id: int
    id: int
    leased_until: str


OF_ACCOUNT = select(events.c.id).where(events.c.account_id == webhooks.c.account_id).limit(1).correlate(webhooks)
NEWEST_OF_ACCOUNT = OF_ACCOUNT.order_by(events.c.id.desc()).scalar_subquery()
FIRST_NEW = OF_ACCOUNT.where(events.c.id > webhooks.c.position).order_by(events.c.id).with_only_columns(events.c.at)
HAS_NEW = and_(webhooks.c.pending_count < MAX_PENDING, webhooks.c.position < NEWEST_OF_ACCOUNT)
HAS_WORK = and_(webhooks.c.status == "active", or_(webhooks.c.next_attempt_at <= NOW, HAS_NEW), ~WEBHOOKS.is_paused)
LATEST = bindparam("latest", type_=INSTANT)
IS_FREE = or_(webhooks.c.leased_until <= NOW, webhooks.c.leased_until > LATEST)
"""Whether no sender has a lease; one that is further ahead than its length is of a clock that was ahead."""
DUE_WEBHOOKS = (
    select(*webhooks.c[Leased._fields])
    .where(HAS_WORK, IS_FREE, webhooks.c.account_id.not_in(listed("sated", INTEGER)))
    .order_by(webhooks.c.leased_until)
    .limit(bindparam("limit"))
)
"""The webhooks with something to send, those first that have waited longest; without those of sated accounts."""
DUE_SINCE = select(
    func.min(case((webhooks.c.next_attempt_at <= NOW, webhooks.c.next_attempt_at), else_=FIRST_NEW.scalar_subquery()))
).where(HAS_WORK)
"""Since when there has been something to send; a webhook that is leased counts, since its backlog may be long."""
THIS_WEBHOOK = and_(webhooks.c.account_id == bindparam("account"), webhooks.c.id == bindparam("webhook"))
LEASE = (
    update(webhooks)
    .where(THIS_WEBHOOK, webhooks.c.leased_until == bindparam("seen"))
    .values(leased_until=bindparam("until"))
)
IS_PENDING = webhook_deliveries.c.status == "pending"
IS_PUT_OFF = and_(IS_PENDING, webhook_deliveries.c.next_attempt_at > NOW, webhook_deliveries.c.updated_at > LATEST)
PUT_OFF = select(webhook_deliveries.c.id).where(IS_PUT_OFF).limit(1)
RETRY_ALL = update(webhook_deliveries).where(IS_PENDING).values(next_attempt_at=NOW, failing_since=None, updated_at=NOW)
SET_BACK = RETRY_ALL.where(IS_PUT_OFF)
WAKE = (
    update(webhooks)
    .where(webhooks.c.next_attempt_at > NOW)
    .where(
        exists()
        .where(webhook_deliveries.c.account_id == webhooks.c.account_id)
        .where(webhook_deliveries.c.webhook_id == webhooks.c.id, IS_PENDING)
        .where(webhook_deliveries.c.next_attempt_at <= NOW)
    )
    .values(next_attempt_at=NOW)
)


def claim(store: Store, places: Places, lease: timedelta) -> list[Leased]:
    """Lease webhooks with something to send: no other sender serves them before the lease ends."""

    def find(tx: UnscopedTx, limit: int) -> list[Leased]:
        latest = instant_after(tx.now, lease + CLOCK_DIFFERENCE)
        return [Leased(*row) for row in tx.all(DUE_WEBHOOKS, limit=limit, sated=places.sated, latest=latest)]

    with store.unscoped() as tx:  # most looks find nothing, and need no lock
        if not find(tx, 1):
            return []
    with store.unscoped(write=True) as tx:
        until = instant_after(tx.now, lease)
        return places.fill(lambda: find(tx, places.total), lambda found: _lease(tx, found, until))


def lateness(tx: UnscopedTx) -> timedelta:
    """Return how long an attempt or a new event has been due; zero if nothing is, or while sending is paused."""
    ((since,),) = tx.all(DUE_SINCE)
    return datetime.fromisoformat(tx.now) - datetime.fromisoformat(since) if since else timedelta()


def _lease(tx: UnscopedTx, found: Leased, until: str) -> Leased | None:
    values = {"account": found.account_id, "webhook": found.id, "seen": found.leased_until, "until": until}
    return found._replace(leased_until=until) if tx.change(LEASE, **values) else None


def set_back(store: Store) -> None:
    """Make due what is put off by a clock that was ahead: each attempt that was written in the future."""
    with store.unscoped() as tx:
        if not tx.all(PUT_OFF, latest=instant_after(tx.now, CLOCK_DIFFERENCE)):
            return
    with store.unscoped(write=True) as tx:
        tx.run(SET_BACK, latest=instant_after(tx.now, CLOCK_DIFFERENCE))
        tx.run(WAKE)


def retry_all(tx: UnscopedTx, _since: str) -> None:
    """Make due what is pending, as after a pause, whose time is not one in which receivers have failed."""
    tx.run(RETRY_ALL)
    tx.run(WAKE)


def next_attempt(failing_since: str, now: str) -> str | None:
    """Return when an event is sent again that has failed since then; None if the time to give up has come."""
    first, elapsed = datetime.fromisoformat(failing_since), datetime.fromisoformat(now)
    return next((as_instant(first + offset) for offset in OFFSETS if first + offset > elapsed), None)
