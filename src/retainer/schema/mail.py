"""Mail: the messages that people of other companies and of the account get, each to one address."""

import sqlalchemy as sa

from retainer.schema import columns as col

messages = col.account_table(
    "messages",
    col.text("kind"),
    col.text("record"),
    col.integer("record_id"),  # no reference: a message says who got what, also when that was deleted
    col.integer("stage", optional=True),  # of a reminder
    *col.ref("client_id", "clients", optional=True, on_delete="detach"),
    *col.ref("user_id", "users", optional=True),
    col.text("to"),
    col.embedded("cc"),
    col.text("reply_to", optional=True),
    col.text("subject"),
    col.text("message"),
    col.embedded("attachments"),
    col.text("status"),
    col.integer("attempts"),
    col.text("error", optional=True),
    col.instant("sent_at", optional=True),
    col.hidden(col.embedded("all_to")),  # what the header To names
    col.hidden(col.embedded("standing", optional=True)),
    col.hidden(col.text("message_id")),
    col.hidden(col.instant("failing_since", optional=True)),
    col.hidden(col.instant("next_attempt_at")),
    col.searchable("to", "subject"),
    col.unique("message_id"),
    *col.indexes("created_at id", "updated_at id", "record record_id id"),
    col.partial_index("messages", "client_id", "id"),
    col.index_where(
        "messages_once_by_stage", "record", "record_id", "stage", condition=sa.column("stage").is_not(None), unique=True
    ),
    sa.Index(
        "messages_queued",
        *("account_id", "next_attempt_at"),
        sqlite_where=sa.column("status") == "queued",
        postgresql_where=sa.column("status") == "queued",
    ),
)
"""`next_attempt_at` of a message that is being sent is when its lease ends."""
