"""Identity: accounts and their logos, users and API keys, how users sign in, the audit, and the last numbers."""

from sqlalchemy import Column, Index, Table

from retainer.schema.columns import (
    account_table,
    content,
    decimal,
    flag,
    folded,
    hidden,
    instant,
    integer,
    keyed_table,
    money,
    ref,
    searchable,
    sortable,
    text,
    unique,
)
from retainer.store.engines.sql import INTEGER, NUMBERED, TEXT
from retainer.store.tables import metadata

LANGUAGES = ("en", "de")
"""The languages of documents."""


def texts_by_language(*names: str) -> list[Column[str]]:
    """Declare a text in each language of documents: `invoice_terms_en`, `invoice_terms_de`."""
    return [text(f"{name}_{language}", optional=True) for name in names for language in LANGUAGES]


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
    decimal("tax_rate", optional=True),  # null until somebody has decided: documents then carry no tax
    integer("payment_terms_days"),
    decimal("early_payment_discount_percent", optional=True),
    integer("early_payment_discount_days", optional=True),
    text("client_number_pattern"),
    text("quote_number_pattern", server_default="Q-{YYYY}-{0000}"),
    text("invoice_number_pattern", server_default="INV-{YYYY}-{0000}"),
    text("credit_note_number_pattern", server_default="CN-{YYYY}-{0000}"),
    text("working_weekdays"),
    text("legal_name", optional=True),
    text("address_line1", optional=True),
    text("address_line2", optional=True),
    text("city", optional=True),
    text("region", optional=True),
    text("postal_code", optional=True),
    text("country", optional=True),
    text("vat_number", optional=True),
    text("registration_number", optional=True),
    text("email", optional=True),
    text("phone", optional=True),
    text("website", optional=True),
    text("iban", optional=True),
    text("bic", optional=True),
    text("bank_name", optional=True),
    text("document_language", server_default="en"),
    text("document_color", server_default="#4b53d6"),
    flag("is_small_business", server_default="0"),
    text("tax_outside_eu", server_default="not_subject"),
    *texts_by_language("tax_exemption_reason", "quote_introduction", "quote_terms"),
    *texts_by_language("invoice_introduction", "invoice_terms", "document_footer"),
    integer("logo_id", optional=True),  # no reference: logos refer to accounts
    flag("require_second_factor", server_default="0"),
    **NUMBERED,
)

logos = account_table("logos", content("content"), text("sha256"))
"""Logos of documents. They are never changed; a new logo is a new row."""

users = account_table(
    "users",
    text("name"),
    text("email"),
    folded("email"),
    text("role"),
    flag("is_active"),
    hidden(integer("weekly_capacity_minutes")),
    hidden(decimal("target_percent")),
    hidden(money("hourly_rate", optional=True)),
    hidden(text("password_hash", optional=True)),
    sortable("name"),
    searchable("name"),
    unique("email_folded"),
    Index("users_by_email_folded", "email_folded"),
    Index(None, "account_id", "name_sort", "id"),
    named_by=("name",),
)

api_keys = account_table(
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
    text("last_used_address", optional=True),
    *ref("replaced_by_id", "api_keys", optional=True),
    Index("api_keys_unique_hash", "hash", unique=True),
)

sessions = account_table(
    "sessions",
    *ref("user_id", "users"),
    Column("hash", TEXT, nullable=False),
    instant("last_used_at"),
    instant("ended_at", optional=True),
    text("address", optional=True),
    text("user_agent", optional=True),
    text("proposed_secret", optional=True),  # for a second factor, until the user has entered a code for it
    Index("sessions_unique_hash", "hash", unique=True),
)
"""Sessions in the console. Ended ones are kept for some time, since they identify known browsers."""

password_links = account_table(
    "password_links",
    *ref("user_id", "users"),
    Column("hash", TEXT, nullable=False),
    instant("expires_at"),
    unique("user_id"),
    Index("password_links_unique_hash", "hash", unique=True),
)
"""Single-use links to set a password; a new link replaces the last one of its user."""

second_factors = account_table(
    "second_factors", *ref("user_id", "users"), text("secret"), integer("last_step"), unique("user_id")
)
"""The authenticator app of a user: its shared secret, and the last time step of an accepted code."""

recovery_codes = account_table("recovery_codes", *ref("user_id", "users"), text("hash"), unique("user_id", "hash"))
"""Codes that replace the authenticator app, each once; used ones are deleted."""

pending_sign_ins = account_table(
    "pending_sign_ins",
    *ref("user_id", "users"),
    Column("hash", TEXT, nullable=False),
    instant("expires_at"),
    Index("pending_sign_ins_unique_hash", "hash", unique=True),
)
"""Sign-ins whose password was right, and whose second factor is still to come."""

kept_forms = account_table(
    "kept_forms",
    *ref("user_id", "users"),
    text("hash"),
    text("path"),
    text("fields"),
    instant("expires_at"),
    unique("user_id"),
)
"""Forms that were sent after the session had ended, until their user has signed in again. Fields are a JSON list."""

audit_entries = account_table(
    "audit_entries",
    text("action"),
    *ref("user_id", "users", optional=True),
    text("address", optional=True),
    text("target"),
    integer("target_id"),
    text("target_name"),
    text("before", optional=True),
    text("after", optional=True),
    Index(None, "account_id", "created_at", "id"),
    Index(None, "account_id", "target", "target_id", "created_at", "id"),
)
"""Actions of admins; those of operators at the command line have no user. Before and after are JSON objects."""

series = keyed_table("series", text("name"), integer("last"), key=("name",))
"""The last number of each series of an account, like that of its invoices."""
