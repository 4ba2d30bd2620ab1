"""Pricing: how the lines of an invoice get quantity, price, project and description, from their work or their body."""

from collections.abc import Sequence
from decimal import Decimal

from retainer.billing import documents, line_work
from retainer.billing.document_types import MAX_LINES
from retainer.billing.invoices.types import Invoice, InvoiceLine
from retainer.billing.kinds.base import LineContext
from retainer.billing.line_work import KINDS
from retainer.store.tx import Tx


def build_lines(tx: Tx, invoice: Invoice, current: Sequence[InvoiceLine], tax_rate: Decimal) -> None:
    """Price the lines of a draft, and set its totals; `current` are the lines that it has now."""
    count = len(invoice.lines)
    if count > MAX_LINES:
        tx.error("lines", f"Would be {count}; at most {MAX_LINES} are possible. Bill less at once, or group more.")
    context = line_work.load_context(tx, invoice, invoice.lines, tax_rate, current=current)
    for line in documents.each_line(tx, invoice.lines):
        price_line(tx, line, context)
    documents.compute_totals(invoice)


def price_line(tx: Tx, line: InvoiceLine, context: LineContext) -> None:
    """Fill in what a line gets from its work and its invoice; note an error for each field that cannot be."""
    kinds = [kind for kind in KINDS if getattr(line, kind.field)]
    for other in kinds[1:]:
        tx.error(other.field, f"A line bills one kind of work; this one has {kinds[0].field}, too.")
    if kinds:
        line.kind = kinds[0].name
        amount = kinds[0].price(tx, line, context)
    else:
        line.kind, amount = "item", None
        validate_item(tx, line)
    line.description = line.description or ""
    line.unit_price = line.unit_price or Decimal(0)
    line.quantity = Decimal(1) if line.quantity is None else line.quantity
    documents.complete_line(tx, line, context.invoice, context.tax_rate, context.projects, amount=amount)


def validate_item(tx: Tx, line: InvoiceLine) -> None:
    if tx.readable(*(kind.field for kind in KINDS)):
        for field in ("description", "unit_price"):
            if getattr(line, field) is None:
                tx.error(field, "Is required, unless the line bills work.")
