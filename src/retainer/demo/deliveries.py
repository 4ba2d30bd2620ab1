"""Deliveries of the demo's webhooks: events of the last weeks, which their receivers took; nothing is sent."""

from datetime import timedelta

from sqlalchemy import bindparam, select

from retainer.events.sender.batch import Outcome, load_batch
from retainer.events.sender.loop import LEASE, Sender
from retainer.events.sender.results import save_results
from retainer.events.sender.schedule import claim
from retainer.fairness import Places
from retainer.schema.webhooks import webhook_deliveries, webhooks
from retainer.store.tables import events
from retainer.store.tx import Actor, Store
from retainer.values.exact import instant_after

ACCEPTED = Outcome(200, '{"received": true}', 87)
DELAY = timedelta(seconds=1)
"""Time from an event to its delivery."""
SENT = (
    select(webhook_deliveries.c.id, events.c.at)
    .select_from(webhook_deliveries.join(events, events.c.id == webhook_deliveries.c.event_id))
    .where(webhook_deliveries.c.webhook_id == bindparam("webhook"))
)


def deliver(store: Store, actor: Actor) -> None:
    for leased in claim(store, Places(Sender.places, ()), LEASE):
        if batch := load_batch(store, leased, ""):
            for attempt in (attempt for group in batch.due for attempt in group):
                attempt.outcome = ACCEPTED
            save_results(store, leased, batch)
        with store.begin(actor, write=True) as tx:
            times = {row_id: instant_after(at, DELAY) for row_id, at in tx.all(SENT, webhook=leased.id)}
            for row_id, moment in times.items():
                tx.now = moment
                tx.update_columns(webhook_deliveries, row_id, {"created_at": moment, "attempted_at": moment})
            tx.update_columns(webhooks, leased.id, {"last_delivered_at": max(times.values(), default=None)})
