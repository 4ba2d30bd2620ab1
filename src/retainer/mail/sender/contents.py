"""Contents: what a queued message says and brings, read in a transaction, and the bytes that are sent."""

import secrets
from base64 import encodebytes
from collections.abc import Iterator
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage, MIMEPart
from email.policy import SMTP
from email.utils import format_datetime
from itertools import chain, starmap
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import bindparam, select

from retainer.billing.files import PaperFile, prepare_version
from retainer.billing.papers import standing_of
from retainer.documents.facts import Standing
from retainer.errors import Refusal
from retainer.files.contents import read_pieces
from retainer.files.files import File
from retainer.identity.actors import operator_of
from retainer.identity.placeholders import LINK
from retainer.kernel.downloads import Download
from retainer.kernel.representations import RunApart
from retainer.mail.addresses import wire_address
from retainer.mail.messages import Attachment, Message
from retainer.mail.people import VALID, make_link
from retainer.mail.reminders import find_change
from retainer.mail.send import LOADERS
from retainer.mail.sender.relay import Mail
from retainer.outbound.leases import LeasedRow
from retainer.schema.files import files
from retainer.schema.mail import messages
from retainer.settings import Settings
from retainer.store.tx import Store, Tx
from retainer.values.decoding import decoder

MAX_BYTES = 25 * 1024 * 1024
LINE = 57
"""Bytes of a file that a line of 76 characters brings."""
PIECE = 1024 * LINE
TOO_LARGE = "The message has {:,.1f} MB, and few mail servers take more than 25. Send fewer or smaller files."
GONE = "The {} was deleted before this message was sent."
VOIDED = "The invoice was voided before this message was sent."
NOT_THEIRS = "This person was deactivated, or got another email, before the link was sent."
NO_SITE = "The server has no public address any more (RETAINER_BASE_URL), so the link would lead nowhere."
TYPES = {"pdf": "application/pdf", "xml": "application/xml"}
HIDDEN = select(*messages.c["all_to", "standing", "message_id", "next_attempt_at"]).where(
    messages.c.id == bindparam("id")
)
read_addresses, read_standing = decoder(list[str]), decoder(Standing)


class Unsendable(Exception):
    """A message that cannot be sent, now or later; people read why. It is cancelled if its record is gone."""

    def __init__(self, message: str, *, is_gone: bool = False) -> None:
        super().__init__(message)
        self.is_gone = is_gone


class DrawnFile(NamedTuple):
    """A file of a message: its bytes, or its copy on disk."""

    name: str
    media_type: str
    content: bytes | Download


class DocumentToDraw(NamedTuple):
    """A document of a message, which is drawn after the transaction."""

    name: str
    media_type: str
    pending: PaperFile


class Contents(NamedTuple):
    """A message as it is sent; `agency` is the name of its sender."""

    message: Message
    to: list[str]
    message_id: str
    agency: str
    parts: list[DrawnFile | DocumentToDraw]
    link_id: int | None = None
    """The client link that its text has."""


def load_contents(store: Store, leased: LeasedRow, settings: Settings) -> Contents | None:
    """Return what a message says and brings; None if it is not queued, or leased by another process. Raises Unsendable.

    A link that sets a password leads to the public address of the server, and is made by this call.
    """
    actor = operator_of(store, leased.account_id)
    folder = settings.database_path.parent if settings.database_path else None
    with store.begin(actor, write=False) as tx:
        tx.snapshot()
        message = tx.find(messages, leased.id, Message)
        to, standing, message_id, leased_until = tx.one(HIDDEN, id=leased.id) or (None,) * 4
        if message is None or message.status != "queued" or leased_until != leased.leased_until:
            return None
        read = None if standing is None else read_standing(standing)
        if message.kind == "reminder" and (change := find_change(tx, message.record_id, read)):
            raise Unsendable(change, is_gone=True)
        parts = [_load_part(tx, message, each, read, folder) for each in message.attachments]
    if message.kind in VALID:
        with store.begin(actor, write=True) as tx:
            message.message = message.message.replace(LINK, _make_url(tx, message, settings.base_url))
    return Contents(message, read_addresses(to), message_id, actor.account_name, parts)


def _make_url(tx: Tx, message: Message, site: str) -> str:
    link = make_link(tx, message.record_id, message.to, message.kind) if site else None
    if link is None:
        raise Unsendable(NOT_THEIRS if site else NO_SITE, is_gone=True)
    return link.url(site)


