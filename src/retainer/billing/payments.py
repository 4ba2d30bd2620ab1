"""Payments: what clients have paid on invoices. They are recorded with the invoice and removed by operators."""

from typing import Annotated, Any, Literal

import msgspec
from sqlalchemy import bindparam, select

from retainer.billing import balance
from retainer.errors import Refusal
from retainer.identity import audit
from retainer.identity.accounts import ACTING, operator
from retainer.rollups.changes import added, changing_balance, removed
from retainer.rollups.sources import PAYMENTS
from retainer.schema.billing import OPEN_INVOICES, invoices, payments
from retainer.schema.identity import accounts
from retainer.store.store import Store
from retainer.store.tx import Tx
from retainer.values.exact import amount_of, minor_units
from retainer.values.kinds import Currency, Day, Id, Money, Text191, Text10000
from retainer.values.reading import complete
from retainer.values.records import READ_ONLY, SERVER_DEFAULT, Record

Method = Annotated[
    Literal["bank_transfer", "card", "direct_debit", "cash", "cheque", "other"],
    "How the money came; nothing else follows from it.",
]


class Payment(Record):
    """What a client has paid on an invoice."""

    invoice_id: Annotated[Id, "The invoice that it pays."] = READ_ONLY
    amount: Annotated[Money, "More than 0 and at most the invoice's `balance_due`, which it is when left out."] = (
        SERVER_DEFAULT
    )
    currency: Annotated[Currency, "That of the invoice."] = READ_ONLY
    paid_date: Annotated[Day, "Day on which the money came, not in the future; today when left out."] = SERVER_DEFAULT
    method: Method = "bank_transfer"
    reference: Annotated[
        Text191 | None,
        "Unique within the invoice: the same with the same amount and day adds nothing, so a retry pays once.",
    ] = None
    notes: Annotated[Text10000 | None, "For the agency's own use."] = None


TAKES = (*OPEN_INVOICES, "written_off")
"""The statuses of an invoice that takes payments."""
INVOICE = select(*invoices.c["number", "status", "balance_due"]).where(invoices.c.id == bindparam("id"))
OWNER = (
    select(*ACTING)
    .select_from(payments)
    .join(accounts, accounts.c.id == payments.c.account_id)
    .where(payments.c.id == bindparam("id"))
)


def prepare_payment(tx: Tx, payment: Payment | None, invoice: Any, *, whole: bool) -> Payment | None:
    """A payment as it will be recorded, its faults noted; of all that is due when the `whole` is to be paid.

    None when there is none, or when one with its reference was recorded before.
    """
    where = "status" if payment is None else "record_payment.amount"
    if whole and payment is None:
        payment = complete(Payment, {}, {}, {})
    if payment is None:
        return None
    earlier = next(
        (other for other in invoice.payments if payment.reference and other.reference == payment.reference), None
    )
    if earlier is not None:
        compare(tx, payment, earlier, whole=whole)
        return None
    payment.invoice_id, payment.currency = invoice.id, invoice.currency
    payment.amount = invoice.balance_due if payment.amount is None else payment.amount
    payment.paid_date = payment.paid_date or tx.today
    is_known = tx.readable("status", "lines")  # what is due follows from both
    if invoice.status not in TAKES and is_known:
        why = "a draft: set its status to sent first" if invoice.status == "draft" else invoice.status
        tx.error("record_payment", f"Nothing is due: the invoice is {why}.")
        return None
    if payment.paid_date > tx.today:
        tx.error("record_payment.paid_date", f"Must not be in the future; today is {tx.today}.")
    if not is_known:
        return payment
    if not 0 < payment.amount <= invoice.balance_due:
        tx.error(where, f"Takes more than 0 and at most what is due: {invoice.balance_due}.")
    elif whole and payment.amount < invoice.balance_due:
        tx.error("status", f"Is not paid with {payment.amount}: {invoice.balance_due} is due. Leave status out.")
    try:
        minor_units(payment.amount, payment.currency)
    except ValueError as error:
        tx.error("record_payment.amount", str(error))
    return payment


def compare(tx: Tx, payment: Payment, earlier: Payment, *, whole: bool) -> None:
    """Note a fault unless a payment is the earlier one with its reference, sent again (contract 3.10)."""
    same_amount, same_day = payment.amount in {None, earlier.amount}, payment.paid_date in {None, earlier.paid_date}
    if not (same_amount and same_day):
        said = f"{earlier.amount} {earlier.currency} on {earlier.paid_date}"
        sentence = f"Is that of payment {earlier.id}: {said}. Give another payment another reference."
        tx.error("record_payment.reference", sentence)
    elif whole:
        sentence = f"Is not paid: {payment.reference} was recorded before. Leave record_payment out to pay the rest."
        tx.error("status", sentence)


def record(tx: Tx, payment: Payment) -> None:
    """Write a payment that was judged, and what it leaves due of its invoice."""
    added(tx, PAYMENTS, tx.insert(payments, payment))
    balance.recompute_balance(tx, payment.invoice_id, by_payment=True)


class Removed(msgspec.Struct):
    """A payment that was removed, and what became of its invoice."""

    payment_id: int
    amount: str
    currency: str
    invoice_id: int
    invoice_number: str
    invoice_status: str
    balance_due: str


def remove(store: Store, payment: int) -> Removed:
    """Remove a payment that was recorded by mistake; what it paid is due again. Raises `not_found`."""
    owner = store.unscoped_one("an operator names a payment of any account", OWNER, id=payment)
    if owner is None:
        raise Refusal("not_found", f"There is no payment {payment}.")
    with store.begin(operator(*owner), write=True) as tx:
        it = tx.get(payments, payment, Payment)
        removed(tx, PAYMENTS, payment)
        with changing_balance(tx, it.invoice_id):
            tx.delete(payments, payment)
            balance.recompute_balance(tx, it.invoice_id, by_payment=False)
        audit.note(tx, "payment removed", msgspec.to_builtins(it))
        number, status, due = tx.one(INVOICE, id=it.invoice_id) or ("", "", 0)
    return Removed(
        payment, str(it.amount), it.currency, it.invoice_id, number, status, str(amount_of(due, it.currency))
    )
