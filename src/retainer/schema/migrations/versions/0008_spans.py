"""Summaries of days, months and years instead of months alone, filled from what there is."""

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import INTEGER

revision = "0008"
down_revision = "0007"


CLIENT_DAYS = """
INSERT INTO client_sums
    (account_id, span, client_id, currency, invoice_count, invoiced, invoiced_tax, credited, credited_tax, collected,
    expenses, billable_expenses, billed_expenses, outstanding, overdue, overdue_count)
SELECT account_id, CAST(day AS TEXT), coalesce(client_id, 0), currency,
    sum(invoice_count), sum(invoiced), sum(invoiced_tax), sum(credited), sum(credited_tax), sum(collected), sum(spent),
    sum(charged), sum(recharged), sum(left_over), sum(late), sum(late_count)
FROM (
    SELECT account_id, issue_date AS day, client_id, currency, 1 AS invoice_count, subtotal AS invoiced,
        tax_total AS invoiced_tax, 0 AS credited, 0 AS credited_tax, 0 AS collected, 0 AS spent, 0 AS charged,
        0 AS recharged, 0 AS left_over, 0 AS late, 0 AS late_count
    FROM invoices WHERE status IN ('sent', 'partially_paid', 'paid', 'written_off')
    UNION ALL SELECT account_id, issue_date, client_id, currency, 0, 0, 0, subtotal, tax_total, 0, 0, 0, 0, 0, 0, 0
    FROM credit_notes
    UNION ALL SELECT payments.account_id, paid_date, client_id, payments.currency, 0, 0, 0, 0, 0, amount, 0, 0, 0,
        0, 0, 0
    FROM payments
    JOIN invoices ON invoices.account_id = payments.account_id AND invoices.id = payments.invoice_id
    UNION ALL SELECT account_id, date, client_id, currency, 0, 0, 0, 0, 0, 0, net_amount, billable_amount,
        CASE WHEN invoice_line_id IS NULL THEN 0 ELSE billable_amount END, 0, 0, 0
    FROM expenses
    UNION ALL SELECT account_id, day, client_id, currency, 0, 0, 0, 0, 0, 0, 0, 0, 0, now - before,
        CASE WHEN late THEN now ELSE 0 END - CASE WHEN was_late THEN before ELSE 0 END,
        CASE WHEN late AND now > 0 THEN 1 ELSE 0 END - CASE WHEN was_late AND before > 0 THEN 1 ELSE 0 END
    FROM ({balances}) AS balances
) AS rows_of
GROUP BY 1, 2, 3, 4
"""

BALANCES = """
    SELECT invoices.account_id, day, client_id, currency, due_date < day AS late, {next_day} < day AS was_late,
        CASE WHEN issue_date <= day AND settled_date > day AND total > {settled_now}
            THEN total - {settled_now} ELSE 0 END AS now,
        CASE WHEN issue_date < day AND settled_date >= day AND total > {settled_before}
            THEN total - {settled_before} ELSE 0 END AS before
    FROM invoices JOIN (
        SELECT account_id, id, issue_date AS day FROM invoices
        UNION SELECT account_id, id, {next_day} FROM invoices
        UNION SELECT account_id, id, settled_date FROM invoices WHERE settled_date < CAST('9999-12-31' AS {day})
        UNION SELECT account_id, invoice_id, paid_date FROM payments
        UNION SELECT account_id, invoice_id, issue_date FROM credit_notes
    ) AS days ON days.account_id = invoices.account_id AND days.id = invoices.id
    WHERE settled_date IS NOT NULL AND day IS NOT NULL
"""

SETTLED = """(
    (SELECT coalesce(sum(amount), 0) FROM payments
        WHERE payments.account_id = invoices.account_id AND invoice_id = invoices.id AND paid_date {until} day)
    + (SELECT coalesce(sum(credit_notes.total), 0) FROM credit_notes
        WHERE credit_notes.account_id = invoices.account_id AND invoice_id = invoices.id
            AND credit_notes.issue_date {until} day))"""

MONEY_DAYS = """
INSERT INTO money_sums
    (account_id, span, currency, invoice_count, invoiced, invoiced_tax, credited, credited_tax, collected, expenses,
    billable_expenses, billed_expenses, outstanding, overdue, overdue_count)
SELECT account_id, span, currency, sum(invoice_count), sum(invoiced), sum(invoiced_tax), sum(credited),
    sum(credited_tax), sum(collected), sum(expenses), sum(billable_expenses), sum(billed_expenses),
    sum(outstanding), sum(overdue), sum(overdue_count)
FROM client_sums
GROUP BY 1, 2, 3
"""

