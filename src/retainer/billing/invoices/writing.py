"""Writing: the only module that writes an invoice with its lines, the work on them, and its payments."""

from collections.abc import Sequence

from retainer.billing import balance, discounts, facts, papers, work
from retainer.billing.invoices.draft import Draft
from retainer.billing.invoices.lifecycle import Step
from retainer.billing.invoices.types import Invoice, InvoiceLine
from retainer.billing.writing import save_lines
from retainer.rollups import changes
from retainer.rollups.sources import FEE_LINES, INVOICE_LINES
from retainer.schema.billing import FEE_KINDS, invoice_lines, invoices, payments, quotes
from retainer.shared.numbering import next_document_number
from retainer.store.tx import Tx
from retainer.values.decoding import json_text


def store(tx: Tx, draft: Draft, step: Step) -> int:
    """Write the invoice of a draft and what its step leads to; return its id. Raises all errors of the rules."""
    invoice, before = draft.invoice, draft.before
    if step.status == "sent":
        invoice.number = next_document_number(tx, invoices, invoice.issue_date or draft.today)
    elif step.status == "void":
        changes.removed(tx, INVOICE_LINES, [invoice.id])
    if draft.former == "draft":
        save_draft(tx, invoice, before)
    else:
        tx.update(invoices, invoice)
    if step.status == "sent" and draft.parties is not None:
        document = facts.of_invoice(invoice, draft.parties, draft.today)
        tx.update_columns(invoices, invoice.id, {"issuer_snapshot": json_text(document.issuer)})
        papers.issue(tx, invoice, document)
        changes.added(tx, INVOICE_LINES, [invoice.id])
    elif draft.former != "draft" and before is not None and not before.is_imported:
        papers.revise(tx, invoice, before)
    if step.status == "void":
        work.free(tx, invoice.id, invoice.lines)
    if invoice.quote_id is not None and (step.status == "void" or before is None):
        tx.touch(quotes, invoice.quote_id, "invoice_id")  # it has become this one, or can become another one
    record_payments(tx, invoice, step)
    return invoice.id


def record_payments(tx: Tx, invoice: Invoice, step: Step) -> None:
    """Write the payments of a step, then its discount, and the balances that follow."""
    for payment in step.payments:
        payment.id = tx.insert(payments, payment)
    if step.discount is not None:
        discounts.save(tx, invoice, step.discount, step.payments[0].id)
    for payment in step.payments:
        balance.recompute_balance(tx, payment.invoice_id, by_payment=payment.amount > 0)


def save_draft(tx: Tx, invoice: Invoice, before: Invoice | None) -> None:
    """Write a draft with its lines, which count against the fixed fees of their projects."""
    if before is None:
        invoice.id = tx.insert(invoices, invoice)
        replace_lines(tx, invoice.id, None, invoice.lines)
        if any(line.kind in FEE_KINDS for line in invoice.lines):
            changes.added(tx, FEE_LINES, [invoice.id])
        return
    with changes.changing(tx, FEE_LINES, invoice.id):
        tx.update(invoices, invoice)
        replace_lines(tx, invoice.id, before.lines, invoice.lines)


def replace_lines(tx: Tx, invoice_id: int, before: Sequence[InvoiceLine] | None, after: Sequence[InvoiceLine]) -> None:
    """Replace the lines of an invoice, which is new if it has none `before`, and the work on them."""
    old = {line.id: line for line in before or ()}
    new = {line.id: line for line in after}
    kept = {line.id for line in after if line.id in old and work.work_of(old[line.id]) == work.work_of(line)}
    work.detach(tx, [line for line in old.values() if line.id not in kept], new)
    save_lines(tx, invoice_lines, before, after, invoice_id=invoice_id)
    work.attach(tx, invoice_id, [line for line in after if line.id not in kept])


def remove(tx: Tx, draft: Invoice) -> None:
    """Delete a draft; its work can be billed again, and its quote can become another invoice."""
    changes.removed(tx, FEE_LINES, [draft.id])
    replace_lines(tx, draft.id, draft.lines, [])
    tx.delete(invoices, draft.id)
    if draft.quote_id is not None:
        tx.touch(quotes, draft.quote_id, "invoice_id")
