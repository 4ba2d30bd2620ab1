"""The upgrade of a former state that was delivered as revision 0018, before that was final (commit 8cdca1b).

It is not part of the chain of migrations, because both states say 0018: only their tables differ. `migrate` runs it
first, then all later migrations, in one transaction. It leads to the tables of 0018, and computes what these derive:

- numbers, codes, references and names of tags in the form that is unique now, and sort keys and search texts;
- the client of each payment, the footer of documents in each language, and former secrets of webhooks as a list;
- logos as pictures: the former version kept SVG files;
- the labour cost in sums, for rates that the former version had not counted yet.

Sums of money, forms kept for a sign-in and what else has become superfluous are dropped.
"""

from collections.abc import Callable
from hashlib import sha256
from json import dumps
from typing import Any

import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations

from retainer.schema.migrations.folding import Folded, refold
from retainer.store.engines.sql import FLAG, INSTANT, INTEGER, TEXT
from retainer.values.collation import base_letters, number_key, printed_form, sort_key

Announce = Callable[[str], None]
OPTIONAL_TEXTS = (
    *("early_payment_discount_percent", "tax_exemption_reason_en", "tax_exemption_reason_de"),
    *("quote_introduction_en", "quote_introduction_de", "quote_terms_en", "quote_terms_de"),
    *("invoice_introduction_en", "invoice_introduction_de", "invoice_terms_en", "invoice_terms_de"),
    *("document_footer_en", "document_footer_de"),
)
"""New columns of accounts."""
OF_ACCOUNT = ("account_id",)


def numbered(name: str = "number") -> dict[str, Folded]:
    return {f"{name}_folded": Folded([name], printed_form, OF_ACCOUNT), f"{name}_sort": Folded([name], number_key)}


def search(*sources: str) -> dict[str, Folded]:
    return {"search": Folded(sources, base_letters)}


def sort(*sources: str) -> dict[str, Folded]:
    return {f"{sources[0]}_sort": Folded(sources, sort_key)}


FOLDED: dict[str, dict[str, Folded]] = {
    "clients": {
        **numbered(),
        **{f"{name}_folded": Folded([name], str.casefold) for name in ("email", "invoice_email")},
        **sort("name"),
        **search("name", "number", "email", "notes"),
    },
    "quotes": {**numbered(), **search("number", "title")},
    "invoices": {**numbered(), **search("number", "subject", "purchase_order")},
    "credit_notes": {**numbered(), **search("number", "description")},
    "projects": {**numbered("code"), **sort("name"), **search("name", "code", "description")},
    "tags": {"name_folded": Folded(["name"], printed_form, OF_ACCOUNT), **sort("name"), **search("name")},
    "payments": {
        "reference_folded": Folded(["reference"], printed_form, ("account_id", "invoice_id")),
        **search("reference", "notes"),
    },
    "external_contacts": {
        **sort("last_name", "first_name", "email"),
        **search("first_name", "last_name", "name", "email"),
    },
    "users": {**sort("name"), **search("name")},
    "sites": {**sort("name"), **search("name", "url")},
    "expenses": {**sort("category"), **search("description", "vendor")},
    "milestones": search("name", "description"),
    "tasks": search("title", "description"),
    "time_entries": search("description"),
    "tickets": search("subject", "description"),
    "ticket_replies": search("body"),
    "webhooks": search("url", "description"),
}
"""The folded columns of 0018 that the former state lacked, or folded in another way."""
SUPERFLUOUS = ("client_sums", "money_sums", "counted_cost_rates", "kept_forms")
LOCKS = {
    **dict.fromkeys(FOLDED, "writes search texts of all rows, and other columns of some tables"),
    **dict.fromkeys(("accounts", "logos", "project_sums", "sessions", "totals"), "adds or removes columns or rows"),
    **dict.fromkeys(("audit_entries", "invoice_lines"), "makes an index"),
    "api_keys": "lets webhooks refer to it",
    **dict.fromkeys(SUPERFLUOUS, "removes the table"),
}
FILL = """
UPDATE accounts SET document_footer_en = document_footer, document_footer_de = document_footer
    WHERE document_footer IS NOT NULL;
UPDATE payments SET client_id = (SELECT client_id FROM invoices
    WHERE invoices.account_id = payments.account_id AND invoices.id = payments.invoice_id);
DELETE FROM totals WHERE name IN ('kept_forms', 'counted_cost_rates')
"""
RATES = "SELECT account_id, user_id, from_date, amount FROM {}"
RECOUNT = """
WITH rated AS (
    SELECT time_entries.*, (
        SELECT amount FROM cost_rates WHERE cost_rates.account_id = time_entries.account_id
            AND cost_rates.user_id = time_entries.user_id AND from_date <= date ORDER BY from_date DESC LIMIT 1
    ) AS rate FROM time_entries
), costs AS (
    SELECT account_id, substr(CAST(date AS TEXT), 1, digits) AS part, coalesce(client_id, 0) AS of_client,
        coalesce(project_id, 0) AS of_project, currency AS paid_in, sum(duration_minutes * coalesce(rate, 0)) AS cost,
        sum(CASE WHEN rate IS NULL THEN duration_minutes ELSE 0 END) AS missing
    FROM rated CROSS JOIN (SELECT 4 AS digits UNION ALL SELECT 7 UNION ALL SELECT 10) AS buckets
    GROUP BY 1, 2, 3, 4, 5
)
UPDATE project_sums SET labour_cost = cost, missing_cost_rate_minutes = missing FROM costs
WHERE project_sums.account_id = costs.account_id AND bucket = part AND client_id = of_client
    AND project_id = of_project AND currency = paid_in
"""
PICTURE = """
#let data = json(bytes(sys.inputs.data))
#let logo(..size) = image(bytes(data.content), format: data.format, ..size)
#set page(width: auto, height: auto, margin: 0pt, fill: none)
#context {
  let size = measure(logo())
  let fitting = calc.min(1800pt / size.width, 480pt / size.height)
  let scale = if data.format == "svg" { fitting } else { calc.min(fitting, 1) }
  logo(width: size.width * scale, height: size.height * scale)
}
"""
"""A logo as 0018 keeps it: within 1800 by 480 pixels, of which documents print at most 90 by 16 mm."""


