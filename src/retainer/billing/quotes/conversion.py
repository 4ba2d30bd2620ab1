"""Quote conversion: what an accepted quote becomes: a project, an invoice, or both, each once."""

from contextlib import ExitStack
from decimal import Decimal
from typing import Literal, NamedTuple, Protocol

from sqlalchemy import bindparam, func, select, update

from retainer.billing import documents
from retainer.billing.invoices import pricing
from retainer.billing.invoices.types import Invoice, InvoiceLine
from retainer.billing.quotes.types import QuoteLine, effective_status, made_from
from retainer.rollups.changes import changing
from retainer.rollups.sources import CREDIT_NOTE_SHARES, INVOICE_LINES
from retainer.schema.billing import ISSUED_INVOICES, credit_note_shares, credit_notes, invoices, quote_lines, quotes
from retainer.schema.crm import clients
from retainer.store import constraints
from retainer.store.tx import Tx
from retainer.values.exact import amount_of
from retainer.values.reading import writable_fields

QUOTE = select(
    *quotes.c["number", "title", "client_id", "contact_id"],
    func.coalesce(quotes.c.converted_project_id, quotes.c.project_id),
    effective_status(quotes),
    *quotes.c["notes", "terms", "currency", "subtotal", "converted_project_id"],
    made_from("quote_id").expression(quotes),
).where(quotes.c.id == bindparam("id"))
"""In the order of AcceptedQuote's fields."""
CURRENCY = select(clients.c.currency).where(clients.c.id == bindparam("id"))
CONVERT = (
    update(quotes)
    .where(quotes.c.id == bindparam("quote"))
    .values(converted_project_id=bindparam("project"), updated_at=bindparam("now"))
)
INVOICE = select(*invoices.c["id", "status"]).where(
    invoices.c.quote_id == bindparam("quote"), invoices.c.status != "void", invoices.c.project_id.is_(None)
)
NOTES = select(credit_notes.c.id).where(credit_notes.c.invoice_id == bindparam("invoice"))
SET_PROJECT = (
    update(invoices)
    .where(invoices.c.id == bindparam("invoice"))
    .values(project_id=bindparam("project"), updated_at=bindparam("now"))
)
SET_PROJECT_OF_SHARES = (
    update(credit_note_shares)
    .where(credit_note_shares.c.credit_note_id == bindparam("note"), credit_note_shares.c.project_id.is_(None))
    .values(project_id=bindparam("project"), updated_at=bindparam("now"))
)
ARTICLES = {"project": "a project", "invoice": "an invoice"}


class AcceptedQuote(NamedTuple):
    """What a quote says, and what it has become; its subtotal in minor units."""

    number: str
    title: str | None
    client_id: int
    contact_id: int | None
    project_id: int | None
    """That which it became, else that which it is about."""
    status: str
    notes: str | None
    terms: str | None
    currency: str
    subtotal: int
    project: int | None
    invoice: int | None


class ProjectFromQuote(Protocol):
    """A project, as far as it follows from a quote."""

    quote_id: int | None
    client_id: int | None
    name: str
    budget_amount: Decimal | None


def lock_accepted_quote(
    tx: Tx, record: ProjectFromQuote | Invoice, becomes: Literal["project", "invoice"]
) -> AcceptedQuote | None:
    """Return the quote that a record is made from, and fill in its client.

    Notes an error and returns None unless the quote is accepted and has not become such a record before.
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
        tx.error(
            "quote_id", f"Quote {quote.number} is {quote.status}: only an accepted quote becomes {ARTICLES[becomes]}."
        )
    if record.client_id is None:
        record.client_id = quote.client_id
    elif record.client_id != quote.client_id:
        tx.error("quote_id", f"Belongs to client {quote.client_id}, not to client {record.client_id}.")
    return None if "quote_id" in tx.errors else quote


def fill_project(tx: Tx, project: ProjectFromQuote) -> None:
    """Fill in name, client and budget of a project from its quote, as far as it does not say others.

    The budget is the quote's subtotal: time is compared with it before tax.
    """
    if project.quote_id is None:
        return
    quote = lock_accepted_quote(tx, project, "project")
    if quote is None:
        project.name = project.name or ""
        return
    project.name = project.name or quote.title or quote.number
    currency = tx.value(CURRENCY, id=project.client_id)
    if project.budget_amount is None and quote.currency == currency and quote.subtotal > 0:
        project.budget_amount = amount_of(quote.subtotal, quote.currency)


def fill_invoice(tx: Tx, invoice: Invoice) -> None:
    """Fill in client, contact, project, subject, currency and lines from the quote; what the invoice says comes first.

    Notes an error when the invoice says another currency.
    """
    if invoice.quote_id is None:
        return
    quote = lock_accepted_quote(tx, invoice, "invoice")
    if quote is not None:
        if invoice.currency not in {None, quote.currency}:
            tx.error("currency", f"Is {quote.currency}, that of the quote's lines. Leave it out.")
        for field in ("contact_id", "project_id", "currency", "notes", "terms"):
            if getattr(invoice, field) is None:
                setattr(invoice, field, getattr(quote, field))
        invoice.subject = invoice.subject or quote.title
        # last, so that errors name the places of the lines that were sent
        invoice.lines = [*(invoice.lines or []), *copy_lines(tx, invoice.quote_id)]


def copy_lines(tx: Tx, quote_id: int) -> list[InvoiceLine]:
    """Return what a quote offers as lines of an invoice."""
    offered = documents.load_children(tx, quote_lines, QuoteLine, "quote_id", quote_id)
    return [pricing.new_line(**{name: getattr(line, name) for name in writable_fields(QuoteLine)}) for line in offered]


def convert(tx: Tx, quote_id: int | None, project_id: int) -> None:
    """Write which project a quote became; `fill_project` has noted an error unless it is free.

    The project is that of the invoice, too, which the quote became before, unless that has one.
    """
    if quote_id is None:
        return
    tx.run(CONVERT, quote=quote_id, project=project_id, now=tx.now)
    row = tx.one(INVOICE, quote=quote_id)
    if row is not None:
        invoice_id, status = row
        with ExitStack() as sums:
            notes = [note_id for (note_id,) in tx.all(NOTES, invoice=invoice_id)]
            if status in ISSUED_INVOICES:
                sums.enter_context(changing(tx, INVOICE_LINES, invoice_id))
            for note_id in notes:
                sums.enter_context(changing(tx, CREDIT_NOTE_SHARES, note_id))
            tx.run(SET_PROJECT, invoice=invoice_id, project=project_id, now=tx.now)
            for note_id in notes:
                tx.run(SET_PROJECT_OF_SHARES, note=note_id, project=project_id, now=tx.now)


def touch(tx: Tx, quote_id: int | None) -> None:
    """Note that a quote has changed: it became an invoice, or that invoice is none any more."""
    if quote_id is not None:
        tx.touch(quotes, quote_id)