USER_DAYS = """
INSERT INTO user_sums
    (account_id, span, user_id, currency, tracked_minutes, billable_minutes, billable_value, billed_value)
SELECT account_id, CAST(date AS TEXT), user_id, currency,
    sum(duration_minutes), sum(CASE WHEN billable THEN duration_minutes ELSE 0 END), sum(amount),
    sum(CASE WHEN invoice_line_id IS NULL THEN 0 ELSE amount END)
FROM time_entries
GROUP BY 1, 2, 3, 4
"""

PROJECT_DAYS = """
INSERT INTO project_sums
    (account_id, span, client_id, project_id, currency, tracked_minutes, billable_minutes, billable_value,
    billed_value, labour_cost, missing_cost_rate_minutes, invoiced, credited, expenses)
SELECT account_id, CAST(day AS TEXT), coalesce(client_id, 0), coalesce(project_id, 0), currency,
    sum(tracked), sum(billable), sum(worth), sum(billed), sum(tracked * coalesce(rate, 0)),
    sum(CASE WHEN rate IS NULL THEN tracked ELSE 0 END), sum(invoiced), sum(credited), sum(spent)
FROM (
    SELECT account_id, date AS day, client_id, project_id, currency, duration_minutes AS tracked,
        CASE WHEN billable THEN duration_minutes ELSE 0 END AS billable, amount AS worth,
        CASE WHEN invoice_line_id IS NULL THEN 0 ELSE amount END AS billed,
        (SELECT cost_rates.amount FROM cost_rates
            WHERE cost_rates.account_id = time_entries.account_id AND cost_rates.user_id = time_entries.user_id
                AND cost_rates.from_date <= time_entries.date
            ORDER BY cost_rates.from_date DESC LIMIT 1) AS rate,
        0 AS invoiced, 0 AS credited, 0 AS spent
    FROM time_entries
    UNION ALL SELECT account_id, date, client_id, project_id, currency, 0, 0, 0, 0, 0, 0, 0, net_amount
    FROM expenses
    UNION ALL SELECT invoices.account_id, issue_date, client_id,
        coalesce(invoice_lines.project_id, invoices.project_id), invoices.currency, 0, 0, 0, 0, 0,
        invoice_lines.amount, 0, 0
    FROM invoices
    JOIN invoice_lines ON invoice_lines.account_id = invoices.account_id AND invoice_lines.invoice_id = invoices.id
    WHERE status IN ('sent', 'partially_paid', 'paid', 'written_off')
    UNION ALL SELECT credit_notes.account_id, issue_date, client_id, project_id, credit_notes.currency, 0, 0, 0, 0,
        0, 0, credit_note_shares.amount, 0
    FROM credit_notes
    JOIN credit_note_shares ON credit_note_shares.account_id = credit_notes.account_id
        AND credit_note_shares.credit_note_id = credit_notes.id
) AS rows_of
GROUP BY 1, 2, 3, 4, 5
"""


def upgrade() -> None:
    make_tables()
    change_tables()
    for statement in (client_days(), MONEY_DAYS, USER_DAYS, PROJECT_DAYS):
        op.execute(statement)
    for table in ("client_sums", "money_sums", "user_sums", "project_sums"):
        names = [str(column["name"]) for column in sa.inspect(op.get_bind()).get_columns(table)]
        place = names.index("currency") + 1
        keys, sums = ", ".join(names[2:place]), ", ".join(f"sum({name})" for name in names[place:])
        for length in (4, 7):
            longer = f"SELECT account_id, substr(span, 1, {length}), {keys}, {sums} FROM {table}"
            op.execute(f"INSERT INTO {table} {longer} WHERE length(span) = 10 GROUP BY account_id, 2, {keys}")


def client_days() -> str:
    """CLIENT_DAYS, with the days on which what is outstanding of an invoice changes."""
    day, next_day = ("DATE", "due_date + 1")
    if op.get_bind().dialect.name == "sqlite":
        day, next_day = ("TEXT", "date(due_date, '+1 day')")
    settled = {"settled_now": SETTLED.format(until="<="), "settled_before": SETTLED.format(until="<")}
    return CLIENT_DAYS.format(balances=BALANCES.format(day=day, next_day=next_day, **settled))


