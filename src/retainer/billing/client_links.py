"""Client links: with one, a client sees an invoice or a quote without signing in, and answers the quote.

Anyone with the link sees the document as it was issued or sent, what became of it since, what is left to pay, its files
and its PDF. A link of a quote also accepts or declines it: `accepted_by` is the name that the client entered. The user
who created the link gets an email with the answer. A link works until `expires_at` or until it is deleted, and while
its document is no draft.

The address of a link is in the response that creates it, or in the message that brings it, and nowhere else: `{link}`
in the text of a message becomes a new link for each recipient. Events that a client causes name the link in `link_id`.
"""

import secrets
from datetime import timedelta
from typing import Annotated

from sqlalchemy import Table, bindparam, func, null, select

from retainer.billing.invoices.invoices import load_invoice
from retainer.billing.invoices.types import Invoice
from retainer.billing.quotes.quotes import load_quote
from retainer.billing.quotes.types import Quote
from retainer.errors import Refusal, invalid
from retainer.identity.people.sessions import digest
from retainer.kernel.body import New
from retainer.kernel.paging import ListPage, Page, listing
from retainer.kernel.query import Filter
from retainer.kernel.resource import PublicAddress, Resource
from retainer.schema.billing import invoices, quotes
from retainer.schema.links import client_links
from retainer.store.constraints import singular
from retainer.store.row_mapper import Derived
from retainer.store.tx import Tx
from retainer.values.exact import instant_after
from retainer.values.kinds import Id, Instant
from retainer.values.records import READ_ONLY, SERVER_DEFAULT, Record

PATH = "/client"
"""Where the page of a link is, below the public address of the server."""
VALID, LONGEST = timedelta(days=90), timedelta(days=730)
MAX_LINKS = 100
"""Links of a document at the same time."""
NO_ADDRESS = "A link needs the public address of this server. Ask its operator to set RETAINER_BASE_URL."


COUNT = {
    table: select(func.count()).select_from(client_links).where(client_links.c[name] == bindparam("document"))
    for table, name in ((invoices, "invoice_id"), (quotes, "quote_id"))
}


class ClientLink(Record):
    """A link with which a client sees a document without signing in."""

    invoice_id: Annotated[Id | None, "The invoice that it shows, or null."] = READ_ONLY
    quote_id: Annotated[Id | None, "The quote that it shows, or null."] = READ_ONLY
    expires_at: Annotated[
        Instant, "When it stops working: in the future, and within two years. Omitted: 90 days from now."
    ] = SERVER_DEFAULT
    last_opened_at: Annotated[
        Instant | None, "When its page was last opened, to the minute; programs that scan mail open it, too."
    ] = READ_ONLY
    user_id: Annotated[Id | None, "The user who created it; null: the operator."] = READ_ONLY
    url: Annotated[
        str | None,
        Derived(lambda _: null()),
        "Its address, to send to the client. Only the response that creates it has it; later it is null.",
    ] = READ_ONLY


class LinkFilter(Filter):
    sorts = ("-created_at", "expires_at")
    without = frozenset({"q"})  # a link has no text to search


def create_link(tx: Tx, table: Table, document: Invoice | Quote, link: ClientLink, address: str) -> ClientLink:
    """Create a link to a document, with its address. Raises `locked` for a draft, and `validation_failed`.

    `address` is the public one of the server; links are not made from the host of a request, which may be another.
    """
    noun = singular(table)
    if document.status == "draft":
        step = "Issue it first." if table is invoices else "Send it first."
        message = f"This {noun} is a draft, which clients do not see. {step}"
        raise Refusal("locked", message, errors={"status": [message]})
    if not address:
        raise invalid({"url": [NO_ADDRESS]})
    owner = {f"{noun}_id": document.id}
    link.expires_at = link.expires_at or instant_after(tx.now, VALID)
    if tx.readable("expires_at") and not tx.now < link.expires_at <= instant_after(tx.now, LONGEST):
        tx.error("expires_at", f"Must be after now, {tx.now}, and within two years.")
    if tx.value(COUNT[table], document=document.id) >= MAX_LINKS:
        tx.error("expires_at", f"This {noun} has {MAX_LINKS} links already. Delete some first.")
    token = secrets.token_urlsafe(32)
    link_id = tx.insert(client_links, link, hash=digest(token), user_id=tx.actor.user_id or None, **owner)
    made = tx.get(client_links, link_id, ClientLink)
    made.url = f"{address}{PATH}?token={token}"
    return made


of_quotes = Resource(
    "/quotes/{quote_id}/links", tag="Client links", scope="invoices", table=client_links, parent=quotes
)
of_invoices = Resource(
    "/invoices/{invoice_id}/links", tag="Client links", scope="invoices", table=client_links, parent=invoices
)


@of_quotes.get()
def list_quote_links(tx: Tx, quote_id: Id, filters: LinkFilter, page: Page) -> ListPage[ClientLink]:
    """List the links of a quote, newest first."""
    return listing(tx, client_links, ClientLink, filters, page, quote_id=quote_id)


@of_quotes.post()
def create_quote_link(tx: Tx, quote_id: Id, address: PublicAddress, body: New[ClientLink]) -> ClientLink:
    """Create a link with which the client sees the quote, and accepts or declines it; `url` is shown only once."""
    return create_link(tx, quotes, load_quote(tx, quote_id), body, address)


@of_quotes.get("/{link_id}")
def get_quote_link(tx: Tx, quote_id: Id, link_id: Id) -> ClientLink:
    """Read a link of a quote."""
    return tx.get(client_links, link_id, ClientLink, quote_id=quote_id)


@of_quotes.delete("/{link_id}")
def delete_quote_link(tx: Tx, quote_id: Id, link_id: Id) -> None:
    """Revoke a link of a quote: it stops working immediately."""
    tx.delete(client_links, tx.get(client_links, link_id, ClientLink, quote_id=quote_id).id)


@of_invoices.get()
def list_invoice_links(tx: Tx, invoice_id: Id, filters: LinkFilter, page: Page) -> ListPage[ClientLink]:
    """List the links of an invoice, newest first."""
    return listing(tx, client_links, ClientLink, filters, page, invoice_id=invoice_id)


@of_invoices.post()
def create_invoice_link(tx: Tx, invoice_id: Id, address: PublicAddress, body: New[ClientLink]) -> ClientLink:
    """Create a link with which the client sees the invoice and pays it; `url` is shown only once."""
    return create_link(tx, invoices, load_invoice(tx, invoice_id), body, address)


@of_invoices.get("/{link_id}")
def get_invoice_link(tx: Tx, invoice_id: Id, link_id: Id) -> ClientLink:
    """Read a link of an invoice."""
    return tx.get(client_links, link_id, ClientLink, invoice_id=invoice_id)


@of_invoices.delete("/{link_id}")
def delete_invoice_link(tx: Tx, invoice_id: Id, link_id: Id) -> None:
    """Revoke a link of an invoice: it stops working immediately."""
    tx.delete(client_links, tx.get(client_links, link_id, ClientLink, invoice_id=invoice_id).id)