def _load_part(
    tx: Tx, message: Message, attachment: Attachment, standing: Standing | None, folder: Path | None
) -> DrawnFile | DocumentToDraw:
    if attachment.document is None:
        file = tx.find(files, attachment.file_id, File)
        if file is None:
            raise Unsendable(GONE.format(f"file {attachment.name}"))
        return DrawnFile(attachment.name, file.media_type, Download(read_pieces(tx, file.id, file.size), folder))
    try:
        record = LOADERS[message.record](tx, message.record_id)
    except Refusal:
        raise Unsendable(GONE.format(message.record.replace("_", " ")), is_gone=True) from None
    now = standing_of(record)
    if now is not None and now.kind == "void" and now != standing:
        raise Unsendable(VOIDED, is_gone=True)
    form = attachment.document
    return DocumentToDraw(attachment.name, TYPES[form], prepare_version(form, tx, record, attachment.version, standing))


def draw(contents: Contents, account_id: int, run_apart: RunApart) -> list[DrawnFile]:
    """Return the files of a message, with its documents drawn. Raises Unsendable, and Refusal for an accident."""
    return [_drawn(part, account_id, run_apart) for part in contents.parts]


def _drawn(part: DrawnFile | DocumentToDraw, account_id: int, run_apart: RunApart) -> DrawnFile:
    if isinstance(part, DrawnFile):
        return part
    try:
        return DrawnFile(part.name, part.media_type, part.pending.finish(account_id, run_apart).content)
    except Refusal as refusal:
        if refusal.code == "unavailable":
            raise
        raise Unsendable(refusal.message) from None


def write(contents: Contents, files: list[DrawnFile], sender: str) -> Mail:
    """Return a message (RFC 5322), whose files are encoded piece by piece. Raises Unsendable for one too large."""
    message, written = contents.message, EmailMessage(SMTP)
    written["From"] = Address(undecodable(contents.agency), addr_spec=sender)
    written["To"] = _addresses(contents.to)
    if message.cc:
        written["Cc"] = _addresses(message.cc)
    if message.reply_to:
        written["Reply-To"] = _addresses([message.reply_to])
    written["Subject"] = undecodable(message.subject)
    written["Date"] = format_datetime(datetime.now(UTC))
    written["Message-ID"] = contents.message_id
    if message.user_id is None or message.record not in LOADERS:  # no program should answer (RFC 3834)
        written["Auto-Submitted"] = "auto-generated"
        written["X-Auto-Response-Suppress"] = "All"
    written.set_content(message.message, cte="quoted-printable")
    if not files:
        whole = bytes(written)
        return Mail(len(whole), [whole])
    written.make_mixed()
    boundary = f"=_{secrets.token_hex(16)}"  # which neither encoding of a part can contain (RFC 2045, 6.7)
    written.set_boundary(boundary)
    end = f"--{boundary}--\r\n".encode()
    begin = bytes(written).removesuffix(end)
    parts = [(_head_of(part, boundary), part.content) for part in files]
    size = len(begin) + sum(len(head) + encoded_size(content) for head, content in parts) + len(end)
    if size > MAX_BYTES:
        raise Unsendable(TOO_LARGE.format(size / 1024 / 1024))
    return Mail(size, chain([begin], chain.from_iterable(starmap(_encoded, parts)), [end]))


def _head_of(part: DrawnFile, boundary: str) -> bytes:
    kind, _, subtype = part.media_type.partition("/")
    head = MIMEPart(SMTP)
    head.set_content(b"", kind, subtype, filename=undecodable(part.name), disposition="attachment")
    return f"--{boundary}\r\n".encode() + bytes(head)


def _encoded(head: bytes, content: bytes | Download) -> Iterator[bytes]:
    """Yield a part of a message, whose file is encoded in lines of LINE bytes (RFC 2045, 6.8)."""
    yield head
    if isinstance(content, Download):
        pieces = content.read(PIECE)
    else:
        pieces = (content[start : start + PIECE] for start in range(0, len(content), PIECE))
    for piece in pieces:
        yield encodebytes(piece).replace(b"\n", b"\r\n")
    yield b"\r\n"


def encoded_size(content: bytes | Download) -> int:
    lines, rest = divmod(content.size if isinstance(content, Download) else len(content), LINE)
    return lines * 78 + (1 if rest else 0) * (-(-rest // 3) * 4 + 2) + 2


def undecodable(text: str) -> str:
    """Return a text of a header that no program takes for an encoded word (RFC 2047).

    Python decodes those in what it is given, so that a name could bring line breaks, and with them other headers.
    """
    return text.replace("=?", "=\u200b?")


def _addresses(addresses: list[str]) -> tuple[Address, ...]:
    return tuple(Address(addr_spec=wire_address(address)) for address in addresses)
