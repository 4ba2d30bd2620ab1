"""Offsets: the refund_due of one invoice pays another one of its client, with a payment here and a refund there.

Both rows are written, and removed, together. They name each other's invoice, and have equal amounts, days and
references.
"""

from collections.abc import Sequence
from decimal import Decimal

from retainer.billing.balance import is_overdrawn
from retainer.billing.invoices.types import Invoice
from retainer.billing.payment_types import Payment, RecordPayment, moved
from retainer.errors import SEND, BodyErrors, part
from retainer.store.constraints import MISSING
from retainer.values.collation import printed_form

FIELD = "record_payment.offset_invoice_id"


def room_for(errors: BodyErrors, payment: RecordPayment, invoice: Invoice, other: Invoice | None) -> Decimal | None:
    """Return what the other invoice can pay; None without an offset, or with its errors noted."""
    if payment.offset_invoice_id is None:
        if payment.method == "offset":
            errors.error(
                FIELD, f"Is required with the method offset: the invoice whose {part('refund_due')} pays this one."
            )
        return None
    if payment.method != "offset":
        errors.error("record_payment.method", f"Must be offset with {part('offset_invoice_id')}.")
    if other is None:
        errors.error(FIELD, MISSING.format("invoice"))
    elif other.id == invoice.id:
        errors.error(FIELD, "Must be another invoice.")
    elif other.client_id != invoice.client_id:
        errors.error(FIELD, f"Is an invoice of client {other.client_id}; this one is of client {invoice.client_id}.")
    elif other.currency != invoice.currency:
        errors.error(FIELD, f"Is in {other.currency}; this one is in {invoice.currency}.")
    elif not other.refund_due:
        errors.error(FIELD, f"Has no {part('refund_due')}: nothing of {other.number or 'a draft'} is to be refunded.")
    else:
        return other.refund_due
    return None


def build_counterpart(errors: BodyErrors, payment: RecordPayment | None, other: Invoice | None) -> Payment | None:
    """Return the refund on the other invoice that belongs to a payment; None without an offset. Notes its errors."""
    if payment is None or payment.offset_invoice_id is None or other is None or not errors.readable(FIELD):
        return None
    reference = printed_form(payment.reference or "")
    if reference and any(printed_form(each.reference or "") == reference for each in other.payments):
        message = f"{other.number} has this reference already. Give the offset another reference."
        errors.error("record_payment.reference", message)
    fields = {name: getattr(payment, name) for name in Payment.__struct_fields__}
    changed = {"invoice_id": other.id, "offset_invoice_id": payment.invoice_id, "amount": -payment.amount}
    refund = Payment(**fields | changed)
    if is_overdrawn(moved((*other.payments, refund))):
        errors.error("record_payment.paid_date", f"Less had been paid on {other.number} by then. {SEND} a later day.")
    return refund


def counterpart_of(payment: Payment, others: Sequence[Payment]) -> Payment:
    """Return the other row of an offset, of the payments of the invoice that it names; equal ones do not differ."""
    return next(
        each
        for each in others
        if each.offset_invoice_id == payment.invoice_id
        and (each.amount, each.paid_date, each.reference) == (-payment.amount, payment.paid_date, payment.reference)
    )
