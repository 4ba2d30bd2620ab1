"""Sending documents: the message that brings an invoice, a quote or a credit note, and the operations that queue it.

A draft is issued first, in the same transaction: if anything is refused, nothing is issued and nothing is sent.
"""

from collections.abc import Callable, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta
from msgspec.structs import replace
from sqlalchemy import bindparam, func, select

from retainer.billing import files as documents
from retainer.billing import papers
from retainer.billing.credit_notes.types import CreditNote
from retainer.billing.facts import Printable
from retainer.billing.invoices.invoices import load_invoice, save_invoice
from retainer.billing.invoices.types import Invoice
from retainer.billing.quotes.quotes import load_quote, save_quote
from retainer.billing.quotes.types import Quote
from retainer.documents.einvoice import missing_facts
from retainer.documents.facts import Document
from retainer.errors import part
from retainer.files.files import HOLDERS, File
from retainer.identity.placeholders import LINK, LINKED, NO_PAGE, NOT_HERE, find_blanks
from retainer.kernel.body import New
from retainer.kernel.caller import Caller
from retainer.kernel.resource import Resource
from retainer.mail import queue as queueing
from retainer.mail.messages import Attachment, Form, Mailed, Message
from retainer.mail.queue import Letter, Recipients, note_addresses, queue, require_mail
from retainer.mail.texts import fill, load_texts
from retainer.schema import crm
from retainer.schema.billing import credit_notes, invoices, quotes
from retainer.schema.columns import in_literals
from retainer.schema.files import files
from retainer.schema.identity import accounts, users
from retainer.schema.mail import messages
from retainer.store.constraints import MISSING
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values.kinds import Email, Id, Text255, Text10000

MAX_RECIPIENTS = 20
MAX_FILES = 20
MAX_ATTACHED_BYTES = 18 * 1024 * 1024
"""Bytes of all files of a message: as Base64, they are 25 MB, which most mail servers take."""
TOO_LARGE = "These files are larger than 18 MB together, so few mail servers would take the message. Send fewer."
NO_ADDRESS = (
    f"This client has no email address. Add one to the client or to its primary contact, or send {part('`to`')}."
)
UNKNOWN_ADDRESS = "The client has no email address. Add one to the client or to its primary contact."
VOID = "This invoice is void, and nobody should book its e-invoice. Leave xml out."
PDF: tuple[Form] = ("pdf",)
Addresses = Annotated[list[Email], Meta(max_length=MAX_RECIPIENTS)]


class NewMessage(msgspec.Struct):
    """A message that brings a document. Every field has a default."""

    to: Annotated[
        Annotated[list[Email], Meta(min_length=1, max_length=MAX_RECIPIENTS)] | None,
        "Who gets it. Omitted: the `invoice_email` of the client, else its `email`, else that of its primary contact.",
    ] = None
    cc: Annotated[Addresses, "Who gets it, too; all recipients see these addresses."] = []
    bcc: Annotated[Addresses, "Who gets it, too; no recipient sees these addresses."] = []
    reply_to: Annotated[
        Email | None, "Where replies go. Omitted: the address of the account, else that of the user of the key."
    ] = None
    subject: Annotated[
        Text255 | None,
        "Omitted: that of the settings, in the language of the client. Both take `{number}`, `{client}`, `{total}`, "
        "`{due_date}` and `{agency}`; a credit note has no `{due_date}`, and of a quote it is the last day.",
    ] = None
    message: Annotated[
        Text10000 | None,
        "Plain text. Omitted: that of the settings, in the language of the client. `{link}` becomes a client link of "
        "the invoice or quote, as the message is sent; each recipient gets another. What is stored keeps `{link}`.",
    ] = None
    attach: Annotated[
        Annotated[list[Form], Meta(max_length=2)] | None,
        "Forms of the document that it brings, in the version of now; `xml` is the e-invoice, which the PDF of an "
        "invoice carries, too. Omitted: `pdf`. Empty: none.",
    ] = None
    file_ids: Annotated[
        list[Id], Meta(max_length=MAX_FILES), "Files of records that it brings, at most 18 MB together."
    ] = []


class SentDocument(msgspec.Struct):
    """The messages that bring a document."""

    messages: Annotated[list[Message], "One message for each recipient, in the order to, cc, bcc."]


RequireScope = Callable[[str], object]
LOADERS: dict[Mailed, Callable[[Tx, int], Printable]] = {
    "invoice": load_invoice,
    "quote": load_quote,
    "credit_note": lambda tx, record_id: tx.get(credit_notes, record_id, CreditNote),
}
PRIMARY = (
    select(crm.external_contacts.c.email)
    .where(crm.external_contacts.c.client_id == crm.clients.c.id, crm.external_contacts.c.is_primary.is_(True))
    .limit(1)
    .scalar_subquery()
)
ADDRESS = select(func.coalesce(crm.clients.c.invoice_email, crm.clients.c.email, PRIMARY)).where(
    crm.clients.c.id == bindparam("client")
)
REPLIES = select(accounts.c.email).where(accounts.c.id == ACCOUNT)
FIRST_ADMIN = (
    select(users.c.email)
    .where(users.c.is_active.is_(True), in_literals(users.c.role, ["admin"]))
    .order_by(users.c.id)
    .limit(1)
)


def load_addresses(tx: Tx, client_id: int) -> list[str]:
    """Return the address that a client's documents go to by default, if there is one."""
    return [address for address in [tx.value(ADDRESS, client=client_id)] if address]


def find_obstacle(tx: Tx, client_id: int) -> str | None:
    """Return why the clock cannot send a document to a client; None if it can."""
    address = next(iter(load_addresses(tx, client_id)), None)
    return UNKNOWN_ADDRESS if address is None else queueing.find_obstacle(tx, address)


