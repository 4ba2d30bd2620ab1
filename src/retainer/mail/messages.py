"""Messages: the mail that Retainer sends, each to one address; what became of it is its `status`.

`POST /invoices/{invoice_id}/send`, `POST /quotes/{quote_id}/send` and `POST /credit-notes/{credit_note_id}/send` queue
messages, and so do the account's reminders of overdue invoices. Each recipient gets a separate message, so a wrong
address does not stop the others.

A message is `queued` until the mail server of the operator has accepted it (`sent`). If that cannot be reached, or
answers that it is busy, the message is tried again for two days. If it refuses the address or the message, the status
is `failed`, and `error` says why: correct the address, and send the document again. `sent` means that the mail server
has accepted the message. That it was read is not known, nor that a server behind it has sent it back: bounces go to the
mailbox of the operator.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from sqlalchemy import ColumnElement, Table, bindparam, func, literal_column, select, text

from retainer.errors import not_found
from retainer.kernel.caller import Caller
from retainer.kernel.paging import ListPage, Page, listing
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.schema.columns import in_literals
from retainer.schema.filters import DefaultExclusion
from retainer.schema.mail import messages
from retainer.store.engines.sql import INSTANT, LIMIT
from retainer.store.row_mapper import row_mapper
from retainer.store.tx import Tx
from retainer.values.exact import day_end, day_start
from retainer.values.kinds import Day, Email, Id, Instant
from retainer.values.records import READ_ONLY, Record

Mailed = Annotated[Literal["invoice", "quote", "credit_note"], Meta(title="MailedRecord")]
Kind = Annotated[
    Literal["invoice", "quote", "credit_note", "reminder"],
    Meta(title="MessageKind"),
    "What the message is: it brings the document of its record, or is a `reminder` of an overdue invoice.",
]
UserKind = Literal["invitation", "password_link", "security_notice", "quote_answer"]
"""What a message to a person of the account is. Its record is the `user`, and only the console shows it, to admins."""
Status = Annotated[
    Literal["queued", "sent", "failed", "cancelled"],
    Meta(title="MessageStatus"),
    "`queued` is sent within a moment, or tried again. `failed` is not. `cancelled`: it was not sent, since its record "
    "was deleted, or a backup was restored.",
]
Form = Annotated[Literal["pdf", "xml"], Meta(title="DocumentForm")]
SCOPES: dict[Mailed, str] = {"invoice": "invoices", "quote": "invoices", "credit_note": "invoices"}
"""The scope of each type of record that messages are about."""


class Attachment(msgspec.Struct):
    """A file that a message brings: a document in a version, or a file of a record."""

    name: Annotated[str, "Name of the file."]
    document: Annotated[Form | None, "The form of the document; null: a file of a record."] = None
    version: Annotated[int | None, "The version of the document; null: a file of a record."] = None
    file_id: Annotated[Id | None, "The file of a record; null: the document."] = None


class Message(Record):
    """A message to one address."""

    kind: Kind = READ_ONLY
    record: Annotated[Mailed, "The type of the record that it is about."] = READ_ONLY
    record_id: Annotated[Id, "The record; it may have been deleted since."] = READ_ONLY
    stage: Annotated[int | None, "Of a reminder, which of the account's stages it is, from 1 on; else null."] = (
        READ_ONLY
    )
    client_id: Annotated[Id | None, "The client of the record; null if it was deleted."] = READ_ONLY
    to: Annotated[str, "The address that gets this message."] = READ_ONLY
    cc: Annotated[list[str], "The addresses that it names as further recipients; they get messages of their own."] = (
        READ_ONLY
    )
    reply_to: Annotated[Email | None, "Where replies go; null: to the address of the operator."] = READ_ONLY
    subject: Annotated[str, "Its subject; `q` searches it and `to`."] = READ_ONLY
    message: Annotated[str, "Its text."] = READ_ONLY
    attachments: Annotated[list[Attachment], "The files that it brings."] = READ_ONLY
    status: Status = READ_ONLY
    attempts: Annotated[int, "How often it was given to the mail server."] = READ_ONLY
    error: Annotated[str | None, "Why the last attempt failed, or why it was not sent; null if it was sent."] = (
        READ_ONLY
    )
    sent_at: Annotated[Instant | None, "When the mail server accepted it; null if it has not."] = READ_ONLY
    user_id: Annotated[Id | None, "The user who sent it; null: Retainer itself, as with reminders."] = READ_ONLY


def _is_to_user(table: Table) -> ColumnElement[bool]:
    return table.c.record == literal_column("'user'")


TO_USERS = select(func.count()).select_from(messages).where(_is_to_user(messages))


class MessageFilter(Filter):
    sorts = ("-created_at", "updated_at")
    default_exclusion = DefaultExclusion(_is_to_user, frozenset({"record"}), TO_USERS)
    kind: OneOf[Kind] | None = None
    record: OneOf[Mailed] | None = None
    record_id: OneOf[Id] | None = None
    client_id: OneOf[Id] | None = None
    status: OneOf[Status] | None = None
    created_from: Annotated[Day | None, "Messages of this day or later, in the account's time zone."] = None
    created_to: Annotated[Day | None, "Messages of this day or earlier, in the account's time zone."] = None


MAPPER = row_mapper(messages, Message)
OF_RECORD = (
    MAPPER.rows.where(messages.c.record == bindparam("record"), messages.c.record_id == bindparam("id"))
    .order_by(messages.c.id.desc())
    .suffix_with(LIMIT)
)
LATER = messages.alias()
IS_REPLACED = (
    select(LATER.c.id)
    .where(*(LATER.c[name] == messages.c[name] for name in ("account_id", "record", "record_id")))
    .where(LATER.c.created_at > messages.c.created_at, in_literals(LATER.c.status, ("sent", "queued")))
    .exists()
)
FAILED = (
    MAPPER.rows.where(messages.c.status == "failed", messages.c.created_at >= bindparam("since", type_=INSTANT))
    .where(~IS_REPLACED)
    .order_by(messages.c.id.desc())
    .suffix_with(text("LIMIT 100"))
)


def list_of_record(tx: Tx, record: str, record_id: int, limit: int) -> list[Message]:
    """Return the newest messages about a record."""
    found: list[Message] = MAPPER.read_all(tx.all(OF_RECORD, record=record, id=record_id, limit=limit))
    return found


def list_failed(tx: Tx, since: str) -> list[Message]:
    """Return the messages that have failed since then, about records of which nothing was sent later."""
    found: list[Message] = MAPPER.read_all(tx.all(FAILED, since=since))
    return found


api = Resource(
    "/messages",
    tag="Messages",
    scope=None,
    table=messages,
    needs="Needs the scope of the record that the message is about, like `invoices:read`.",
)


def with_moments(filters: MessageFilter, timezone: str) -> MessageFilter:
    """Return filters whose days are moments: those at which they begin and end in a time zone."""
    since, before = filters.created_since, filters.created_before
    if filters.created_from is not None:
        since = max(since or "", day_start(filters.created_from, timezone))
    if filters.created_to is not None:
        end = day_end(filters.created_to, timezone)
        before = min(before or end, end)
    return msgspec.structs.replace(
        filters, created_from=None, created_to=None, created_since=since, created_before=before
    )


@api.get()
def list_messages(tx: Tx, caller: Caller, filters: MessageFilter, page: Page) -> ListPage[Message]:
    """List messages, newest first: `?record=invoice&record_id=5` shows who got an invoice, and when."""
    for record in filters.record or SCOPES:
        caller.require_scope(f"{SCOPES[record]}:read", f"the messages about records of type {record}")
    return listing(tx, messages, Message, with_moments(filters, tx.actor.timezone), page)


@api.get("/{message_id}")
def get_message(tx: Tx, caller: Caller, message_id: Id) -> Message:
    """Read a message."""
    message = tx.get(messages, message_id, Message)
    if message.record not in SCOPES:
        raise not_found("message")
    caller.require_scope(f"{SCOPES[message.record]}:read")
    return message
