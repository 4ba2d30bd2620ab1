"""Sessions and links of admins, keys that are replaced, and an audit with who, from where, before and after."""

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import INSTANT, INTEGER, NUMBERED, TEXT

revision = "0016"
down_revision = "0015"
LOCKS = {
    "accounts": "lets new tables refer to it",
    "users": "makes a column optional and adds an index",
    "api_keys": "adds columns and a reference",
    "audit_entries": "adds columns and fills them",
}

PAYMENT_ID = {"sqlite": "json_extract(details, '$.id')", "postgresql": "CAST(CAST(details AS JSON) ->> 'id' AS BIGINT)"}


def upgrade() -> None:
    op.create_table(
        "sign_in_failures",
        sa.Column("subject", TEXT, nullable=False),
        sa.Column("count", INTEGER, nullable=False),
        sa.Column("retry_at", INSTANT, nullable=True),
        sa.PrimaryKeyConstraint("subject", name=op.f("sign_in_failures_pk")),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    create_table_of_users(
        "sessions",
        sa.Column("last_used_at", INSTANT, nullable=False),
        sa.Column("ended_at", INSTANT, nullable=True),
        sa.Column("address", TEXT, nullable=True),
        sa.Column("user_agent", TEXT, nullable=True),
    )
    create_table_of_users(
        "password_links",
        sa.Column("expires_at", INSTANT, nullable=False),
        sa.UniqueConstraint("account_id", "user_id", name=op.f("password_links_unique_account_id_user_id")),
    )
    with op.batch_alter_table("users", table_kwargs=NUMBERED) as users:
        users.alter_column("password_hash", existing_type=TEXT, nullable=True)
        users.create_index("users_by_email_folded", ["email_folded"])
    with op.batch_alter_table("api_keys", table_kwargs=NUMBERED) as api_keys:
        api_keys.add_column(sa.Column("last_used_address", TEXT, nullable=True))
        api_keys.add_column(sa.Column("replaced_by_id", INTEGER, nullable=True))
        columns = ["account_id", "replaced_by_id"], ["account_id", "id"]
        api_keys.create_foreign_key(op.f("api_keys_ref_account_id_replaced_by_id"), "api_keys", *columns)
    upgrade_audit()


def create_table_of_users(name: str, *items: sa.Column[object] | sa.Constraint) -> None:
    key = sa.UniqueConstraint("account_id", "id", name=op.f(f"{name}_unique_account_id_id"))
    op.create_table(
        name,
        sa.Column("id", INTEGER, nullable=False),
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("user_id", INTEGER, nullable=False),
        sa.Column("hash", TEXT, nullable=False),
        *items,
        sa.ForeignKeyConstraint(
            ["account_id", "user_id"], ["users.account_id", "users.id"], name=op.f(f"{name}_ref_account_id_user_id")
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f(f"{name}_ref_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f(f"{name}_pk")),
        key.ddl_if(dialect="sqlite"),
        **NUMBERED,
    )
    op.create_index(f"{name}_unique_hash", name, ["hash"], unique=True)


def upgrade_audit() -> None:
    """The only entries so far are of payments that were removed, whose details are what they were before."""
    with op.batch_alter_table("audit_entries", table_kwargs=NUMBERED) as audit_entries:
        for name in ("user_id", "target_id"):
            audit_entries.add_column(sa.Column(name, INTEGER, nullable=True))
        for name in ("address", "target", "target_name", "before", "after"):
            audit_entries.add_column(sa.Column(name, TEXT, nullable=True))
    payment_id = PAYMENT_ID[op.get_bind().dialect.name]
    op.execute(
        f"UPDATE audit_entries SET before = details, target = 'payment', target_id = {payment_id}, "
        f"target_name = CAST({payment_id} AS TEXT)"
    )
    with op.batch_alter_table("audit_entries", table_kwargs=NUMBERED) as audit_entries:
        audit_entries.drop_column("details")
        audit_entries.alter_column("target_id", existing_type=INTEGER, nullable=False)
        for name in ("target", "target_name"):
            audit_entries.alter_column(name, existing_type=TEXT, nullable=False)
        columns = ["account_id", "user_id"], ["account_id", "id"]
        audit_entries.create_foreign_key(op.f("audit_entries_ref_account_id_user_id"), "users", *columns)
