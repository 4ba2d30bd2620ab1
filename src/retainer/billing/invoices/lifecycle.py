"""Life cycle: the step of an invoice to another status, and the payment or refund that a request records. Pure."""

from decimal import Decimal
from typing import NamedTuple

from retainer.billing import discounts, offsets, payments, rules
from retainer.billing.invoices.draft import Draft
from retainer.billing.invoices.pricing import price_draft, service_days
from retainer.billing.invoices.types import CONTENTS, ClientSnapshot
from retainer.billing.invoices.unbilled import LeftOut
from retainer.billing.payment_types import Payment
from retainer.errors import NULL, BodyErrors
from retainer.shared import relations
from retainer.values.exact import day_after

TRANSITIONS = {
    "draft": ("sent",),
    "sent": ("paid", "void", "written_off"),
    "partially_paid": ("paid", "written_off"),
    "written_off": ("paid",),
    "paid": (),
    "void": (),
}
"""The statuses that a request can set. Payments and credit notes also lead to partially_paid and paid."""


class Step(NamedTuple):
    """What a request does besides changing fields."""

    status: str | None
    """The status that it leads to, or None; payments lead to `paid`."""
    payments: list[Payment]
    """A payment to record with its offset on another invoice, and a refund; refunds have negative amounts."""
    discount: Payment | None
    """The early-payment discount that belongs to the first of them."""
    left_out: list[LeftOut]


def complete(errors: BodyErrors, draft: Draft) -> Step:
    """Complete the invoice that a body describes, with all its errors noted; return the step that it takes."""
    invoice, former, left_out = draft.invoice, draft.former, list[LeftOut]()
    if draft.context is not None:
        rules.validate_project(errors, invoice, draft.before, draft.context.projects)
        left_out = price_draft(errors, draft.context, draft.matches)
    elif invoice.unbilled_work:
        errors.error("unbilled_work", f"Nothing can be added any more: this one is {former}.", "locked")
    relations.validate_transition(errors, former, draft.target, TRANSITIONS, "" if former == "draft" else rules.CREDIT)
    status = draft.target if draft.target in TRANSITIONS[former] else None
    if status == "sent":
        issue(errors, draft)
    elif status == "void":
        invoice.status, invoice.voided_at, invoice.balance_due = "void", draft.now, Decimal(0)
    elif status == "written_off":
        invoice.status, invoice.written_off_at = "written_off", draft.now
        if invoice.record_payment:
            errors.error("record_payment", "Record the payment first, then write off the rest.")
    if invoice.sent_at and invoice.due_date is None:
        errors.error("due_date", f"Must not be {NULL} once an invoice was issued.")
    if not invoice.is_imported:  # which keeps the days of the other program
        relations.validate_date_order(errors, invoice, "issue_date", "due_date")
    relations.validate_date_order(errors, invoice, "service_from", "service_to")
    return Step(status, *recorded(errors, draft, pays_all=status == "paid"), left_out)


def issue(errors: BodyErrors, draft: Draft) -> None:
    """Give a draft its dates and client snapshot; its number follows when it is written.

    An invoice with a total of 0 is paid at once. Notes an error for an invoice without lines, and for a negative total.
    """
    invoice, is_known = draft.invoice, errors.readable(*CONTENTS)
    if not invoice.lines and is_known:
        errors.error("status", "An invoice without lines cannot be sent. Add a line first.")
    elif invoice.total < 0 and is_known:
        errors.error("status", "An invoice cannot be negative. Credit the original invoice, or change the lines.")
    if draft.parties is None:
        return
    customer = draft.parties.customer
    snapshot = {name: getattr(customer, name) for name in ClientSnapshot.__struct_fields__}
    invoice.client_snapshot = ClientSnapshot(**snapshot)
    invoice.issue_date = invoice.issue_date or draft.today
    if draft.context is not None and invoice.service_from is None is invoice.service_to:
        days = service_days(draft.context)
        invoice.service_from, invoice.service_to = min(days, default=None), max(days, default=None)
    invoice.due_date = invoice.due_date or day_after(invoice.issue_date, draft.parties.client.payment_terms_days)
    invoice.status, invoice.sent_at = "sent", draft.now
    if invoice.total == 0:
        invoice.status, invoice.paid_at = "paid", draft.now


def recorded(errors: BodyErrors, draft: Draft, *, pays_all: bool) -> tuple[list[Payment], Payment | None]:
    """Return what to record on this invoice and on another, and the discount of the payment.

    What was recorded before, by its reference, is not recorded again.
    """
    invoice, today, found, discount = draft.invoice, draft.today, list[Payment | None](), None
    if invoice.record_payment or pays_all:
        sent = invoice.record_payment or None
        payment = payments.build_payment(errors, sent, draft, pays_all=pays_all)
        discount = None if errors.errors else discounts.build_discount(payment, invoice)
        found += [payment, offsets.build_counterpart(errors, payment, draft.offset)]
    if invoice.record_refund:
        found.append(payments.build_refund(errors, invoice.record_refund, invoice, today))
    return [payment for payment in found if payment is not None], discount
