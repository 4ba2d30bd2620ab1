"""Requests: the request log with its hourly sums, and the stored responses to writes with an Idempotency-Key."""

from sqlalchemy import ColumnElement, Index, literal_column

from retainer.schema.columns import (
    content,
    embedded,
    index_where,
    instant,
    integer,
    keyed_table,
    partial_index,
    ref,
    text,
)
from retainer.store.engines.sql import INTEGER

HOUR, MINUTE = len("2026-03-10T09"), len("2026-03-10T09:30")
"""Number of characters of an instant that name its hour, and its minute."""
SUMS = ("requests", "client_errors", "server_errors", "limited")
"""The figures counted per hour: all requests, statuses 400 to 499, statuses from 500, and status 429."""

HAS_OWN_ID: ColumnElement[bool] = literal_column("(request_id < 'req_' OR request_id >= 'req`')")
"""Whether the client chose the request id: it does not start with `req_`. A generated id contains its time."""
HAS_FAILED: ColumnElement[bool] = literal_column("status >= 400")
status_class: ColumnElement[int] = literal_column("(status / 100)", INTEGER)

idempotency_keys = keyed_table(
    "idempotency_keys",
    *ref("key_id", "api_keys", on_delete="cascade"),
    text("value"),
    text("fingerprint"),
    instant("created_at"),
    integer("status"),
    text("headers"),
    content("body"),
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
    integer("duration_us"),
    text("address", optional=True),
    text("record", optional=True),
    Index("requests_by_key_id", "account_id", "key_id", "answered_at", "number"),
    index_where("requests_by_request_id", "request_id", "answered_at", "number", condition=HAS_OWN_ID),
    partial_index("requests", "record", "answered_at", "number"),
    index_where("requests_by_failure", status_class, "answered_at", "number", condition=HAS_FAILED),
    key=("answered_at", "number"),
)
"""The requests of the account's keys, with the path of the record that each has written, like `/clients/17`.

The primary key is the order of the log. `number` distinguishes requests of the same microsecond.
"""

refusals = keyed_table(
    "refusals",
    instant("answered_at"),
    integer("number"),
    text("code"),
    embedded("names"),
    key=("answered_at", "number"),
)
"""Why a request was refused: its error code, and the missing scope or the names of the wrong fields.

A table of its own, so that logging a successful request costs nothing more.
"""

request_hours = keyed_table(
    "request_hours",
    *ref("key_id", "api_keys", on_delete="cascade"),
    text("hour"),
    *map(integer, SUMS),
    integer("busiest_minute", server_default="0"),
    key=("key_id", "hour"),
)
"""Number of requests of a key in an hour, like `2026-03-10T09`, and in its busiest minute."""

operation_hours = keyed_table(
    "operation_hours",
    *ref("key_id", "api_keys", on_delete="cascade"),
    text("operation"),
    text("hour"),
    *map(integer, SUMS),
    Index(None, "account_id", "operation", "key_id", "hour"),
    key=("key_id", "operation", "hour"),
)
"""The same for each operation that the key has called."""
