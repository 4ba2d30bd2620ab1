"""Actions on the payments of an invoice: record a payment or a refund, and remove one."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from sqlalchemy import bindparam, select

from retainer.billing import balance, discounts, papers, payments
from retainer.billing.invoices.types import Invoice
from retainer.billing.payment_types import Payment, discounts_of
from retainer.console.actions.action import Action, Stage
from retainer.console.catalogue import Kind
from retainer.console.controls.control import Field, Options
from retainer.console.controls.plain import Choice, Flag, IdChoice
from retainer.console.editing.calls import take_unreadable
from retainer.console.editing.fields import choose_fields
from retainer.console.editing.sheet import Sheet
from retainer.console.page_context import PageContext
from retainer.console.typed import number_text
from retainer.console.values import NUMBERS, Values
from retainer.console.words import LANGUAGE, money, short_day
from retainer.documents.facts import EarlyPayment, early_payment
from retainer.errors import FieldErrors, invalid
from retainer.schema import billing
from retainer.schema.billing import has_refund_due, invoices
from retainer.store.tx import Tx
from retainer.values.exact import amount_of
from retainer.values.kinds import read_day

AMOUNT, DAY, METHOD, REFERENCE, NOTES = choose_fields(
    Payment, billing.payments, "amount", "paid_date", "method", "reference", "notes"
)
METHODS = METHOD._replace(control=Choice(tuple(each for each in METHOD.control.options if each[0] != "offset")))
OTHERS = (
    METHODS,
    REFERENCE._replace(hint="For example, the bank's. Must differ from the invoice's other payments."),
    NOTES._replace(label="Internal notes", hint=""),
)


SURPLUS = Field(
    "allow_surplus", "Keep the surplus to refund", Flag(), "What is above the balance due is to be refunded."
)
EARLY = Field("early_payment_discount", "", Flag())
LATE = Field("force", "Grant it after its last day", Flag())
OTHER_DAY = Field("is_other_day", "The date is right", Flag(), "Reports count the money on this date.")


OFFSET = Field(
    *("offset_invoice_id", "Paid with", IdChoice(), "What is to be refunded on an invoice is then refunded there."),
    empty="Money from the client",
)
REFUNDABLE = (
    select(*invoices.c["id", "number"], balance.refund_due(invoices))
    .where(has_refund_due(invoices), invoices.c.status != "void", invoices.c.id != bindparam("id"))
    .where(invoices.c.client_id == bindparam("client_id"), invoices.c.currency == bindparam("currency"))
    .order_by(invoices.c.id.desc())
    .limit(100)
)


def refundable(tx: Tx, invoice: Invoice) -> Options:
    """Return the other invoices of the client with money to refund in this currency, as options."""
    currency = invoice.currency
    rows = tx.all(REFUNDABLE, id=invoice.id, client_id=invoice.client_id, currency=currency)
    return tuple(
        (str(key), f"{number}: {money(amount_of(due, currency), currency)} to refund") for key, number, due in rows
    )


def offer_of(terms: EarlyPayment, invoice: Invoice) -> Field:
    allowed = discounts.allowed_by(terms, invoice)
    least, most = (money(amount, invoice.currency) for amount in (invoice.balance_due - allowed, allowed))
    label = f"Settle with {NUMBERS['percent'](terms.percent)} early-payment discount ({most})"
    hint = f"For {least} by {short_day(terms.last_day)}. The discount lowers revenue and tax on the payment date."
    return EARLY._replace(label=label, hint=hint)


class PaymentAction(Action, frozen=True, kw_only=True):
    """Record a payment, or a refund: all of what is due, unless the form says otherwise.

    The form asks back, with a box for each, about a surplus, about a discount after its last day, and about a date that
    is likely to be mistyped.
    """

    due: str
    """The field of the invoice that says what is due."""

    def load_terms(self, tx: Tx, invoice: Invoice) -> EarlyPayment | None:
        """Return the early-payment discount of an invoice while some of it can be granted; none of a refund."""
        terms = early_payment(papers.load_paper(tx, invoice)) if self.due == "balance_due" else None
        return terms if terms and discounts.allowed_by(terms, invoice) else None

    def sheet(self, kind: Kind, tx: Tx, context: PageContext, record: Invoice) -> Sheet:
        sheet = super().sheet(kind, tx, context, record)
        if self.due == "balance_due" and (options := refundable(tx, record)):
            sheet.fields = [OFFSET._replace(control=IdChoice(options)), *sheet.fields]
        terms = self.load_terms(tx, record)
        if terms is not None:
            sheet.fields = [offer_of(terms, record), *sheet.fields]
        sheet.fields = [*sheet.fields, *self.questions(sheet, record, terms)]
        return sheet

    def questions(self, sheet: Sheet, record: Invoice, terms: EarlyPayment | None) -> dict[Field, str]:
        """Return the boxes that what the form says needs, each with its question."""
        found = dict[Field, str]()
        amount, day = sheet.typed("amount"), sheet.typed("paid_date")
        if terms is not None and sheet.typed(EARLY.name) is True:
            if isinstance(day, str) and day > terms.last_day:
                last = short_day(terms.last_day)
                found[LATE] = f"The discount ended on {last}. Tick this to grant it all the same, or change the date."
        elif self.due == "balance_due" and isinstance(amount, str) and Decimal(amount) > record.balance_due > 0:
            surplus = money(Decimal(amount) - record.balance_due, record.currency)
            found[SURPLUS] = f"{surplus} is above the balance due. Tick this to keep it, or change the amount."
        if isinstance(day, str) and (why := doubt_about(day, record, sheet.tx.today)):
            found[OTHER_DAY] = f"{short_day(day)} {why}. Tick this if it is right, or change the date."
        return found

    def fields_of(self, _: Invoice) -> Sequence[Field]:
        day = DAY._replace(label=f"{self.path.capitalize()} date", hint="", is_required=True)
        return AMOUNT._replace(hint="", is_required=True), day, *OTHERS

    def preset(self, tx: Tx, record: Invoice) -> dict[str, str]:
        amount = number_text(getattr(record, self.due), LANGUAGE.get(), is_money=True)
        return {"amount": amount, "paid_date": tx.today, "method": "bank_transfer"}

    def build_body(self, record: Invoice, values: dict[str, Any], _errors: FieldErrors) -> dict[str, Any]:
        if OFFSET.name in values:
            values = values | {"method": "offset"}
        recorded = {name: value for name, value in values.items() if name not in {SURPLUS.name, OTHER_DAY.name}}
        amount = values.get("amount")
        if values.get(EARLY.name) is True and isinstance(amount, str) and Decimal(amount) == record.balance_due:
            del recorded["amount"]  # as the form presets it: the API takes the discount off
        return {f"record_{self.path}": recorded}

    def facts(self, stage: Stage, values: Values) -> dict[str, Any]:
        former = {payment.id for payment in stage.record.payments}
        new = [each for each in discounts_of((stage.after or stage.record).payments) if each.id not in former]
        discount = money(new[0].amount, new[0].currency) if new else ""
        return super().facts(stage, values) | {"discount": discount}

    def run(self, stage: Stage, body: dict[str, Any]) -> Any:
        """Record it, and only then ask: what was recorded before, or cannot be recorded, needs no answer."""
        questions = self.questions(stage.sheet, stage.record, self.load_terms(stage.tx, stage.record))
        body[f"record_{self.path}"] |= {field.name: True for field in (SURPLUS, LATE) if field in questions}
        made = super().run(stage, body)
        unanswered = {
            field.name: [text] for field, text in questions.items() if stage.values.get(field.name) is not True
        }
        if unanswered and len(made.data.payments) > len(stage.record.payments):
            raise invalid(unanswered)
        return made


def doubt_about(day: str, invoice: Invoice, today: str) -> str:
    """Return why the day of a payment is likely to be mistyped; empty if it is not, or is no day."""
    try:
        read_day(day)
    except ValueError:
        return ""
    if day[:4] != today[:4]:
        return "is in another year"
    return "is before the invoice's issue date" if day < (invoice.issue_date or day) else ""


class RemovePayment(Action, frozen=True, kw_only=True):
    def fields_of(self, record: Invoice) -> Sequence[Field]:
        found = [(str(payment.id), payment_text(payment)) for payment in record.payments if payment.payment_id is None]
        empty = "Select…" if len(found) > 1 else ""
        has_offset = any(payment.offset_invoice_id for payment in record.payments)
        has_discount = len(found) < len(record.payments)
        hints = [(has_offset, "An offset is removed on both invoices.")]
        hints.append((has_discount, "A discount is removed with its payment."))
        hint = " ".join(text for is_said, text in hints if is_said)
        field = Field("payments", "Payment", IdChoice(tuple(found)), hint, is_required=True, empty=empty)
        return [field] if found else []

    def preset(self, _: Tx, record: Invoice) -> dict[str, str]:
        own = [payment.id for payment in record.payments if payment.payment_id is None]
        return {"payments": str(own[0]) if len(own) == 1 else ""}

    def run(self, stage: Stage, body: dict[str, Any]) -> Any:
        if not stage.record.payments:
            raise invalid({"": ["This invoice has no payments."]})
        take_unreadable(body).raise_errors()
        return payments.remove(stage.tx, body["payments"])


def payment_text(payment: Payment) -> str:
    """Return a payment as an option: `Payment of 30.00 EUR on 3 Sep 2026, card, TX-1`."""
    amount = f"{payment.kind.capitalize()} of {money(abs(payment.amount), payment.currency)}"
    parts = [f"{amount} on {short_day(payment.paid_date)}", payment.method.replace("_", " "), payment.reference]
    return ", ".join(part for part in parts if part)
