"""What credits and fees leave of the sums of invoices and projects; quotes of void invoices can be billed again."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

ALL_CREDITED = """
UPDATE invoices SET amount_credited = (
    SELECT coalesce(sum(credit_notes.total), 0) FROM credit_notes
    WHERE credit_notes.account_id = invoices.account_id AND credit_notes.invoice_id = invoices.id
)
"""
LESS_CREDITS = """
UPDATE projects SET invoiced_amount = invoiced_amount - (
    SELECT coalesce(sum(credit_note_shares.amount), 0) FROM credit_note_shares
    WHERE credit_note_shares.account_id = projects.account_id
        AND credit_note_shares.project_id = projects.id
        AND credit_note_shares.currency = projects.currency
)
"""
COVERED_BY_FEES = """
UPDATE projects SET unbilled_minutes = 0, unbilled_amount = 0 WHERE billing_type IN ('fixed_fee', 'retainer')
"""


def upgrade() -> None:
    for statement in (ALL_CREDITED, LESS_CREDITS, COVERED_BY_FEES):
        op.execute(statement)
    op.drop_index("invoices_unique_quote_id", "invoices")
    not_void = sa.text("status != 'void'")
    op.create_index(
        "invoices_unique_quote_id",
        "invoices",
        ["account_id", "quote_id"],
        unique=True,
        sqlite_where=not_void,
        postgresql_where=not_void,
    )
