"""Actions on the payments of an invoice: record one or a refund, and remove one that was recorded by mistake."""

from collections.abc import Sequence
from typing import Any

from retainer.billing import payments
from retainer.billing.invoices.types import Invoice, Payment
from retainer.console.actions.action import Action, Stage
from retainer.console.editing.fields import Field, choose_fields
from retainer.console.typed import number_text
from retainer.console.words import money, short_day
from retainer.errors import invalid
from retainer.identity import accounts
from retainer.schema import billing
from retainer.store.tx import Tx

AMOUNT, DAY, METHOD, REFERENCE, NOTES = choose_fields(
    Payment, billing.payments, "amount", "paid_date", "method", "reference", "notes"
)
OTHERS = (
    DAY._replace(label="Payment date", hint="", is_required=True),
    METHOD,
    REFERENCE._replace(hint="For example, that of the bank. On an invoice, each is recorded once."),
    NOTES._replace(label="Internal notes", hint=""),
)


class RecordPayment(Action, frozen=True, kw_only=True):
    """Record a payment, or a refund: all of what is due, unless the form says otherwise."""

    due: str
    """The field of the invoice that says what is due."""
    within: str
    """The field of the body that has the payment."""

    def fields_of(self, record: Invoice) -> Sequence[Field]:
        return AMOUNT._replace(label=f"Amount, {record.currency}", hint="", is_required=True), *OTHERS

    def preset(self, tx: Tx, record: Invoice) -> dict[str, str]:
        amount = number_text(getattr(record, self.due), accounts.get_account(tx)["document_language"], is_money=True)
        return {"amount": amount, "paid_date": tx.today, "method": "bank_transfer"}

    def build_body(self, _: Invoice, values: dict[str, Any]) -> dict[str, Any]:
        missing = {name: ["Is required."] for name in ("amount", "paid_date") if name not in values}
        if missing:
            raise invalid(missing)
        return {self.within: values}


class RemovePayment(Action, frozen=True, kw_only=True):
    """Remove one of the payments."""

    def fields_of(self, record: Invoice) -> Sequence[Field]:
        found = [(str(payment.id), payment_text(payment)) for payment in record.payments]
        options = found if len(found) == 1 else [("", "Select…"), *found]
        return [Field("payment", "Payment", "choice", is_required=True, options=tuple(options))]

    def preset(self, _: Tx, record: Invoice) -> dict[str, str]:
        return {"payment": str(record.payments[0].id) if len(record.payments) == 1 else ""}

    def build_body(self, record: Invoice, values: dict[str, Any]) -> dict[str, Any]:
        if not record.payments:
            raise invalid({"": ["This invoice has no payments."]})
        if values.get("payment") not in {str(payment.id) for payment in record.payments}:
            raise invalid({"payment": ["Select a payment."]})
        return values

    def field_of(self, path: str, _: dict[str, Any]) -> str:
        return path.removesuffix("s")

    def run(self, stage: Stage, body: dict[str, Any]) -> Any:
        return payments.remove(stage.tx, int(body["payment"]))


def payment_text(payment: Payment) -> str:
    """Return a payment as an option: `Payment of 30.00 EUR on 3 Sep 2026, card, TX-1`."""
    amount = f"{payment.kind.capitalize()} of {money(abs(payment.amount), payment.currency)}"
    parts = [f"{amount} on {short_day(payment.paid_date)}", payment.method.replace("_", " "), payment.reference]
    return ", ".join(part for part in parts if part)
