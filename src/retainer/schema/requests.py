"""Requests: the request log and its sums, and the responses to writes with an Idempotency-Key."""

from sqlalchemy import Boolean, Column, Index, LargeBinary, literal_column

from retainer.schema.columns import instant, integer, keyed_table, ref, sparse, text

HOUR = len("2026-03-10T09")
"""How many characters of an instant name its hour."""
SUMS = ("requests", "client_errors", "server_errors", "limited")
"""What is counted of requests: all, those answered 400 to 499, from 500 on, and 429."""

HAS_SENT_ID = literal_column("(substr(request_id, 1, 4) <> 'req_' OR length(request_id) <> 28)", Boolean)
"""Whether the caller has sent a request's id; one that was made here says when that was, and needs no index."""

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

requests = keyed_table(
    "requests",
    instant("answered_at"),
    integer("number"),
    *ref("key_id", "api_keys", on_delete="cascade"),
    text("request_id"),
    text("method"),
    text("path"),
    text("operation", optional=True),
    integer("status"),
    integer("failure_class", optional=True),
    integer("duration_us"),
    text("address", optional=True),
    text("record", optional=True),
    Index("requests_by_key_id", "account_id", "key_id", "answered_at", "number"),
    Index(
        "requests_by_request_id",
        "account_id",
        "request_id",
        "answered_at",
        "number",
        sqlite_where=HAS_SENT_ID,
        postgresql_where=HAS_SENT_ID,
    ),
    sparse("requests", "record", "answered_at", "number"),
    sparse("requests", "failure_class", "answered_at", "number"),
    key=("answered_at", "number"),
)
"""Each request of a key of the account, and the path of the record that it has written, like `/clients/17`.

`number` tells those of the same microsecond apart; `failure_class` is the first digit of a status from 400 on.
"""

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