def make_tables() -> None:
    op.create_table(
        "client_sums",
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("span", sa.Text(), nullable=False),
        sa.Column("client_id", INTEGER, nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("invoice_count", INTEGER, server_default="0", nullable=False),
        sa.Column("invoiced", INTEGER, server_default="0", nullable=False),
        sa.Column("invoiced_tax", INTEGER, server_default="0", nullable=False),
        sa.Column("credited", INTEGER, server_default="0", nullable=False),
        sa.Column("credited_tax", INTEGER, server_default="0", nullable=False),
        sa.Column("collected", INTEGER, server_default="0", nullable=False),
        sa.Column("expenses", INTEGER, server_default="0", nullable=False),
        sa.Column("billable_expenses", INTEGER, server_default="0", nullable=False),
        sa.Column("billed_expenses", INTEGER, server_default="0", nullable=False),
        sa.Column("outstanding", INTEGER, server_default="0", nullable=False),
        sa.Column("overdue", INTEGER, server_default="0", nullable=False),
        sa.Column("overdue_count", INTEGER, server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("client_sums_ref_account_id")),
        sa.PrimaryKeyConstraint("account_id", "span", "client_id", "currency", name=op.f("client_sums_pk")),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_table(
        "money_sums",
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("span", sa.Text(), nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("invoice_count", INTEGER, server_default="0", nullable=False),
        sa.Column("invoiced", INTEGER, server_default="0", nullable=False),
        sa.Column("invoiced_tax", INTEGER, server_default="0", nullable=False),
        sa.Column("credited", INTEGER, server_default="0", nullable=False),
        sa.Column("credited_tax", INTEGER, server_default="0", nullable=False),
        sa.Column("collected", INTEGER, server_default="0", nullable=False),
        sa.Column("expenses", INTEGER, server_default="0", nullable=False),
        sa.Column("billable_expenses", INTEGER, server_default="0", nullable=False),
        sa.Column("billed_expenses", INTEGER, server_default="0", nullable=False),
        sa.Column("outstanding", INTEGER, server_default="0", nullable=False),
        sa.Column("overdue", INTEGER, server_default="0", nullable=False),
        sa.Column("overdue_count", INTEGER, server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("money_sums_ref_account_id")),
        sa.PrimaryKeyConstraint("account_id", "span", "currency", name=op.f("money_sums_pk")),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_table(
        "project_sums",
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("span", sa.Text(), nullable=False),
        sa.Column("client_id", INTEGER, nullable=False),
        sa.Column("project_id", INTEGER, nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("tracked_minutes", INTEGER, server_default="0", nullable=False),
        sa.Column("billable_minutes", INTEGER, server_default="0", nullable=False),
        sa.Column("billable_value", INTEGER, server_default="0", nullable=False),
        sa.Column("billed_value", INTEGER, server_default="0", nullable=False),
        sa.Column("labour_cost", INTEGER, server_default="0", nullable=False),
        sa.Column("missing_cost_rate_minutes", INTEGER, server_default="0", nullable=False),
        sa.Column("invoiced", INTEGER, server_default="0", nullable=False),
        sa.Column("credited", INTEGER, server_default="0", nullable=False),
        sa.Column("expenses", INTEGER, server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("project_sums_ref_account_id")),
        sa.PrimaryKeyConstraint(
            "account_id", "span", "client_id", "project_id", "currency", name=op.f("project_sums_pk")
        ),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_table(
        "user_sums",
        sa.Column("account_id", INTEGER, nullable=False),
        sa.Column("span", sa.Text(), nullable=False),
        sa.Column("user_id", INTEGER, nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("tracked_minutes", INTEGER, server_default="0", nullable=False),
        sa.Column("billable_minutes", INTEGER, server_default="0", nullable=False),
        sa.Column("billable_value", INTEGER, server_default="0", nullable=False),
        sa.Column("billed_value", INTEGER, server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("user_sums_ref_account_id")),
        sa.PrimaryKeyConstraint("account_id", "span", "user_id", "currency", name=op.f("user_sums_pk")),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )


def change_tables() -> None:
    op.drop_table("client_months")
    op.drop_table("user_months")
    op.drop_table("project_months")
    op.drop_table("money_months")
    with op.batch_alter_table("invoices", schema=None) as batch_op:
        batch_op.drop_index("invoices_by_settled_date")

    with op.batch_alter_table("payments", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("payments_by_account_id_paid_date"))

    with op.batch_alter_table("tasks", schema=None) as batch_op:
        batch_op.drop_index("tasks_by_completed_at")
        batch_op.create_index(
            batch_op.f("tasks_by_account_id_status_completed_at"),
            ["account_id", "status", "completed_at"],
            unique=False,
        )

    with op.batch_alter_table("time_entries", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("time_entries_by_day"))
        batch_op.create_index(
            batch_op.f("time_entries_by_account_id_date_id"), ["account_id", "date", "id"], unique=False
        )
