"""Actions on the payments of an invoice: record one or a refund, and remove one that was recorded by mistake."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, ClassVar

from retainer.billing import payments
from retainer.billing.invoices.types import Invoice, Payment
from retainer.console.actions.action import Seen
from retainer.console.actions.invoices import InvoiceAction
from retainer.console.editing.fields import Field, choose_fields
from retainer.console.page_context import PageContext
from retainer.console.typed import number_text
from retainer.console.words import money, short_day
from retainer.errors import invalid
from retainer.identity import accounts, audit
from retainer.schema import billing
from retainer.store.tx import Tx

FIELDS = choose_fields(Payment, billing.payments, "amount", "paid_date", "method", "reference", "notes")


class RecordPayment(InvoiceAction):
    """Record what a client has paid."""

    path, label, title, button = "payment", "Record payment…", "Record a payment on {name}", "Record payment"
    audited: ClassVar[audit.Action | None] = "payment recorded"
    within = "record_payment"

    def due(self, record: Invoice) -> Decimal:
        return record.balance_due

    def is_offered(self, record: Invoice) -> bool:
        return record.status in payments.PAYABLE and record.balance_due > 0

    def is_next(self, record: Invoice) -> bool:
        return record.status != "written_off"

    def fields(self, record: Invoice) -> Sequence[Field]:
        amount, day, method, reference, notes = FIELDS
        amount = amount._replace(label=f"Amount, {record.currency}", hint="", is_required=True)
        return [
            amount,
            day._replace(label="Payment date", hint="", is_required=True),
            method,
            reference._replace(hint="For example, that of the bank. On an invoice, each is recorded once."),
            notes._replace(label="Internal notes", hint=""),
        ]

    def preset(self, tx: Tx, record: Invoice) -> dict[str, str]:
        language = str(accounts.get_account(tx)["document_language"])
        amount = number_text(self.due(record), language, is_money=True)
        return {"amount": amount, "paid_date": tx.today, "method": "bank_transfer"}

    def build_body(self, record: Invoice, values: dict[str, object]) -> dict[str, object]:  # noqa: ARG002
        missing = {name: ["Is required."] for name in ("amount", "paid_date") if name not in values}
        if missing:
            raise invalid(missing)
        return {self.within: values}

    def advice(self, record: Invoice) -> Sequence[str]:
        return [
            f"{money(self.due(record), record.currency)} is due. If the client has paid less, change the amount.",
            *(["The invoice was written off. A payment takes that back."] if record.status == "written_off" else []),
        ]

    def notice(self, seen: Seen[Invoice]) -> str:
        after, new = seen.after, new_payment(seen)
        if new is None:
            return "A payment with this reference was recorded before, so nothing was added."
        rest = f"{money(after.balance_due, after.currency)} is still due." if after.balance_due else "It is paid."
        return f"{money(new.amount, new.currency)} recorded on {after.number}. {rest}"


class RecordRefund(RecordPayment):
    """Record what was paid back to a client."""

    path, label, title, button = "refund", "Record refund…", "Record a refund of {name}", "Record refund"
    audited = "refund recorded"
    within = "record_refund"

    def due(self, record: Invoice) -> Decimal:
        return record.refund_due

    def is_offered(self, record: Invoice) -> bool:
        return record.refund_due > 0

    def is_next(self, record: Invoice) -> bool:  # noqa: ARG002
        return True

    def advice(self, record: Invoice) -> Sequence[str]:
        due = money(record.refund_due, record.currency)
        return [
            f"{due} was paid and then credited. If you paid back less, change the amount.",
            "Retainer moves no money: pay it back first, then record it here.",
        ]

    def notice(self, seen: Seen[Invoice]) -> str:
        after, new = seen.after, new_payment(seen)
        if new is None:
            return "A refund with this reference was recorded before, so nothing was added."
        left = f"{money(after.refund_due, after.currency)} is" if after.refund_due else "Nothing is"
        return f"Refund of {money(-new.amount, new.currency)} recorded on {after.number}. {left} still to be refunded."


class RemovePayment(InvoiceAction):
    """Remove a payment or refund that was recorded by mistake."""

    path, label, button = "remove-payment", "Remove payment…", "Remove payment"
    title = "Remove a payment from {name}"
    audited = None  # the function notes it itself
    is_danger = True

    def is_offered(self, record: Invoice) -> bool:
        return bool(record.payments)

    def fields(self, record: Invoice) -> Sequence[Field]:
        found = [(str(payment.id), payment_text(payment)) for payment in record.payments]
        options = found if len(found) == 1 else [("", "Select…"), *found]
        return [Field("payment", "Payment", "choice", is_required=True, options=tuple(options))]

    def preset(self, tx: Tx, record: Invoice) -> dict[str, str]:  # noqa: ARG002
        return {"payment": str(record.payments[0].id) if len(record.payments) == 1 else ""}

    def build_body(self, record: Invoice, values: dict[str, object]) -> dict[str, object]:
        if not record.payments:
            raise invalid({"": ["This invoice has no payments."]})
        if values.get("payment") not in {str(payment.id) for payment in record.payments}:
            raise invalid({"payment": ["Select a payment."]})
        return values

    def field_of(self, path: str, body: dict[str, Any]) -> str:  # noqa: ARG002
        return "payment" if path == "payments" else path

    def run(self, tx: Tx, context: PageContext, record: Invoice, body: dict[str, object]) -> Any:  # noqa: ARG002
        return payments.remove(tx, int(str(body["payment"])))

    def advice(self, record: Invoice) -> Sequence[str]:  # noqa: ARG002
        return [
            "Remove a payment only if it was recorded by mistake. This can't be undone; the audit log keeps it.",
            "To give money back to the client, credit the invoice instead, and record the refund.",
        ]

    def notice(self, seen: Seen[Invoice]) -> str:
        left = {payment.id for payment in seen.after.payments}
        (removed,) = (payment for payment in seen.before.payments if payment.id not in left)
        status = seen.after.status.replace("_", " ")
        amount = f"{removed.kind.capitalize()} of {money(abs(removed.amount), removed.currency)}"
        return f"{amount} removed. {seen.after.number} is {status}."


def payment_text(payment: Payment) -> str:
    """Return a payment as an option: `Payment of 30.00 EUR on 3 Sep 2026, card, TX-1`."""
    amount = f"{payment.kind.capitalize()} of {money(abs(payment.amount), payment.currency)}"
    parts = [f"{amount} on {short_day(payment.paid_date)}", payment.method.replace("_", " "), payment.reference]
    return ", ".join(part for part in parts if part)


def new_payment(seen: Seen[Invoice]) -> Payment | None:
    """Return the payment that was recorded; None if one with its reference was recorded before."""
    former = {payment.id for payment in seen.before.payments}
    return next((payment for payment in seen.after.payments if payment.id not in former), None)
