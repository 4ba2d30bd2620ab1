"""Requests: the responses to writes with an Idempotency-Key."""

from sqlalchemy import Column, Index, LargeBinary

from retainer.schema.columns import instant, integer, keyed_table, ref, text

idempotency_keys = keyed_table(
    "idempotency_keys",
    *ref("key_id", "api_keys", on_delete="cascade"),
    text("value"),
    text("fingerprint"),
    instant("created_at"),
    integer("status"),
    text("headers"),
    Column("body", LargeBinary, nullable=False),
    Index("idempotency_keys_by_created_at", "created_at"),
    key=("key_id", "value"),
)
