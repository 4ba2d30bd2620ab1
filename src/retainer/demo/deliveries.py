"""Deliveries of the demo's webhooks: events of the last weeks, with the answers of their receivers; nothing is sent."""

from datetime import timedelta

from sqlalchemy import bindparam, select

from retainer.demo.make import make
from retainer.events import deliveries
from retainer.events.deliveries import Redelivery
from retainer.events.sender.batch import Outcome, load_batch
from retainer.events.sender.loop import ANSWERED, LEASE, Sender
from retainer.events.sender.results import save_results
from retainer.events.sender.schedule import PAUSES, Leased, claim
from retainer.events.webhooks import Webhook
from retainer.fairness import Places
from retainer.schema.webhooks import webhook_deliveries, webhooks
from retainer.store.tables import events
from retainer.store.tx import Actor, Store, Tx
from retainer.values.exact import instant_after

ACCEPTED = Outcome(200, '{"received": true}', 87)
REFUSED = Outcome(503, "Service Unavailable", 41, ANSWERED.format(503))
DELAY = timedelta(seconds=1)
"""Time from an event to its first attempt."""
SENT = (
    select(*webhook_deliveries.c["id", "attempts"], events.c.at)
    .select_from(webhook_deliveries.join(events, events.c.id == webhook_deliveries.c.event_id))
    .where(webhook_deliveries.c.webhook_id == bindparam("webhook"))
)


def deliver(store: Store, actor: Actor) -> None:
    """Deliver the events of an account; each receiver refuses one of them first, and accepts it when it is retried."""
    for leased in claim(store, Places(Sender.places, ()), LEASE):
        if event_id := _take_turn(store, leased, refuses_one=True):
            with store.begin(actor, write=True) as tx:
                deliveries.redeliver(tx, tx.get(webhooks, leased.id, Webhook), make(Redelivery, event_id=event_id))
    for leased in claim(store, Places(Sender.places, ()), LEASE):
        _take_turn(store, leased, refuses_one=False)
        with store.begin(actor, write=True) as tx:
            _date(tx, leased.id)


def _take_turn(store: Store, leased: Leased, *, refuses_one: bool) -> int | None:
    """Save answers to what a webhook has to send; return the event that its receiver refused."""
    batch = load_batch(store, leased, "")
    if batch is None:
        return None
    attempts = [attempt for group in batch.due for attempt in group]
    for attempt in attempts:
        attempt.outcome = ACCEPTED
    refused = attempts[len(attempts) // 2] if refuses_one and attempts else None
    if refused is not None:
        refused.outcome = REFUSED
    save_results(store, leased, batch)
    return None if refused is None else refused.event_id


def _date(tx: Tx, webhook_id: int) -> None:
    """Set the times of a webhook's deliveries shortly after those of their events."""
    now, last = tx.now, ""
    for delivery_id, attempts, at in tx.all(SENT, webhook=webhook_id):
        first = min(now, instant_after(at, DELAY))
        tx.now = first if attempts == 1 else min(now, instant_after(first, PAUSES[0]))
        tx.update_columns(webhook_deliveries, delivery_id, {"created_at": first, "attempted_at": tx.now})
        last = max(last, tx.now)
    tx.update_columns(webhooks, webhook_id, {"last_delivered_at": last})
