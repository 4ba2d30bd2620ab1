"""Customers: clients, their contacts, and the tags that group records of all kinds."""

from sqlalchemy import Index, Table

from retainer.schema import columns as col
from retainer.values.collation import printed_form


def tag_links(owner: str) -> Table:
    return col.keyed_table(
        f"{owner}_tags",
        *col.ref("record_id", owner, on_delete="cascade"),
        *col.ref("tag_id", "tags", on_delete="cascade", holder="record_id", part="tag_ids"),
        Index(None, "account_id", "tag_id"),
        key=("record_id", "tag_id"),
    )


tags = col.account_table(
    "tags",
    col.text("name"),
    col.folded("name", fold=printed_form),
    col.sortable("name"),
    col.text("color", optional=True),
    col.maintained("usage_count"),
    col.searchable("name"),
    col.unique("name_folded"),
    *col.indexes("name_sort id", "created_at id"),
    is_announced=True,
    named_by=("name",),
)

clients = col.account_table(
    "clients",
    col.text("name"),
    *col.numbered(),
    col.text("status"),
    *col.optional(col.text, "email", "invoice_email", "phone", "website", "address_line1", "address_line2", "city"),
    *col.optional(col.text, "region", "postal_code", "country", "vat_number", "registration_number"),
    col.text("currency"),
    col.money("hourly_rate", optional=True),
    col.decimal("tax_rate", optional=True),
    col.integer("payment_terms_days"),
    col.decimal("early_payment_discount_percent", optional=True),
    col.integer("early_payment_discount_days", optional=True),
    *col.optional(col.text, "notes", "language"),
    col.flag("reminders", server_default="1"),
    *map(col.maintained, ("contacts_count", "projects_count", "sites_count")),
    col.text("external_id", optional=True),
    col.sortable("name"),
    *col.optional(col.folded, "email", "invoice_email"),
    col.searchable("name", "number", "email", "notes"),
    col.unique("external_id"),
    *col.indexes("name_sort id", "created_at id", "updated_at id", "name"),
    col.partial_index("clients", "vat_number"),
    col.partial_index("clients", "email_folded"),
    col.partial_index("clients", "invoice_email_folded"),
    is_announced=True,
    named_by=("name",),
)
col.index_amounts(clients)
clients_tags = tag_links("clients")

external_contacts = col.account_table(
    "external_contacts",
    *col.ref("client_id", "clients", on_delete="cascade"),
    *col.optional(col.text, "first_name", "last_name"),
    col.text("name"),
    *col.optional(col.text, "email", "phone", "mobile", "job_title"),
    col.text("role"),
    col.flag("is_primary"),
    col.text("status"),
    *col.optional(col.text, "notes", "external_id"),
    col.sortable("last_name", "first_name", "email"),  # contacts without a last name sort by the next column
    col.folded("email", optional=True),
    col.searchable("first_name", "last_name", "name", "email"),
    col.unique("client_id", "email_folded"),
    col.unique("external_id"),
    *col.indexes("last_name_sort id", "created_at id", "updated_at id"),
    is_announced=True,
    named_by=("name",),
)
external_contacts_tags = tag_links("external_contacts")
