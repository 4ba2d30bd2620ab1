"""Actions on the payments of an invoice: record one, and remove one that was recorded by mistake."""

from typing import NamedTuple

import msgspec

from retainer.billing import payments
from retainer.billing.invoices.types import Invoice, Payment, PaymentMethod
from retainer.console.actions import effects
from retainer.console.actions.basis import (
    ActionPage,
    Change,
    Consequences,
    check_state,
    errors_of,
    filled,
    note,
    options_of,
)
from retainer.console.actions.invoices import invoice_of, patch_invoice
from retainer.console.page_context import PageContext, Reply
from retainer.console.words import money, short_day
from retainer.errors import invalid
from retainer.identity.audit import Target
from retainer.schema.billing import invoices
from retainer.store.tx import Tx
from retainer.values.parameters import read_whole

FIELDS = ("amount", "paid_date", "method", "reference", "notes")

NAMES = {f"record_payment.{name}": name for name in FIELDS}
"""The fields of the form by the names of the API."""


class RemovablePayment(NamedTuple):
    """A payment, and what changes without it."""

    payment: Payment
    day: str
    amount: str
    changes: list[Change]


def obstacle_to_payment(invoice: Invoice) -> str:
    """Return why no payment can be recorded; empty if one can."""
    if invoice.status == "draft":
        return "It is a draft. Issue it first."
    if invoice.status not in payments.PAYABLE:
        return f"It is {effects.status_name(invoice.status)}, so nothing is due."
    return "" if invoice.balance_due > 0 else "Nothing is due on it."


def obstacle_to_removal(invoice: Invoice) -> str:
    """Return why no payment can be removed; empty if one can."""
    return "" if invoice.payments else "It has no payments."


def show_payment(tx: Tx, context: PageContext) -> Reply:
    """Show the form of a payment, with what is due as its amount."""
    invoice, consequences = invoice_of(tx, context), Consequences([], [])
    page = ActionPage("payment", invoices, "Record payment", obstacle_to_payment(invoice))
    if not page.obstacle:
        due = money(invoice.balance_due, invoice.currency)
        paid = invoice.amount_paid + invoice.balance_due
        sentences = [
            f"{due} is due. If the client has paid less, change the amount: the rest then stays due.",
            *(["The invoice was written off. A payment takes that back."] if invoice.status == "written_off" else []),
        ]
        changes = effects.balance_changes(tx, invoice, paid, invoice.amount_credited, is_payment=True)
        consequences = Consequences(sentences, changes)
    title = f"Record a payment on {invoice.number or 'draft'}"
    return page.render(invoice, consequences, title=title, methods=options_of(PaymentMethod), today=tx.today)


def record(tx: Tx, context: PageContext) -> Reply:
    """Record a payment. Raises `not_found`, `precondition_failed`, and the errors of the API."""
    before, form = invoice_of(tx, context), context.form
    check_state(tx, invoices, before, form)
    fields = {"amount": form.text("amount"), "paid_date": form.text("paid_date"), **filled(form, *FIELDS)}
    missing = {name: ["Is required."] for name in ("amount", "paid_date") if not fields[name]}
    if missing:
        raise invalid(missing)
    with errors_of(tx, NAMES):
        after = patch_invoice(tx, context, before, {"record_payment": fields})
    former = {payment.id for payment in before.payments}
    path = f"/records/invoices/{after.id}"
    new = next((payment for payment in after.payments if payment.id not in former), None)
    if new is None:
        notice = f"The payment {fields.get('reference')} was recorded before, so nothing was added."
        return context.redirect(path, notice, kind="warn")
    note(tx, "payment recorded", target_of(new, after), {}, msgspec.to_builtins(new))
    rest = f"{money(after.balance_due, after.currency)} is still due." if after.balance_due else "It is paid."
    return context.redirect(path, f"{money(new.amount, new.currency)} recorded on {after.number}. {rest}")


def show_removal(tx: Tx, context: PageContext) -> Reply:
    """Show the payments of an invoice, and what is due without each."""
    invoice = invoice_of(tx, context)
    page = ActionPage("payment_removal", invoices, "Remove payment", obstacle_to_removal(invoice), is_danger=True)
    sentences = [
        "Remove a payment only if it was recorded by mistake. This can't be undone; the audit log keeps its details.",
        "To give money back to the client, credit the invoice instead.",
    ]
    found = [
        RemovablePayment(
            payment,
            short_day(payment.paid_date),
            money(payment.amount, payment.currency),
            effects.balance_changes(tx, invoice, invoice.amount_paid - payment.amount, invoice.amount_credited),
        )
        for payment in invoice.payments
    ]
    title = f"Remove a payment from {invoice.number or 'draft'}"
    return page.render(invoice, Consequences(sentences, []), title=title, payments=found)


def remove(tx: Tx, context: PageContext) -> Reply:
    """Remove a payment. Raises `not_found`, `precondition_failed`, and `validation_failed` without a choice."""
    invoice, chosen = invoice_of(tx, context), read_whole(context.form.text("payment"))
    check_state(tx, invoices, invoice, context.form)
    if chosen not in {payment.id for payment in invoice.payments} or chosen is None:
        raise invalid({"payment": ["Select a payment."]})
    removed = payments.remove(tx, chosen)
    status = effects.status_name(removed.invoice_status)
    payment = next(payment for payment in invoice.payments if payment.id == chosen)
    notice = f"Payment of {money(payment.amount, payment.currency)} removed. {removed.invoice_number} is {status}."
    return context.redirect(f"/records/invoices/{invoice.id}", notice, kind="warn")


def target_of(payment: Payment, invoice: Invoice) -> Target:
    """Return a payment as the target of an action."""
    return Target("payment", payment.id, f"{payment.amount} {payment.currency} on {invoice.number}")
