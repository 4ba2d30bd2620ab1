"""Actions on the payments of an invoice: record one or a refund, and remove one that was recorded by mistake."""

from decimal import Decimal
from typing import Literal, NamedTuple

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
from retainer.values.exact import amount_of
from retainer.values.parameters import read_whole

FIELDS = ("amount", "paid_date", "method", "reference", "notes")


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


def obstacle_to_refund(invoice: Invoice) -> str:
    """Return why no refund can be recorded; empty if one can."""
    return "" if invoice.refund_due > 0 else "Nothing is to be refunded. Credit what was paid first."


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
    values = form_values(tx, invoice.balance_due, "If all is paid")
    return page.render(invoice, consequences, title=f"Record a payment on {invoice.number or 'draft'}", **values)


def show_refund(tx: Tx, context: PageContext) -> Reply:
    """Show the form of a refund, with what the client is owed as its amount."""
    invoice, consequences = invoice_of(tx, context), Consequences([], [])
    page = ActionPage("payment", invoices, "Record refund", obstacle_to_refund(invoice))
    if not page.obstacle:
        due, currency = invoice.refund_due, invoice.currency
        sentences = [
            f"{money(due, currency)} was paid and then credited. If you paid back less, change the amount.",
            "Retainer moves no money: pay it back first, then record it here.",
        ]
        changes = [
            Change("Paid", money(invoice.amount_paid, currency), money(invoice.amount_paid - due, currency)),
            Change("To refund", money(due, currency), money(amount_of(0, currency), currency)),
        ]
        consequences = Consequences(sentences, changes)
    values = form_values(tx, invoice.refund_due, "If all is refunded")
    return page.render(invoice, consequences, title=f"Record a refund of {invoice.number or 'draft'}", **values)


def form_values(tx: Tx, due: Decimal, then: str) -> dict[str, object]:
    """Return what the form of a payment or refund shows; `then` names the state after all of it."""
    return {"due": due, "then": then, "methods": options_of(PaymentMethod), "today": tx.today}


def record(tx: Tx, context: PageContext) -> Reply:
    """Record a payment. Raises `not_found`, `precondition_failed`, and the errors of the API."""
    after, new, reference = recorded(tx, context, "record_payment")
    if new is None:
        return repeated(context, after, f"The payment {reference}")
    note(tx, "payment recorded", target_of(new, after), {}, msgspec.to_builtins(new))
    rest = f"{money(after.balance_due, after.currency)} is still due." if after.balance_due else "It is paid."
    notice = f"{money(new.amount, new.currency)} recorded on {after.number}. {rest}"
    return context.redirect(f"/records/invoices/{after.id}", notice)


def record_refund(tx: Tx, context: PageContext) -> Reply:
    """Record a refund. Raises like `record`."""
    after, new, reference = recorded(tx, context, "record_refund")
    if new is None:
        return repeated(context, after, f"The refund {reference}")
    note(tx, "refund recorded", target_of(new, after), {}, msgspec.to_builtins(new))
    left = f"{money(after.refund_due, after.currency)} is" if after.refund_due else "Nothing is"
    notice = f"Refund of {money(-new.amount, new.currency)} recorded on {after.number}. {left} still to be refunded."
    return context.redirect(f"/records/invoices/{after.id}", notice)


def recorded(
    tx: Tx, context: PageContext, field: Literal["record_payment", "record_refund"]
) -> tuple[Invoice, Payment | None, str]:
    """Record what the form says through the function of the API.

    Returns the invoice, the new payment, and its reference; no payment if one with that reference was recorded before.
    """
    before, form = invoice_of(tx, context), context.form
    check_state(invoices, before, form)
    fields = {"amount": form.text("amount"), "paid_date": form.text("paid_date"), **filled(form, *FIELDS)}
    missing = {name: ["Is required."] for name in ("amount", "paid_date") if not fields[name]}
    if missing:
        raise invalid(missing)
    with errors_of(tx, {f"{field}.{name}": name for name in FIELDS}):
        after = patch_invoice(tx, context, before, {field: fields})
    former = {payment.id for payment in before.payments}
    new = next((payment for payment in after.payments if payment.id not in former), None)
    return after, new, form.text("reference")


def repeated(context: PageContext, invoice: Invoice, name: str) -> Reply:
    """Say that a payment or refund was recorded before."""
    notice = f"{name} was recorded before, so nothing was added."
    return context.redirect(f"/records/invoices/{invoice.id}", notice, kind="warn")


def show_removal(tx: Tx, context: PageContext) -> Reply:
    """Show the payments of an invoice, and what is due without each."""
    invoice = invoice_of(tx, context)
    page = ActionPage("payment_removal", invoices, "Remove payment", obstacle_to_removal(invoice), is_danger=True)
    sentences = [
        "Remove a payment only if it was recorded by mistake. This can't be undone; the audit log keeps its details.",
        "To give money back to the client, credit the invoice instead, and record the refund.",
    ]
    found = [
        RemovablePayment(
            payment,
            short_day(payment.paid_date),
            named_amount(payment),
            effects.balance_changes(tx, invoice, invoice.amount_paid - payment.amount, invoice.amount_credited),
        )
        for payment in invoice.payments
    ]
    title = f"Remove a payment from {invoice.number or 'draft'}"
    return page.render(invoice, Consequences(sentences, []), title=title, payments=found)


def remove(tx: Tx, context: PageContext) -> Reply:
    """Remove a payment. Raises `not_found`, `precondition_failed`, and `validation_failed` without a choice."""
    invoice, chosen = invoice_of(tx, context), read_whole(context.form.text("payment"))
    check_state(invoices, invoice, context.form)
    if chosen not in {payment.id for payment in invoice.payments} or chosen is None:
        raise invalid({"payment": ["Select a payment."]})
    with errors_of(tx, {"payments": "payment"}):
        removed = payments.remove(tx, chosen)
    status = effects.status_name(removed.invoice_status)
    payment = next(payment for payment in invoice.payments if payment.id == chosen)
    notice = f"{named_amount(payment)} removed. {removed.invoice_number} is {status}."
    return context.redirect(f"/records/invoices/{invoice.id}", notice, kind="warn")


def named_amount(payment: Payment) -> str:
    """Return the kind and the amount of a payment: `Refund of 30.00 EUR`."""
    return f"{payment.kind.capitalize()} of {money(abs(payment.amount), payment.currency)}"


def target_of(payment: Payment, invoice: Invoice) -> Target:
    return Target("payment", payment.id, f"{payment.amount} {payment.currency} on {invoice.number}")
