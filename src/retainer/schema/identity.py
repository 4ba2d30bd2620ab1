"""Identity: accounts and their logos, users and API keys, how users sign in, the audit, last numbers, and pauses."""

from sqlalchemy import Column, Index, Table, column

from retainer.schema import columns as col
from retainer.store.engines.sql import INTEGER, KEYED, NUMBERED, TEXT
from retainer.store.tables import metadata

LANGUAGES = ("en", "de")
"""The languages of documents."""
MAILED = ("invoice", "quote", "credit_note")
"""The documents that have texts of the mail that brings them."""


def texts_by_language(*names: str) -> list[Column[str]]:
    """Declare a text in each language of documents: `invoice_terms_en`, `invoice_terms_de`."""
    return [col.text(f"{name}_{language}", optional=True) for name in names for language in LANGUAGES]


IS_SUSPENDED = column("suspended_at").is_not(None)

accounts = Table(
    "accounts",
    metadata,
    Column("id", INTEGER, primary_key=True),
    *map(col.instant, ("created_at", "updated_at")),
    *map(col.text, ("name", "plan")),
    col.instant("trial_ends_at", optional=True),
    col.flag("api_enabled"),
    *map(col.text, ("currency", "timezone")),
    col.money("hourly_rate", optional=True),
    col.decimal("tax_rate", optional=True),  # null until somebody has decided: documents then carry no tax
    col.integer("payment_terms_days"),
    col.integer("time_rounding_minutes", optional=True),
    col.text("time_rounding_to", server_default="up"),
    col.text("time_rounding_each", server_default="entry"),
    col.decimal("early_payment_discount_percent", optional=True),
    col.integer("early_payment_discount_days", optional=True),
    col.text("client_number_pattern"),
    col.text("quote_number_pattern", server_default="Q-{YYYY}-{0000}"),
    col.text("invoice_number_pattern", server_default="INV-{YYYY}-{0000}"),
    col.text("credit_note_number_pattern", server_default="CN-{YYYY}-{0000}"),
    col.text("working_weekdays"),
    *col.optional(col.text, "legal_name", "address_line1", "address_line2", "city", "region", "postal_code", "country"),
    *col.optional(col.text, "vat_number", "registration_number", "email", "phone", "website", "iban", "bic"),
    *col.optional(col.text, "bank_name", "sort_code", "account_number"),
    col.text("bank_accounts", server_default="[]"),  # those for other currencies: JSON
    col.text("payment_url", optional=True),
    col.text("document_language", server_default="en"),
    col.text("document_color", server_default="#4b53d6"),
    col.flag("is_small_business", server_default="0"),
    col.text("tax_outside_eu", server_default="not_subject"),
    *texts_by_language("tax_exemption_reason", "quote_introduction", "quote_terms"),
    *texts_by_language("invoice_introduction", "invoice_terms", "document_footer"),
    *texts_by_language(*(f"mail_{kind}_{part}" for kind in MAILED for part in ("subject", "text"))),
    col.text("reminder_stages", server_default="[]"),  # JSON
    col.day("reminders_from", optional=True),
    col.integer("logo_id", optional=True),  # no reference: logos refer to accounts
    col.flag("require_second_factor", server_default="0"),
    *col.optional(col.instant, "suspended_at", "deletes_at"),
    col.text("suspension_reason", optional=True),
    Index("accounts_suspended", "id", sqlite_where=IS_SUSPENDED, postgresql_where=IS_SUSPENDED),
    **NUMBERED,
)
"""Nothing is done for a suspended account. From `deletes_at` on, its rows are deleted.

Reminders are sent from the day `reminders_from` on, never without one.
"""

logos = col.account_table("logos", col.content("content"), col.text("sha256"))
"""Logos of documents. They are never changed; a new logo is a new row."""

users = col.account_table(
    "users",
    *map(col.text, ("name", "email")),
    col.folded("email"),
    col.text("role"),
    col.flag("is_active"),
    col.hidden(col.integer("weekly_capacity_minutes")),
    col.hidden(col.decimal("target_percent")),
    col.hidden(col.money("hourly_rate", optional=True)),
    col.hidden(col.text("password_hash", optional=True)),
    col.sortable("name"),
    col.searchable("name"),
    col.unique("email_folded"),
    Index("users_by_email_folded", "email_folded"),
    Index(None, "account_id", "name_sort", "id"),
    named_by=("name",),
)

api_keys = col.account_table(
    "api_keys",
    *col.ref("user_id", "users"),
    col.text("name"),
    Column("hash", TEXT, nullable=False),
    *map(col.text, ("prefix", "last_four", "scopes")),
    *col.optional(col.instant, "expires_at", "revoked_at", "last_used_at"),
    col.text("last_used_address", optional=True),
    *col.ref("replaced_by_id", "api_keys", optional=True),
    Index("api_keys_unique_hash", "hash", unique=True),
    named_by=("name",),
)

sessions = col.account_table(
    "sessions",
    *col.ref("user_id", "users"),
    Column("hash", TEXT, nullable=False),
    col.instant("last_used_at"),
    col.instant("ended_at", optional=True),
    *col.optional(col.text, "address", "user_agent"),
    col.text("proposed_secret", optional=True),  # for a second factor, until the user has entered a code for it
    *col.optional(col.text, "sent_form", "answer"),  # the last forms, by their digests, and where each led: JSON lists
    Index("sessions_unique_hash", "hash", unique=True),
)
"""Sessions in the console. Ended ones are kept for some time, since they identify known browsers."""

password_links = col.account_table(
    "password_links",
    *col.ref("user_id", "users"),
    Column("hash", TEXT, nullable=False),
    col.instant("expires_at"),
    col.unique("user_id"),
    Index("password_links_unique_hash", "hash", unique=True),
)
"""Single-use links to set a password; a new link replaces the last one of its user."""

second_factors = col.account_table(
    "second_factors", *col.ref("user_id", "users"), col.text("secret"), col.integer("last_step"), col.unique("user_id")
)
"""The authenticator app of a user: its shared secret, and the last time step of an accepted code."""

recovery_codes = col.account_table(
    "recovery_codes", *col.ref("user_id", "users"), col.text("hash"), col.unique("user_id", "hash")
)
"""Codes that replace the authenticator app, each once; used ones are deleted."""

pending_sign_ins = col.account_table(
    "pending_sign_ins",
    *col.ref("user_id", "users"),
    Column("hash", TEXT, nullable=False),
    col.instant("expires_at"),
    Index("pending_sign_ins_unique_hash", "hash", unique=True),
)
"""Sign-ins whose password was right, and whose second factor is still to come."""

audit_entries = col.account_table(
    "audit_entries",
    col.text("action"),
    *col.ref("user_id", "users", optional=True),
    col.integer("link_id", optional=True),  # no reference: entries outlive links
    col.text("address", optional=True),
    col.text("target"),
    col.integer("target_id"),
    col.text("target_name"),
    *col.optional(col.text, "before", "after"),
    *col.indexes("created_at id", "target target_id created_at id"),
)
"""Actions of admins and of clients with a link; those of operators at the command line have neither.

Before and after are JSON objects.
"""

series = col.keyed_table("series", col.text("name"), col.integer("last"), key=("name",))
"""The last number of each series of an account, like that of its invoices."""

pauses = Table(
    "pauses", metadata, Column("name", TEXT, primary_key=True), col.instant("since"), col.text("reason"), **KEYED
)
"""Background work of the whole installation that is paused until an operator resumes it; a row is a pause."""
