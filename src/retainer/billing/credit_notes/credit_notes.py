"""Credit notes: credits on issued invoices; they are final.

A credit note credits a gross amount, lines, or all that is left. It lowers the balance first (`applied_amount`); the
rest is `refundable_amount`. Credits never exceed the invoice, in total and at each tax rate. The work of a line can be
billed again when its whole quantity is credited, and all work of the invoice, or its quote, when the whole invoice is.
"""

from decimal import Decimal
from typing import Annotated

from retainer.billing import balance, file_facts, files, line_work
from retainer.billing.credit_notes import crediting
from retainer.billing.credit_notes.types import CreditNote, Reason
from retainer.billing.invoices.invoices import load_invoice
from retainer.billing.invoices.types import Invoice
from retainer.errors import Refusal
from retainer.kernel.body import New
from retainer.kernel.paging import Page, Paged, listing
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.rollups import changes
from retainer.rollups.sources import CREDIT_NOTE_SHARES
from retainer.schema.billing import ISSUED_INVOICES, credit_note_shares, credit_notes, invoices, quotes
from retainer.schema.filters import ONE_OF_NUMBERS, since, until
from retainer.shared.numbering import next_document_number
from retainer.store.tx import Tx
from retainer.values.kinds import Code50, Day, Id


class CreditNoteFilter(Filter):
    """The filters of credit notes."""

    sorts = ("-created_at", "issue_date", "number", "total")
    client_id: OneOf[Id] | None = None
    invoice_id: OneOf[Id] | None = None
    reason: OneOf[Reason] | None = None
    issue_date_from: Annotated[Day | None, since("issue_date")] = None
    issue_date_to: Annotated[Day | None, until("issue_date")] = None
    number: Annotated[OneOf[Code50] | None, ONE_OF_NUMBERS] = None


def build_credit_note(tx: Tx, note: CreditNote, invoice: Invoice) -> CreditNote:
    """Return a credit note with the fields of its invoice, its totals and its number.

    Raises all errors of the body, and `locked` for an invoice that is a draft or void.
    """
    if invoice.status not in ISSUED_INVOICES:
        is_draft = invoice.status == "draft"
        state = "is a draft: change its lines instead" if is_draft else "is void: nothing is left of it"
        message = f"Only what was issued can be credited; this invoice {state}."
        raise Refusal("locked", message, errors={"invoice": [message]})
    note.invoice_id, note.client_id, note.currency = invoice.id, invoice.client_id, invoice.currency
    issued = invoice.issue_date or tx.today
    note.issue_date = note.issue_date or max(tx.today, issued)
    if note.issue_date < issued:
        tx.error("issue_date", f"Must not be before the invoice's, which is {issued}.")
    crediting.compute_credit(tx, note, invoice)
    note.applied_amount, note.refundable_amount = Decimal(0), note.total  # until recompute_balance applies it
    tx.raise_errors()
    note.number = next_document_number(tx, credit_notes, note.issue_date)
    return note


def free_work(tx: Tx, note: CreditNote, invoice: Invoice) -> None:
    """Let the work that a new credit note frees be billed again, and the quote of an invoice that it credits in full.

    The invoice is as it was before the note.
    """
    line_work.detach(tx, crediting.freed_lines(invoice, note), is_kept=True)
    if invoice.quote_id is not None and note.total == invoice.total - invoice.amount_credited:
        tx.touch(quotes, invoice.quote_id, "invoice_id")


api = Resource("/credit-notes", tag="Credit notes", scope="invoices", table=credit_notes)
made = Resource(
    "/invoices/{invoice_id}/credit-notes",
    tag="Credit notes",
    scope="invoices",
    table=credit_notes,
    parent=invoices,
    location="/credit-notes",
)


@made.post()
def create_credit_note(tx: Tx, invoice_id: Id, body: New[CreditNote]) -> CreditNote:
    """Credit an issued invoice: a gross amount, lines, or, without both, all that is left."""
    invoice = load_invoice(tx, invoice_id)
    note = build_credit_note(tx, body, invoice)
    shares = crediting.compute_shares(tx, note, invoice)
    note_id = tx.insert(credit_notes, note)
    file_facts.save_issuer(tx, credit_notes, note_id, note.client_id)
    balance.recompute_balance(tx, invoice_id, by_payment=False)
    for project_id, units in shares.items():
        share = {"credit_note_id": note_id, "project_id": project_id, "currency": note.currency, "amount": units}
        tx.insert_counted(credit_note_shares, share)
    changes.added(tx, CREDIT_NOTE_SHARES, [note_id])
    free_work(tx, note, invoice)
    return tx.get(credit_notes, note_id, CreditNote)


@api.get()
def list_credit_notes(tx: Tx, filters: CreditNoteFilter, page: Page) -> Paged[CreditNote]:
    """List credit notes, newest first."""
    return listing(tx, credit_notes, CreditNote, filters, page)


@api.get("/{credit_note_id}", representations=files.ISSUED_AS)
def get_credit_note(tx: Tx, credit_note_id: Id) -> CreditNote:
    """Read a credit note.

    `Accept: application/pdf` returns its PDF, which carries its e-invoice (Factur-X, EN 16931), and `application/xml`
    the e-invoice alone. These files stay the same, whatever changes later. The PDF prints Latin, Greek, Cyrillic,
    Hebrew, Arabic, Thai, Devanagari, Chinese, Japanese and Korean; other characters become squares.
    """
    return tx.get(credit_notes, credit_note_id, CreditNote)
