"""Visitors: clients who come with a link. A visitor is the actor of what it does."""

from collections.abc import Callable

from sqlalchemy import bindparam, select

from retainer.identity.people.sessions import digest
from retainer.schema.identity import accounts
from retainer.schema.links import client_links
from retainer.store.engines.sql import INSTANT
from retainer.store.tx import Actor, Store, Tx
from retainer.values.exact import utcnow


class Visitor(Actor, frozen=True, gc=False):
    """A client with a link to one document; with the address of the request."""

    link_id: int
    invoice_id: int | None
    quote_id: int | None
    payment_url: str | None
    address: str | None = None

    @property
    def acting_link(self) -> int:
        return self.link_id

    def start_check(self, tx: Tx) -> Callable[[], bool]:
        """Ask whether the link still works, so that a revoked one changes nothing; return a function that answers."""
        rows = tx.request_rows(STILL_LIVE, link=self.link_id, at=tx.now)
        return lambda: bool(rows())


COLUMNS = {
    "account_id": accounts.c.id,
    **accounts.c["currency", "timezone", "payment_terms_days", "client_number_pattern"],
    "link_id": client_links.c.id,
    **client_links.c["invoice_id", "quote_id"],
    "payment_url": accounts.c.payment_url,
}
OF_ACCOUNTS = client_links.join(accounts, accounts.c.id == client_links.c.account_id)
IS_LIVE = (client_links.c.expires_at > bindparam("at", type_=INSTANT), accounts.c.suspended_at.is_(None))
BY_HASH = select(*COLUMNS.values()).select_from(OF_ACCOUNTS).where(client_links.c.hash == bindparam("hash"), *IS_LIVE)
STILL_LIVE = select(client_links.c.id).select_from(OF_ACCOUNTS).where(client_links.c.id == bindparam("link"), *IS_LIVE)


def find_visitor(store: Store, token: str, address: str | None) -> Visitor | None:
    """Return the visitor with a token.

    None for a token that never existed, and for a link that was revoked, has expired, or is of a suspended account.
    """
    row = store.unscoped_one(BY_HASH, hash=digest(token), at=utcnow())
    if row is None:
        return None
    return Visitor(user_id=0, role="client", address=address, **dict(zip(COLUMNS, row, strict=True)))
