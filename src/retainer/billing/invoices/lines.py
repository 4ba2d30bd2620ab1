"""Invoice lines: what an invoice bills, one by one. They can be added and removed while the invoice is a draft."""

from typing import Annotated

import msgspec

from retainer.billing import allocations, documents
from retainer.billing.document_types import MAX_LINES, DocumentTotals
from retainer.billing.invoices import billable, pricing
from retainer.billing.invoices.invoices import compute_totals, load_invoice
from retainer.billing.invoices.types import Invoice, InvoiceLine
from retainer.errors import Refusal
from retainer.kernel import etag
from retainer.kernel.body import New
from retainer.kernel.resource import Resource, WithMeta
from retainer.schema.billing import invoice_lines, invoices
from retainer.shared import relations
from retainer.store.tx import Tx
from retainer.values.kinds import Id


class InvoiceChanged(msgspec.Struct):
    """What became of the invoice."""

    invoice: Annotated[DocumentTotals, "What the invoice comes to with the line."]


def load_draft(tx: Tx, invoice_id: int) -> Invoice:
    """Return the invoice, whose lines can be changed. Raises `locked` for any but a draft."""
    invoice = load_invoice(tx, invoice_id)
    if invoice.status != "draft":
        message = f"The lines of this invoice are fixed: it is {invoice.status}. POST a credit note for what is wrong."
        raise Refusal("locked", message, errors={"invoice": [message]})
    return invoice


def update_totals(tx: Tx, invoice: Invoice) -> InvoiceChanged:
    """Write the totals of the invoice with its lines as they are now; return them."""
    compute_totals(invoice, documents.load_children(tx, invoice_lines, InvoiceLine, "invoice_id", invoice.id))
    tx.update(invoices, invoice)
    tx.touch(invoices, invoice.id)
    return InvoiceChanged(documents.totals_of(invoice))


api = Resource("/invoices/{invoice_id}/lines", tag="Invoices", scope="invoices", table=invoice_lines, parent=invoices)


@api.post()
def create_invoice_line(tx: Tx, invoice_id: Id, body: New[InvoiceLine]) -> WithMeta[InvoiceLine, InvoiceChanged]:
    """Add a line to a draft; the last one, unless it has a position. The invoice's new totals are in meta.invoice."""
    invoice = load_draft(tx, invoice_id)
    if len(invoice.lines) >= MAX_LINES:
        tx.error("invoice", f"Has {MAX_LINES} lines, and no room for more.")
    body.invoice_id = invoice_id
    if body.position is None:
        body.position = relations.next_position(max((line.position for line in invoice.lines), default=0))
    work = billable.load_work(tx, [body], others=invoice.lines)
    pricing.prepare_line(tx, body, invoice, documents.default_tax_rate(tx, invoice.client_id), {}, work)
    body.id = tx.insert(invoice_lines, body)
    allocations.attach(tx, invoice_id, [body])
    return WithMeta(tx.get(invoice_lines, body.id, InvoiceLine), update_totals(tx, invoice))


@api.delete("/{line_id}")
def delete_invoice_line(tx: Tx, invoice_id: Id, line_id: Id) -> None:
    """Remove a line from a draft; the work on it can be billed again."""
    line = tx.get(invoice_lines, line_id, InvoiceLine, invoice_id=invoice_id)
    etag.check_unchanged(tx, invoice_lines, line)
    invoice = load_draft(tx, invoice_id)
    allocations.detach(tx, [line], {})
    tx.delete(invoice_lines, line_id)
    update_totals(tx, invoice)
