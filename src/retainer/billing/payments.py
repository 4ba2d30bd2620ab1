"""Payments: the money that clients have paid on invoices, and refunds to them, across all invoices.

A payment is recorded with its invoice: `PATCH /invoices/{invoice_id}` with `record_payment`; a refund, which has a
negative amount, with `record_refund`. It never changes; admins and managers can remove a mistaken one in the console.
An `offset` is two of them: the `refund_due` of an invoice pays another one. A `discount` for early payment is recorded
with its payment. Both are removed together, too.
To keep a copy, follow the events of invoices, whose `payments` change.
"""

from decimal import Decimal
from typing import Annotated

import msgspec

from retainer.billing import balance, discounts, offsets, rules
from retainer.billing.invoices.draft import Draft
from retainer.billing.invoices.types import CONTENTS, Invoice
from retainer.billing.payment_types import Payment, PaymentKind, PaymentMethod, RecordPayment, kind_of, moved
from retainer.errors import SEND, BodyErrors, Refusal, part
from retainer.identity import audit
from retainer.identity.audit import Target
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.rollups import changes
from retainer.rollups.sources import DISCOUNT_SHARES
from retainer.schema.billing import OPEN_INVOICES, invoices, payments
from retainer.schema.filters import Where, at_least, at_most, one_of, since, until
from retainer.store.details import load_details
from retainer.store.tx import Tx
from retainer.values.collation import printed_form
from retainer.values.exact import amount_of
from retainer.values.kinds import Currency, Day, Id, SignedMoney
from retainer.values.reading import with_defaults


class PaymentFilter(Filter):
    sorts = ("-paid_date", "amount", "created_at", "updated_at")
    invoice_id: OneOf[Id] | None = None
    client_id: Annotated[OneOf[Id] | None, one_of("client_id", "Payments on invoices of one of these clients.")] = None
    paid_date_from: Annotated[Day | None, since("paid_date")] = None
    paid_date_to: Annotated[Day | None, until("paid_date")] = None
    kind: Annotated[
        OneOf[PaymentKind] | None,
        Where(lambda table, kinds: kind_of(table).in_(kinds), description="Records whose `kind` is one of these."),
    ] = None
    method: OneOf[PaymentMethod] | None = None
    currency: OneOf[Currency] | None = None
    amount_min: Annotated[SignedMoney | None, at_least("amount")] = None
    amount_max: Annotated[SignedMoney | None, at_most("amount")] = None


SURPLUS = "To record more, send allow_surplus: true: what is above the balance becomes refund_due."
PAYABLE = (*OPEN_INVOICES, "written_off")
"""The statuses of an invoice that accepts payments."""


def build_payment(
    errors: BodyErrors, payment: RecordPayment | None, draft: Draft, *, pays_all: bool
) -> RecordPayment | None:
    """Return the payment to record, with its errors noted; if it `pays_all`, it must cover the balance.

    It is at most the balance, unless it allows a surplus, and at most the refund due of the invoice that is its offset.
    With an early-payment discount, it is at least the rest of the balance. None if nothing is due, or if one with its
    reference was recorded before.
    """
    invoice, offset = draft.invoice, draft.offset
    amount_path, due = "status" if payment is None else "record_payment.amount", invoice.balance_due
    payment = payment or with_defaults(RecordPayment)
    is_all = payment.amount is None
    earlier = fill_in(errors, "record_payment", payment, invoice, draft.today, sign=1)
    if earlier:
        if pays_all and "record_payment.reference" not in errors.errors:
            advice = f"Leave {part('record_payment')} out to pay the rest."
            errors.error("status", f"The payment {earlier.reference} was already recorded. {advice}")
        return None
    room = offsets.room_for(errors, payment, invoice, offset)
    is_known = errors.readable("status", *CONTENTS)  # the balance follows from them
    if invoice.status not in PAYABLE and is_known:
        paid = "credited in full" if rules.is_credited(invoice) else invoice.status
        state = "a draft: set its status to sent first" if invoice.status == "draft" else paid
        errors.error("record_payment", f"Nothing is due: the invoice is {state}.")
        return None
    discount = discounts.room_for(errors, payment, invoice, draft.terms)
    most = due if room is None else min(due, room)
    least = max(due - discount, amount_of(1, invoice.currency))
    payment.amount = payment.amount if not is_all else least if discount else most
    if is_known and rules.units_of(errors, "record_payment.amount", payment.amount, invoice.currency) is not None:
        if discount:
            if not least <= payment.amount <= due:
                most_of_it = f"the discount is at most {part(discount)} {invoice.currency}"
                text = f"Must be from {part(least)} {invoice.currency} to {part(due)} {invoice.currency}: {most_of_it}."
                errors.error(amount_path, text)
        elif payment.amount <= 0 or (payment.amount > most and (room is not None or not payment.allow_surplus)):
            what = f"what is to be refunded on {offset.number}" if offset and most < due else "the balance due"
            advice = f" {part(SURPLUS)}" if room is None and payment.amount > due > 0 else ""
            errors.error(amount_path, f"{bounds(most, invoice.currency)}, {what}.{advice}")
        elif pays_all and payment.amount < due:
            errors.error("status", f"Is not paid with {part(payment.amount)}: {part(due)} is due. Leave status out.")
    return payment


