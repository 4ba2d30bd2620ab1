"""Billing: quotes, invoices, allocations (the work on each line), payments, credit notes and expenses."""

from sqlalchemy import (
    Column,
    ColumnElement,
    ForeignKeyConstraint,
    FromClause,
    Index,
    Table,
    and_,
    column,
    literal_column,
    or_,
)
from sqlalchemy.schema import SchemaItem

from retainer.schema.columns import (
    account_table,
    content,
    day,
    decimal,
    embedded,
    flag,
    hidden,
    in_literals,
    index_rows,
    index_where,
    instant,
    integer,
    money,
    numbered,
    partial_index,
    price,
    ref,
    searchable,
    sortable,
    text,
    unique,
)

OPEN_INVOICES = ("sent", "partially_paid")
"""The statuses of an invoice that has a balance due."""
ISSUED_INVOICES = (*OPEN_INVOICES, "paid", "written_off")
"""The statuses of an invoice that counts as revenue: neither a draft nor void."""


def is_issued(table: FromClause) -> ColumnElement[bool]:
    """Return whether an invoice counts as revenue. SQLite would search an index for each of ISSUED_INVOICES."""
    return ~in_literals(table.c.status, ("draft", "void"))


def line_table(name: str, parent: str, *items: SchemaItem) -> Table:
    """Declare the lines of a kind of document."""
    return account_table(
        name,
        *ref(f"{parent}_id", f"{parent}s", on_delete="cascade"),
        text("description"),
        decimal("quantity"),
        text("unit", optional=True),
        price("unit_price"),
        decimal("discount_percent"),
        decimal("tax_rate"),
        *ref("project_id", "projects", optional=True),
        money("amount"),
        text("currency"),
        integer("position"),
        *items,
    )


quotes = account_table(
    "quotes",
    *ref("client_id", "clients"),
    *ref("contact_id", "external_contacts", optional=True, on_delete="detach"),
    *ref("project_id", "projects", optional=True),
    *ref("converted_project_id", "projects", optional=True),
    *numbered(),
    text("title", optional=True),
    text("status"),
    day("issue_date"),
    day("valid_until"),
    text("currency"),
    text("notes", optional=True),
    text("terms", optional=True),
    text("tax_exemption_reason", optional=True),
    text("decline_reason", optional=True),
    text("accepted_by", optional=True),
    money("subtotal"),
    money("tax_total"),
    money("total"),
    embedded("tax_breakdown"),
    instant("sent_at", optional=True),
    instant("accepted_at", optional=True),
    instant("declined_at", optional=True),
    text("external_id", optional=True),
    searchable("number", "title"),
    unique("external_id"),
    unique("converted_project_id"),
    Index(None, "account_id", "created_at", "id"),
    Index(None, "account_id", "updated_at", "id"),
    Index(None, "account_id", "client_id", "created_at", "id"),
    Index(None, "account_id", "project_id"),
    Index(None, "account_id", "contact_id"),
    Index("quotes_by_moments", "account_id", "sent_at", "accepted_at", "declined_at", "client_id"),
    is_announced=True,
)

quote_lines = line_table(
    "quote_lines", "quote", Index(None, "account_id", "quote_id", "position"), Index(None, "account_id", "project_id")
)

invoices = account_table(
    "invoices",
    *ref("client_id", "clients"),
    *ref("project_id", "projects", optional=True),
    *ref("contact_id", "external_contacts", optional=True, on_delete="detach"),
    *ref("quote_id", "quotes", optional=True),
    *numbered(optional=True),
    text("status"),
    day("issue_date", optional=True),
    day("due_date", optional=True),
    text("purchase_order", optional=True),
    text("subject", optional=True),
    text("notes", optional=True),
    text("terms", optional=True),
    text("tax_exemption_reason", optional=True),
    text("currency"),
    money("subtotal"),
    money("tax_total"),
    money("total"),
    embedded("tax_breakdown"),
    money("amount_paid"),
    money("amount_credited"),
    money("balance_due"),
    embedded("client_snapshot", optional=True),
    hidden(embedded("issuer_snapshot", optional=True)),
    instant("sent_at", optional=True),
    instant("paid_at", optional=True),
    instant("voided_at", optional=True),
    instant("written_off_at", optional=True),
    text("external_id", optional=True),
    searchable("number", "subject", "purchase_order", optional=True),
    unique("external_id"),
    Index(None, "account_id", "created_at", "id"),
    Index(None, "account_id", "updated_at", "id"),
    Index(None, "account_id", "client_id", "created_at", "id"),
    Index(None, "account_id", "status", "due_date"),
    Index(  # with all that reports add up, so that they read no rows
        "invoices_by_issue_date",
        *("account_id", "issue_date", "id", "status", "client_id", "project_id", "currency", "subtotal", "tax_total"),
    ),
    Index(None, "account_id", "project_id"),
    Index(None, "account_id", "contact_id"),
    partial_index("invoices", "quote_id"),
    is_announced=True,
)


def holds_quote(table: Table) -> ColumnElement[bool]:
    """Return whether an invoice keeps its quote from becoming another: it is neither void nor credited in full."""
    is_whole = or_(table.c.amount_credited == literal_column("0"), table.c.amount_credited < table.c.total)
    return and_(table.c.status != literal_column("'void'"), is_whole)


def has_refund_due(table: Table) -> ColumnElement[bool]:
    """Return whether more was paid on an invoice and credited than it came to, so that the client is owed the rest."""
    return table.c.amount_paid + table.c.amount_credited + table.c.balance_due > table.c.total


