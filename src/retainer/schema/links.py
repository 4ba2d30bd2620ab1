"""Links with which clients see a document without signing in."""

import sqlalchemy as sa

from retainer.schema import columns as col

client_links = col.account_table(
    "client_links",
    *col.ref("invoice_id", "invoices", optional=True, on_delete="cascade"),
    *col.ref("quote_id", "quotes", optional=True, on_delete="cascade"),
    *col.ref("user_id", "users", optional=True),
    col.hidden(col.text("hash")),
    col.instant("expires_at"),
    col.mark_maintained(col.instant("last_opened_at", optional=True)),
    *(col.partial_index("client_links", f"{name}_id", "created_at", "id") for name in ("invoice", "quote")),
    sa.Index("client_links_by_hash", "hash"),
    *col.indexes("created_at id", "updated_at id"),
)
"""Of each link, the hash of its token. It belongs to one document, is deleted with it, and is deleted to revoke it.

The index of hashes is not unique: on a cluster, rows of other accounts are on other nodes.
"""
