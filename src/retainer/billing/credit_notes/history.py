"""History of credit notes: those that another program has issued, written and removed as they were.

Their number, day and amount are kept. At which tax rates the amount counts follows from what is left of their invoice.
Their paper is the PDF that came with them.
"""

from decimal import Decimal

import msgspec
from sqlalchemy import bindparam, func, select

from retainer.billing import balance, shares
from retainer.billing.credit_notes.credit_notes import credit_by_amount
from retainer.billing.credit_notes.types import CreditNote
from retainer.billing.facts import load_known_parties
from retainer.billing.invoices.history import delete_paper, midnight_of
from retainer.billing.invoices.invoices import load_invoice
from retainer.billing.rules import set_totals
from retainer.errors import Refusal, invalid, part
from retainer.rollups import changes
from retainer.rollups.sources import CREDIT_NOTE_SHARES
from retainer.schema.billing import credit_note_shares, credit_notes, invoices, issued_documents
from retainer.schema.mail import messages
from retainer.store.engines.sql import INTEGER
from retainer.store.tx import Tx
from retainer.values.decoding import json_text
from retainer.values.exact import amount_of, minor_units
from retainer.values.money import Share
from retainer.values.reading import with_defaults

ID = bindparam("id", type_=INTEGER)
SENT = select(func.count()).where(messages.c.record == "credit_note", messages.c.record_id == ID)


class PastCreditNote(msgspec.Struct, array_like=True, frozen=True):
    """A credit note as another program has issued it, in the currency of its invoice."""

    number: str
    issue_date: str
    invoice_number: str
    total: Decimal
    tax: Decimal | None = None
    description: str | None = None


def write(tx: Tx, past: PastCreditNote, invoice_id: int, program: str, pdf: bytes | None) -> int:
    """Write a credit note with its PDF, and the balance of its invoice; return its id. Raises `validation_failed`."""
    invoice = load_invoice(tx, invoice_id)
    note = with_defaults(CreditNote, invoice_id=invoice_id, client_id=invoice.client_id, currency=invoice.currency)
    note.number, note.issue_date, note.description = past.number, past.issue_date, past.description
    remaining = [*shares.remaining_shares(invoice).values()]
    left, gross = sum(share.gross for share in remaining), _units("total", past.total, invoice.currency)
    if invoice.status == "void" or gross > left:
        rest = amount_of(0 if invoice.status == "void" else left, invoice.currency)
        raise invalid({"total": [too_much(past.total, rest, invoice.number)]})
    credited = credit_by_amount(note, gross, remaining, f"Credit on invoice {invoice.number}")
    if past.tax is not None:
        credited = _with_tax(credited, _units("tax", past.tax, invoice.currency))
    for line, share in zip(note.lines, credited, strict=True):
        line.amount = amount_of(share.taxable, invoice.currency)
        line.unit_price = abs(line.amount)
    set_totals(note, credited)
    note.applied_amount, note.refundable_amount = Decimal(0), note.total  # until the balance applies it
    issuer = load_known_parties(tx, invoice.client_id, None).paid_in(invoice.currency)
    note_id = tx.insert(credit_notes, note, imported_from=program, issuer_snapshot=json_text(issuer))
    for project_id, units in shares.compute_shares(tx, invoice, minor_units(note.subtotal, note.currency)).items():
        share_of = {"credit_note_id": note_id, "project_id": project_id, "currency": note.currency, "amount": units}
        tx.insert_counted(credit_note_shares, share_of)
    changes.added(tx, CREDIT_NOTE_SHARES, [note_id])
    if pdf is not None:
        tx.insert_counted(issued_documents, {"credit_note_id": note_id, "pdf": pdf})
    balance.recompute_balance(tx, invoice_id, by_payment=False)
    if invoice.paid_at is None and tx.field(invoices.c.paid_at, invoice_id) is not None:
        last = max(note.issue_date, *(payment.paid_date for payment in invoice.payments), invoice.issue_date or "")
        tx.update_columns(invoices, invoice_id, {"paid_at": midnight_of(tx, last)})
    return note_id


def too_much(total: Decimal, rest: Decimal, invoice_number: str | None) -> str:
    """Return what refuses a credit note of more than the rest of its invoice."""
    return f"Is {part(total)}, but only {part(rest)} of invoice {invoice_number} is left to credit."


def _units(field: str, amount: Decimal, currency: str) -> int:
    try:
        return minor_units(amount, currency)
    except ValueError as error:
        raise invalid({field: [str(error)]}) from None


def _with_tax(credited: list[Share], tax: int) -> list[Share]:
    """Return shares with the tax that the other program has computed, which may be rounded in another way."""
    gap = tax - sum(share.tax for share in credited)
    last = credited[-1]
    if abs(gap) > len(credited) or last.tax + gap < 0:
        raise invalid({"tax": ["Is not that of its amount, at the tax rates of its invoice."]})
    return [*credited[:-1], Share(last.tax_rate, last.taxable - gap, last.tax + gap)]


def remove(tx: Tx, note_id: int) -> None:
    """Delete an imported credit note with its PDF. Raises `in_use` if it was sent."""
    if tx.value(SENT, id=note_id):
        raise Refusal("in_use", "Stays: it was sent by mail.")
    note = tx.get(credit_notes, note_id, CreditNote)
    changes.removed(tx, CREDIT_NOTE_SHARES, [note_id])
    delete_paper(tx, "credit_note_id", note_id)
    tx.delete(credit_notes, note_id)
    balance.recompute_balance(tx, note.invoice_id, by_payment=False)