def load_issued(tx: Tx, name: Mailed, record_id: int) -> Printable:
    """Return a document that can be sent: a draft is issued. Raises `not_found`, and what forbids to issue it."""
    record = LOADERS[name](tx, record_id)
    if isinstance(record, Invoice) and record.status == "draft":
        return save_invoice(tx, replace(record, status="sent"), record).data
    if isinstance(record, Quote) and record.status == "draft":
        return save_quote(tx, replace(record, status="sent"), record).data
    return record


def send(tx: Tx, name: Mailed, record_id: int, body: NewMessage, require_scope: RequireScope) -> list[Message]:
    """Issue a draft, and queue the messages that bring the document; return them.

    Raises `mail_not_configured`, every error of the body, and what forbids to issue the document.
    """
    require_mail(tx)
    record = load_issued(tx, name, record_id)
    letter, recipients = compose(tx, name, record, body, require_scope)
    tx.raise_errors()
    return queue(tx, letter, recipients)


def compose(
    tx: Tx, name: Mailed, record: Printable, body: NewMessage, require_scope: RequireScope
) -> tuple[Letter, Recipients]:
    """Return the message that brings an issued document. Notes an error for each field that cannot be sent.

    `require_scope` raises unless the caller may read the files that it brings.
    """
    paper, standing = papers.load_paper(tx, record), papers.standing_of(record)
    texts = load_texts(tx, paper)
    to = body.to or load_addresses(tx, record.client_id)
    if not to and tx.readable("to"):
        tx.error("to", NO_ADDRESS)
    letter = Letter(
        kind=name,
        record=name,
        record_id=record.id,
        client_id=record.client_id,
        subject=fill(body.subject or texts.subject, paper, standing),
        text=fill(body.message or texts.text, paper, standing),
        attachments=[
            *attached_forms(tx, record, paper, PDF if body.attach is None else body.attach),
            *attached_files(tx, body.file_ids, require_scope),
        ],
        standing=standing,
    )
    if LINK in letter.subject:
        tx.error("subject", NOT_HERE)
    if LINK in letter.text and name not in LINKED:
        tx.error("message", NO_PAGE)
    for field, text in (("subject", body.subject), ("message", body.message)):
        for error in find_blanks(name, text or ""):  # texts of the settings are checked there
            tx.error(field, error)
    recipients = Recipients(to, body.cc, body.bcc, body.reply_to or tx.value(REPLIES) or own_address(tx))
    note_addresses(tx, recipients)
    return letter, recipients


def own_address(tx: Tx) -> str | None:
    """Return the address of the user who acts; for the clock, that of the first admin."""
    found: str | None = tx.field(users.c.email, tx.actor.user_id) if tx.actor.user_id else tx.value(FIRST_ADMIN)
    return found


def attached_forms(tx: Tx, record: Printable, paper: Document, forms: Sequence[Form]) -> list[Attachment]:
    is_imported = documents.is_imported(record)
    stored = documents.load_stored(tx, record) if is_imported else None
    for position, form in enumerate(forms):
        if is_imported and (lacking := documents.lacking(form, stored)):
            tx.error(f"attach.{position}", lacking)
        elif form == "xml":
            is_void = isinstance(record, Invoice) and record.status == "void"
            for missing in [VOID] if is_void else [each.message for each in missing_facts(paper)]:
                tx.error(f"attach.{position}", missing)
    return [Attachment(documents.file_name(paper, form), form, paper.version) for form in dict.fromkeys(forms)]


def attached_files(tx: Tx, file_ids: list[int], require_scope: RequireScope) -> list[Attachment]:
    found = []
    for position, file_id in enumerate(file_ids):
        file = tx.find(files, file_id, File)
        if file is None:
            tx.error(f"file_ids.{position}", MISSING.format("file"))
        else:
            require_scope(f"{HOLDERS[file.record][1]}:read")
            found.append(file)
    if sum(file.size for file in found) > MAX_ATTACHED_BYTES:
        tx.error("file_ids", TOO_LARGE)
    return [Attachment(file.name, file_id=file.id) for file in found]


of_invoices = Resource("/invoices/{invoice_id}/send", tag="Messages", scope="invoices", table=messages, parent=invoices)
of_quotes = Resource("/quotes/{quote_id}/send", tag="Messages", scope="invoices", table=messages, parent=quotes)
of_credit_notes = Resource(
    "/credit-notes/{credit_note_id}/send", tag="Messages", scope="invoices", table=messages, parent=credit_notes
)


@of_invoices.post()
def send_invoice(tx: Tx, caller: Caller, invoice_id: Id, body: New[NewMessage]) -> SentDocument:
    """Send an invoice by mail; a draft is issued first. If anything is refused, it stays a draft.

    The messages are queued with this request, and sent within a moment. They bring the document in the version of now.
    """
    return SentDocument(send(tx, "invoice", invoice_id, body, caller.require_scope))


@of_quotes.post()
def send_quote(tx: Tx, caller: Caller, quote_id: Id, body: New[NewMessage]) -> SentDocument:
    """Send a quote by mail; a draft becomes `sent` first. If anything is refused, it stays a draft."""
    return SentDocument(send(tx, "quote", quote_id, body, caller.require_scope))


@of_credit_notes.post()
def send_credit_note(tx: Tx, caller: Caller, credit_note_id: Id, body: New[NewMessage]) -> SentDocument:
    """Send a credit note by mail."""
    return SentDocument(send(tx, "credit_note", credit_note_id, body, caller.require_scope))
