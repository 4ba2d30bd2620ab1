"""Batches: what a webhook sends in one turn, by record, whose events keep their order; signed (Standard Webhooks)."""

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec
from msgspec.json import encode
from sqlalchemy import bindparam, select
from standardwebhooks import Webhook as Signer

from retainer import __version__
from retainer.events.deliveries import MAX_PENDING, TEST
from retainer.events.events import POSITIONS, SHOWN, Event, event_of, load_after
from retainer.events.webhooks import Webhook, former_secrets, types_of
from retainer.identity.actors import operator_of
from retainer.outbound.leases import LeasedRow
from retainer.schema.webhooks import webhook_deliveries, webhooks
from retainer.store.engines.base import Row
from retainer.store.engines.sql import is_listed
from retainer.store.tables import events
from retainer.store.tx import Store, Tx
from retainer.values.exact import utcnow

USER_AGENT = f"Retainer-Webhooks/{__version__}"

BATCH_SIZE = 100
"""New events that a turn takes at most."""


class SendOutcome(msgspec.Struct, frozen=True):
    """The result of an attempt. Tenants read `error`: it reveals nothing that they could not observe themselves."""

    status: int | None = None
    body: str | None = None
    milliseconds: int | None = None
    error: str | None = None
    retry_at: str | None = None
    """Not before then does the receiver want another attempt."""
    is_final: bool = False
    """Whether another attempt would be in vain: the event is no longer kept."""


GONE = SendOutcome(error="The event was deleted because of its age before it could be sent.", is_final=True)


class DeliveryAttempt(msgspec.Struct):
    """An event or a test to send, and its delivery if there is one."""

    event_id: int | None
    type: str
    record_id: int
    event: Row | None
    """The event as a row for `event_of`; None for a test, and if it is no longer kept."""
    delivery_id: int | None = None
    attempts: int = 0
    failing_since: str | None = None
    next_attempt_at: str | None = None
    is_ended: bool = False
    """Whether its delivery had ended, before the webhook went back."""
    outcome: SendOutcome | None = None
    """None while it was not tried."""

    @property
    def is_test(self) -> bool:
        return self.type == TEST


class DeliveryBatch(msgspec.Struct):
    """What a webhook sends in one turn; after it, the webhook's position becomes `next_position`."""

    webhook: Webhook
    base_url: str
    """The address of the API in events."""
    secrets: list[str]
    groups: list[list[DeliveryAttempt]]
    now: str
    next_position: int
    missed: int | None
    """The last event that was deleted before it was taken, if there is one."""
    needs_rest: bool = False
    """Whether this process could not send all of it; then the webhook is due again after a pause."""

    @property
    def due(self) -> list[list[DeliveryAttempt]]:
        return [group for group in self.groups if (group[0].next_attempt_at or self.now) <= self.now]

    def message(self, attempt: DeliveryAttempt) -> tuple[bytes, dict[str, str]] | None:
        """Return the body and the headers of a request; None if the event is no longer kept.

        The id of the message stays the same for all attempts. It names the time of the event, because a restored backup
        gives numbers of events out again.
        """
        if attempt.is_test:
            url = f"{self.base_url}/webhooks/{self.webhook.id}"
            event = Event(0, TEST, "webhook", self.webhook.id, None, url, [], utcnow(), None, None, None, None)
            message_id = f"{self.webhook.id}_test_{attempt.delivery_id}"
        elif attempt.event is None:
            return None
        else:
            event = event_of(attempt.event, self.base_url)
            at = datetime.fromisoformat(event.at)
            message_id = f"{self.webhook.id}_{event.id}_{int(at.timestamp()) * 1_000_000 + at.microsecond}"
        body, now = encode(event), datetime.now(UTC)  # the library reads any time as one of UTC
        return body, {
            "User-Agent": USER_AGENT,
            "Content-Type": "application/json",
            "webhook-id": message_id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": " ".join(Signer(each).sign(message_id, now, body.decode()) for each in self.secrets),
        }


