"""Requests: the request log and its sums, and the responses to writes with an Idempotency-Key."""

from sqlalchemy import Column, Index, LargeBinary, literal_column

from retainer.schema.columns import instant, integer, keyed_table, ref, sparse, text

CLIENT_ERROR = literal_column("status").between(literal_column("400"), literal_column("499"))
SERVER_ERROR = literal_column("status") >= literal_column("500")
"""Partial indexes have the failures: the condition of a query stands in the same words."""

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
    integer("key_id"),
    text("request_id"),
    text("method"),
    text("path"),
    text("operation", optional=True),
    integer("status"),
    integer("duration_us"),
    text("address", optional=True),
    text("record_kind", optional=True),
    integer("record_id", optional=True),
    Index("requests_by_key_id", "account_id", "key_id", "answered_at", "number"),
    Index("requests_by_operation", "account_id", "operation", "answered_at", "number"),
    Index("requests_by_request_id", "account_id", "request_id"),
    sparse("requests", "record_kind", "record_id", "answered_at", "number"),
    Index(
        "requests_client_errors",
        *("account_id", "answered_at", "number"),
        sqlite_where=CLIENT_ERROR,
        postgresql_where=CLIENT_ERROR,
    ),
    Index(
        "requests_server_errors",
        *("account_id", "answered_at", "number"),
        sqlite_where=SERVER_ERROR,
        postgresql_where=SERVER_ERROR,
    ),
    key=("answered_at", "number"),
)
"""Each request that a key of the account has made, and which record it has written.

`number` tells those of the same microsecond apart. A log has no references: what it names may be gone.
"""

SUMS = ("requests", "client_errors", "server_errors", "limited", "duration_us")

request_hours = keyed_table(
    "request_hours",
    integer("key_id"),
    instant("hour"),
    *map(integer, SUMS),
    integer("busiest_minute", server_default="0"),
    key=("key_id", "hour"),
)
"""How many requests a key has made in an hour, and in the busiest minute of it."""

operation_hours = keyed_table(
    "operation_hours",
    integer("key_id"),
    text("operation"),
    instant("hour"),
    *map(integer, SUMS),
    Index(None, "account_id", "operation", "key_id", "hour"),
    key=("key_id", "operation", "hour"),
)
"""The same for each operation that a key has called."""
