"""Support: tickets and the replies to them."""

from retainer.schema import columns as col
from retainer.schema.crm import tag_links

tickets = col.account_table(
    "tickets",
    *col.ref("client_id", "clients", optional=True),
    *col.ref("contact_id", "external_contacts", optional=True, on_delete="detach"),
    *col.ref("site_id", "sites", optional=True, on_delete="detach"),
    *col.ref("project_id", "projects", optional=True, on_delete="detach"),
    col.integer("number"),
    col.text("subject"),
    *col.optional(col.text, "description", "requester_name", "requester_email"),
    *map(col.text, ("status", "priority", "type")),
    *col.ref("assignee_id", "users", optional=True),
    *col.optional(col.instant, "due_at", "first_response_at"),
    col.integer("first_response_minutes", optional=True),
    *col.optional(col.instant, "resolved_at", "closed_at"),
    col.integer("resolution_minutes", optional=True),
    col.integer("reopened_count"),
    col.instant("last_reply_at", optional=True),
    col.text("last_reply_by", optional=True),
    *map(col.maintained, ("replies_count", "tracked_minutes")),
    col.text("external_id", optional=True),
    col.folded("requester_email", optional=True),
    col.searchable("subject", "description"),
    *map(col.unique, ("number", "external_id")),
    *col.indexes("created_at id", "updated_at id", "status created_at id", "client_id created_at id"),
    *col.indexes("assignee_id created_at id", "contact_id", "site_id", "project_id"),
    col.partial_index("tickets", "requester_email_folded", "created_at", "id"),
    col.partial_index("tickets", "resolved_at"),
    is_announced=True,
    named_by=("number", "subject"),
)
tickets_tags = tag_links("tickets")

ticket_replies = col.account_table(
    "ticket_replies",
    *col.ref("ticket_id", "tickets", on_delete="cascade"),
    *map(col.text, ("body", "author_type")),
    *col.ref("user_id", "users", optional=True),
    *col.ref("contact_id", "external_contacts", optional=True, on_delete="detach"),
    col.flag("is_internal"),
    col.searchable("body"),
    *col.indexes("ticket_id created_at id", "contact_id"),
    is_announced=True,
    parent="ticket_id",
)
