"""Links in messages: a text with `{link}` gets a client link as it is sent, so that only its hash is ever stored.

An attempt that fails takes its link back, because the next one makes another.
"""

from collections.abc import Callable

from msgspec.structs import replace
from sqlalchemy import Table

from retainer.billing.client_links import ClientLink, create_link
from retainer.billing.invoices.invoices import load_invoice
from retainer.billing.invoices.types import Invoice
from retainer.billing.quotes.quotes import load_quote
from retainer.billing.quotes.types import Quote
from retainer.errors import Refusal
from retainer.identity import audit
from retainer.identity.actors import operator_of
from retainer.identity.placeholders import LINK, LINKED
from retainer.mail.sender.contents import NO_SITE, Contents, Unsendable
from retainer.schema.billing import invoices, quotes
from retainer.schema.links import client_links
from retainer.store.tx import Store, Tx
from retainer.values.reading import with_defaults

INVOICES: tuple[Table, Callable[[Tx, int], Invoice | Quote]] = (invoices, load_invoice)
QUOTES: tuple[Table, Callable[[Tx, int], Invoice | Quote]] = (quotes, load_quote)


def with_link(store: Store, contents: Contents, account_id: int, site: str) -> Contents:
    """Return a message with a new client link for its `{link}`, if it has one; `site` is the public address.

    Raises Unsendable.
    """
    message = contents.message
    if message.record not in LINKED or LINK not in message.message:
        return contents
    if not site:
        raise Unsendable(NO_SITE)
    table, load = INVOICES if message.record == "invoice" else QUOTES
    sender = replace(operator_of(store, account_id), user_id=message.user_id or 0)
    try:
        with store.begin(sender, write=True) as tx:
            document = load(tx, message.record_id)
            made = create_link(tx, table, document, with_defaults(ClientLink, expires_at=None), site)
            tx.raise_errors()
            name = document.number or ""
            audit.note(tx, "client link created", audit.Target(message.record, document.id, name))
    except Refusal as refusal:
        raise Unsendable(refusal.message) from None
    message.message = message.message.replace(LINK, str(made.url))
    return contents._replace(link_id=made.id)


def take_back(store: Store, contents: Contents, account_id: int) -> None:
    """Delete the link of a message that was not sent, unless it was opened: then it was."""
    if contents.link_id is None:
        return
    with store.begin(operator_of(store, account_id), write=True) as tx:
        link = tx.find(client_links, contents.link_id, ClientLink)
        if link is not None and link.last_opened_at is None:
            tx.delete(client_links, link.id)
