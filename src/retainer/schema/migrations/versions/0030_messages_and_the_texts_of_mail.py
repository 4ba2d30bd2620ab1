"""Messages by mail, and the texts that they have by default."""

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import INSTANT, INTEGER, TEXT

revision = "0030"
down_revision = "0029"
LOCKS = {
    "accounts": "gets twelve columns without values, which takes a moment",
    **dict.fromkeys(("clients", "users"), "is referred to by a new table, which takes a moment"),
}
TEXTS = [
    f"mail_{kind}_{part}_{language}"
    for kind in ("invoice", "quote", "credit_note")
    for part in ("subject", "text")
    for language in ("en", "de")
]


def upgrade() -> None:
    op.create_table(
        "messages",
        *(sa.Column(name, INTEGER, nullable=False) for name in ("id", "account_id")),
        *(sa.Column(name, INSTANT, nullable=False) for name in ("created_at", "updated_at")),
        *(sa.Column(name, TEXT, nullable=False) for name in ("kind", "record")),
        sa.Column("record_id", INTEGER, nullable=False),
        *(sa.Column(name, INTEGER, nullable=True) for name in ("client_id", "user_id")),
        *(sa.Column(name, TEXT, nullable=False) for name in ("to", "cc")),
        sa.Column("reply_to", TEXT, nullable=True),
        *(sa.Column(name, TEXT, nullable=False) for name in ("subject", "message", "attachments", "status")),
        sa.Column("attempts", INTEGER, nullable=False),
        sa.Column("error", TEXT, nullable=True),
        sa.Column("sent_at", INSTANT, nullable=True),
        sa.Column("all_to", TEXT, nullable=False),
        sa.Column("standing", TEXT, nullable=True),
        sa.Column("message_id", TEXT, nullable=False),
        sa.Column("failing_since", INSTANT, nullable=True),
        sa.Column("next_attempt_at", INSTANT, nullable=False),
        sa.Column("search", TEXT, nullable=False),
        *(reference(f"{name}_id", f"{name}s") for name in ("client", "user")),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("messages_ref_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("messages_pk")),
        sa.UniqueConstraint("account_id", "id", name=op.f("messages_unique_account_id_id")).ddl_if(dialect="sqlite"),
        sa.UniqueConstraint("account_id", "message_id", name=op.f("messages_unique_account_id_message_id")),
        info={"of_account": True},
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    has_client, is_queued = sa.text("client_id IS NOT NULL"), sa.text("status = 'queued'")
    with op.batch_alter_table("messages", schema=None) as batch_op:
        for names in ("created_at_id", "updated_at_id"):
            columns = ["account_id", names.removesuffix("_id"), "id"]
            batch_op.create_index(batch_op.f(f"messages_by_account_id_{names}"), columns)
        of_record = ["account_id", "record", "record_id", "id"]
        batch_op.create_index(batch_op.f("messages_by_account_id_record_record_id_id"), of_record)
        of_client = ["account_id", "client_id", "id"]
        batch_op.create_index("messages_by_client_id", of_client, sqlite_where=has_client, postgresql_where=has_client)
        queued = ["account_id", "next_attempt_at"]
        batch_op.create_index("messages_queued", queued, sqlite_where=is_queued, postgresql_where=is_queued)
    with op.batch_alter_table("accounts", schema=None) as batch_op:
        for name in TEXTS:
            batch_op.add_column(sa.Column(name, TEXT, nullable=True))


def reference(column: str, target: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"messages_ref_account_id_{column}")
    return sa.ForeignKeyConstraint(["account_id", column], [f"{target}.account_id", f"{target}.id"], name=name)
