"""Webhooks: where the events of an account are sent, and the log of their deliveries."""

from sqlalchemy import column

from retainer.schema import columns as col

webhooks = col.account_table(
    "webhooks",
    col.text("url"),
    col.text("description", optional=True),
    col.embedded("types", optional=True),
    col.embedded("scopes"),
    *col.ref("key_id", "api_keys", optional=True, on_delete="none"),  # keys are never deleted
    col.text("status"),
    col.mark_maintained(col.text("status_reason", optional=True)),
    col.mark_maintained(col.integer("position")),
    col.mark_maintained(col.integer("pending_count", server_default="0")),
    col.mark_maintained(col.instant("last_delivered_at", optional=True)),
    col.hidden(col.text("api_url")),  # the base of the addresses in events
    col.hidden(col.text("secret")),
    col.hidden(col.embedded("former_secrets", optional=True)),
    col.hidden(col.flag("is_failing", server_default="0")),
    col.hidden(col.instant("next_attempt_at", optional=True)),
    col.hidden(col.instant("leased_until")),
    col.searchable("url", "description"),
    *col.indexes("created_at id", "updated_at id"),
)
"""`position` is the last event that was taken; nothing is written for a webhook when an event is."""

webhook_deliveries = col.account_table(
    "webhook_deliveries",
    *col.ref("webhook_id", "webhooks", on_delete="cascade"),
    col.integer("event_id", optional=True),  # no reference: deliveries may outlive their events
    col.text("type"),
    col.integer("record_id"),
    col.text("status"),
    col.integer("attempts"),
    *col.optional(col.instant, "attempted_at", "next_attempt_at"),
    col.integer("response_status", optional=True),
    col.text("response_body", optional=True),
    col.integer("duration_ms", optional=True),
    col.text("error", optional=True),
    col.hidden(col.instant("failing_since", optional=True)),
    col.unique("webhook_id", "event_id"),
    *col.indexes("webhook_id id", "created_at id"),
    col.index_where("webhook_deliveries_pending", "webhook_id", condition=column("status") == "pending"),
)
"""Deliveries of events, and of tests, which have no event."""
