"""Messages: the body, the id and the signature of what a receiver gets (Standard Webhooks)."""

from datetime import UTC, datetime
from typing import NamedTuple

from msgspec.json import encode
from standardwebhooks import Webhook as Signer

from retainer import __version__
from retainer.events.deliveries import TEST
from retainer.events.events import Event, event_of
from retainer.store.engines.base import Row
from retainer.values.exact import utcnow

USER_AGENT = f"Retainer-Webhooks/{__version__}"


class Receiver(NamedTuple):
    """Where a webhook sends its events, and the secrets that sign them; former ones during an overlap."""

    webhook_id: int
    url: str
    api_url: str
    secrets: tuple[str, ...]


class SignedMessage(NamedTuple):
    """The body and the headers of a request."""

    body: bytes
    headers: dict[str, str]


def event_message(receiver: Receiver, row: Row) -> SignedMessage:
    """Return an event, as GET /events returns it.

    The id of the message stays the same for all attempts. It names the time of the event, because a restored backup
    gives numbers of events out again.
    """
    event = event_of(row, receiver.api_url)
    at = datetime.fromisoformat(event.at)
    microseconds = int(at.timestamp()) * 1_000_000 + at.microsecond
    return _signed(receiver, f"{receiver.webhook_id}_{event.id}_{microseconds}", event)


def test_message(receiver: Receiver, delivery_id: int) -> SignedMessage:
    """Return a test: an event of the webhook itself, with the id 0."""
    url = f"{receiver.api_url}/webhooks/{receiver.webhook_id}"
    test = Event(0, TEST, "webhook", receiver.webhook_id, None, url, [], utcnow(), None, None, None)
    return _signed(receiver, f"{receiver.webhook_id}_test_{delivery_id}", test)


def _signed(receiver: Receiver, message_id: str, event: Event) -> SignedMessage:
    body, now = encode(event), datetime.now(UTC)  # the library reads any time as one of UTC
    signatures = [Signer(secret).sign(message_id, now, body.decode()) for secret in receiver.secrets]
    return SignedMessage(
        body,
        {
            "User-Agent": USER_AGENT,
            "Content-Type": "application/json",
            "webhook-id": message_id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": " ".join(signatures),
        },
    )
