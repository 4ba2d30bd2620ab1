"""Webhooks: addresses to which Retainer sends the events of the account, in order and until they have arrived.

Each event is sent as `GET /events` returns it, with a signature (Standard Webhooks). If the receiver fails, it is sent
again after increasing delays, for three days.

A webhook sends only what the key that created it, or last changed its `url` or `types`, may read: see its `scopes`.
"""

import base64
import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta
from msgspec.json import encode
from sqlalchemy import bindparam, func, select, update

from retainer.errors import Refusal
from retainer.events.catalogue import ANNOUNCED, TYPES, EventType, scope_errors
from retainer.identity import audit
from retainer.identity.audit import Fields, Target
from retainer.identity.keys.keys import Scope
from retainer.identity.plans import find_excess
from retainer.kernel.answers import WithMeta
from retainer.kernel.body import New, Patch
from retainer.kernel.caller import Caller
from retainer.kernel.paging import first_records
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import AllowedNetworks, BaseUrl, Resource
from retainer.outbound.guard import is_allowed, spelled_address
from retainer.schema.webhooks import webhook_deliveries, webhooks
from retainer.settings import Network
from retainer.store.outbox import NEWEST_ID
from retainer.store.tables import NOW
from retainer.store.tx import Tx
from retainer.values.decoding import decoder
from retainer.values.exact import instant_after
from retainer.values.kinds import Id, Instant, Text191, site_url
from retainer.values.records import READ_ONLY, NotOn, Record

MAX_LISTED = 1000
SECRET_BYTES = 32
OVERLAP = timedelta(hours=24)
"""How long deliveries also carry a signature with a former secret."""
MAX_FORMER = 5
"""Former secrets that sign at the same time: each adds a signature to every request."""
NOT_PUBLIC = (
    "This server does not send to {}, which is not a public address. Use another, or ask the operator, who can allow "
    "private networks with RETAINER_MONITOR_ALLOW."
)
NOTHING_READABLE = "This key may read no records with events, so nothing would be sent. Give it a :read scope first."
READ_SCOPES = list(dict.fromkeys(each.scope for each in ANNOUNCED.values()))

WebhookUrl = Annotated[str, site_url("https://example.com/hooks")]
Status = Annotated[
    Literal["active", "paused", "disabled"],
    Meta(title="WebhookStatus"),
    "Only `active` webhooks send. `paused`: you have paused it, or its receiver has failed for three days. `disabled`: "
    "its receiver has answered 410. If you set it to `active`, it continues after its `position`.",
]


class Webhook(Record):
    """An address to which events are sent."""

    url: Annotated[WebhookUrl, "Where events are sent with POST. Redirects are not followed."]
    description: Annotated[Text191 | None, "What receives the events, for people."] = None
    types: Annotated[
        Annotated[list[EventType], Meta(min_length=1)] | None,
        "The types of events to send; null: all that `scopes` allow.",
    ] = None
    status: Annotated[Status, NotOn("Create", "disabled")] = "active"
    status_reason: Annotated[str | None, "Why it is paused or disabled, or which events were missed; else null."] = (
        READ_ONLY
    )
    scopes: Annotated[
        list[Scope],
        "It sends events of what these scopes may read: those of the key that created it, or last changed `url` or "
        "`types`.",
    ] = READ_ONLY
    key_id: Annotated[Id | None, "The key whose scopes it has. Null: none, as if it was set up in the console."] = (
        READ_ONLY
    )
    position: Annotated[int, "Id of the last event queued. All up to it are delivered or pending."] = READ_ONLY
    pending_count: Annotated[int, "Number of deliveries that wait to be sent again."] = READ_ONLY
    last_delivered_at: Annotated[Instant | None, "When its receiver last accepted an event; null: never."] = READ_ONLY


class WebhookFilter(Filter):
    sorts = ("created_at", "updated_at")
    status: OneOf[Status] | None = None


