"""A draft: all that the rules of an invoice need, read once, before any of them runs."""

from decimal import Decimal
from typing import NamedTuple

from retainer.billing import papers, rules, work
from retainer.billing.invoices.types import Invoice, InvoiceLine
from retainer.billing.kinds.base import LineContext
from retainer.billing.merging import merge_lines
from retainer.billing.quotes import conversion
from retainer.billing.reading import Parties, load_parties
from retainer.documents.facts import EarlyPayment, early_payment
from retainer.schema.billing import invoices
from retainer.shared import relations
from retainer.store.details import load_details
from retainer.store.tx import Tx

LOCKED_FIELDS = (
    *("client_id", "project_id", "issue_date", "service_from", "service_to", "subject", "terms"),
    *("tax_exemption_reason", "currency", "lines"),
)
"""The fields that only a draft can change."""


class Draft(NamedTuple):
    """An invoice as a body describes it, with what it is judged by; days and moments are those of the transaction."""

    invoice: Invoice
    before: Invoice | None
    former: str
    """The status before; of a new invoice `draft`."""
    target: str
    """The status that the body asks for."""
    parties: Parties | None
    """None if there is no such client."""
    context: LineContext | None
    """What the lines are priced from; None unless it is a draft."""
    matches: work.Matches
    """The unbilled work that the body asks for."""
    offset: Invoice | None
    """The invoice whose `refund_due` pays this one, if the body asks for that and there is such an invoice."""
    terms: EarlyPayment | None
    """The early-payment discount that the paper grants, if the body asks for it."""
    today: str
    now: str


def read_draft(tx: Tx, invoice: Invoice, before: Invoice | None) -> Draft:
    """Read what the rules of an invoice need: the quote, both parties, its work and its projects.

    Nothing is read for what a bound refuses. Raises `validation_failed` for more lines or work than it can take.
    """
    target, former = invoice.status, before.status if before else "draft"
    is_draft = former == "draft"
    invoice.status = former
    if before is None:
        invoice.amount_paid = invoice.amount_credited = Decimal(0)
        invoice.payments = []
        if invoice.quote_id is not None:
            conversion.fill_invoice(tx, invoice)
    current = before.lines if before else []
    invoice.lines = merge_lines(tx, InvoiceLine, invoice.lines, current, is_locked=not is_draft)
    if before and not is_draft:
        advice = "" if former in {"void", "written_off"} else rules.CREDIT
        relations.validate_locked(tx, invoice, before, former, LOCKED_FIELDS, advice)
    elif before and invoice.client_id != before.client_id and (reason := client_lock(invoice)):
        tx.error("client_id", f"Is fixed as {before.client_id} {reason}")
        invoice.client_id = before.client_id  # so that no rule blames its project or its lines
    parties = load_parties(tx, invoice.client_id, invoice.contact_id)
    rules.settle_client(tx, invoice, before, parties, tx.actor.currency)
    matches: work.Matches = []
    if invoice.unbilled_work and is_draft:
        matches, added = work.find_work(tx, invoice.unbilled_work, invoice, work.terms_of(parties))
        invoice.lines += added
    context = None
    if is_draft:
        context = work.read_work(tx, invoice, parties, current, matches)
    asked = read_offset(tx, invoice), read_terms(tx, invoice, before)
    return Draft(invoice, before, former, target, parties, context, matches, *asked, tx.today, tx.now)


def read_offset(tx: Tx, invoice: Invoice) -> Invoice | None:
    """Return the invoice that a payment names as its offset, with its payments; None without one."""
    payment = invoice.record_payment or None
    if payment is None or payment.offset_invoice_id is None:
        return None
    other = tx.find(invoices, payment.offset_invoice_id, Invoice)
    if other is not None:
        load_details(tx, invoices, [other], ("payments",))
    return other


def read_terms(tx: Tx, invoice: Invoice, before: Invoice | None) -> EarlyPayment | None:
    payment = invoice.record_payment or None
    if before is None or payment is None or not payment.early_payment_discount:
        return None
    return early_payment(papers.load_paper(tx, before))


def client_lock(invoice: Invoice) -> str:
    """Return why a draft cannot change its client; empty if it can."""
    if any(line.id is not None and work.work_of(line) for line in invoice.lines):
        return "while work is attached: delete the lines with work first."
    if invoice.quote_id is not None:
        return f"with quote {invoice.quote_id}, which became this invoice: create another one for the other client."
    return ""
