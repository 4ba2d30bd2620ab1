"""Requests: the request log and its sums, and the responses to writes with an Idempotency-Key."""

from sqlalchemy import Column, Index, LargeBinary

from retainer.schema.columns import instant, integer, keyed_table, ref, text

HOUR, PERIOD = len("2026-03-10T09"), len("2026-03-10T09:30:0")
"""How many characters of an instant name its hour and its period, which is ten seconds."""
SUMS = ("requests", "client_errors", "server_errors", "limited")
"""What is counted of requests: all, those answered 400 to 499, from 500 on, and 429."""

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

request_blocks = keyed_table(
    "request_blocks",
    text("period"),
    integer("number"),
    *ref("key_id", "api_keys", on_delete="cascade"),
    integer("requests"),
    text("content"),
    Index("request_blocks_by_key_id", "account_id", "key_id", "period", "number", "requests"),
    key=("period", "number"),
)
"""Requests of a key that were answered in ten seconds, like `2026-03-10T09:30:0`, and written together.

`content` has them as JSON; the first has this `number`, and each that follows the next one.
"""

request_terms = keyed_table(
    "request_terms",
    text("term"),
    text("period"),
    integer("number"),
    Index("request_terms_by_period", "account_id", "period"),
    key=("term", "period", "number"),
)
"""What blocks are looked up by: ids that callers sent, records that were written, like `/clients/17`, `4xx`, `5xx`."""

request_hours = keyed_table(
    "request_hours",
    *ref("key_id", "api_keys", on_delete="cascade"),
    text("hour"),
    *map(integer, SUMS),
    integer("busiest_minute", server_default="0"),
    key=("key_id", "hour"),
)
"""How many requests a key has made in an hour, like `2026-03-10T09`, and in the busiest minute that is over."""

operation_hours = keyed_table(
    "operation_hours",
    *ref("key_id", "api_keys", on_delete="cascade"),
    text("operation"),
    text("hour"),
    *map(integer, SUMS),
    Index(None, "account_id", "operation", "key_id", "hour"),
    key=("key_id", "operation", "hour"),
)
"""The same for each operation that a key has called."""
