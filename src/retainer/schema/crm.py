"""Customers: clients, their contacts, and the tags that group records of all kinds."""

from sqlalchemy import Index, Table

from retainer.schema.columns import (
    account_table,
    decimal,
    flag,
    folded,
    index_amounts,
    integer,
    keyed_table,
    maintained,
    money,
    numbered,
    partial_index,
    ref,
    searchable,
    sortable,
    text,
    unique,
)
from retainer.values.collation import printed_form


def tag_links(owner: str) -> Table:
    """Declare the table that links the rows of `owner` to their tags."""
    return keyed_table(
        f"{owner}_tags",
        *ref("record_id", owner, on_delete="cascade"),
        *ref("tag_id", "tags", on_delete="cascade", holder="record_id", part="tag_ids"),
        Index(None, "account_id", "tag_id"),
        key=("record_id", "tag_id"),
    )


tags = account_table(
    "tags",
    text("name"),
    folded("name", fold=printed_form),
    sortable("name"),
    text("color", optional=True),
    maintained("usage_count"),
    searchable("name"),
    unique("name_folded"),
    Index(None, "account_id", "name_sort", "id"),
    Index(None, "account_id", "created_at", "id"),
    is_announced=True,
)

clients = account_table(
    "clients",
    text("name"),
    *numbered(),
    text("status"),
    text("email", optional=True),
    text("invoice_email", optional=True),
    text("phone", optional=True),
    text("website", optional=True),
    text("address_line1", optional=True),
    text("address_line2", optional=True),
    text("city", optional=True),
    text("region", optional=True),
    text("postal_code", optional=True),
    text("country", optional=True),
    text("vat_number", optional=True),
    text("registration_number", optional=True),
    text("currency"),
    money("hourly_rate", optional=True),
    decimal("tax_rate", optional=True),
    integer("payment_terms_days"),
    decimal("early_payment_discount_percent", optional=True),
    integer("early_payment_discount_days", optional=True),
    text("notes", optional=True),
    text("language", optional=True),
    maintained("contacts_count"),
    maintained("projects_count"),
    maintained("sites_count"),
    text("external_id", optional=True),
    sortable("name"),
    folded("email", optional=True),
    folded("invoice_email", optional=True),
    searchable("name", "number", "email", "notes"),
    unique("external_id"),
    Index(None, "account_id", "name_sort", "id"),
    Index(None, "account_id", "created_at", "id"),
    Index(None, "account_id", "updated_at", "id"),
    Index(None, "account_id", "name"),
    partial_index("clients", "vat_number"),
    partial_index("clients", "email_folded"),
    partial_index("clients", "invoice_email_folded"),
    is_announced=True,
)
index_amounts(clients)
clients_tags = tag_links("clients")

external_contacts = account_table(
    "external_contacts",
    *ref("client_id", "clients", on_delete="cascade"),
    text("first_name", optional=True),
    text("last_name", optional=True),
    text("name"),
    text("email", optional=True),
    text("phone", optional=True),
    text("mobile", optional=True),
    text("job_title", optional=True),
    text("role"),
    flag("is_primary"),
    text("status"),
    text("notes", optional=True),
    text("external_id", optional=True),
    sortable("last_name", "first_name", "email"),  # contacts without a last name sort by the next column
    folded("email", optional=True),
    searchable("first_name", "last_name", "name", "email"),
    unique("client_id", "email_folded"),
    unique("external_id"),
    Index(None, "account_id", "last_name_sort", "id"),
    Index(None, "account_id", "created_at", "id"),
    Index(None, "account_id", "updated_at", "id"),
    is_announced=True,
)
external_contacts_tags = tag_links("external_contacts")
