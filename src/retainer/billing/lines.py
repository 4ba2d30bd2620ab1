"""Lines: requests add and delete single lines of a quote or an invoice while it is a draft."""

from typing import Annotated

import msgspec
from sqlalchemy import Table

from retainer.billing import document_types, facts, rules, work
from retainer.billing.document_types import MAX_LINES, DocumentTotals
from retainer.billing.facts import load_known_parties
from retainer.billing.invoices.invoices import load_invoice
from retainer.billing.invoices.pricing import price_line
from retainer.billing.invoices.types import Invoice, InvoiceLine
from retainer.billing.quotes.quotes import load_quote, way_to_draft
from retainer.billing.quotes.types import QuoteLine
from retainer.billing.reading import Document, Parties, load_projects
from retainer.errors import Refusal, not_found
from retainer.kernel.answers import WithMeta
from retainer.kernel.body import New
from retainer.kernel.resource import Resource
from retainer.rollups import changes
from retainer.rollups.sources import FEE_LINES
from retainer.schema.billing import invoice_lines, invoices, quote_lines, quotes
from retainer.shared import relations
from retainer.store.constraints import singular
from retainer.store.tx import Tx
from retainer.values.kinds import Id


class QuoteChanged(msgspec.Struct):
    """The quote after the change."""

    quote: Annotated[DocumentTotals, "The new totals of the quote."]
    warnings: document_types.Warnings


class InvoiceChanged(msgspec.Struct):
    """The invoice after the change."""

    invoice: Annotated[DocumentTotals, "The new totals of the invoice."]
    warnings: document_types.Warnings


def check_draft(table: Table, document: Document) -> None:
    """Raise `locked` for a document that is not a draft."""
    if document.status != "draft":
        noun = singular(table)
        if isinstance(document, Invoice):
            advice = f"Correct what is wrong with a credit note{rules.CREDIT_CALL}."
        elif document.converted_project_id or document.invoice_id:
            advice = "It has become a project or an invoice."
        else:
            advice = way_to_draft(document.status)
        message = f"The lines of this {noun} are fixed: it is {document.status}. {advice}"
        raise Refusal("locked", message, errors={noun: [message]})


def place_line(tx: Tx, table: Table, document: Document, line: QuoteLine | InvoiceLine) -> Parties:
    """Put a new line of a draft last, unless it has a position; return the parties of the document.

    Notes an error if the document is full.
    """
    check_draft(table, document)
    if len(document.lines) >= MAX_LINES:
        tx.error(singular(table), f"Has {MAX_LINES} lines, and no room for more.")
    if line.position is None:
        line.position = relations.next_position(max((other.position for other in document.lines), default=0))
    return load_known_parties(tx, document.client_id, document.contact_id, type(document))


def save_totals(tx: Tx, table: Table, document: Document) -> DocumentTotals:
    """Compute and write the totals of a document whose lines have changed; return them."""
    rules.compute_totals(document)
    tx.touch(table, document.id, "lines")  # first, so that the update waits for it
    tx.update(table, document)
    return DocumentTotals(*(getattr(document, name) for name in DocumentTotals.__struct_fields__))


def delete_line(tx: Tx, table: Table, document: Document, lines: Table, line_id: int) -> None:
    line = next((line for line in document.lines if line.id == line_id), None)
    if line is None:
        raise not_found(singular(lines))
    check_draft(table, document)
    if isinstance(line, InvoiceLine):
        with changes.changing(tx, FEE_LINES, document.id):
            work.detach(tx, [line])
            tx.delete(lines, line_id)
    else:
        tx.delete(lines, line_id)
    document.lines = [other for other in document.lines if other is not line]  # type: ignore[assignment]
    save_totals(tx, table, document)


of_quotes = Resource("/quotes/{quote_id}/lines", tag="Quotes", scope="invoices", table=quote_lines, parent=quotes)
of_invoices = Resource(
    "/invoices/{invoice_id}/lines", tag="Invoices", scope="invoices", table=invoice_lines, parent=invoices
)


@of_quotes.post()
def create_quote_line(tx: Tx, quote_id: Id, body: New[QuoteLine]) -> WithMeta[QuoteLine, QuoteChanged]:
    """Add a line to a draft, at its position or at the end; `meta.quote` has the new totals."""
    quote = load_quote(tx, quote_id)
    parties = place_line(tx, quotes, quote, body)
    rules.complete_line(tx, body, quote, parties.client.tax_rate, load_projects(tx, [body.project_id]))
    body.quote_id = quote_id
    body.id = tx.insert(quote_lines, body)
    quote.lines.append(body)
    totals = save_totals(tx, quotes, quote)
    return WithMeta(
        tx.get(quote_lines, body.id, QuoteLine), QuoteChanged(totals, facts.warnings(tx, quote, parties, "draft"))
    )


@of_quotes.delete("/{line_id}")
def delete_quote_line(tx: Tx, quote_id: Id, line_id: Id) -> None:
    """Delete a line of a draft."""
    delete_line(tx, quotes, load_quote(tx, quote_id), quote_lines, line_id)


@of_invoices.post()
def create_invoice_line(tx: Tx, invoice_id: Id, body: New[InvoiceLine]) -> WithMeta[InvoiceLine, InvoiceChanged]:
    """Add a line to a draft, at its position or at the end; `meta.invoice` has the new totals."""
    invoice = load_invoice(tx, invoice_id)
    parties = place_line(tx, invoices, invoice, body)
    price_line(tx, body, work.read_work(tx, invoice, parties, added=[body]))
    body.invoice_id = invoice_id
    with changes.changing(tx, FEE_LINES, invoice_id):
        body.id = tx.insert(invoice_lines, body)
    work.attach(tx, invoice_id, [body])
    invoice.lines.append(body)
    totals = save_totals(tx, invoices, invoice)
    return WithMeta(
        tx.get(invoice_lines, body.id, InvoiceLine),
        InvoiceChanged(totals, facts.warnings(tx, invoice, parties, "draft")),
    )


@of_invoices.delete("/{line_id}")
def delete_invoice_line(tx: Tx, invoice_id: Id, line_id: Id) -> None:
    """Delete a line of a draft; its work can be billed again."""
    delete_line(tx, invoices, load_invoice(tx, invoice_id), invoice_lines, line_id)