PENDING_COLUMNS = ("id", "event_id", "type", "record_id", "attempts", "failing_since", "next_attempt_at")
PENDING = (
    select(*webhook_deliveries.c[PENDING_COLUMNS])
    .where(webhook_deliveries.c.webhook_id == bindparam("webhook"), webhook_deliveries.c.status == "pending")
    .order_by(webhook_deliveries.c.id)
)
EVENTS = select(*events.c[SHOWN]).where(is_listed(events.c.id, "ids"))
DELIVERED = select(webhook_deliveries.c.event_id, webhook_deliveries.c.id, webhook_deliveries.c.attempts).where(
    webhook_deliveries.c.webhook_id == bindparam("webhook"), is_listed(webhook_deliveries.c.event_id, "ids")
)
OURS = select(*webhooks.c["api_url", "secret", "former_secrets"]).where(
    webhooks.c.id == bindparam("webhook"), webhooks.c.leased_until == bindparam("until"), webhooks.c.status == "active"
)


def load_batch(store: Store, leased: LeasedRow, base_url: str) -> DeliveryBatch | None:
    """Return what a webhook has to send; None if it was paused or deleted, or the lease has ended.

    `base_url` is the address of the API in events; if it is empty, that of the request that created the webhook.
    """
    with store.begin(operator_of(store, leased.account_id), write=False) as tx:
        tx.snapshot()
        row = tx.one(OURS, webhook=leased.id, until=leased.leased_until)
        if row is None:
            return None
        api_url, secret, former = row
        webhook = tx.get(webhooks, leased.id, Webhook)
        pruned, latest = tx.one(POSITIONS) or (0, 0)
        pending = _load_pending(tx, leased.id)
        position = max(webhook.position, pruned)
        limit = min(BATCH_SIZE, MAX_PENDING - len(pending))
        rows = load_after(tx, types_of(webhook), position, limit, None) if limit > 0 and position < latest else []
        is_whole = limit > 0 and len(rows) < limit
        attempts = [*pending, *_new(tx, leased.id, rows, {each.event_id for each in pending})]
        groups: dict[tuple[object, ...], list[DeliveryAttempt]] = {}
        for attempt in sorted(attempts, key=lambda attempt: attempt.event_id or 0):
            record = (attempt.type.partition(".")[0], attempt.record_id)
            groups.setdefault((TEST, attempt.delivery_id) if attempt.is_test else record, []).append(attempt)
        return DeliveryBatch(
            webhook,
            base_url or api_url,
            [secret, *(each.secret for each in former_secrets(former, tx.now))],
            list(groups.values()),
            tx.now,
            max(position, latest) if is_whole else rows[-1][0] if rows else position,
            pruned if webhook.position < pruned else None,
        )


def _load_pending(tx: Tx, webhook_id: int) -> list[DeliveryAttempt]:
    """Return the pending deliveries of a webhook, with their events; there are at most about MAX_PENDING."""
    rows = [dict(zip(PENDING_COLUMNS, row, strict=True)) for row in tx.all(PENDING, webhook=webhook_id)]
    ids = [row["event_id"] for row in rows if row["event_id"] is not None]
    found = {event[0]: event for event in tx.all(EVENTS, ids=encode(ids).decode())} if ids else {}
    return [DeliveryAttempt(event=found.get(row["event_id"]), delivery_id=row.pop("id"), **row) for row in rows]


def _new(tx: Tx, webhook_id: int, rows: list[Row], pending: set[int | None]) -> Iterable[DeliveryAttempt]:
    """Yield new events; one that was delivered before, as the webhook went back, keeps its delivery."""
    ids = encode([row[0] for row in rows]).decode()
    former = {event: rest for event, *rest in tx.all(DELIVERED, webhook=webhook_id, ids=ids)} if rows else {}
    for row in rows:
        event_id, kind, record_id = row[:3]
        if event_id not in pending:
            delivery_id, attempts = former.get(event_id, (None, 0))
            yield DeliveryAttempt(
                event_id, kind, record_id, row, delivery_id, attempts, is_ended=delivery_id is not None
            )
