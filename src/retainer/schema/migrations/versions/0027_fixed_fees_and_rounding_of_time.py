"""What is billed of fixed fees, the days of retainers, and the rounding of time."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import DAY, FLAG, INTEGER, TEXT
from retainer.values.exact import local_day

revision = "0027"
down_revision = "0026"
LOCKS = {
    "accounts": "gets three columns, which takes a moment",
    "expenses": "gets an index of unbilled ones, which reads its rows",
    "invoice_lines": "gets two columns, and one of them a value in the rows that bill time",
    "projects": "gets three columns, and values in the rows of fixed fees and retainers",
}
ACCOUNTS = sa.table("accounts", sa.column("id"), sa.column("timezone"))
PROJECTS = sa.table(
    "projects",
    *map(sa.column, ("account_id", "id", "currency", "billing_type", "start_date", "due_date", "created_at")),
    *map(sa.column, ("completed_at", "archived_at", "fees_from", "fees_to", "fee_billed_amount")),
    sa.column("is_template", sa.Boolean),
)
INVOICES = sa.table(
    "invoices", *map(sa.column, ("account_id", "id", "status", "project_id", "amount_credited", "total"))
)
LINES = sa.table(
    "invoice_lines",
    *map(sa.column, ("account_id", "id", "invoice_id", "kind", "project_id", "quantity", "recorded_quantity")),
    *map(sa.column, ("amount", "currency")),
    sa.column("is_freed", FLAG),
)
NOTES = sa.table("credit_notes", *map(sa.column, ("account_id", "invoice_id", "lines")))
OF_INVOICE = sa.and_(INVOICES.c.account_id == LINES.c.account_id, INVOICES.c.id == LINES.c.invoice_id)
WITH_INVOICES = LINES.join(INVOICES, OF_INVOICE)
IS_WHOLLY_FREED = sa.or_(
    INVOICES.c.status == "void", sa.and_(INVOICES.c.amount_credited > 0, INVOICES.c.amount_credited >= INVOICES.c.total)
)


def upgrade() -> None:
    with op.batch_alter_table("accounts", schema=None) as batch_op:
        batch_op.add_column(sa.Column("time_rounding_minutes", INTEGER, nullable=True))
        batch_op.add_column(sa.Column("time_rounding_to", TEXT, server_default="up", nullable=False))
        batch_op.add_column(sa.Column("time_rounding_each", TEXT, server_default="entry", nullable=False))
    is_unbilled = sa.and_(sa.column("invoice_line_id").is_(None), sa.column("billable").is_(True))
    op.create_index(
        "expenses_unbilled",
        "expenses",
        ["account_id", "billable", "client_id", "project_id", "currency", "date", "billable_amount"],
        sqlite_where=is_unbilled,
        postgresql_where=is_unbilled,
    )
    with op.batch_alter_table("invoice_lines", schema=None) as batch_op:
        batch_op.add_column(sa.Column("recorded_quantity", TEXT, nullable=True))
        batch_op.add_column(sa.Column("is_freed", FLAG, server_default="0", nullable=False))
    with op.batch_alter_table("projects", schema=None) as batch_op:
        batch_op.add_column(sa.Column("fee_billed_amount", INTEGER, server_default="0", nullable=False))
        batch_op.add_column(sa.Column("fees_from", DAY, nullable=True))
        batch_op.add_column(sa.Column("fees_to", DAY, nullable=True))
    connection = op.get_bind()
    connection.execute(sa.update(LINES).where(LINES.c.kind == "time").values(recorded_quantity=LINES.c.quantity))
    free_lines(connection)
    sum_fixed_fees(connection)
    date_retainers(connection)


def free_lines(connection: sa.Connection) -> None:
    """Mark the lines of void and of wholly credited invoices, and those whose whole quantity is credited."""
    wholly = sa.select(LINES.c.account_id, LINES.c.id).select_from(WITH_INVOICES).where(IS_WHOLLY_FREED)
    freed = {(account_id, line_id) for account_id, line_id in connection.execute(wholly)}
    credited = defaultdict[tuple[int, int], Decimal](Decimal)
    for account_id, lines in connection.execute(sa.select(NOTES.c.account_id, NOTES.c.lines)):
        for line in json.loads(lines, parse_float=Decimal):
            if line.get("invoice_line_id") is not None:
                credited[account_id, line["invoice_line_id"]] += Decimal(str(line["quantity"]))
    quantities = sa.select(LINES.c.quantity).where(
        LINES.c.account_id == sa.bindparam("of_account"), LINES.c.id == sa.bindparam("of_line")
    )
    for (account_id, line_id), quantity in credited.items():
        found = connection.execute(quantities, {"of_account": account_id, "of_line": line_id}).scalar()
        if found is not None and Decimal(found) == quantity:
            freed.add((account_id, line_id))
    rows = ({"of_account": account_id, "of_id": line_id, "is_freed": True} for account_id, line_id in sorted(freed))
    change(connection, LINES, rows, "is_freed")


def sum_fixed_fees(connection: sa.Connection) -> None:
    """Sum the lines that count against the fixed fee of a project, in its currency."""
    project_id = sa.func.coalesce(LINES.c.project_id, INVOICES.c.project_id)
    sums = (
        sa.select(LINES.c.account_id, project_id, LINES.c.currency, sa.func.sum(LINES.c.amount))
        .select_from(WITH_INVOICES)
        .where(LINES.c.kind.in_(["item", "milestone"]), LINES.c.is_freed.is_(False), project_id.is_not(None))
        .group_by(LINES.c.account_id, project_id, LINES.c.currency)
    )
    currencies = {
        (account_id, id_): currency
        for account_id, id_, currency in connection.execute(sa.select(*PROJECTS.c["account_id", "id", "currency"]))
    }
    rows = (
        {"of_account": account_id, "of_id": id_, "fee_billed_amount": int(amount)}
        for account_id, id_, currency, amount in connection.execute(sums).all()
        if currencies.get((account_id, id_)) == currency
    )
    change(connection, PROJECTS, rows, "fee_billed_amount")


def date_retainers(connection: sa.Connection) -> None:
    """Store the first and the last day of each retainer, in the time zone of its account."""
    zones: dict[int, str] = dict(iter(connection.execute(sa.select(*ACCOUNTS.c["id", "timezone"]))))
    days = PROJECTS.c["account_id", "id", "start_date", "created_at", "due_date", "completed_at", "archived_at"]
    retainers = sa.select(*days).where(PROJECTS.c.billing_type == "retainer", PROJECTS.c.is_template.is_(False))
    rows = []
    for account_id, id_, start, created_at, due, *moments in connection.execute(retainers).all():
        ends = [local_day(str(moment), zones[account_id]) for moment in moments if moment is not None]
        ends += [] if due is None else [str(due)]
        first = local_day(str(created_at), zones[account_id]) if start is None else start
        rows.append({"of_account": account_id, "of_id": id_, "fees_from": first, "fees_to": min(ends, default=None)})
    change(connection, PROJECTS, rows, "fees_from", "fees_to")


def change(connection: sa.Connection, table: sa.TableClause, rows: Iterable[Mapping[str, Any]], *names: str) -> None:
    where = (table.c.account_id == sa.bindparam("of_account"), table.c.id == sa.bindparam("of_id"))
    statement = sa.update(table).where(*where).values({name: sa.bindparam(name) for name in names})
    if values := list(rows):
        connection.execute(statement, values)
