"""Schedule of mail: which messages are due, when they are tried again, and what is saved around each attempt.

A message is leased until it is certain that its attempt has ended. If the process dies, it is due again when the lease
ends: so none is lost, and only what was just being given to the mail server can be sent twice, with one Message-ID.
"""

from datetime import timedelta

from sqlalchemy import and_, bindparam, select, update

from retainer.identity.actors import in_accounts, operator_of
from retainer.outbound.leases import LeasedRow, Leases
from retainer.outbound.pause import MAIL
from retainer.outbound.retries import Retries
from retainer.schema.mail import messages
from retainer.store.engines.sql import INSTANT
from retainer.store.tables import NOW
from retainer.store.tx import Store, Tx
from retainer.values.exact import CLOCK_DIFFERENCE, instant_after, utcnow

RETRIES = Retries(
    *(timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=15), timedelta(hours=1)),
    *(timedelta(hours=4),) * 11,
    give_up=timedelta(days=2),
)
"""When a message is tried again. The last attempt comes after two days, so that people learn of it in time."""
LONGEST_PAUSE = timedelta(hours=6)
"""No attempt is later than that; one that is was put off by a clock that was ahead."""
GAVE_UP = "It was tried for two days. The last error: {}"
IS_QUEUED = messages.c.status == "queued"
IS_DUE = and_(IS_QUEUED, messages.c.next_attempt_at <= NOW, ~MAIL.is_paused(messages))
DUE = Leases(LeasedRow, messages, messages.c.next_attempt_at, IS_DUE)
LOCK_LEASED = (
    select(*messages.c["attempts", "failing_since"])
    .where(messages.c.id == bindparam("message"), messages.c.next_attempt_at == bindparam("until"), IS_QUEUED)
    .where(~MAIL.is_paused(messages))
    .with_for_update()
)
PUT_OFF = and_(IS_QUEUED, messages.c.next_attempt_at > bindparam("latest", type_=INSTANT))
AHEAD = select(messages.c.account_id).where(PUT_OFF).distinct()
SET_BACK = update(messages).where(PUT_OFF).values(next_attempt_at=NOW)
CANCEL_ALL = update(messages).where(IS_QUEUED).values(status="cancelled", error=bindparam("reason"), updated_at=NOW)
QUEUED = select(messages.c.account_id).where(IS_QUEUED).distinct()


def begin_attempt(store: Store, leased: LeasedRow, seconds: float) -> bool:
    """Count an attempt, and lease its message for longer than it can take; return whether it may be made.

    It may not if another process has leased the message, or mail was paused meanwhile.
    """
    with store.begin(operator_of(store, leased.account_id), write=True) as tx:
        row = tx.one(LOCK_LEASED, message=leased.id, until=leased.leased_until)
        if row is None:
            return False
        attempts, failing_since = row
        until = instant_after(tx.now, timedelta(seconds=seconds) + CLOCK_DIFFERENCE)
        values = {"attempts": attempts + 1, "failing_since": failing_since or tx.now, "next_attempt_at": until}
        tx.update_columns(messages, leased.id, values)
    return True


def save_end(store: Store, leased: LeasedRow, status: str, error: str | None = None) -> None:
    """Save that a message is sent, has failed or is cancelled: it is not tried again."""
    with store.begin(operator_of(store, leased.account_id), write=True) as tx:
        if status != "sent" and not _is_queued(tx, leased):
            return
        sent_at = tx.now if status == "sent" else None
        tx.update_columns(messages, leased.id, {"status": status, "sent_at": sent_at, "error": error})


def save_failure(store: Store, leased: LeasedRow, error: str, *, is_final: bool) -> None:
    """Save why an attempt has failed, and when the next one is made; none after a final failure, or after two days."""
    with store.begin(operator_of(store, leased.account_id), write=True) as tx:
        if not _is_queued(tx, leased):
            return
        since = tx.field(messages.c.failing_since, leased.id) or tx.now
        next_attempt_at = None if is_final else RETRIES.next_attempt(since, tx.now)
        if next_attempt_at is None:
            values = {"status": "failed", "error": error if is_final else GAVE_UP.format(error)}
        else:
            values = {"next_attempt_at": next_attempt_at, "error": error, "failing_since": since}
        tx.update_columns(messages, leased.id, values)


def _is_queued(tx: Tx, leased: LeasedRow) -> bool:
    """Return whether a message still waits: while an attempt was made, it may have been cancelled."""
    return bool(tx.field(messages.c.status, leased.id) == "queued")


def set_back(store: Store) -> None:
    """Make due what a clock that was ahead has put off."""
    latest = instant_after(utcnow(), LONGEST_PAUSE + CLOCK_DIFFERENCE)
    in_accounts(store, AHEAD, lambda tx: tx.change(SET_BACK, latest=latest), latest=latest)


def cancel_queued(store: Store, reason: str) -> int:
    """Cancel every queued message of all accounts, for a reason; return how many there were."""
    return in_accounts(store, QUEUED, lambda tx: tx.change(CANCEL_ALL, reason=reason))
