"""Payments: the money that clients have paid on invoices, across all invoices.

A payment is recorded with its invoice: PATCH /invoices/{invoice_id} with `record_payment`. It never changes; an admin
can remove one that was recorded by mistake. To keep a copy, follow the events of invoices, whose `payments` change.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated

import msgspec
from sqlalchemy import ColumnElement, Table, select

from retainer.billing import balance
from retainer.billing.invoices.types import CONTENTS, Invoice, Payment, PaymentMethod
from retainer.identity import audit
from retainer.identity.audit import Target
from retainer.kernel.paging import Page, Paged, listing
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.rollups import changes
from retainer.rollups.changes import changing_balance
from retainer.rollups.sources import PAYMENTS
from retainer.schema.billing import OPEN_INVOICES, invoices, payments
from retainer.schema.filters import Where, at_least, at_most, since, until
from retainer.store.tx import Tx
from retainer.values.exact import minor_units
from retainer.values.kinds import Currency, Day, Id, SignedMoney
from retainer.values.reading import with_defaults


def has_client(table: Table, clients: Sequence[ColumnElement[int]]) -> ColumnElement[bool]:
    """Return whether the invoice of a payment belongs to one of these clients."""
    return table.c.invoice_id.in_(select(invoices.c.id).where(invoices.c.client_id.in_(clients)))


class PaymentFilter(Filter):
    """The filters of payments."""

    sorts = ("-paid_date", "amount", "created_at", "updated_at")
    invoice_id: OneOf[Id] | None = None
    client_id: Annotated[
        OneOf[Id] | None, Where(has_client, description="Payments on invoices of one of these clients.")
    ] = None
    paid_date_from: Annotated[Day | None, since("paid_date")] = None
    paid_date_to: Annotated[Day | None, until("paid_date")] = None
    method: OneOf[PaymentMethod] | None = None
    currency: OneOf[Currency] | None = None
    amount_min: Annotated[SignedMoney | None, at_least("amount")] = None
    amount_max: Annotated[SignedMoney | None, at_most("amount")] = None


PAYABLE = (*OPEN_INVOICES, "written_off")
"""The statuses of an invoice that accepts payments."""


def build_payment(tx: Tx, payment: Payment | None, invoice: Invoice, *, pays_all: bool) -> Payment | None:
    """Return the payment to record, with its errors noted; if it `pays_all`, it must cover the balance.

    None if there is none to record, or if one with its reference was recorded before.
    """
    amount_path = "status" if payment is None else "record_payment.amount"
    if pays_all and payment is None:
        payment = with_defaults(Payment)
    if payment is None:
        return None
    for earlier in invoice.payments:
        if payment.reference and earlier.reference == payment.reference:
            validate_repeated(tx, payment, earlier, pays_all=pays_all)
            return None
    payment.invoice_id, payment.currency = invoice.id, invoice.currency
    payment.amount = invoice.balance_due if payment.amount is None else payment.amount
    payment.paid_date = payment.paid_date or tx.today
    is_known = tx.readable("status", *CONTENTS)  # the balance follows from them
    if invoice.status not in PAYABLE and is_known:
        state = "a draft: set its status to sent first" if invoice.status == "draft" else invoice.status
        tx.error("record_payment", f"Nothing is due: the invoice is {state}.")
        return None
    if payment.paid_date > tx.today:
        tx.error("record_payment.paid_date", f"Must not be in the future; today is {tx.today}.")
    if is_known:
        validate_amount(tx, payment, invoice.balance_due, amount_path, pays_all=pays_all)
    return payment


def validate_amount(tx: Tx, payment: Payment, due: Decimal, path: str, *, pays_all: bool) -> None:
    """Note an error for an amount that exceeds the balance, does not pay all, or has too many digits."""
    try:
        minor_units(payment.amount, payment.currency)
    except ValueError as error:
        tx.error("record_payment.amount", str(error))
        return
    if not 0 < payment.amount <= due:
        tx.error(path, f"Takes more than 0 and at most what is due: {due}.")
    elif pays_all and payment.amount < due:
        tx.error("status", f"Is not paid with {payment.amount}: {due} is due. Leave status out.")


def validate_repeated(tx: Tx, payment: Payment, earlier: Payment, *, pays_all: bool) -> None:
    """Note an error unless a payment equals the earlier one with its reference."""
    same_amount, same_day = payment.amount in {None, earlier.amount}, payment.paid_date in {None, earlier.paid_date}
    if not (same_amount and same_day):
        text = f"{earlier.amount} {earlier.currency} on {earlier.paid_date}"
        message = f"Is that of payment {earlier.id}: {text}. Give another payment another reference."
        tx.error("record_payment.reference", message)
    elif pays_all:
        message = f"Is not paid: {payment.reference} was recorded before. Leave record_payment out to pay the rest."
        tx.error("status", message)


def save_payment(tx: Tx, payment: Payment) -> None:
    """Write a payment that was validated, and the new balance of its invoice."""
    changes.insert(tx, PAYMENTS, payments, payment)
    balance.recompute_balance(tx, payment.invoice_id, by_payment=True)


class RemovedPayment(msgspec.Struct):
    """A payment that was removed, and its invoice afterwards."""

    payment_id: int
    amount: str
    currency: str
    invoice_id: int
    invoice_number: str
    invoice_status: str
    balance_due: str


def remove(tx: Tx, payment_id: int) -> RemovedPayment:
    """Remove a payment that was recorded by mistake; its amount is due again. Raises `not_found`."""
    payment = tx.get(payments, payment_id, Payment)
    tx.get(invoices, payment.invoice_id, Invoice)  # its former status decides which event is written
    changes.removed(tx, PAYMENTS, payment_id)
    with changing_balance(tx, payment.invoice_id):
        tx.delete(payments, payment_id)
        balance.recompute_balance(tx, payment.invoice_id, by_payment=False)
    invoice = tx.get(invoices, payment.invoice_id, Invoice)
    target = Target("payment", payment_id, f"{payment.amount} {payment.currency} on {invoice.number}")
    audit.note(tx, "payment removed", target, before=msgspec.to_builtins(payment))
    return RemovedPayment(
        payment_id=payment_id,
        amount=str(payment.amount),
        currency=payment.currency,
        invoice_id=payment.invoice_id,
        invoice_number=invoice.number or "",
        invoice_status=invoice.status,
        balance_due=str(invoice.balance_due),
    )


api = Resource("/payments", tag="Payments", scope="invoices", table=payments)
api.instead["payments"] = (
    "GET /payments lists payments; PATCH /invoices/{invoice_id} with `record_payment` records one."
)


@api.get()
def list_payments(tx: Tx, filters: PaymentFilter, page: Page) -> Paged[Payment]:
    """List the payments on all invoices, newest day first."""
    return listing(tx, payments, Payment, filters, page)


@api.get("/{payment_id}")
def get_payment(tx: Tx, payment_id: Id) -> Payment:
    """Read a payment."""
    return tx.get(payments, payment_id, Payment)
