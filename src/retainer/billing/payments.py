"""Payments: what clients have paid on invoices. They are recorded with the invoice and removed by operators."""

from typing import NamedTuple

import msgspec
from sqlalchemy import bindparam, select

from retainer.billing import balance
from retainer.billing.invoices.types import Invoice
from retainer.billing.payment_types import Payment
from retainer.identity import audit
from retainer.identity.audit import Target
from retainer.rollups import changes
from retainer.rollups.changes import changing_balance
from retainer.rollups.sources import PAYMENTS
from retainer.schema.billing import OPEN_INVOICES, invoices, payments
from retainer.store.tx import Tx
from retainer.values.exact import amount_of, minor_units
from retainer.values.reading import complete

PAYABLE = (*OPEN_INVOICES, "written_off")
"""The statuses of an invoice that takes payments."""


class PaidInvoice(NamedTuple):
    """An invoice, as an operator is told of it; what is due in minor units."""

    number: str
    status: str
    balance_due: int


INVOICE = select(*invoices.c[PaidInvoice._fields]).where(invoices.c.id == bindparam("id"))


def prepare_payment(tx: Tx, payment: Payment | None, invoice: Invoice, *, in_full: bool) -> Payment | None:
    """Return a payment as it will be recorded, with its errors noted; of all that is due when it is to be paid in full.

    None when there is none, or when one with its reference was recorded before.
    """
    amount_path = "status" if payment is None else "record_payment.amount"
    if in_full and payment is None:
        payment = complete(Payment, {}, {}, {})
    if payment is None:
        return None
    earlier = next(
        (other for other in invoice.payments if payment.reference and other.reference == payment.reference), None
    )
    if earlier is not None:
        check_repeated(tx, payment, earlier, in_full=in_full)
        return None
    payment.invoice_id, payment.currency = invoice.id, invoice.currency
    payment.amount = invoice.balance_due if payment.amount is None else payment.amount
    payment.paid_date = payment.paid_date or tx.today
    is_known = tx.readable("status", "lines")  # what is due follows from both
    if invoice.status not in PAYABLE and is_known:
        state = "a draft: set its status to sent first" if invoice.status == "draft" else invoice.status
        tx.error("record_payment", f"Nothing is due: the invoice is {state}.")
        return None
    if payment.paid_date > tx.today:
        tx.error("record_payment.paid_date", f"Must not be in the future; today is {tx.today}.")
    if not is_known:
        return payment
    if not 0 < payment.amount <= invoice.balance_due:
        tx.error(amount_path, f"Takes more than 0 and at most what is due: {invoice.balance_due}.")
    elif in_full and payment.amount < invoice.balance_due:
        tx.error("status", f"Is not paid with {payment.amount}: {invoice.balance_due} is due. Leave status out.")
    try:
        minor_units(payment.amount, payment.currency)
    except ValueError as error:
        tx.error("record_payment.amount", str(error))
    return payment


def check_repeated(tx: Tx, payment: Payment, earlier: Payment, *, in_full: bool) -> None:
    """Note an error unless a payment repeats the earlier one that has its reference."""
    same_amount, same_day = payment.amount in {None, earlier.amount}, payment.paid_date in {None, earlier.paid_date}
    if not (same_amount and same_day):
        text = f"{earlier.amount} {earlier.currency} on {earlier.paid_date}"
        message = f"Is that of payment {earlier.id}: {text}. Give another payment another reference."
        tx.error("record_payment.reference", message)
    elif in_full:
        message = f"Is not paid: {payment.reference} was recorded before. Leave record_payment out to pay the rest."
        tx.error("status", message)


def record(tx: Tx, payment: Payment) -> None:
    """Write a payment that was validated, and what it leaves due of its invoice."""
    changes.insert(tx, PAYMENTS, payments, payment)
    balance.recompute_balance(tx, payment.invoice_id, by_payment=True)


class RemovedPayment(msgspec.Struct):
    """A payment that was removed, and what became of its invoice."""

    payment_id: int
    amount: str
    currency: str
    invoice_id: int
    invoice_number: str
    invoice_status: str
    balance_due: str


def remove(tx: Tx, payment_id: int) -> RemovedPayment:
    """Remove a payment that was recorded by mistake; what it paid is due again. Raises `not_found`."""
    payment = tx.get(payments, payment_id, Payment)
    changes.removed(tx, PAYMENTS, payment_id)
    with changing_balance(tx, payment.invoice_id):
        tx.delete(payments, payment_id)
        balance.recompute_balance(tx, payment.invoice_id, by_payment=False)
    invoice = PaidInvoice(*(tx.one(INVOICE, id=payment.invoice_id) or ("", "", 0)))
    target = Target("payment", payment_id, f"{payment.amount} {payment.currency} on {invoice.number}")
    audit.note(tx, "payment removed", target, before=msgspec.to_builtins(payment))
    due = str(amount_of(invoice.balance_due, payment.currency))
    return RemovedPayment(
        payment_id, str(payment.amount), payment.currency, payment.invoice_id, invoice.number, invoice.status, due
    )
