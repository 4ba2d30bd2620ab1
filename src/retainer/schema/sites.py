"""Sites: monitored websites, their plugins, and the results of the monitor."""

from sqlalchemy import Index

from retainer.schema.columns import (
    account_table,
    embedded,
    flag,
    hidden,
    instant,
    integer,
    keyed_table,
    mark_maintained,
    ref,
    searchable,
    sortable,
    text,
    unique,
)
from retainer.schema.crm import tag_links

sites = account_table(
    "sites",
    text("url"),
    text("name"),
    *ref("client_id", "clients", optional=True),
    *ref("project_id", "projects", optional=True, on_delete="detach"),
    text("environment"),
    text("platform"),
    flag("monitoring_enabled"),
    integer("check_interval_seconds"),
    embedded("expected_status", optional=True),
    text("keyword", optional=True),
    instant("maintenance_until", optional=True),
    hidden(text("observed", server_default="unknown")),
    hidden(integer("failures", server_default="0")),
    mark_maintained(instant("last_checked_at", optional=True)),
    mark_maintained(instant("down_since", optional=True)),
    mark_maintained(integer("last_status_code", optional=True)),
    mark_maintained(integer("response_time_ms", optional=True)),
    mark_maintained(text("last_error", optional=True)),
    mark_maintained(instant("ssl_expires_at", optional=True)),
    *(hidden(integer(f"uptime_{span}", optional=True)) for span in ("24h", "7d", "30d")),
    hidden(instant("uptime_at", optional=True)),
    hidden(instant("next_check_at", optional=True)),
    text("wp_version", optional=True),
    text("wp_update_version", optional=True),
    text("php_version", optional=True),
    integer("plugins_count"),
    integer("plugin_updates_count"),
    flag("core_update_available"),
    instant("last_synced_at", optional=True),
    text("external_id", optional=True),
    sortable("name"),
    searchable("name", "url"),
    unique("url"),
    unique("external_id"),
    Index(None, "account_id", "name_sort", "id"),
    Index(None, "account_id", "created_at", "id"),
    Index(None, "account_id", "updated_at", "id"),
    Index(None, "account_id", "client_id", "name_sort", "id"),
    Index(None, "account_id", "project_id"),
    Index("sites_due", "monitoring_enabled", "next_check_at"),
    is_announced=True,
)
sites_tags = tag_links("sites")

site_plugins = keyed_table(
    "site_plugins",
    *ref("site_id", "sites", on_delete="cascade"),
    text("slug"),
    text("name"),
    text("version", optional=True),
    text("version_order", optional=True),
    text("status"),
    text("update_version", optional=True),
    flag("auto_update"),
    flag("update_available"),
    Index(None, "account_id", "slug", "version_order"),
    key=("site_id", "slug"),
)

site_checks = keyed_table(
    "site_checks",
    *ref("site_id", "sites", on_delete="cascade"),
    instant("checked_at"),
    flag("is_up"),
    key=("site_id", "checked_at"),
)

site_hours = keyed_table(
    "site_hours",
    *ref("site_id", "sites", on_delete="cascade"),
    text("hour"),
    integer("up"),
    integer("down"),
    integer("responses", server_default="0"),  # checks with a response, which may still have failed
    integer("response_ms", server_default="0"),  # the sum of their response times
    key=("site_id", "hour"),
)

site_incidents = keyed_table(
    "site_incidents",
    *ref("site_id", "sites", on_delete="cascade"),
    instant("started_at"),
    instant("ended_at", optional=True),
    text("cause", optional=True),
    key=("site_id", "started_at"),
)
"""The times for which sites were down; without an end, the site still is."""
