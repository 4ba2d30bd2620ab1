"""Payments: what clients have paid on invoices, and refunds to them. A bank statement is compared with this list."""

from retainer.console.kinds.display import Display
from retainer.console.values import Column
from retainer.rollups.list_sums import Sum

DISPLAY = Display(
    columns=(Column("paid_date", "reference"), "client_id", "invoice_id", "kind", "method", "notes", "amount"),
    filters=("paid_date_from", "paid_date_to", "client_id", "method"),
    sums=(Sum("amount"),),
    facts=("client_id", "invoice_id", "amount", "paid_date", "method"),
)
