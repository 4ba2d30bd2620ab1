"""Identity: accounts, their users and API keys, the audit log, and the last number of each series."""

from sqlalchemy import Column, Index, Table

from retainer.schema.columns import (
    decimal,
    flag,
    folded,
    instant,
    integer,
    keyed_table,
    money,
    ref,
    tenant_table,
    text,
    unique,
)
from retainer.store.engines.sql import INTEGER, NUMBERED, TEXT
from retainer.store.tables import metadata

accounts = Table(
    "accounts",
    metadata,
    Column("id", INTEGER, primary_key=True),
    instant("created_at"),
    instant("updated_at"),
    text("name"),
    text("plan"),
    instant("trial_ends_at", optional=True),
    flag("api_enabled"),
    text("currency"),
    text("timezone"),
    money("hourly_rate", optional=True),
    decimal("tax_rate"),
    integer("payment_terms_days"),
    text("client_number_pattern"),
    text("quote_number_pattern", server_default="Q-{YYYY}-{0000}"),
    text("invoice_number_pattern", server_default="INV-{YYYY}-{0000}"),
    text("credit_note_number_pattern", server_default="CN-{YYYY}-{0000}"),
    text("working_weekdays"),
    **NUMBERED,
)

users = tenant_table(
    "users",
    text("name"),
    text("email"),
    folded("email"),
    text("role"),
    flag("is_active"),
    integer("weekly_capacity_minutes"),
    decimal("target_percent"),
    money("hourly_rate", optional=True),
    text("password_hash"),
    unique("email_folded"),
)

api_keys = tenant_table(
    "api_keys",
    *ref("user_id", "users"),
    text("name"),
    Column("hash", TEXT, nullable=False),
    text("prefix"),
    text("last_four"),
    text("scopes"),
    instant("expires_at", optional=True),
    instant("revoked_at", optional=True),
    instant("last_used_at", optional=True),
    Index("api_keys_unique_hash", "hash", unique=True),
)

audit_entries = tenant_table(
    "audit_entries", text("action"), text("details"), Index(None, "account_id", "created_at", "id")
)

series = keyed_table("series", text("name"), integer("last"), key=("name",))
"""The last number of each series of an account, like that of its invoices."""
