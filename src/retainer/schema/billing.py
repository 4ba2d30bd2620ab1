"""Billing: quotes, invoices, allocations (the work on each line), payments, credit notes and expenses."""

import sqlalchemy as sa
from sqlalchemy.schema import SchemaItem

from retainer.schema import columns as col
from retainer.schema.work import UNBILLED
from retainer.values.collation import printed_form

OPEN_INVOICES = ("sent", "partially_paid")
"""The statuses of an invoice that has a balance due."""
FEE_KINDS = ("item", "milestone")
"""The kinds of lines that count against the fixed fee of their project."""
ISSUED_INVOICES = (*OPEN_INVOICES, "paid", "written_off")
"""The statuses of an invoice that counts as revenue: neither a draft nor void."""


def is_issued(table: sa.FromClause) -> sa.ColumnElement[bool]:
    """Return whether an invoice counts as revenue. SQLite would search an index for each of ISSUED_INVOICES."""
    return ~col.in_literals(table.c.status, ("draft", "void"))


def line_table(name: str, parent: str, *items: SchemaItem) -> sa.Table:
    return col.account_table(
        name,
        *col.ref(f"{parent}_id", f"{parent}s", on_delete="cascade"),
        col.text("description"),
        col.decimal("quantity"),
        col.text("unit", optional=True),
        col.price("unit_price"),
        col.decimal("discount_percent"),
        col.decimal("tax_rate"),
        *col.ref("project_id", "projects", optional=True),
        col.money("amount"),
        col.text("currency"),
        col.integer("position"),
        *items,
    )


quotes = col.account_table(
    "quotes",
    *col.ref("client_id", "clients"),
    *col.ref("contact_id", "external_contacts", optional=True, on_delete="detach"),
    *col.ref("project_id", "projects", optional=True),
    *col.ref("converted_project_id", "projects", optional=True),
    *col.numbered(),
    col.text("title", optional=True),
    col.text("status"),
    *map(col.day, ("issue_date", "valid_until")),
    col.text("currency"),
    *col.optional(col.text, "notes", "terms", "tax_exemption_reason", "decline_reason", "accepted_by"),
    *map(col.money, ("subtotal", "tax_total", "total")),
    col.embedded("tax_breakdown"),
    *col.optional(col.instant, "sent_at", "accepted_at", "declined_at"),
    col.text("external_id", optional=True),
    col.searchable("number", "title"),
    *map(col.unique, ("external_id", "converted_project_id")),
    *col.indexes("created_at id", "updated_at id", "client_id created_at id", "project_id", "contact_id"),
    sa.Index("quotes_by_moments", "account_id", "sent_at", "accepted_at", "declined_at", "client_id"),
    is_announced=True,
    named_by=("number", "title"),
)

quote_lines = line_table(
    "quote_lines",
    "quote",
    col.flag("is_optional", server_default="0"),
    sa.Index(None, "account_id", "quote_id", "position"),
    sa.Index(None, "account_id", "project_id"),
)

invoices = col.account_table(
    "invoices",
    *col.ref("client_id", "clients"),
    *col.ref("project_id", "projects", optional=True),
    *col.ref("contact_id", "external_contacts", optional=True, on_delete="detach"),
    *col.ref("quote_id", "quotes", optional=True),
    *col.numbered(optional=True),
    col.text("status"),
    *col.optional(col.day, "issue_date", "due_date", "service_from", "service_to"),
    *col.optional(col.text, "purchase_order", "subject", "notes", "terms", "tax_exemption_reason"),
    col.flag("reminders", server_default="1"),
    col.text("currency"),
    *map(col.money, ("subtotal", "tax_total", "total")),
    col.embedded("tax_breakdown"),
    *map(col.money, ("amount_paid", "amount_credited", "balance_due")),
    col.embedded("client_snapshot", optional=True),
    col.hidden(col.embedded("issuer_snapshot", optional=True)),
    *col.optional(col.instant, "sent_at", "paid_at", "voided_at", "written_off_at"),
    col.text("external_id", optional=True),
    col.hidden(col.text("imported_from", optional=True)),  # the program that has issued it, as people call it
    col.searchable("number", "subject", "purchase_order", optional=True),
    col.unique("external_id"),
    *col.indexes("created_at id", "updated_at id", "due_date id", "client_id created_at id", "status due_date"),
    sa.Index(  # with all that reports add up, so that they read no rows
        "invoices_by_issue_date",
        *("account_id", "issue_date", "id", "status", "client_id", "project_id", "currency", "subtotal", "tax_total"),
    ),
    *col.indexes("project_id", "contact_id"),
    col.partial_index("invoices", "quote_id"),
    is_announced=True,
    named_by=("number", "subject"),
)


