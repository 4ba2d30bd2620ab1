"""Deliveries: the log of a webhook, with tests of its receiver and events that are sent again.

A delivery is `pending` until the receiver has answered with a status from 200 to 299. The log is kept as long as the
events are.
"""

from bisect import bisect_left
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import msgspec
from msgspec import Meta
from msgspec.json import encode
from msgspec.structs import replace
from sqlalchemy import bindparam, func, or_, select, text

from retainer.errors import SEND, Refusal, part
from retainer.events.catalogue import ANNOUNCED, TYPES
from retainer.events.events import POSITIONS, check_scopes
from retainer.events.webhooks import Webhook, types_of
from retainer.kernel.answers import WithMeta
from retainer.kernel.body import New
from retainer.kernel.caller import Caller
from retainer.kernel.paging import ListPage, Page, listing
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.schema.filters import Where, searched
from retainer.schema.webhooks import webhook_deliveries, webhooks
from retainer.store.engines.base import Columns
from retainer.store.engines.sql import INTEGER, is_listed
from retainer.store.tables import events
from retainer.store.tx import Tx
from retainer.values.kinds import Id, Instant, Searched
from retainer.values.records import READ_ONLY, Record

MAX_PENDING = 100
"""Pending deliveries of a webhook; while it has more, no further events are taken."""
TEST = "webhook.test"

if TYPE_CHECKING:
    DeliveryType = str
else:
    DeliveryType = Annotated[Literal[(*TYPES, TEST)], Meta(title="DeliveryType")]
Status = Literal["pending", "delivered", "failed"]
STATUSES: tuple[Status, ...] = get_args(Status)
DeliveryStatus = Annotated[
    Status,
    Meta(title="DeliveryStatus"),
    "`pending` is sent again. `failed` is not: a test that did not arrive, or an event that is no longer kept.",
]


class WebhookDelivery(Record):
    """An event that a webhook has sent or will send, and the last response of the receiver."""

    webhook_id: Annotated[Id, "The webhook in the path."] = READ_ONLY
    event_id: Annotated[Id | None, "The event; null: a test."] = READ_ONLY
    type: Annotated[DeliveryType, "The type of the event, or `webhook.test`."] = READ_ONLY
    record_id: Annotated[Id, "The record of the event. Events of one record are sent in their order."] = READ_ONLY
    status: DeliveryStatus = READ_ONLY
    attempts: Annotated[int, "How often it was sent. 0: it waits for an earlier event of the record."] = READ_ONLY
    attempted_at: Annotated[Instant | None, "When it was last sent."] = READ_ONLY
    next_attempt_at: Annotated[
        Instant | None,
        "When it is sent again. Null if it is not pending, waits for an earlier event, or its webhook is not active.",
    ] = READ_ONLY
    response_status: Annotated[int | None, "HTTP status of the last response; null: there was none."] = READ_ONLY
    response_body: Annotated[str | None, "The beginning of the last response."] = READ_ONLY
    duration_ms: Annotated[int | None, "How long the last attempt took."] = READ_ONLY
    error: Annotated[str | None, "Why the last attempt failed; null if it did not."] = READ_ONLY


class DeliveryFilter(Filter):
    sorts = ("-id",)
    q: Annotated[
        Searched | None,
        Where(
            lambda table, q: or_(
                table.c.type.contains(q, escape="/"), func.lower(table.c.error).contains(q, escape="/")
            ),
            searched,
            "Deliveries that contain this text, ignoring case, in `type` or `error`.",
        ),
    ] = None
    status: OneOf[DeliveryStatus] | None = None
    type: OneOf[DeliveryType] | None = None


class Redelivery(Record):
    """What to send again: one event, or everything since a time."""

    event_id: Annotated[Id | None, "An event to send again, whether or not it was delivered."] = None
    since: Annotated[Instant | None, "Send all events again from this time on, as far as they are kept."] = None


class WebhookRedelivered(msgspec.Struct):
    """What is sent again."""

    events_count: Annotated[
        int, "Number of events that are sent again; 10000: that many or more. 0: the webhook has sent none since then."
    ]


EVENT = select(events.c.type, events.c.record_id).where(events.c.id == bindparam("id"))
MAX_COUNTED = 10_000
_between = (
    select(events.c.id)
    .where(
        events.c.id > bindparam("after", type_=INTEGER),
        events.c.id <= bindparam("until", type_=INTEGER),
        is_listed(events.c.type, "types"),
    )
    .suffix_with(text(f"LIMIT {MAX_COUNTED}"))
)
BETWEEN = select(func.count()).select_from(_between.subquery())
"""The number of events of some types between two positions."""
OF_EVENT = select(webhook_deliveries.c.id, webhook_deliveries.c.status).where(
    webhook_deliveries.c.webhook_id == bindparam("webhook"), webhook_deliveries.c.event_id == bindparam("event")
)


def queue_test(tx: Tx, webhook: Webhook) -> WebhookDelivery:
    """Queue a test of a webhook, which is sent once. Raises `locked` unless the webhook is active."""
    if webhook.status != "active":
        message = f"The webhook is {webhook.status}. Set its status to active first."
        raise Refusal("locked", message, errors={"status": [message]})
    values = {"event_id": None, "type": TEST, "record_id": webhook.id}
    return tx.get(webhook_deliveries, _queue(tx, webhook, values), WebhookDelivery)


