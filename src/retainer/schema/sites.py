"""Sites: monitored websites, their plugins, and the results of the monitor."""

from sqlalchemy import Index

from retainer.schema import columns as col
from retainer.schema.crm import tag_links
from retainer.values.hosts import letters_of_hosts

sites = col.account_table(
    "sites",
    *map(col.text, ("url", "name")),
    *col.ref("client_id", "clients", optional=True),
    *col.ref("project_id", "projects", optional=True, on_delete="detach"),
    *map(col.text, ("environment", "platform")),
    col.flag("monitoring_enabled"),
    col.integer("check_interval_seconds"),
    col.embedded("expected_status", optional=True),
    col.text("keyword", optional=True),
    col.instant("maintenance_until", optional=True),
    col.hidden(col.text("observed", server_default="unknown")),
    col.hidden(col.integer("failures", server_default="0")),
    *map(col.mark_maintained, col.optional(col.instant, "last_checked_at", "down_since")),
    *map(col.mark_maintained, col.optional(col.integer, "last_status_code", "response_time_ms")),
    col.mark_maintained(col.text("last_error", optional=True)),
    col.mark_maintained(col.instant("ssl_expires_at", optional=True)),
    *(col.hidden(col.integer(f"uptime_{span}", optional=True)) for span in ("24h", "7d", "30d")),
    col.hidden(col.instant("uptime_at", optional=True)),
    col.hidden(col.instant("next_check_at", optional=True)),
    *col.optional(col.text, "wp_version", "wp_update_version", "php_version"),
    *map(col.integer, ("plugins_count", "plugin_updates_count")),
    col.flag("core_update_available"),
    col.mark_maintained(col.instant("last_synced_at", optional=True)),
    col.text("external_id", optional=True),
    col.sortable("name"),
    col.folded("name", "url", into="search", fold=letters_of_hosts),
    *map(col.unique, ("url", "external_id")),
    *col.indexes("name_sort id", "created_at id", "updated_at id", "client_id name_sort id", "project_id"),
    Index("sites_due", "monitoring_enabled", "next_check_at"),
    is_announced=True,
    named_by=("name",),
)
sites_tags = tag_links("sites")

site_plugins = col.keyed_table(
    "site_plugins",
    *col.ref("site_id", "sites", on_delete="cascade"),
    *map(col.text, ("slug", "name")),
    *col.optional(col.text, "version", "version_order"),
    col.text("status"),
    col.text("update_version", optional=True),
    *map(col.flag, ("auto_update", "update_available")),
    Index(None, "account_id", "slug", "version_order"),
    key=("site_id", "slug"),
)

site_checks = col.keyed_table(
    "site_checks",
    *col.ref("site_id", "sites", on_delete="cascade"),
    col.instant("checked_at"),
    col.flag("is_up"),
    key=("site_id", "checked_at"),
)

site_hours = col.keyed_table(
    "site_hours",
    *col.ref("site_id", "sites", on_delete="cascade"),
    col.text("hour"),
    *map(col.integer, ("up", "down")),
    col.integer("responses", server_default="0"),  # checks with a response, which may still have failed
    col.integer("response_ms", server_default="0"),  # the sum of their response times
    key=("site_id", "hour"),
)

site_incidents = col.keyed_table(
    "site_incidents",
    *col.ref("site_id", "sites", on_delete="cascade"),
    col.instant("started_at"),
    col.instant("ended_at", optional=True),
    col.text("cause", optional=True),
    key=("site_id", "started_at"),
)
"""The times for which sites were down; without an end, the site still is."""
