"""Files of records, each in pieces, so that no statement and no copy holds a large file in memory."""

import sqlalchemy as sa

from retainer.schema import columns as col

PIECE_BYTES = 64 * 1024

OF_RECORDS = {
    "client": "clients",
    "project": "projects",
    "quote": "quotes",
    "invoice": "invoices",
    "expense": "expenses",
    "ticket": "tickets",
    "ticket_reply": "ticket_replies",
}
"""The tables of the records that can have files, by the names of the records in events."""


def holder(name: str, table: str) -> tuple[sa.Column[int], sa.ForeignKeyConstraint]:
    column, reference = col.ref(f"{name}_id", table, optional=True, on_delete="cascade")
    return col.hidden(column), reference


files = col.account_table(
    "files",
    *(item for name, table in OF_RECORDS.items() for item in holder(name, table)),
    *col.ref("user_id", "users", optional=True),
    col.text("name"),
    col.text("media_type"),
    col.integer("size"),
    col.text("sha256"),
    col.searchable("name"),
    *(col.partial_index("files", f"{name}_id", "created_at", "id") for name in OF_RECORDS),
    sa.Index("files_by_size", "account_id", "size", "id"),
    *col.indexes("created_at id", "updated_at id"),
    named_by=("name",),
)
"""A file refers to one record, and is deleted with it. It is never changed."""

file_pieces = col.keyed_table(
    "file_pieces",
    *col.ref("file_id", "files", on_delete="cascade"),
    col.integer("position"),
    col.content("content"),
    key=("file_id", "position"),
)
"""The bytes of files, in pieces of PIECE_BYTES; the last one may be shorter."""
