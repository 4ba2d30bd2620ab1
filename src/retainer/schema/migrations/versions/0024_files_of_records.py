"""Files of records."""

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import INSTANT, INTEGER, TEXT

revision = "0024"
down_revision = "0023"
HOLDERS = {
    "client": "clients",
    "project": "projects",
    "quote": "quotes",
    "invoice": "invoices",
    "expense": "expenses",
    "ticket": "tickets",
    "ticket_reply": "ticket_replies",
}
LOCKS = dict.fromkeys([*HOLDERS.values(), "users", "accounts"], "is referred to by a new table, which takes a moment")


def upgrade() -> None:
    op.create_table(
        "files",
        *(sa.Column(name, INTEGER, nullable=False) for name in ("id", "account_id")),
        *(sa.Column(name, INSTANT, nullable=False) for name in ("created_at", "updated_at")),
        *(sa.Column(f"{name}_id", INTEGER, nullable=True) for name in (*HOLDERS, "user")),
        *(sa.Column(name, TEXT, nullable=False) for name in ("name", "media_type")),
        sa.Column("size", INTEGER, nullable=False),
        *(sa.Column(name, TEXT, nullable=False) for name in ("sha256", "search")),
        *(reference("files", f"{name}_id", table) for name, table in {**HOLDERS, "user": "users"}.items()),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("files_ref_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("files_pk")),
        sa.UniqueConstraint("account_id", "id", name=op.f("files_unique_account_id_id")).ddl_if(dialect="sqlite"),
        info={"of_account": True},
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    with op.batch_alter_table("files", schema=None) as batch_op:
        for name in ("created_at", "updated_at"):
            batch_op.create_index(batch_op.f(f"files_by_account_id_{name}_id"), ["account_id", name, "id"])
        batch_op.create_index("files_by_size", ["account_id", "size", "id"])
        for name in HOLDERS:
            condition = sa.text(f"{name}_id IS NOT NULL")
            batch_op.create_index(
                f"files_by_{name}_id",
                ["account_id", f"{name}_id", "created_at", "id"],
                sqlite_where=condition,
                postgresql_where=condition,
            )
    op.create_table(
        "file_pieces",
        *(sa.Column(name, INTEGER, nullable=False) for name in ("account_id", "file_id", "position")),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        reference("file_pieces", "file_id", "files"),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("file_pieces_ref_account_id")),
        sa.PrimaryKeyConstraint("account_id", "file_id", "position", name=op.f("file_pieces_pk")),
        info={"of_account": True},
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )


def reference(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"{table}_ref_account_id_{column}")
    return sa.ForeignKeyConstraint(["account_id", column], [f"{target}.account_id", f"{target}.id"], name=name)
