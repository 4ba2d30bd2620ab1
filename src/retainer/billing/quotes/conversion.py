"""Conversion: an accepted quote becomes a project, an invoice, or both, each once."""

from decimal import Decimal
from typing import Any, Literal, Protocol

from sqlalchemy import ColumnElement, Table, Update, bindparam, select, update

from retainer.billing.invoices.types import Invoice, InvoiceLine
from retainer.billing.quotes.types import Quote, QuoteLine
from retainer.billing.rules import is_counted
from retainer.errors import LEAVE_OUT
from retainer.rollups.changes import changing
from retainer.rollups.sources import CREDIT_NOTE_SHARES, DISCOUNT_SHARES, FEE_LINES, INVOICE_LINES
from retainer.schema.billing import (
    credit_note_shares,
    credit_notes,
    discount_shares,
    holds_quote,
    invoices,
    payments,
    quotes,
)
from retainer.schema.crm import clients
from retainer.store.constraints import MISSING
from retainer.store.details import load_details
from retainer.store.tables import NOW
from retainer.store.tx import Tx
from retainer.values.reading import with_defaults, writable_fields

INVOICE = select(invoices.c.id).where(
    invoices.c.quote_id == bindparam("quote"), holds_quote(invoices), invoices.c.project_id.is_(None)
)
"""The live invoice that a quote became, while it has no project."""


def _set_project(shares: Table, reference: ColumnElement[int], owners: Table) -> Update:
    """Return what gives a project to the shares of the records of an invoice that have none."""
    of_invoice = select(owners.c.id).where(owners.c.invoice_id == bindparam("invoice"))
    without = update(shares).where(reference.in_(of_invoice), shares.c.project_id.is_(None))
    return without.values(project_id=bindparam("project"), updated_at=NOW)


SHARES = {
    CREDIT_NOTE_SHARES: _set_project(credit_note_shares, credit_note_shares.c.credit_note_id, credit_notes),
    DISCOUNT_SHARES: _set_project(discount_shares, discount_shares.c.payment_id, payments),
}


class ProjectFromQuote(Protocol):
    quote_id: int | None
    client_id: int | None
    name: str
    billing_type: Any
    fixed_fee: Decimal | None
    budget_amount: Decimal | None


def load_accepted_quote(
    tx: Tx, record: ProjectFromQuote | Invoice, becomes: Literal["project", "invoice"]
) -> Quote | None:
    """Return the quote that a record is created from, and fill in the record's client.

    Notes an error and returns None unless the quote is accepted and has not been converted to such a record.
    """
    quote = tx.find(quotes, record.quote_id, Quote)
    if quote is None:
        tx.error("quote_id", MISSING.format("quote"))
        return None
    made = quote.converted_project_id if becomes == "project" else quote.invoice_id
    if made is not None:
        tx.error("quote_id", f"Quote {quote.number} has already become {becomes} {made}.")
    elif quote.status != "accepted":
        target = "a project" if becomes == "project" else "an invoice"
        message = f"Quote {quote.number} is {quote.status}: only an accepted quote becomes {target}."
        tx.error("quote_id", message)
    if record.client_id is None:
        record.client_id = quote.client_id
    elif record.client_id != quote.client_id:
        tx.error("quote_id", f"Belongs to client {quote.client_id}, not to client {record.client_id}.")
    return None if "quote_id" in tx.errors else quote


def fill_project(tx: Tx, project: ProjectFromQuote) -> None:
    """Fill in the name, client and price that a project does not set itself: its fixed fee is the quote's subtotal.

    The invoice that the quote becomes counts against the fee. A project by time has the subtotal as its budget instead.
    """
    if project.quote_id is None:
        return
    quote = load_accepted_quote(tx, project, "project")
    if quote is None:
        project.name = project.name or ""
        return
    project.name = project.name or quote.title or quote.number
    currency = tx.field(clients.c.currency, project.client_id)
    if quote.currency != currency or quote.subtotal <= 0:
        return
    if project.billing_type is None:
        project.billing_type = "fixed_fee"
    if project.billing_type == "fixed_fee" and project.fixed_fee is None and "fixed_fee" not in tx.sent:
        project.fixed_fee = quote.subtotal
    elif project.billing_type == "time_and_materials" and project.budget_amount is None:
        project.budget_amount = quote.subtotal


def fill_invoice(tx: Tx, invoice: Invoice) -> None:
    """Fill in client, contact, project, subject and currency that an invoice does not set itself, and add the lines.

    Optional lines that the client did not accept stay on the quote, and so do notes and terms, since an invoice has its
    own. Notes an error for one in another currency.
    """
    quote = load_accepted_quote(tx, invoice, "invoice")
    if quote is None:
        return
    if invoice.currency not in {None, quote.currency}:
        tx.error("currency", f"Is {quote.currency}, that of the quote's lines. {LEAVE_OUT}.")
    invoice.contact_id = invoice.contact_id or quote.contact_id
    invoice.project_id = invoice.project_id or quote.converted_project_id or quote.project_id
    invoice.currency = invoice.currency or quote.currency
    invoice.subject = invoice.subject or quote.title
    if invoice.tax_exemption_reason is None and "tax_exemption_reason" not in tx.sent:
        invoice.tax_exemption_reason = quote.tax_exemption_reason
    load_details(tx, quotes, [quote])
    names = writable_fields(QuoteLine).keys() - {"is_optional"}
    # the copied lines come last, so that the paths of errors match the lines that were sent
    accepted = [{name: getattr(line, name) for name in names} for line in quote.lines if is_counted(line)]
    invoice.lines = [*(invoice.lines or ()), *(with_defaults(InvoiceLine, **line) for line in accepted)]


def save_conversion(tx: Tx, quote_id: int | None, project_id: int) -> None:
    """Write which project a quote became.

    The invoice that the quote became before gets the project, too, unless it has one.
    """
    if quote_id is None:
        return
    tx.update_columns(quotes, quote_id, {"converted_project_id": project_id})
    for (invoice_id,) in tx.all(INVOICE, quote=quote_id):
        with changing(tx, INVOICE_LINES, invoice_id), changing(tx, FEE_LINES, invoice_id):
            tx.update_columns(invoices, invoice_id, {"project_id": project_id})
        for source, statement in SHARES.items():
            with changing(tx, source, invoice_id, by="invoice_id"):
                tx.run(statement, invoice=invoice_id, project=project_id)
