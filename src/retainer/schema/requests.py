"""Requests: the request log with its hourly sums, and the stored responses to writes with an Idempotency-Key."""

from sqlalchemy import ColumnElement, Index, literal_column

from retainer.schema import columns as col
from retainer.store.engines.sql import INTEGER

HOUR, MINUTE = len("2026-03-10T09"), len("2026-03-10T09:30")
"""Number of characters of an instant that name its hour, and its minute."""
SUMS = ("requests", "client_errors", "server_errors", "limited")
"""The figures counted per hour: all requests, statuses 400 to 499, statuses from 500, and status 429."""

HAS_OWN_ID: ColumnElement[bool] = literal_column("(request_id < 'req_' OR request_id >= 'req`')")
"""Whether the client chose the request id: it does not start with `req_`. A generated id contains its time."""
HAS_FAILED: ColumnElement[bool] = literal_column("status >= 400")
status_class: ColumnElement[int] = literal_column("(status / 100)", INTEGER)

idempotency_keys = col.keyed_table(
    "idempotency_keys",
    *col.ref("key_id", "api_keys", on_delete="cascade"),
    *map(col.text, ("value", "fingerprint")),
    col.instant("created_at"),
    col.integer("status"),
    col.text("headers"),
    col.content("body"),
    Index("idempotency_keys_by_created_at", "created_at"),
    key=("key_id", "value"),
)

requests = col.keyed_table(
    "requests",
    col.instant("answered_at"),
    col.integer("number"),
    *col.ref("key_id", "api_keys", on_delete="cascade"),
    *map(col.text, ("request_id", "method", "path")),
    col.text("operation", optional=True),
    *map(col.integer, ("status", "duration_us")),
    *col.optional(col.text, "address", "record"),
    Index("requests_by_key_id", "account_id", "key_id", "answered_at", "number"),
    col.index_where("requests_by_request_id", "request_id", "answered_at", "number", condition=HAS_OWN_ID),
    col.partial_index("requests", "record", "answered_at", "number"),
    col.index_where("requests_by_failure", status_class, "answered_at", "number", condition=HAS_FAILED),
    key=("answered_at", "number"),
)
"""The requests of the account's keys, with the path of the record that each has written, like `/clients/17`.

The primary key is the order of the log. `number` distinguishes requests of the same microsecond.
"""

refusals = col.keyed_table(
    "refusals",
    col.instant("answered_at"),
    col.integer("number"),
    col.text("code"),
    col.embedded("names"),
    key=("answered_at", "number"),
)
"""Why a request was refused: its error code, and the missing scope or the names of the wrong fields.

A table of its own, so that logging a successful request costs nothing more.
"""

request_hours = col.keyed_table(
    "request_hours",
    *col.ref("key_id", "api_keys", on_delete="cascade"),
    col.text("hour"),
    *map(col.integer, SUMS),
    col.integer("busiest_minute", server_default="0"),
    key=("key_id", "hour"),
)
"""Number of requests of a key in an hour, like `2026-03-10T09`, and in its busiest minute."""

operation_hours = col.keyed_table(
    "operation_hours",
    *col.ref("key_id", "api_keys", on_delete="cascade"),
    *map(col.text, ("operation", "hour")),
    *map(col.integer, SUMS),
    Index(None, "account_id", "operation", "key_id", "hour"),
    key=("key_id", "operation", "hour"),
)
"""The same for each operation that the key has called."""
