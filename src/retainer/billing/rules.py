"""Rules of documents: what quotes and invoices have in common, on data that was read before. Pure.

Rules complete a document and note errors; the caller raises all of them together.
"""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import TypeVar

from retainer.billing.credit_notes.types import CreditNote
from retainer.billing.invoices.types import Invoice, InvoiceLine
from retainer.billing.quotes.types import QuoteLine
from retainer.billing.reading import Document, DocumentProject, Parties, Projects
from retainer.documents.facts import TaxShare
from retainer.errors import BodyErrors, for_callers, part
from retainer.shared import relations
from retainer.store.constraints import MISSING
from retainer.values import money
from retainer.values.exact import amount_of, minor_units

T = TypeVar("T")
Line = TypeVar("Line", QuoteLine, InvoiceLine)
TEXTS = ("tax_exemption_reason", "notes", "terms")
CREDIT_CALL = for_callers(": POST /invoices/{invoice_id}/credit-notes")
CREDIT = f"Correct an issued invoice with a credit note{CREDIT_CALL}."
"""The advice of refusals to change an issued invoice."""


def is_credited(invoice: Invoice) -> bool:
    """Return whether credit notes cover the total of an invoice, whose status is then `paid`."""
    return invoice.status == "paid" and bool(invoice.total) and invoice.amount_credited >= invoice.total


def settle_client(
    errors: BodyErrors, document: Document, before: Document | None, parties: Parties | None, currency: str
) -> None:
    """Fill in what a document inherits from its client; `currency` is that of a document without one.

    Notes an error for a client that does not exist or is archived, a contact of another one, and a currency that
    cannot change.
    """
    if parties is None and document.client_id is not None:
        errors.error("client_id", MISSING.format("client"))
        document.client_id = None  # type: ignore[assignment]  # contact and project are not validated against it
    document.currency = document.currency or (parties.client.currency if parties else currency)
    keeps_lines = any(line.id is not None for line in document.lines)
    if before and document.currency != before.currency and keeps_lines and errors.readable("lines"):
        advice = "while the document keeps lines. Replace or delete them first."
        errors.error("currency", f"Stays {before.currency} {advice}")
    if parties is None:
        return
    if is_new(document, before, "contact_id"):
        validate_same_client(errors, "contact_id", "external contact", parties.contact_client_id, document)
    if before is None:
        for name in TEXTS:
            if getattr(document, name) is None and name not in errors.sent:  # null asks for none
                setattr(document, name, getattr(parties.client, name))
    if is_new(document, before, "client_id"):
        relations.validate_open(errors, "client_id", part(f"Client {document.client_id}"), parties.client.status)


def is_new(document: Document, before: Document | None, field: str) -> bool:
    """Return whether a document has a value in a field that it did not have for its client before."""
    value = getattr(document, field)
    is_kept = before is not None and (document.client_id, value) == (before.client_id, getattr(before, field))
    return value is not None and not is_kept


def validate_project(errors: BodyErrors, document: Document, before: Document | None, projects: Projects) -> None:
    if is_new(document, before, "project_id"):
        validate_line_project(errors, document.project_id, document, projects)


def validate_line_project(errors: BodyErrors, project_id: int | None, document: Document, projects: Projects) -> None:
    """Note an error for a project that does not exist, is a template, or belongs to another client."""
    project: DocumentProject | None = projects.get(project_id or 0)
    if project is not None and project.is_template:
        relations.validate_open(errors, "project_id", part(f"Project {project.id}"), None, template=True)
    owner = None if project is None else project.client_id or 0
    validate_same_client(errors, "project_id", "project", owner, document)


def validate_same_client(errors: BodyErrors, field: str, noun: str, owner: int | None, document: Document) -> None:
    """Note an error unless a contact or project belongs to the document's client.

    `owner` is its client, 0 for a project without one, and None if it does not exist.
    """
    if owner is None:
        errors.error(field, MISSING.format(noun))
    elif document.client_id is not None and owner != document.client_id:
        name = f"client {owner}" if owner else "no client"
        advice = "Choose one of the document's client."
        errors.error(field, f"Belongs to {name}, not to client {document.client_id}. {advice}")


def each_line(errors: BodyErrors, lines: Sequence[T]) -> Iterator[T]:
    """Yield the lines of a body; errors that are noted meanwhile get the path `lines.0`, `lines.1`, ..."""
    for position, line in enumerate(lines):
        errors.prefix = f"lines.{position}."
        yield line
    errors.prefix = ""


def complete_line(
    errors: BodyErrors,
    line: Line,
    document: Document,
    tax_rate: Decimal,
    projects: Projects,
    *,
    amount: int | None = None,
) -> None:
    """Fill in what a line inherits from its document, and its amount; `amount` gives it in minor units.

    Notes an error for its project, and for an amount that is too large.
    """
    line.currency = document.currency
    line.tax_rate = tax_rate if line.tax_rate is None else line.tax_rate
    if line.project_id is not None:
        validate_line_project(errors, line.project_id, document, projects)
    line.unit_price = money.pad_price(line.unit_price, line.currency)
    if amount is None:
        amount = money.line_amount(line.quantity, line.unit_price, line.discount_percent, line.currency)
    line.amount = amount_of(amount, line.currency)
    if abs(line.amount) > money.MAX_AMOUNT:
        message = f"The amount of the line would be {part(line.amount)}. The maximum is {part(money.MAX_AMOUNT)}."
        errors.error("unit_price", message)
        line.amount = amount_of(0, line.currency)


def is_counted(line: QuoteLine | InvoiceLine) -> bool:
    """Return whether a line is part of the totals: an optional line of a quote is not."""
    return not (isinstance(line, QuoteLine) and line.is_optional)


def shares_of(lines: Iterable[QuoteLine | InvoiceLine], currency: str) -> list[money.Share]:
    """Return what lines come to at each rate of tax."""
    return money.shares((minor_units(line.amount, currency), line.tax_rate) for line in lines)


def compute_totals(document: Document) -> None:
    """Set the totals of a draft to those of its lines; all of an invoice is due."""
    set_totals(document, shares_of(filter(is_counted, document.lines), document.currency))
    if isinstance(document, Invoice):
        document.balance_due = document.total


def set_totals(document: Document | CreditNote, shares: Sequence[money.Share]) -> None:
    currency = document.currency
    taxable, tax = sum(share.taxable for share in shares), sum(share.tax for share in shares)
    document.subtotal, document.tax_total = amount_of(taxable, currency), amount_of(tax, currency)
    document.total = amount_of(taxable + tax, currency)
    document.tax_breakdown = [
        TaxShare(share.tax_rate, amount_of(share.taxable, currency), amount_of(share.tax, currency)) for share in shares
    ]


def units_of(errors: BodyErrors, path: str, amount: Decimal, currency: str) -> int | None:
    """Return an amount in minor units; None, with an error noted, if its currency has fewer digits."""
    try:
        return minor_units(amount, currency)
    except ValueError as error:
        errors.error(path, str(error))
        return None