def holds_quote(table: sa.Table) -> sa.ColumnElement[bool]:
    """Return whether an invoice keeps its quote from becoming another: it is neither void nor credited in full."""
    is_whole = sa.or_(table.c.amount_credited == sa.literal_column("0"), table.c.amount_credited < table.c.total)
    return sa.and_(table.c.status != sa.literal_column("'void'"), is_whole)


def has_refund_due(table: sa.Table) -> sa.ColumnElement[bool]:
    """Return whether payments and credits of an invoice exceed its total, so that the client is owed the rest."""
    return table.c.amount_paid + table.c.amount_credited + table.c.balance_due > table.c.total


def is_unsettled(table: sa.Table) -> sa.ColumnElement[bool]:
    """Return whether an invoice was not yet paid or credited, or too much: the condition of an index."""
    return table.c.amount_paid + table.c.amount_credited != table.c.total


BALANCE = ("id", "total", "amount_paid", "amount_credited")
col.index_rows("invoices_unsettled", invoices, *BALANCE, condition=is_unsettled(invoices))
col.index_rows("invoices_with_refund_due", invoices, "id", condition=has_refund_due(invoices))
col.index_rows("invoices_unique_quote_id", invoices, "quote_id", condition=holds_quote(invoices), unique=True)

invoice_lines = line_table(
    "invoice_lines",
    "invoice",
    col.text("kind"),
    col.text("fee_month", optional=True),
    col.hidden(col.integer("fee_is_live", optional=True)),  # 1 while the line bills its month, else null
    col.decimal("recorded_quantity", optional=True),
    col.hidden(col.flag("is_freed", server_default="0")),  # true once the invoice is void, or all of the line credited
    sa.Index("invoice_lines_by_invoice", "account_id", "invoice_id", "position", "project_id", "amount"),
    sa.Index(None, "account_id", "project_id"),
    col.index_where(
        "invoice_lines_unique_fee", "project_id", "fee_month", condition=sa.column("fee_is_live") == 1, unique=True
    ),
)


def billed(name: str, target: str) -> tuple[sa.Column[int], sa.ForeignKeyConstraint]:
    """The reference to work that a line bills, or has billed: then the work can be deleted, and its id stays."""
    column, reference = col.ref(name, target, optional=True, on_delete="detach")
    col.keep_reference(column, into="deleted_work_id")
    return column, reference


allocations = col.account_table(
    "allocations",
    *col.ref("invoice_line_id", "invoice_lines", on_delete="cascade"),
    *billed("time_entry_id", "time_entries"),
    *billed("expense_id", "expenses"),
    *billed("milestone_id", "milestones"),
    col.integer("deleted_work_id", optional=True),
    col.integer("is_live", optional=True),  # 1 or null, since nulls do not violate a unique index
    sa.Index(None, "account_id", "invoice_line_id"),
    *(
        sa.Index(f"allocations_unique_{piece}", "account_id", f"{piece}_id", "is_live", unique=True)
        for piece in ("time_entry", "expense", "milestone")
    ),
)

payments = col.account_table(
    "payments",
    *col.ref("invoice_id", "invoices"),
    *col.ref("client_id", "clients", on_delete="none"),  # that of the invoice, which blocks a deletion
    col.money("amount"),
    col.text("currency"),
    col.day("paid_date"),
    col.text("method"),
    *col.optional(col.text, "reference", "notes"),
    *col.ref("offset_invoice_id", "invoices", optional=True, on_delete="none"),  # issued, so never deleted
    *col.ref("payment_id", "payments", optional=True, on_delete="none"),  # a discount is removed with its payment
    col.hidden(col.money("net_amount", optional=True)),
    col.embedded("tax_breakdown", optional=True),
    col.folded("reference", optional=True, fold=printed_form),
    col.searchable("reference", "notes", optional=True),
    sa.Index("payments_unique_reference", "account_id", "invoice_id", "reference_folded", unique=True),
    sa.Index(
        "payments_by_day",
        *("account_id", "paid_date", "id", "invoice_id", "client_id", "currency", "amount", "net_amount"),
    ),
    sa.Index(None, "account_id", "updated_at", "id"),
    *col.indexes("client_id paid_date id"),
    *(col.partial_index("payments", name) for name in ("offset_invoice_id", "payment_id")),
    sa.Index("payments_by_invoice", "account_id", "invoice_id", "paid_date", "amount"),
    named_by=("reference",),
)


def is_discount(table: sa.FromClause) -> sa.ColumnElement[bool]:
    """Return whether a payment is an early-payment discount: no money moved, and revenue and tax are less by it."""
    return table.c.net_amount.is_not(None)


