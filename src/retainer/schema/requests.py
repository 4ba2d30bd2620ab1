"""Requests: the request log and its sums, and the responses to writes with an Idempotency-Key."""

from sqlalchemy import Boolean, Column, Index, LargeBinary, literal_column

from retainer.schema.columns import instant, integer, keyed_table, ref, text

HOUR, SECOND = len("2026-03-10T09"), len("2026-03-10T09:30:05")
"""How many characters of an instant name its hour and its second."""
SUMS = ("requests", "client_errors", "server_errors", "limited")
"""What is counted of requests: all, those answered 400 to 499, from 500 on, and 429."""

HAS_FAILED = {name: literal_column(f"({name} > 0)", Boolean) for name in ("client_errors", "server_errors")}
"""Whether a block has requests that failed, as the indexes of those blocks say it."""

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
    text("second"),
    integer("number"),
    *ref("key_id", "api_keys", on_delete="cascade"),
    integer("requests"),
    integer("client_errors"),
    integer("server_errors"),
    text("content"),
    Index("request_blocks_by_key_id", "account_id", "key_id", "second", "number", "requests"),
    *(
        Index(
            f"request_blocks_by_{name}",
            *("account_id", "second", "number", "key_id", "requests"),
            sqlite_where=some,
            postgresql_where=some,
        )
        for name, some in HAS_FAILED.items()
    ),
    key=("second", "number"),
)
"""Requests of a key that were answered in the same second, like `2026-03-10T09:30:05`, and written together.

`content` has them as JSON; the first has this `number`, and each that follows the next one.
"""

request_terms = keyed_table(
    "request_terms",
    text("term"),
    text("second"),
    integer("number"),
    Index("request_terms_by_second", "account_id", "second"),
    key=("term", "second", "number"),
)
"""What blocks are looked up by, for requests that have it: the id that the caller sent, or the path of the record that
was written, like `/clients/17`."""

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