def redeliver(tx: Tx, webhook: Webhook, wanted: Redelivery) -> int:
    """Send an event again, or all since a time; return the number of events, up to MAX_COUNTED.

    Raises every error, and `locked` if too much is pending.
    """
    if tx.readable("event_id", "since") and (wanted.event_id is None) == (wanted.since is None):
        tx.error("event_id", f"{SEND} either {part('event_id')} or since.")
    if wanted.event_id is not None and wanted.since is None:
        _redeliver_event(tx, webhook, wanted.event_id)
    tx.raise_errors()
    if wanted.since is None:
        return 1
    pruned, latest = tx.one(POSITIONS) or (0, 0)
    kept = range(pruned + 1, latest + 1)  # their times rise with their ids
    position = pruned + bisect_left(kept, wanted.since, key=lambda event_id: str(tx.field(events.c.at, event_id)))
    if position >= webhook.position:
        return 0
    tx.update_columns(webhooks, webhook.id, {"position": position})
    types = encode(types_of(webhook)).decode()
    return tx.value(BETWEEN, types=types, after=position, until=webhook.position) or 0


def _redeliver_event(tx: Tx, webhook: Webhook, event_id: int) -> None:
    row = tx.one(EVENT, id=event_id)
    if row is None or row[0] not in types_of(webhook) or event_id > webhook.position:
        message = "There is no such event, it is no longer kept, or this webhook does not send its type."
        tx.error("event_id", message if row is None or event_id <= webhook.position else "It has not been sent yet.")
        return
    found = tx.one(OF_EVENT, webhook=webhook.id, event=event_id)
    if found is None:
        _queue(tx, webhook, {"event_id": event_id, "type": row[0], "record_id": row[1]})
        return
    delivery_id, status = found
    if status != "pending":
        _reserve(tx, webhook)
    due = {"status": "pending", "next_attempt_at": due_at(tx, webhook), "failing_since": None}
    tx.update_columns(webhook_deliveries, delivery_id, due)
    tx.update_columns(webhooks, webhook.id, {"next_attempt_at": tx.now})


def _queue(tx: Tx, webhook: Webhook, values: Columns) -> int:
    _reserve(tx, webhook)
    tx.update_columns(webhooks, webhook.id, {"next_attempt_at": tx.now})
    due = {"webhook_id": webhook.id, "status": "pending", "attempts": 0, "next_attempt_at": due_at(tx, webhook)}
    return tx.insert_counted(webhook_deliveries, {**values, **due})


def due_at(tx: Tx, webhook: Webhook) -> str | None:
    return tx.now if webhook.status == "active" else None


def _reserve(tx: Tx, webhook: Webhook) -> None:
    if webhook.pending_count >= MAX_PENDING:
        advice = "Wait until its receiver has accepted some of them."
        message = f"The webhook has {webhook.pending_count} pending deliveries. {advice}"
        raise Refusal("locked", message, errors={"pending_count": [message]})
    tx.update_columns(webhooks, webhook.id, {"pending_count": webhook.pending_count + 1})


def readable(caller: Caller, filters: DeliveryFilter) -> DeliveryFilter:
    """Return filters that are limited to events that the key may read, and to tests.

    Raises `validation_failed` if they ask for others.
    """
    check_scopes(caller, type=tuple(kind for kind in filters.type or () if kind != TEST))
    types = {kind for each in ANNOUNCED.values() if each.scope in caller.granted for kind in each.types} | {TEST}
    if types >= {*TYPES}:
        return filters
    return replace(filters, type=filters.type or tuple(kind for kind in (*TYPES, TEST) if kind in types))


of_webhook = Resource(
    "/webhooks/{webhook_id}/deliveries", tag="Webhooks", scope="webhooks", table=webhook_deliveries, parent=webhooks
)
tests = Resource(
    "/webhooks/{webhook_id}/test", tag="Webhooks", scope="webhooks", table=webhook_deliveries, parent=webhooks
)
again = Resource("/webhooks/{webhook_id}/redeliver", tag="Webhooks", scope="webhooks", table=webhooks, parent=webhooks)


@of_webhook.get()
def list_webhook_deliveries(
    tx: Tx, webhook_id: Id, caller: Caller, filters: DeliveryFilter, page: Page
) -> ListPage[WebhookDelivery]:
    """List the deliveries of a webhook, newest first; those of events that the key may not read are left out."""
    return listing(tx, webhook_deliveries, WebhookDelivery, readable(caller, filters), page, webhook_id=webhook_id)


@tests.post(creates=False)
def send_webhook_test(tx: Tx, webhook_id: Id) -> WebhookDelivery:
    """Send a test event of the type `webhook.test` within a moment, once; its delivery shows the result."""
    return queue_test(tx, tx.get(webhooks, webhook_id, Webhook))


@again.post(creates=False)
def redeliver_webhook_events(tx: Tx, webhook_id: Id, body: New[Redelivery]) -> WithMeta[Webhook, WebhookRedelivered]:
    """Send an event again, or all events since a time: the webhook goes back to that position.

    `meta.events_count` is the number of these events.
    """
    count = redeliver(tx, tx.get(webhooks, webhook_id, Webhook), body)
    return WithMeta(tx.get(webhooks, webhook_id, Webhook), WebhookRedelivered(count))
