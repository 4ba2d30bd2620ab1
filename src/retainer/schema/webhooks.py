"""Webhooks: where the events of an account are sent, and the log of their deliveries."""

from sqlalchemy import Index, column

from retainer.schema.columns import (
    account_table,
    embedded,
    flag,
    hidden,
    index_where,
    instant,
    integer,
    mark_maintained,
    ref,
    searchable,
    text,
    unique,
)

webhooks = account_table(
    "webhooks",
    text("url"),
    text("description", optional=True),
    embedded("types", optional=True),
    embedded("scopes"),
    *ref("key_id", "api_keys", optional=True, on_delete="none"),  # keys are never deleted
    text("status"),
    mark_maintained(text("status_reason", optional=True)),
    mark_maintained(integer("position")),
    mark_maintained(integer("pending_count", server_default="0")),
    mark_maintained(instant("last_delivered_at", optional=True)),
    hidden(text("api_url")),  # the base of the addresses in events
    hidden(text("secret")),
    hidden(embedded("former_secrets", optional=True)),
    hidden(flag("is_failing", server_default="0")),
    hidden(instant("next_attempt_at", optional=True)),
    hidden(instant("leased_until")),
    searchable("url", "description"),
    Index(None, "account_id", "created_at", "id"),
    Index(None, "account_id", "updated_at", "id"),
)
"""`position` is the last event that was taken; nothing is written for a webhook when an event is."""

webhook_deliveries = account_table(
    "webhook_deliveries",
    *ref("webhook_id", "webhooks", on_delete="cascade"),
    integer("event_id", optional=True),  # no reference: deliveries may outlive their events
    text("type"),
    integer("record_id"),
    text("status"),
    integer("attempts"),
    instant("attempted_at", optional=True),
    instant("next_attempt_at", optional=True),
    integer("response_status", optional=True),
    text("response_body", optional=True),
    integer("duration_ms", optional=True),
    text("error", optional=True),
    hidden(instant("failing_since", optional=True)),
    unique("webhook_id", "event_id"),
    Index(None, "account_id", "webhook_id", "id"),
    Index(None, "account_id", "created_at", "id"),
    index_where("webhook_deliveries_pending", "webhook_id", condition=column("status") == "pending"),
)
"""Deliveries of events, and of tests, which have no event."""