def upgrade(connection: sa.Connection, announce: Announce) -> None:
    """Lead the former state to the tables of 0018, within a change of the schema; announce what people must know."""
    op = Operations(MigrationContext.configure(connection))
    add_columns(op)
    for statement in FILL.split(";\n"):
        connection.execute(sa.text(statement))
    keep_secrets(connection)
    draw_logos(connection, announce)
    for name, columns in FOLDED.items():
        refold(connection, name, columns, announce)
    rates = [{*map(tuple, connection.execute(sa.text(RATES.format(name))))} for name in RATE_TABLES]
    if rates[0] != rates[1]:
        connection.execute(sa.text(RECOUNT))
    replace_keys(op)
    drop_what_is_superfluous(op)


RATE_TABLES = ("cost_rates", "counted_cost_rates")


def add_columns(op: Operations) -> None:
    """Create what is new; columns that may not be null are filled before they say so."""
    op.create_table(
        "timers",
        sa.Column("id", INTEGER, nullable=False),
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("user_id", INTEGER, nullable=False),
        sa.Column("work", TEXT, nullable=False),
        sa.Column("description", TEXT, nullable=True),
        sa.Column("started_at", INSTANT, nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "user_id"], ["users.account_id", "users.id"], name="timers_ref_account_id_user_id"
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name="timers_ref_account_id"),
        sa.PrimaryKeyConstraint("id", name="timers_pk"),
        sa.UniqueConstraint("account_id", "id", name="timers_unique_account_id_id"),
        sa.UniqueConstraint("account_id", "user_id", name="timers_unique_account_id_user_id"),
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    new: dict[str, list[sa.Column[Any]]] = {
        "accounts": [
            *(sa.Column(name, TEXT) for name in OPTIONAL_TEXTS),
            sa.Column("early_payment_discount_days", INTEGER),
            sa.Column("is_small_business", FLAG, server_default="0", nullable=False),
            sa.Column("tax_outside_eu", TEXT, server_default="not_subject", nullable=False),
        ],
        "clients": [
            *texts("number_folded", "number_sort", "early_payment_discount_percent"),
            sa.Column("early_payment_discount_days", INTEGER),
            *texts("email_folded", "invoice_email_folded"),
        ],
        "credit_notes": texts("number_folded", "number_sort"),
        "quotes": texts("number_folded", "number_sort", "tax_exemption_reason"),
        "invoices": texts("number_folded", "number_sort", "tax_exemption_reason"),
        "projects": texts("code_folded", "code_sort"),
        "payments": [sa.Column("client_id", INTEGER), *texts("reference_folded")],
        "sessions": texts("proposed_secret", "sent_form", "answer"),
        "webhooks": [sa.Column("key_id", INTEGER), *texts("former_secrets")],
    }
    for table, columns in new.items():
        for column in columns:
            op.add_column(table, column)


def texts(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, TEXT) for name in names]


def keep_secrets(connection: sa.Connection) -> None:
    former = sa.text("SELECT id, former_secret, former_secret_until FROM webhooks WHERE former_secret IS NOT NULL")
    written = sa.text("UPDATE webhooks SET former_secrets = :kept WHERE id = :id")
    for row in connection.execute(former).all():
        kept = [{"secret": row.former_secret, "until": row.former_secret_until}]
        connection.execute(written, {"id": row.id, "kept": dumps(kept, separators=(",", ":"))})