def is_unsettled(table: Table) -> ColumnElement[bool]:
    """Return whether an invoice was not yet paid or credited, or too much: the condition of an index."""
    return table.c.amount_paid + table.c.amount_credited != table.c.total


BALANCE = ("id", "total", "amount_paid", "amount_credited")
index_rows("invoices_unsettled", invoices, *BALANCE, condition=is_unsettled(invoices))
index_rows("invoices_with_refund_due", invoices, "id", condition=has_refund_due(invoices))
index_rows("invoices_unique_quote_id", invoices, "quote_id", condition=holds_quote(invoices), unique=True)

invoice_lines = line_table(
    "invoice_lines",
    "invoice",
    text("kind"),
    text("fee_month", optional=True),
    hidden(integer("fee_is_live", optional=True)),  # 1 while the line bills its month, else null
    Index("invoice_lines_by_invoice", "account_id", "invoice_id", "position", "project_id", "amount"),
    Index(None, "account_id", "project_id"),
    index_where(
        "invoice_lines_unique_fee", "project_id", "fee_month", condition=column("fee_is_live") == 1, unique=True
    ),
)


def billed(name: str, target: str) -> tuple[Column[int], ForeignKeyConstraint]:
    """The reference to work that a line bills; its deletion changes the lines of the invoice."""
    return ref(name, target, optional=True, on_delete="cascade", holder="invoice_line_id.invoice_id", part="lines")


allocations = account_table(
    "allocations",
    *ref("invoice_line_id", "invoice_lines", on_delete="cascade"),
    *billed("time_entry_id", "time_entries"),
    *billed("expense_id", "expenses"),
    *billed("milestone_id", "milestones"),
    integer("is_live", optional=True),  # 1 or null, since nulls do not violate a unique index
    Index(None, "account_id", "invoice_line_id"),
    *(
        Index(f"allocations_unique_{piece}", "account_id", f"{piece}_id", "is_live", unique=True)
        for piece in ("time_entry", "expense", "milestone")
    ),
)

payments = account_table(
    "payments",
    *ref("invoice_id", "invoices"),
    money("amount"),
    text("currency"),
    day("paid_date"),
    text("method"),
    text("reference", optional=True),
    text("notes", optional=True),
    searchable("reference", "notes", optional=True),
    Index("payments_unique_reference", "account_id", "invoice_id", "reference", unique=True),
    Index("payments_by_day", "account_id", "paid_date", "id", "invoice_id", "currency", "amount"),
    Index(None, "account_id", "updated_at", "id"),
    Index("payments_by_invoice", "account_id", "invoice_id", "paid_date", "amount"),
)

credit_notes = account_table(
    "credit_notes",
    *ref("invoice_id", "invoices"),
    *ref("client_id", "clients"),
    *numbered(),
    text("currency"),
    day("issue_date"),
    text("reason"),
    text("description", optional=True),
    embedded("lines"),
    money("subtotal"),
    money("tax_total"),
    money("total"),
    embedded("tax_breakdown"),
    money("applied_amount"),
    money("refundable_amount"),
    hidden(embedded("issuer_snapshot", optional=True)),
    searchable("number", "description"),
    Index(None, "account_id", "created_at", "id"),
    Index(None, "account_id", "updated_at", "id"),
    Index("credit_notes_by_invoice", "account_id", "invoice_id", "issue_date", "total"),
    Index(None, "account_id", "client_id", "created_at", "id"),
    Index(None, "account_id", "issue_date"),
    is_announced=True,
)

credit_note_shares = account_table(
    "credit_note_shares",
    *ref("credit_note_id", "credit_notes", on_delete="cascade"),
    *ref("project_id", "projects", optional=True, on_delete="cascade"),  # its invoices block a deletion
    text("currency"),
    money("amount"),
    Index(None, "account_id", "credit_note_id"),
    Index(None, "account_id", "project_id"),
)
"""The share of each project in the subtotal of a credit note."""

issued_documents = account_table(
    "issued_documents",
    *ref("invoice_id", "invoices", optional=True, on_delete="none"),  # only drafts are deleted
    *ref("credit_note_id", "credit_notes", optional=True, on_delete="none"),
    content("pdf"),
    content("xml", optional=True),
    unique("invoice_id"),
    unique("credit_note_id"),
)
"""The files of an issued invoice or credit note as first rendered, which are served from then on.

Without XML, the invoice lacks something that an e-invoice needs.
"""

expenses = account_table(
    "expenses",
    *ref("client_id", "clients", optional=True),
    *ref("project_id", "projects", optional=True),
    *ref("user_id", "users"),
    *ref("invoice_id", "invoices", optional=True, on_delete="detach"),
    *ref("invoice_line_id", "invoice_lines", optional=True, on_delete="detach"),
    day("date"),
    text("category"),
    text("vendor", optional=True),
    text("description", optional=True),
    money("amount"),
    text("currency"),
    decimal("tax_rate"),
    flag("amount_includes_tax"),
    money("net_amount"),
    flag("billable"),
    decimal("markup_percent"),
    money("billable_amount"),
    flag("reimbursable"),
    text("receipt_url", optional=True),
    text("external_id", optional=True),
    sortable("category"),
    searchable("description", "vendor", optional=True),
    unique("external_id"),
    Index(None, "account_id", "date", "id"),
    Index(None, "account_id", "created_at", "id"),
    Index(None, "account_id", "updated_at", "id"),
    Index(None, "account_id", "client_id", "date", "id"),
    Index(None, "account_id", "project_id", "date", "id"),
    Index(None, "account_id", "user_id", "date", "id"),
    partial_index("expenses", "invoice_id"),
    partial_index("expenses", "invoice_line_id"),
    is_announced=True,
)
