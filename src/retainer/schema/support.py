"""Support: tickets and the replies to them."""

from sqlalchemy import Index

from retainer.schema.columns import (
    flag,
    folded,
    instant,
    integer,
    maintained,
    partial_index,
    ref,
    tenant_table,
    text,
    unique,
)
from retainer.schema.crm import tag_links

tickets = tenant_table(
    "tickets",
    *ref("client_id", "clients", optional=True),
    *ref("contact_id", "external_contacts", optional=True, on_delete="detach"),
    *ref("site_id", "sites", optional=True, on_delete="detach"),
    *ref("project_id", "projects", optional=True, on_delete="detach"),
    integer("number"),
    text("subject"),
    text("description", optional=True),
    text("requester_name", optional=True),
    text("requester_email", optional=True),
    text("status"),
    text("priority"),
    text("type"),
    *ref("assignee_id", "users", optional=True),
    instant("due_at", optional=True),
    instant("first_response_at", optional=True),
    integer("first_response_minutes", optional=True),
    instant("resolved_at", optional=True),
    instant("closed_at", optional=True),
    integer("resolution_minutes", optional=True),
    integer("reopened_count"),
    instant("last_reply_at", optional=True),
    text("last_reply_by", optional=True),
    maintained("replies_count"),
    maintained("tracked_minutes"),
    text("external_id", optional=True),
    folded("requester_email", optional=True),
    folded("subject", "description", into="search"),
    unique("number"),
    unique("external_id"),
    Index(None, "account_id", "created_at", "id"),
    Index(None, "account_id", "updated_at", "id"),
    Index(None, "account_id", "status", "created_at", "id"),
    Index(None, "account_id", "client_id", "created_at", "id"),
    Index(None, "account_id", "assignee_id", "created_at", "id"),
    Index(None, "account_id", "contact_id"),
    Index(None, "account_id", "site_id"),
    Index(None, "account_id", "project_id"),
    partial_index("tickets", "requester_email_folded", "created_at", "id"),
    partial_index("tickets", "resolved_at"),
)
tickets_tags = tag_links("tickets")

ticket_replies = tenant_table(
    "ticket_replies",
    *ref("ticket_id", "tickets", on_delete="cascade"),
    text("body"),
    text("author_type"),
    *ref("user_id", "users", optional=True),
    *ref("contact_id", "external_contacts", optional=True, on_delete="detach"),
    flag("is_internal"),
    folded("body", into="search"),
    Index(None, "account_id", "ticket_id", "created_at", "id"),
    Index(None, "account_id", "contact_id"),
)