def draw_logos(connection: sa.Connection, announce: Announce) -> None:
    """Keep the picture of each logo. One that cannot be drawn is removed, and announced."""
    import typst  # noqa: PLC0415  # only this upgrade needs it here

    written = sa.text("UPDATE logos SET content = :content, sha256 = :sha256 WHERE id = :id")
    removed = [
        sa.text("UPDATE accounts SET logo_id = NULL WHERE id = :account_id AND logo_id = :id"),
        sa.text("DELETE FROM logos WHERE id = :id"),
    ]
    for row in connection.execute(sa.text("SELECT id, account_id, media_type, content FROM logos")).all():
        data = {"content": [*bytes(row.content)], "format": "svg" if "svg" in row.media_type else "png"}
        try:
            made = typst.compile(PICTURE.encode(), format="png", ppi=72, sys_inputs={"data": dumps(data)})
        except typst.TypstError as error:
            for statement in removed:
                connection.execute(statement, {"id": row.id, "account_id": row.account_id})
            announce(f"The logo of account {row.account_id} cannot be drawn ({error}). Upload it again as a PNG.")
        else:
            digest = sha256(bytes(made)).hexdigest()
            connection.execute(written, {"id": row.id, "content": made, "sha256": digest})


def replace_keys(op: Operations) -> None:
    """Make the folded columns unique, and change indexes. SQLite rebuilds a table once, at the end of its block."""
    for table in ("clients", "credit_notes", "quotes", "invoices"):
        with op.batch_alter_table(table) as changed:
            if table != "invoices":
                changed.alter_column("number_folded", existing_type=TEXT, nullable=False)
                changed.alter_column("number_sort", existing_type=TEXT, nullable=False)
            else:
                changed.drop_index("invoices_by_account_id_issue_date_id")
                changed.drop_index("invoices_unique_quote_id")
                changed.drop_column("settled_date")
            if table == "clients":
                changed.drop_column("name_folded")
            changed.drop_constraint(f"{table}_unique_account_id_number", type_="unique")
            unique = f"{table}_unique_account_id_number_folded"
            changed.create_unique_constraint(unique, ["account_id", "number_folded"])
            changed.create_index(f"{table}_by_account_id_number_sort_id", ["account_id", "number_sort", "id"])
    with op.batch_alter_table("projects") as changed:
        changed.drop_constraint("projects_unique_account_id_code", type_="unique")
        changed.create_unique_constraint("projects_unique_account_id_code_folded", ["account_id", "code_folded"])
        changed.create_index("projects_by_account_id_code_sort_id", ["account_id", "code_sort", "id"])
    with op.batch_alter_table("payments") as changed:
        changed.drop_index("payments_by_day")
        changed.drop_index("payments_unique_reference")
        changed.alter_column("client_id", existing_type=INTEGER, nullable=False)
        changed.create_foreign_key(
            "payments_ref_account_id_client_id", "clients", ["account_id", "client_id"], ["account_id", "id"]
        )
    with op.batch_alter_table("webhooks") as changed:
        changed.drop_column("former_secret")
        changed.drop_column("former_secret_until")
        changed.create_foreign_key(
            "webhooks_ref_account_id_key_id", "api_keys", ["account_id", "key_id"], ["account_id", "id"]
        )
    for name in ("invoice_lines_by_account_id_invoice_id_position", "expenses_by_account_id_project_id_date_id"):
        op.drop_index(name)
    for statement in INDEXES.strip().split(";\n"):
        op.execute(statement)


INDEXES = """
CREATE INDEX audit_entries_by_account_id_target_target_id_created_at_id
    ON audit_entries (account_id, target, target_id, created_at, id);
CREATE INDEX clients_by_email_folded ON clients (account_id, email_folded) WHERE email_folded IS NOT NULL;
CREATE INDEX clients_by_invoice_email_folded ON clients (account_id, invoice_email_folded)
    WHERE invoice_email_folded IS NOT NULL;
CREATE INDEX expenses_by_project ON expenses (account_id, project_id, currency, date, id, net_amount);
CREATE INDEX invoice_lines_by_invoice ON invoice_lines (account_id, invoice_id, position, project_id, amount);
CREATE INDEX invoices_by_account_id_due_date_id ON invoices (account_id, due_date, id);
CREATE INDEX invoices_by_issue_date
    ON invoices (account_id, issue_date, id, status, client_id, project_id, currency, subtotal, tax_total);
CREATE INDEX invoices_unsettled ON invoices (account_id, id, total, amount_paid, amount_credited)
    WHERE amount_paid + amount_credited != total;
CREATE INDEX invoices_with_refund_due ON invoices (account_id, id)
    WHERE amount_paid + amount_credited + balance_due > total;
CREATE UNIQUE INDEX invoices_unique_quote_id ON invoices (account_id, quote_id)
    WHERE status != 'void' AND (amount_credited = 0 OR amount_credited < total);
CREATE INDEX payments_by_account_id_client_id_paid_date_id ON payments (account_id, client_id, paid_date, id);
CREATE INDEX payments_by_day ON payments (account_id, paid_date, id, invoice_id, client_id, currency, amount);
CREATE UNIQUE INDEX payments_unique_reference ON payments (account_id, invoice_id, reference_folded)
"""


def drop_what_is_superfluous(op: Operations) -> None:
    for table, columns in {
        "accounts": ["document_footer"],
        "logos": ["media_type"],
        "project_sums": ["invoiced", "credited", "expenses"],
    }.items():
        for column in columns:
            op.drop_column(table, column)
    for table in SUPERFLUOUS:
        op.drop_table(table)