credit_notes = col.account_table(
    "credit_notes",
    *col.ref("invoice_id", "invoices"),
    *col.ref("client_id", "clients"),
    *col.numbered(),
    col.text("currency"),
    col.day("issue_date"),
    col.text("reason"),
    col.text("description", optional=True),
    col.embedded("lines"),
    *map(col.money, ("subtotal", "tax_total", "total")),
    col.embedded("tax_breakdown"),
    *map(col.money, ("applied_amount", "refundable_amount")),
    col.hidden(col.embedded("issuer_snapshot", optional=True)),
    col.hidden(col.text("imported_from", optional=True)),  # as for invoices
    col.searchable("number", "description"),
    *col.indexes("created_at id", "updated_at id"),
    sa.Index("credit_notes_by_invoice", "account_id", "invoice_id", "issue_date", "total"),
    *col.indexes("client_id created_at id", "issue_date"),
    is_announced=True,
    named_by=("number",),
)

credit_note_shares = col.account_table(
    "credit_note_shares",
    *col.ref("credit_note_id", "credit_notes", on_delete="cascade"),
    *col.ref("project_id", "projects", optional=True, on_delete="cascade"),  # its invoices block a deletion
    col.text("currency"),
    col.money("amount"),
    *col.indexes("credit_note_id", "project_id"),
)
"""The share of each project in the subtotal of a credit note."""

discount_shares = col.account_table(
    "discount_shares",
    *col.ref("payment_id", "payments", on_delete="cascade"),
    *col.ref("project_id", "projects", optional=True, on_delete="cascade"),  # its invoices block a deletion
    col.text("currency"),
    col.money("amount"),
    *col.indexes("payment_id", "project_id"),
)
"""The share of each project in the net of an early-payment discount."""

issued_documents = col.account_table(
    "issued_documents",
    *col.ref("invoice_id", "invoices", optional=True, on_delete="none"),  # only drafts are deleted
    *col.ref("credit_note_id", "credit_notes", optional=True, on_delete="none"),
    col.content("pdf"),
    col.content("xml", optional=True),
    *map(col.unique, ("invoice_id", "credit_note_id")),
)
"""The files of documents that are not drawn from stored facts: those that were issued before facts were, as first
rendered, and the PDFs of imported documents.

Without XML, the invoice lacks something that an e-invoice needs.
"""

document_versions = col.account_table(
    "document_versions",
    *col.ref("invoice_id", "invoices", optional=True, on_delete="none"),  # only drafts are deleted
    *col.ref("credit_note_id", "credit_notes", optional=True, on_delete="none"),
    *col.ref("quote_id", "quotes", optional=True, on_delete="cascade"),
    col.integer("version"),
    col.text("facts"),
    *(
        sa.Index(f"document_versions_unique_{owner}", "account_id", f"{owner}_id", "version", unique=True)
        for owner in ("invoice", "credit_note", "quote")
    ),
)
"""The facts of issued documents as JSON: those of the issue, and a version for each later change of what is printed."""

expenses = col.account_table(
    "expenses",
    *col.ref("client_id", "clients", optional=True),
    *col.ref("project_id", "projects", optional=True),
    *col.ref("user_id", "users"),
    *col.ref("invoice_id", "invoices", optional=True, on_delete="detach"),
    *col.ref("invoice_line_id", "invoice_lines", optional=True, on_delete="detach"),
    col.day("date"),
    col.text("category"),
    *col.optional(col.text, "vendor", "description"),
    col.money("amount"),
    col.text("currency"),
    col.decimal("tax_rate"),
    col.flag("amount_includes_tax"),
    col.money("net_amount"),
    col.flag("billable"),
    col.flag("is_settled", server_default="0"),  # as for time entries
    col.decimal("markup_percent"),
    col.money("billable_amount"),
    col.flag("reimbursable"),
    *col.optional(col.text, "receipt_url", "external_id"),
    col.sortable("category"),
    col.searchable("description", "vendor", optional=True),
    col.unique("external_id"),
    *col.indexes("date id", "created_at id", "updated_at id", "client_id date id", "user_id date id"),
    sa.Index(  # in the order in which reports group expenses, so that they sort no rows
        "expenses_by_project", "account_id", "project_id", "currency", "date", "id", "net_amount"
    ),
    col.partial_index("expenses", "invoice_id"),
    col.partial_index("expenses", "invoice_line_id"),
    col.index_where(  # `billable` first, as for time entries
        "expenses_unbilled",
        *("billable", "client_id", "project_id", "currency", "date", "billable_amount"),
        condition=UNBILLED,
    ),
    is_announced=True,
    named_by=("description", "vendor"),
)