def build_refund(errors: BodyErrors, refund: Payment, invoice: Invoice, today: str) -> Payment | None:
    """Return the refund to record, as a payment of a negative amount, with its errors noted.

    None if one with its reference was recorded before.
    """
    due = invoice.refund_due
    if fill_in(errors, "record_refund", refund, invoice, today, sign=-1):
        return None
    if refund.method == "offset":
        errors.error(
            "record_refund.method", f"Record an offset on the invoice that it pays, with {part('record_payment')}."
        )
    if not due:
        advice = f"Credit what was paid first, with a credit note{rules.CREDIT_CALL}."
        errors.error("record_refund", f"Nothing is to be refunded. {advice}")
    elif rules.units_of(errors, "record_refund.amount", refund.amount, invoice.currency) is not None:
        refunded = msgspec.structs.replace(refund, amount=-refund.amount)
        if not 0 < refund.amount <= due:
            errors.error("record_refund.amount", f"{bounds(due, invoice.currency)}, which is what is to be refunded.")
        elif balance.is_overdrawn(moved((*invoice.payments, refunded))):
            errors.error("record_refund.paid_date", f"Less had been paid by then. {SEND} a later day.")
        return refunded
    return refund


def fill_in(
    errors: BodyErrors, field: str, payment: Payment, invoice: Invoice, today: str, *, sign: int
) -> Payment | None:
    """Fill in a new payment, unless one with its reference was recorded before; return that, or None.

    Notes an error unless both are equal, and for a day to come. The `sign` of recorded amounts is -1 for refunds.
    """
    for earlier in invoice.payments:
        if payment.reference and printed_form(earlier.reference or "") == printed_form(payment.reference):
            amount, same_day = earlier.amount * sign, payment.paid_date in {None, earlier.paid_date}
            same_offset = payment.offset_invoice_id in {None, earlier.offset_invoice_id}
            if amount < 0 or payment.amount not in {None, amount} or not same_day or not same_offset:
                facts = f"{part(earlier.amount)} {earlier.currency} on {part(earlier.paid_date)}"
                advice = f"Give another {field.removeprefix('record_')} another reference."
                message = f"Is that of {earlier.kind} {earlier.id}: {facts}. {advice}"
                errors.error(f"{field}.reference", message)
            return earlier
    payment.invoice_id, payment.client_id, payment.currency = invoice.id, invoice.client_id, invoice.currency
    due = invoice.balance_due if sign > 0 else invoice.refund_due
    payment.amount = due if payment.amount is None else payment.amount
    payment.paid_date = payment.paid_date or today
    if payment.paid_date > today:
        errors.error(f"{field}.paid_date", f"Must not be in the future; today is {part(today)}.")
    return None


def bounds(due: Decimal, currency: str) -> str:
    return f"Must be from {part(amount_of(1, currency))} to {part(due)} {currency}"


def remove(tx: Tx, payment_id: int) -> dict[str, object]:
    """Remove a payment or refund that was recorded by mistake, and return what changed; a payment is due again.

    An offset is removed on both invoices, and a discount with its payment. Raises `not_found`, and `in_use` for a
    payment that was refunded, and for a discount.
    """
    payment = tx.get(payments, payment_id, Payment)
    if payment.payment_id is not None:
        message = f"A discount is removed with its payment: remove payment {payment.payment_id}."
        raise Refusal("in_use", message, errors={"payments": [message]})
    removed = [each for each in _of_invoice(tx, payment.invoice_id).payments if each.payment_id == payment_id]
    removed.append(payment)
    if payment.offset_invoice_id is not None:
        removed.append(offsets.counterpart_of(payment, _of_invoice(tx, payment.offset_invoice_id).payments))
    for each in removed:
        others = (other for other in _of_invoice(tx, each.invoice_id).payments if other.id != each.id)
        if balance.is_overdrawn(moved(others)):
            message = "It was refunded, at least in part. Remove the refund first, if that is wrong, too."
            raise Refusal("in_use", message, errors={"payments": [message]})
    for each in removed:
        changes.removed(tx, DISCOUNT_SHARES, [each.id])
        tx.delete(payments, each.id)
        balance.recompute_balance(tx, each.invoice_id, by_payment=False)
        invoice = tx.get(invoices, each.invoice_id, Invoice)
        target = Target("payment", each.id, f"{each.amount} {each.currency} on {invoice.number}")
        audit.note(tx, "payment removed", target, before=msgspec.to_builtins(each))
    invoice = tx.get(invoices, payment.invoice_id, Invoice)
    return {
        "payment_id": payment_id,
        "amount": str(payment.amount),
        "currency": payment.currency,
        "invoice_id": invoice.id,
        "invoice_number": invoice.number,
        "invoice_status": invoice.status,
        "balance_due": str(invoice.balance_due),
    }


def _of_invoice(tx: Tx, invoice_id: int) -> Invoice:
    """Return an invoice with its payments."""
    invoice = tx.get(invoices, invoice_id, Invoice)
    load_details(tx, invoices, [invoice])
    return invoice


RECORDING = "PATCH /invoices/{invoice_id} with `record_payment` or `record_refund` records one."
api = Resource("/payments", tag="Payments", scope="invoices", table=payments, advice=RECORDING)
api.lists(Payment, PaymentFilter, "List the payments on all invoices and the refunds, newest day first.")
api.reads("/{payment_id}", Payment, "Read a payment or refund.")
