"""Quote conversion: an accepted quote becomes a project, an invoice, or both, each once."""

from decimal import Decimal
from typing import Literal, NamedTuple, Protocol

from sqlalchemy import bindparam, func, select, update

from retainer.billing import documents
from retainer.billing.invoices.types import Invoice, InvoiceLine
from retainer.billing.quotes.types import Quote, QuoteLine, effective_status, made_from
from retainer.rollups.changes import changing
from retainer.rollups.sources import CREDIT_NOTE_SHARES, INVOICE_LINES
from retainer.schema.billing import credit_note_shares, credit_notes, holds_quote, invoices, quotes
from retainer.schema.crm import clients
from retainer.store import constraints
from retainer.store.details import details, load_parts
from retainer.store.tables import NOW
from retainer.store.tx import Tx
from retainer.values.exact import amount_of
from retainer.values.reading import with_defaults, writable_fields


class AcceptedQuote(NamedTuple):
    """The fields of a quote that its project or invoice inherits; its subtotal in minor units."""

    number: str
    title: str | None
    client_id: int
    contact_id: int | None
    notes: str | None
    terms: str | None
    tax_exemption_reason: str | None
    currency: str
    subtotal: int
    project_id: int | None
    """The project that it became, otherwise the project that it is about."""
    status: str
    project: int | None
    """The project that it became."""
    invoice: int | None
    """The invoice that it became."""


QUOTE = select(
    *quotes.c[AcceptedQuote._fields[:9]],
    func.coalesce(quotes.c.converted_project_id, quotes.c.project_id),
    effective_status(quotes),
    quotes.c.converted_project_id,
    made_from("quote_id").expression(quotes),
).where(quotes.c.id == bindparam("id"))
"""In the order of the fields of AcceptedQuote."""
CURRENCY = select(clients.c.currency).where(clients.c.id == bindparam("id"))
INVOICE = select(invoices.c.id).where(
    invoices.c.quote_id == bindparam("quote"), holds_quote(invoices), invoices.c.project_id.is_(None)
)
"""The live invoice that a quote became, while it has no project."""
NOTES = select(credit_notes.c.id).where(credit_notes.c.invoice_id == bindparam("invoice"))
SET_PROJECT_OF_SHARES = (
    update(credit_note_shares)
    .where(credit_note_shares.c.credit_note_id.in_(NOTES), credit_note_shares.c.project_id.is_(None))
    .values(project_id=bindparam("project"), updated_at=NOW)
)
ARTICLES = {"project": "a project", "invoice": "an invoice"}


class ProjectFromQuote(Protocol):
    """The fields of a project that follow from its quote."""

    quote_id: int | None
    client_id: int | None
    name: str
    budget_amount: Decimal | None


def load_accepted_quote(
    tx: Tx, record: ProjectFromQuote | Invoice, becomes: Literal["project", "invoice"]
) -> AcceptedQuote | None:
    """Return the quote that a record is created from, and fill in the record's client.

    Notes an error and returns None unless the quote is accepted and has not been converted to such a record.
    """
    row = tx.one(QUOTE, id=record.quote_id)
    if row is None:
        tx.error("quote_id", constraints.MISSING.format("quote"))
        return None
    quote = AcceptedQuote(*row)
    made = getattr(quote, becomes)
    if made is not None:
        tx.error("quote_id", f"Quote {quote.number} has already become {becomes} {made}.")
    elif quote.status != "accepted":
        message = f"Quote {quote.number} is {quote.status}: only an accepted quote becomes {ARTICLES[becomes]}."
        tx.error("quote_id", message)
    if record.client_id is None:
        record.client_id = quote.client_id
    elif record.client_id != quote.client_id:
        tx.error("quote_id", f"Belongs to client {quote.client_id}, not to client {record.client_id}.")
    return None if "quote_id" in tx.errors else quote


def fill_project(tx: Tx, project: ProjectFromQuote) -> None:
    """Fill in the name, client and budget that a project does not set itself.

    The budget is the quote's subtotal, since time is compared with it before tax.
    """
    if project.quote_id is None:
        return
    quote = load_accepted_quote(tx, project, "project")
    if quote is None:
        project.name = project.name or ""
        return
    project.name = project.name or quote.title or quote.number
    currency = tx.value(CURRENCY, id=project.client_id)
    if project.budget_amount is None and quote.currency == currency and quote.subtotal > 0:
        project.budget_amount = amount_of(quote.subtotal, quote.currency)


def fill_invoice(tx: Tx, invoice: Invoice, quote_id: int) -> None:
    """Fill in client, contact, project, texts and currency that an invoice does not set itself, and add the lines.

    Notes an error for an invoice in another currency.
    """
    quote = load_accepted_quote(tx, invoice, "invoice")
    if quote is not None:
        if invoice.currency not in {None, quote.currency}:
            tx.error("currency", f"Is {quote.currency}, that of the quote's lines. Leave it out.")
        for field in ("contact_id", "project_id", "currency"):
            if getattr(invoice, field) is None:
                setattr(invoice, field, getattr(quote, field))
        documents.fill_texts(tx, invoice, quote)
        invoice.subject = invoice.subject or quote.title
        # the copied lines come last, so that the paths of errors match the lines that were sent
        copied = load_parts(tx, details(quotes, Quote)["lines"], [quote_id])[quote_id]
        invoice.lines = [*(invoice.lines or ()), *map(copy_line, copied)]


def copy_line(line: QuoteLine) -> InvoiceLine:
    return with_defaults(InvoiceLine, **{name: getattr(line, name) for name in writable_fields(QuoteLine)})


def save_conversion(tx: Tx, quote_id: int | None, project_id: int) -> None:
    """Write which project a quote became.

    The invoice that the quote became before gets the project, too, unless it has one.
    """
    if quote_id is None:
        return
    tx.update_columns(quotes, quote_id, {"converted_project_id": project_id})
    for (invoice_id,) in tx.all(INVOICE, quote=quote_id):
        with changing(tx, INVOICE_LINES, invoice_id):
            tx.update_columns(invoices, invoice_id, {"project_id": project_id})
        with changing(tx, CREDIT_NOTE_SHARES, invoice_id, by="invoice_id"):
            tx.run(SET_PROJECT_OF_SHARES, invoice=invoice_id, project=project_id)
