"""Schedule of webhooks: which have something to send, and the pauses after failures.

A webhook has one sender at a time. What a sender had sent without saving when it died is sent again.
"""

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from sqlalchemy import Update, and_, bindparam, case, func, or_, select, union, update

from retainer.events.deliveries import MAX_PENDING
from retainer.identity.actors import in_accounts
from retainer.outbound.leases import LeasedRow, Leases
from retainer.outbound.pause import WEBHOOKS
from retainer.outbound.retries import Retries
from retainer.schema.webhooks import webhook_deliveries, webhooks
from retainer.store.engines.sql import INSTANT
from retainer.store.tables import NOW, events
from retainer.store.transaction import Transaction
from retainer.store.tx import Store, Tx
from retainer.values.exact import CLOCK_DIFFERENCE, as_instant, instant_after, utcnow

RETRIES = Retries(
    *(timedelta(seconds=5), timedelta(seconds=30), timedelta(minutes=2), timedelta(minutes=10), timedelta(minutes=30)),
    *(timedelta(hours=1), timedelta(hours=3)),
    *(timedelta(hours=6),) * 11,
    give_up=timedelta(days=3),
)
"""When an event is sent again. The last attempt comes after three days, and its failure pauses the webhook."""
MAX_POSTPONED = timedelta(hours=2)
"""By how much a receiver can put an attempt off with `Retry-After`."""
SECONDS = re.compile("[0-9]{1,8}")
OF_ACCOUNT = select(events.c.id).where(events.c.account_id == webhooks.c.account_id).limit(1).correlate(webhooks)
NEWEST_OF_ACCOUNT = OF_ACCOUNT.order_by(events.c.id.desc()).scalar_subquery()
FIRST_NEW = OF_ACCOUNT.where(events.c.id > webhooks.c.position).order_by(events.c.id).with_only_columns(events.c.at)
HAS_NEW = and_(webhooks.c.pending_count < MAX_PENDING, webhooks.c.position < NEWEST_OF_ACCOUNT)
HAS_WORK = and_(
    webhooks.c.status == "active", or_(webhooks.c.next_attempt_at <= NOW, HAS_NEW), ~WEBHOOKS.is_paused(webhooks)
)
DUE = Leases(LeasedRow, webhooks, webhooks.c.leased_until, and_(HAS_WORK, webhooks.c.leased_until <= NOW))
DUE_SINCE = select(
    func.min(case((webhooks.c.next_attempt_at <= NOW, webhooks.c.next_attempt_at), else_=FIRST_NEW.scalar_subquery()))
).where(HAS_WORK)
"""Since when there has been something to send; a webhook that is leased counts, since its backlog may be long."""
IS_PENDING = webhook_deliveries.c.status == "pending"
OF_ACTIVE = webhook_deliveries.c.webhook_id.in_(select(webhooks.c.id).where(webhooks.c.status == "active"))
RETRY_ALL = (
    update(webhook_deliveries)
    .where(IS_PENDING, OF_ACTIVE)
    .values(next_attempt_at=NOW, failing_since=None, updated_at=NOW)
)
LATEST = bindparam("latest", type_=INSTANT)
PUT_OFF = and_(IS_PENDING, webhook_deliveries.c.next_attempt_at > NOW, webhook_deliveries.c.updated_at > LATEST)
IS_LEASED = webhooks.c.leased_until > bindparam("lease_end", type_=INSTANT)
AHEAD = union(select(webhook_deliveries.c.account_id).where(PUT_OFF), select(webhooks.c.account_id).where(IS_LEASED))
"""The accounts for which a clock that was ahead has put something off."""
SET_BACK = RETRY_ALL.where(PUT_OFF)
LOCK = select(webhooks.c.id).order_by(webhooks.c.id).with_for_update()
END_LEASES = update(webhooks).where(IS_LEASED).values(leased_until=NOW)
HAS_PENDING = webhooks.c.pending_count > 0
WAKE = update(webhooks).where(HAS_PENDING).values(next_attempt_at=NOW)
PENDING = select(webhooks.c.account_id).where(HAS_PENDING).distinct()


def lateness(tx: Transaction) -> timedelta:
    """Return how long an attempt or a new event has been due; zero if nothing is, or while sending is paused."""
    ((since,),) = tx.all(DUE_SINCE)
    return datetime.fromisoformat(tx.now) - datetime.fromisoformat(since) if since else timedelta()


def set_back(store: Store, lease: timedelta) -> None:
    """Make due what a clock that was ahead has put off: attempts that were written in the future, and leases."""
    now = utcnow()
    limits = {"latest": instant_after(now, CLOCK_DIFFERENCE), "lease_end": instant_after(now, lease + CLOCK_DIFFERENCE)}

    def set_back_account(tx: Tx) -> int:
        retry(tx, SET_BACK, latest=limits["latest"])
        return tx.change(END_LEASES, lease_end=limits["lease_end"])

    in_accounts(store, AHEAD, set_back_account, **limits)


def retry_all(store: Store, _since: str) -> None:
    """Make due what is pending, as after a pause, whose time is not one in which receivers have failed."""
    in_accounts(store, PENDING, retry)


def retry(tx: Tx, deliveries: Update = RETRY_ALL, **values: object) -> int:
    """Make deliveries of an account due: locks all webhooks in one order, and before the deliveries, as senders do."""
    tx.all(LOCK)
    tx.run(deliveries, **values)
    return tx.change(WAKE)


def instant_of_retry(header: str, now: str) -> str | None:
    """Return the instant of a `Retry-After`, in seconds or as a date (RFC 9110, 10.2.3); None if it says none."""
    if SECONDS.fullmatch(header):
        return instant_after(now, timedelta(seconds=int(header)))
    try:
        return as_instant(parsedate_to_datetime(header).replace(tzinfo=UTC))  # HTTP dates are of UTC
    except (ValueError, OverflowError):
        return None


def postponed(due_at: str, retry_at: str | None) -> str:
    """Return when an attempt is due whose receiver asks for another time: that time, if it is soon after."""
    return max(due_at, min(retry_at or due_at, instant_after(due_at, MAX_POSTPONED)))
