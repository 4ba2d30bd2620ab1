"""Results: save what a turn has sent, and what follows for the webhook, in one transaction of its account."""

from collections.abc import Iterator
from datetime import timedelta

from sqlalchemy import and_, bindparam, func, select, update

from retainer.events.sender.batch import DeliveryAttempt, DeliveryBatch, SendOutcome
from retainer.events.sender.schedule import RETRIES, postponed
from retainer.events.webhooks import HOLD, Webhook, target
from retainer.identity import audit
from retainer.identity.actors import operator_of
from retainer.outbound.leases import LeasedRow
from retainer.schema.webhooks import webhook_deliveries, webhooks
from retainer.store.engines.base import Columns
from retainer.store.tables import NOW
from retainer.store.tx import Store, Tx
from retainer.values.exact import instant_after

GONE, TOO_MANY = 410, 429
REST = timedelta(seconds=5)
"""Pause of a webhook after a failure of this process."""
DISABLED = "The receiver answered 410, so it wants no more events."
GAVE_UP = "The receiver has failed for three days. The last error: {}"
MISSED = "Events up to {} were deleted before they could be sent. Read all records again, as /docs/sync shows."

OF_WEBHOOK = webhook_deliveries.c.webhook_id == bindparam("webhook")
IS_PENDING = and_(OF_WEBHOOK, webhook_deliveries.c.status == "pending")
LOCK_LEASED = (
    select(webhooks.c.is_failing)
    .where(webhooks.c.id == bindparam("webhook"), webhooks.c.leased_until == bindparam("until"))
    .with_for_update()
)
RELEASE = (
    update(webhook_deliveries)
    .where(
        *(IS_PENDING, webhook_deliveries.c.next_attempt_at.is_not(None), webhook_deliveries.c.attempted_at < NOW),
        # a receiver that gets too many requests wants no more of them because one has arrived
        func.coalesce(webhook_deliveries.c.response_status, 0) != TOO_MANY,
    )
    .values(next_attempt_at=NOW)
)
STATE = select(func.count(), func.min(webhook_deliveries.c.next_attempt_at)).where(IS_PENDING)
SAVED = (
    *("leased_until", "position", "pending_count", "next_attempt_at", "last_delivered_at", "is_failing"),
    "status_reason",
)
SAVE = (
    update(webhooks)
    .where(webhooks.c.id == bindparam("webhook"))
    .values(**{name: bindparam(name, type_=webhooks.c[name].type) for name in SAVED})
)


def save_results(store: Store, leased: LeasedRow, batch: DeliveryBatch) -> tuple[int, list[str]]:
    """Save a turn; return the number of attempts, and messages for the log. Nothing is saved if the lease has ended."""
    with store.begin(operator_of(store, leased.account_id), write=True) as tx:
        row = tx.one(LOCK_LEASED, webhook=leased.id, until=leased.leased_until)
        if row is None:
            return 0, []
        was_failing = bool(row[0])
        webhook = tx.get(webhooks, leased.id, Webhook)
        new = 0
        for group in batch.groups:
            new += sum(_save_attempt(tx, leased.id, attempt, values) for attempt, values in _results(group, tx.now))
        tx.count(webhook_deliveries, new)
        tried = [each for group in batch.groups for each in group if each.outcome and not each.outcome.is_final]
        failures = [attempt for attempt in tried if attempt.outcome and attempt.outcome.error]
        has_arrived = len(tried) > len(failures)
        if has_arrived and was_failing:
            tx.run(RELEASE, webhook=leased.id)
        messages = _end(tx, webhook, failures) if webhook.status == "active" else []
        if messages or webhook.status != "active":
            tx.run(HOLD, webhook=leased.id)
        if batch.missed is not None:
            webhook.status_reason = MISSED.format(batch.missed)
            messages.append(f"Webhook {webhook.id} of account {leased.account_id}: {webhook.status_reason}")
        pending_count, next_attempt_at = tx.one(STATE, webhook=leased.id) or (0, None)
        tx.run(
            SAVE,
            webhook=leased.id,
            leased_until=instant_after(tx.now, REST) if batch.needs_rest else tx.now,
            # unless the webhook has been sent back meanwhile
            position=batch.next_position if webhook.position == batch.webhook.position else webhook.position,
            pending_count=pending_count,
            next_attempt_at=next_attempt_at,
            last_delivered_at=tx.now if has_arrived else webhook.last_delivered_at,
            is_failing=not has_arrived if tried else was_failing,
            status_reason=webhook.status_reason,
        )
    return len(tried), messages


def _results(group: list[DeliveryAttempt], now: str) -> Iterator[tuple[DeliveryAttempt, Columns]]:
    """Yield the columns of each delivery of a record: behind one that is pending, the next ones have no time."""
    is_first = True
    for attempt in group:
        outcome = attempt.outcome
        if outcome is None:
            due = (attempt.next_attempt_at or now) if is_first else None
            yield attempt, {"status": "pending", "next_attempt_at": due}
            is_first = False
            continue
        values = _outcome_columns(attempt, outcome, now)
        is_first = is_first and values["status"] != "pending"
        yield attempt, values


def _outcome_columns(attempt: DeliveryAttempt, outcome: SendOutcome, now: str) -> Columns:
    failing_since = None if outcome.error is None else attempt.failing_since or now
    is_pending = failing_since is not None and not (attempt.is_test or outcome.is_final)
    due_at = RETRIES.next_attempt(failing_since, now) or now if failing_since and is_pending else None
    return {
        "status": "pending" if is_pending else "delivered" if outcome.error is None else "failed",
        "attempts": attempt.attempts + (not outcome.is_final),
        "attempted_at": now,
        "next_attempt_at": due_at and postponed(due_at, outcome.retry_at),
        "failing_since": failing_since if is_pending else None,
        "response_status": outcome.status,
        "response_body": outcome.body,
        "duration_ms": outcome.milliseconds,
        "error": outcome.error,
    }


def _save_attempt(tx: Tx, webhook_id: int, attempt: DeliveryAttempt, values: Columns) -> int:
    """Write a delivery; return 1 if it is new."""
    if attempt.delivery_id is None:
        named = {name: getattr(attempt, name) for name in ("event_id", "type", "record_id")}
        tx.insert_raw(webhook_deliveries, {**named, "webhook_id": webhook_id, "attempts": 0, **values})
        return 1
    if attempt.outcome is not None or attempt.is_ended or values["next_attempt_at"] != attempt.next_attempt_at:
        tx.update_columns(webhook_deliveries, attempt.delivery_id, values)
    return 0


def _end(tx: Tx, webhook: Webhook, failures: list[DeliveryAttempt]) -> list[str]:
    """Disable a webhook whose receiver wants no more events, or pause one that has failed for too long.

    Returns a message for the log.
    """
    outcomes = [attempt.outcome for attempt in failures if attempt.outcome]
    since = [attempt.failing_since for attempt in failures if attempt.failing_since]
    if any(outcome.status == GONE for outcome in outcomes):
        status, reason = "disabled", DISABLED
    elif any(RETRIES.next_attempt(each, tx.now) is None for each in since):
        status, reason = "paused", GAVE_UP.format(outcomes[-1].error)
    else:
        return []
    tx.update_columns(webhooks, webhook.id, {"status": status})
    webhook.status_reason = reason
    after = {"status": status, "status_reason": reason}
    action: audit.Action = "webhook disabled" if status == "disabled" else "webhook paused"
    audit.note(tx, action, target(webhook.id, webhook.url), before={"status": webhook.status}, after=after)
    return [f"Webhook {webhook.id} of account {tx.actor.account_id} is {status}. {reason}"]
