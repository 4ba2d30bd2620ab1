"""The queue: messages are written in the transaction of what causes them, and the sender sends them after its commit.

`queue` is the one way to send mail. It writes a message for each recipient.
"""

import secrets
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from retainer.documents.facts import Standing
from retainer.errors import BodyErrors, Refusal, invalid
from retainer.identity.plans import find_excess
from retainer.mail.addresses import wire_address
from retainer.mail.messages import Attachment, Kind, Mailed, Message, UserKind
from retainer.schema.mail import messages
from retainer.store.tx import Tx
from retainer.values.decoding import json_text
from retainer.values.reading import with_defaults

NOT_CONFIGURED = (
    "This server sends no mail, because it has no mail server. Ask its operator to set RETAINER_SMTP_URL, or send the "
    "document from your own mail program."
)


class Letter(NamedTuple):
    """What a message says and brings, and the record that it is about."""

    kind: Kind | UserKind
    record: Mailed | Literal["user"]
    record_id: int
    client_id: int | None
    subject: str
    text: str
    attachments: Sequence[Attachment] = ()
    standing: Standing | None = None
    """What the documents say has become of them; None: nothing since they were issued."""
    stage: int | None = None
    """Of a reminder, which one it is; an invoice gets each once."""


class Recipients(NamedTuple):
    """The addresses that get a letter, and the one that gets their replies."""

    to: Sequence[str]
    cc: Sequence[str] = ()
    bcc: Sequence[str] = ()
    reply_to: str | None = None


def require_mail(tx: Tx) -> None:
    """Raise `mail_not_configured` if the server has no mail server."""
    if not tx.store.mail_from:
        raise Refusal("mail_not_configured", NOT_CONFIGURED, errors={"mail": [NOT_CONFIGURED]})


def find_obstacle(tx: Tx, address: str) -> str | None:
    """Return why no message can be queued for an address now; None if one can."""
    if not tx.store.mail_from:
        return NOT_CONFIGURED
    try:
        wire_address(address)
    except ValueError as error:
        return f"{address}: {error}"
    return find_excess(tx, "messages")


def note_addresses(errors: BodyErrors, recipients: Recipients) -> None:
    """Note an error for each address that mail servers do not take."""
    for field in ("to", "cc", "bcc"):
        for position, address in enumerate(getattr(recipients, field)):
            if errors.readable(field, f"{field}.{position}"):
                _note_address(errors, f"{field}.{position}", address)
    if recipients.reply_to is not None and errors.readable("reply_to"):
        _note_address(errors, "reply_to", recipients.reply_to)


def _note_address(errors: BodyErrors, field: str, address: str) -> None:
    try:
        wire_address(address)
    except ValueError as error:
        errors.error(field, str(error))


def queue(tx: Tx, letter: Letter, recipients: Recipients) -> list[Message]:
    """Write a message for each recipient, to be sent after the commit; return them.

    Raises `mail_not_configured`, and `validation_failed` for addresses, and for more messages than the plan includes.
    """
    require_mail(tx)
    note_addresses(tx, recipients)
    tx.raise_errors()
    found = [_write(tx, letter, recipients, address) for address in _each(recipients)]
    if excess := find_excess(tx, "messages", added=0):
        raise invalid({"to": [excess]})
    return [tx.get(messages, message_id, Message) for message_id in found]


def _each(recipients: Recipients) -> Iterable[str]:
    """Return each address once, ignoring case."""
    found: dict[str, str] = {}
    for address in (*recipients.to, *recipients.cc, *recipients.bcc):
        found.setdefault(address.casefold(), address)
    return found.values()


def _write(tx: Tx, letter: Letter, recipients: Recipients, address: str) -> int:
    domain = tx.store.mail_from.rpartition("@")[2]
    record = with_defaults(
        Message,
        kind=letter.kind,
        record=letter.record,
        record_id=letter.record_id,
        stage=letter.stage,
        client_id=letter.client_id,
        to=address,
        cc=list(recipients.cc),
        reply_to=recipients.reply_to,
        subject=letter.subject,
        message=letter.text,
        attachments=list(letter.attachments),
        status="queued",
        attempts=0,
        error=None,
        sent_at=None,
        user_id=tx.actor.user_id or None,
    )
    return tx.insert(
        messages,
        record,
        all_to=json_text(recipients.to),
        standing=letter.standing and json_text(letter.standing),
        # unguessable, since a reply that names it belongs to the record
        message_id=f"<{letter.record}-{letter.record_id}.{secrets.token_hex(16)}@{domain}>".replace("_", "-"),
        failing_since=None,
        next_attempt_at=tx.now,
    )