class WebhookSecret(msgspec.Struct):
    """The secret of a webhook, which is shown only once."""

    secret: Annotated[
        str,
        Meta(examples=["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]),
        "Verify signatures with it. It is not shown again: store it where your receiver can read it.",
    ]


class FormerSecret(msgspec.Struct):
    """A secret that was replaced, and the time until which it signs."""

    secret: str
    until: str


read_former = decoder(list[FormerSecret])
NEWEST = select(func.coalesce(NEWEST_ID, 0))
SECRETS = select(*webhooks.c["secret", "former_secrets"]).where(webhooks.c.id == bindparam("id")).with_for_update()
PENDING = update(webhook_deliveries).where(
    webhook_deliveries.c.webhook_id == bindparam("webhook"), webhook_deliveries.c.status == "pending"
)
RETRY_NOW = PENDING.values(next_attempt_at=NOW, failing_since=None, updated_at=NOW)
HOLD = PENDING.values(next_attempt_at=None)
"""A webhook that is not active sends nothing, so none of its deliveries has a next attempt."""


def types_of(webhook: Webhook) -> list[str]:
    readable = [kind for each in ANNOUNCED.values() if each.scope in webhook.scopes for kind in each.types]
    return readable if webhook.types is None else [kind for kind in readable if kind in webhook.types]


def build_webhook(tx: Tx, webhook: Webhook, before: Webhook | None, allowed: Sequence[Network]) -> Webhook:
    """Return a webhook that is limited to what the caller may read. Notes every error.

    A new receiver must not be an address that the guard refuses. Names are not looked up: the answer would map the
    operator's network.
    """
    if before is None or webhook.url != before.url:
        address = spelled_address((urlsplit(webhook.url).hostname or "").rstrip("."))
        if address is not None and not is_allowed(address, allowed):
            tx.error("url", NOT_PUBLIC.format(address))
    if webhook.types is not None:
        webhook.types = [kind for kind in TYPES if kind in webhook.types]
    if before is None or (webhook.url, webhook.types) != (before.url, before.types):
        caller = tx.actor  # admins and operators may read all
        webhook.scopes = [each for each in READ_SCOPES if not isinstance(caller, Caller) or each in caller.granted]
        webhook.key_id = caller.acting_key
        for message in scope_errors(webhook.types or (), webhook.scopes.__contains__):
            tx.error("types", message)
        if not webhook.scopes and webhook.types is None:
            tx.error("types", NOTHING_READABLE)
    if webhook.status == "disabled" and (before is None or before.status != "disabled"):
        tx.error("status", "Must be active or paused. Only a receiver that answers 410 disables its webhook.")
    return webhook


def load_webhooks(tx: Tx) -> list[Webhook]:
    return first_records(tx, webhooks, Webhook, WebhookFilter(), ("id",), MAX_LISTED)


def add_webhook(tx: Tx, webhook: Webhook, api_url: str, allowed: Sequence[Network]) -> tuple[Webhook, str]:
    """Save a new webhook, which sends the events from now on; return it and its secret. Raises every error."""
    webhook = build_webhook(tx, webhook, None, allowed)
    if excess := find_excess(tx, "webhooks"):
        tx.error("url", excess)
    secret = new_secret()
    hidden = {"position": tx.value(NEWEST), "api_url": api_url, "secret": secret, "leased_until": tx.now}
    webhook_id = tx.insert(webhooks, webhook, **hidden)
    audit.note(tx, "webhook created", target(webhook_id, webhook.url), after=audit_fields(webhook))
    return tx.get(webhooks, webhook_id, Webhook), secret


def change_webhook(tx: Tx, before: Webhook, webhook: Webhook, allowed: Sequence[Network] = ()) -> Webhook:
    """Save the changes of a webhook; return it. If it becomes active, what is pending is due now.

    A change of the address needs the `allowed` networks.
    """
    former = audit_fields(before)
    after = build_webhook(tx, webhook, before, allowed)
    tx.update(webhooks, after)
    if after.status != before.status:
        tx.update_columns(webhooks, after.id, {"status_reason": None})
        if after.status == "active":
            tx.run(RETRY_NOW, webhook=after.id)
            tx.update_columns(webhooks, after.id, {"next_attempt_at": tx.now})
        else:
            tx.run(HOLD, webhook=after.id)
    audit.note_changes(tx, "webhook changed", target(after.id, after.url), former, audit_fields(after))
    return tx.get(webhooks, after.id, Webhook)


def webhooks_of(tx: Tx, *key_ids: int) -> list[Webhook]:
    return [each for each in load_webhooks(tx) if each.key_id in key_ids]


def pause_webhooks(tx: Tx, found: list[Webhook]) -> list[Webhook]:
    """Pause the active ones of some webhooks; return all as they are now."""
    return [
        change_webhook(tx, each, msgspec.structs.replace(each, status="paused")) if each.status == "active" else each
        for each in found
    ]


def rotate_secret(tx: Tx, webhook: Webhook) -> str:
    """Give a webhook another secret, and return it; each former one signs as well for 24 hours.

    Raises `locked` if too many former ones still sign.
    """
    current, kept = tx.one(SECRETS, id=webhook.id) or ("", None)
    former = former_secrets(kept, tx.now)
    if len(former) >= MAX_FORMER:
        message = f"{MAX_FORMER} former secrets still sign. Rotate again after {former[-1].until}."
        raise Refusal("locked", message, errors={"secret": [message]})
    former.insert(0, FormerSecret(current, instant_after(tx.now, OVERLAP)))
    secret = new_secret()
    tx.update_columns(webhooks, webhook.id, {"secret": secret, "former_secrets": encode(former).decode()})
    audit.note(tx, "webhook secret rotated", target(webhook.id, webhook.url))
    return secret


def former_secrets(stored: str | None, now: str) -> list[FormerSecret]:
    return [each for each in read_former(stored or "[]") if each.until > now]


def remove_webhook(tx: Tx, webhook: Webhook) -> None:
    tx.delete(webhooks, webhook.id)
    audit.note(tx, "webhook deleted", target(webhook.id, webhook.url), before=audit_fields(webhook))


def new_secret() -> str:
    """Return a new secret in the form of Standard Webhooks: `whsec_`, and random bytes in Base64."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def target(webhook_id: int, url: str) -> Target:
    return Target("webhook", webhook_id, url)


def audit_fields(webhook: Webhook) -> Fields:
    return {"url": webhook.url, "types": webhook.types, "status": webhook.status, "scopes": webhook.scopes}


api = Resource("/webhooks", tag="Webhooks", scope="webhooks", table=webhooks)
api.lists(Webhook, WebhookFilter, "List webhooks, oldest first.")


@api.post()
def create_webhook(
    tx: Tx, base_url: BaseUrl, allowed: AllowedNetworks, body: New[Webhook]
) -> WithMeta[Webhook, WebhookSecret]:
    """Create a webhook, which sends the events from now on; `meta.secret` is shown only in this response."""
    webhook, secret = add_webhook(tx, body, base_url, allowed)
    return WithMeta(webhook, WebhookSecret(secret))


api.reads("/{webhook_id}", Webhook, "Read a webhook.")


@api.patch("/{webhook_id}")
def update_webhook(tx: Tx, webhook_id: Id, allowed: AllowedNetworks, patch: Patch[Webhook]) -> Webhook:
    """Change a webhook, pause it, or let it continue where it was; omitted fields keep their values."""
    before = tx.get(webhooks, webhook_id, Webhook)
    return change_webhook(tx, before, patch.apply_to(before), allowed)


@api.delete("/{webhook_id}")
def delete_webhook(tx: Tx, webhook_id: Id) -> None:
    """Delete a webhook and its deliveries; what has not been sent is not sent any more."""
    remove_webhook(tx, tx.get(webhooks, webhook_id, Webhook))


@api.post("/{webhook_id}/rotate-secret", creates=False)
def rotate_webhook_secret(tx: Tx, webhook_id: Id) -> WithMeta[Webhook, WebhookSecret]:
    """Replace the secret; `meta.secret` is the new one.

    For 24 hours, deliveries are also signed with the former one.
    """
    webhook = tx.get(webhooks, webhook_id, Webhook)
    return WithMeta(webhook, WebhookSecret(rotate_secret(tx, webhook)))
