"""Client links, in events and in the audit log, too, and the address at which clients pay."""

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import INSTANT, INTEGER, TEXT

revision = "0032"
down_revision = "0031"
DOCUMENTS = {"invoice": "invoices", "quote": "quotes"}
LOCKS = {
    "accounts": "gets a column, which takes a moment",
    "audit_entries": "gets a column, which takes a moment",
    "events": "gets a column, which takes a moment",
    **dict.fromkeys([*DOCUMENTS.values(), "users"], "is referred to by a new table, which takes a moment"),
}


def upgrade() -> None:
    for table in ("audit_entries", "events"):
        with op.batch_alter_table(table, schema=None) as batch_op:
            batch_op.add_column(sa.Column("link_id", INTEGER, nullable=True))
    with op.batch_alter_table("accounts", schema=None) as batch_op:
        batch_op.add_column(sa.Column("payment_url", TEXT, nullable=True))
    op.create_table(
        "client_links",
        *(sa.Column(name, INTEGER, nullable=False) for name in ("id", "account_id")),
        *(sa.Column(name, INSTANT, nullable=False) for name in ("created_at", "updated_at")),
        *(sa.Column(f"{name}_id", INTEGER, nullable=True) for name in (*DOCUMENTS, "user")),
        sa.Column("hash", TEXT, nullable=False),
        sa.Column("expires_at", INSTANT, nullable=False),
        sa.Column("last_opened_at", INSTANT, nullable=True),
        *(reference("client_links", f"{name}_id", table) for name, table in {**DOCUMENTS, "user": "users"}.items()),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("client_links_ref_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("client_links_pk")),
        sa.UniqueConstraint("account_id", "id", name=op.f("client_links_unique_account_id_id")).ddl_if(
            dialect="sqlite"
        ),
        info={"of_account": True},
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    with op.batch_alter_table("client_links", schema=None) as batch_op:
        for name in ("created_at", "updated_at"):
            batch_op.create_index(batch_op.f(f"client_links_by_account_id_{name}_id"), ["account_id", name, "id"])
        batch_op.create_index("client_links_by_hash", ["hash"])
        for name in DOCUMENTS:
            condition = sa.text(f"{name}_id IS NOT NULL")
            batch_op.create_index(
                f"client_links_by_{name}_id",
                ["account_id", f"{name}_id", "created_at", "id"],
                sqlite_where=condition,
                postgresql_where=condition,
            )


def reference(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"{table}_ref_account_id_{column}")
    return sa.ForeignKeyConstraint(["account_id", column], [f"{target}.account_id", f"{target}.id"], name=name)
